//! Markdown (GitHub flavour) to HTML blocks, whole or as it streams in.
//!
//! What an open text shows is a function of the text so far, never of where it was cut. A block, and
//! an item or row of a list or table at the top level, is *sealed* once no later text but a
//! definition can change it; sealed pieces are neither parsed nor sent again until the text closes.
//!
//! Three rules keep early pieces stable while later text comes:
//! - The text of a list item always stands in a `<p>`: a blank line that makes a list loose changes
//!   nothing. The stylesheet decides about space.
//! - A last line without its newline that has only marker characters (`-`, `=`, `|`, a fence) is held
//!   back if it may still end the paragraph or code above it. So `closed(text)` is
//!   `open(text + "\n")`, but for what definitions and highlighting change.
//! - While a text is open a footnote shows as its source, `[^1]`: numbers need the whole text.
//!
//! All text is untrusted: raw HTML shows as text, links go to http, https and mailto only, pictures
//! are not fetched, and ids and classes never come from the text.

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

/// What the text so far shows.
pub fn open(text: &str, prefix: &str) -> Vec<Block> {
    let mut stream = Stream::new(prefix);
    stream.push(text);
    stream.into_blocks()
}

/// What the text shows once no more will come.
pub fn closed(text: &str, prefix: &str) -> Vec<Block> {
    parse::closed(&plain_lines(text), prefix, &mut parse::Highlights::default())
}

/// The blocks as children of the element that has the id `prefix`.
pub fn html(blocks: &[Block]) -> String {
    blocks.iter().map(Block::html).collect()
}

/// Line ends are `\n`, and NUL is what CommonMark says it is, so that nothing below meets either.
fn plain_lines(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\0']) {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
