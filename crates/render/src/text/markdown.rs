//! Markdown (GitHub flavour) to HTML blocks, whole or as it streams in.
//!
//! The blocks of an open text depend on the text so far, never on how it was split. A block, and an item or
//! row of a top-level list or table, is *sealed* once no later text except a definition can change it;
//! sealed pieces are neither parsed nor sent again until the text closes.
//!
//! Three rules keep early pieces stable while text arrives:
//! - The text of a list item is always in a `<p>`, so that a blank line that makes a list loose changes
//!   nothing. The stylesheet sets the spacing.
//! - A last line without newline that has only marker characters (`-`, `=`, `|`, a fence) is held back if it
//!   may still end the paragraph or code above it. So `closed(text)` equals `open(text + "\n")`, except for
//!   definitions and highlighting.
//! - While a text is open, a footnote is shown as its source, `[^1]`, because numbers need the whole text.
//!
//! All text is untrusted: raw HTML is shown as text, links go to http, https and mailto only, images are
//! not fetched, and ids and classes never come from the text.

mod block;
mod inline;
mod parse;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

pub use block::Block;
pub use stream::Stream;

use std::borrow::Cow;

/// Returns the blocks of an open Markdown text, which may continue. `prefix` is the id of their
/// parent element.
pub fn open(text: &str, prefix: &str) -> Vec<Block> {
    let mut stream = Stream::new(prefix);
    stream.push(text);
    stream.into_blocks()
}

/// Returns the blocks of a complete Markdown text. `prefix` is the id of their parent element.
pub fn closed(text: &str, prefix: &str) -> Vec<Block> {
    parse::closed(&plain_lines(text), prefix, &mut parse::Highlights::default())
}

/// Returns the HTML of Markdown blocks, for an element whose id is their prefix.
pub fn html(blocks: &[Block]) -> String {
    blocks.iter().map(Block::html).collect()
}

/// Normalises the line ends of a text to `\n`, and replaces NUL as CommonMark requires.
fn plain_lines(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\0']) {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
