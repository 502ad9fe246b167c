//! Configuration of the Markdown parser, and conversion of its events to blocks.

use std::collections::HashMap;

use pulldown_cmark::{BrokenLink, CowStr, Options, Parser, TextMergeWithOffset};

use super::block::Block;
use super::writer::footnotes::Footnotes;
use super::writer::{Placed, Writer};
use crate::text::code::Language;

/// Link definitions of sealed Markdown text: label (see [`label_key`]) to URL and title.
pub(super) type Definitions = HashMap<String, (String, String)>;

/// Cache of highlighted code as HTML, by language and code, so that a fence in an open list item is
/// not highlighted repeatedly.
pub(super) type Highlights = HashMap<(Language, String), String>;

/// Numbers of the first block, and of its first child, that a parse of Markdown creates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    pub(super) block: usize,
    pub(super) child: usize,
}

pub(super) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
}

pub(super) fn closed(text: &str, prefix: &str, highlights: &mut Highlights) -> Vec<Block> {
    let events = TextMergeWithOffset::new(Parser::new_ext(text, options()).into_offset_iter());
    let events: Vec<_> = events.collect();
    let footnotes = Footnotes::of(events.iter().map(|(event, _)| event));
    let mut writer = Writer::new(text, prefix, Position::default(), Some(footnotes), highlights);
    for (event, range) in events {
        writer.event(event, range);
    }
    writer.finish().into_iter().map(|it| it.block).collect()
}

/// Blocks and link definitions from parsing a part of an open Markdown text.
pub(super) struct Parsed {
    pub(super) blocks: Vec<Placed>,
    pub(super) definitions: Vec<Definition>,
}

pub(super) struct Definition {
    pub(super) end: usize,
    pub(super) label: String,
    pub(super) target: (String, String),
}

pub(super) fn open(
    text: &str,
    prefix: &str,
    at: Position,
    known: &Definitions,
    highlights: &mut Highlights,
) -> Parsed {
    let lookup = |link: BrokenLink<'_>| {
        let (url, title) = known.get(&label_key(&link.reference))?;
        Some((CowStr::from(url.clone()), CowStr::from(title.clone())))
    };
    let parser = Parser::new_with_broken_link_callback(text, options(), Some(lookup));
    let definitions = parser.reference_definitions().iter().map(|(label, found)| {
        let title = found.title.as_deref().unwrap_or_default().to_owned();
        let target = (found.dest.to_string(), title);
        Definition { end: found.span.end, label: label_key(label), target }
    });
    let definitions = definitions.collect();
    let mut writer = Writer::new(text, prefix, at, None, highlights);
    for (event, range) in TextMergeWithOffset::new(parser.into_offset_iter()) {
        writer.event(event, range);
    }
    Parsed { blocks: writer.finish(), definitions }
}

fn label_key(label: &str) -> String {
    label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
