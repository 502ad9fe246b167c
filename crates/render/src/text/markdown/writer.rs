//! Converts parser events to HTML, block by block.
//!
//! It keeps its own stack instead of recursing, because input may nest quotes ten thousand deep.

mod elements;
pub(super) mod footnotes;

use std::fmt::Write;
use std::mem::take;
use std::ops::Range;

use pulldown_cmark::{Alignment, BlockQuoteKind, CodeBlockKind, Event, LinkType, Tag, TagEnd};

use super::block::{Block, Body, Leaf, LeafKind, Piece};
use super::inline;
use super::parse::{Highlights, Position};
use crate::html::escape::push_escaped;
use crate::text::code::{self, Language};
use footnotes::Footnotes;

const HEADINGS: [(&str, &str); 6] = [
    ("h1", "</h1>"),
    ("h2", "</h2>"),
    ("h3", "</h3>"),
    ("h4", "</h4>"),
    ("h5", "</h5>"),
    ("h6", "</h6>"),
];

/// Block of a Markdown text, with its kind and position in the parsed source.
pub(super) struct Placed {
    pub(super) block: Block,
    pub(super) kind: Kind,
    /// Byte offset of the start of the block's first line.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Byte offsets of the line starts of the block's items or rows.
    pub(super) child_starts: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Paragraph,
    Heading,
    Rule,
    Fence { is_closed: bool },
    Quote,
    List,
    Table,
    Other,
}

/// Open block element of the HTML being written. If `close` is empty, the block has no element of
/// its own.
#[derive(Default)]
struct Frame {
    close: &'static str,
    leaf: Option<(String, LeafKind)>,
    /// Whether the frame is a list item, whose text is always in a paragraph. The parser omits the
    /// paragraph in tight lists.
    is_item: bool,
    is_item_paragraph: bool,
}

struct Image {
    url: String,
    title: String,
    alt: String,
    nested: usize,
}

/// Text of a code block or of raw HTML that is being collected.
struct Literal {
    text: String,
    code: Option<Fenced>,
}

/// Properties of a Markdown code block that are known before its text.
struct Fenced {
    language: Option<Language>,
    /// Name of the code block's language; as written if the language is unknown.
    word: String,
    state: FenceState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FenceState {
    Open,
    Complete,
}

pub(super) struct Writer<'a> {
    source: &'a str,
    prefix: &'a str,
    at: Position,
    /// Footnotes of a complete text; `None` for an open text, which shows their source.
    footnotes: Option<Footnotes>,
    highlights: &'a mut Highlights,
    done: Vec<Placed>,

    /// Kind of the top-level block being written. The fields up to `child_starts` describe the same
    /// block.
    kind: Kind,
    head: String,
    foot: &'static str,
    children: Vec<Piece>,
    child_starts: Vec<usize>,

    /// HTML of the piece being written. The fields up to `text_end` describe the same piece.
    out: String,
    leaf: Option<Leaf>,
    n_leaves: usize,
    text_end: usize,

    frames: Vec<Frame>,
    literal: Option<Literal>,
    image: Option<Image>,
    link_close: Option<String>,
    alignments: Vec<Alignment>,
    cell: usize,
    in_head: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        source: &'a str,
        prefix: &'a str,
        at: Position,
        footnotes: Option<Footnotes>,
        highlights: &'a mut Highlights,
    ) -> Self {
        Self {
            source,
            prefix,
            at,
            footnotes,
            highlights,
            done: Vec::new(),
            kind: Kind::Other,
            head: String::new(),
            foot: "",
            children: Vec::new(),
            child_starts: Vec::new(),
            out: String::new(),
            leaf: None,
            n_leaves: 0,
            text_end: 0,
            frames: Vec::new(),
            literal: None,
            image: None,
            link_close: None,
            alignments: Vec::new(),
            cell: 0,
            in_head: false,
        }
    }

    pub(super) fn finish(self) -> Vec<Placed> {
        self.done
    }

    pub(super) fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        if self.image.is_some() {
            return self.image_event(event);
        }
        match event {
            Event::Start(Tag::Paragraph) if self.adopt_item_paragraph() => (),
            Event::Start(tag) if is_block(&tag) => {
                self.close_item_paragraph();
                if self.frames.is_empty() {
                    self.kind = kind_of(&tag, &self.source[range.clone()]);
                }
                self.start_block(tag, range);
            }
            Event::End(tag) if is_block_end(tag) => {
                self.close_item_paragraph();
                self.end_block(tag, range);
            }
            Event::Rule => {
                self.close_item_paragraph();
                if self.frames.is_empty() {
                    self.kind = Kind::Rule;
                }
                let id = self.top_id();
                let _ = write!(self.out, "<hr{id}>");
                if self.frames.is_empty() {
                    self.end_top(range);
                }
            }
            inline => self.inline(inline, range),
        }
    }

    fn inline(&mut self, event: Event<'_>, range: Range<usize>) {
        if let Some(literal) = &mut self.literal {
            if let Event::Text(text) | Event::Html(text) = event {
                literal.text.push_str(&text);
                self.text_end = range.end;
            }
            return;
        }
        self.open_item_paragraph();
        self.text_end = self.text_end.max(range.end);
        match event {
            Event::Text(text) if self.link_close.is_none() => {
                inline::push_text(&mut self.out, &text)
            }
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => {
                push_escaped(&mut self.out, &text);
            }
            Event::Code(text) => {
                self.out.push_str("<code>");
                push_escaped(&mut self.out, &text);
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>\n"),
            Event::TaskListMarker(is_done) => {
                let (checked, word) = if is_done { (" checked", "done") } else { ("", "to do") };
                let _ = write!(
                    self.out,
                    "<input type=\"checkbox\" disabled{checked} aria-label=\"{word}\"> "
                );
            }
            Event::FootnoteReference(label) => self.footnote_reference(&label),
            Event::Start(Tag::Emphasis) => self.out.push_str("<em>"),
            Event::End(TagEnd::Emphasis) => self.out.push_str("</em>"),
            Event::Start(Tag::Strong) => self.out.push_str("<strong>"),
            Event::End(TagEnd::Strong) => self.out.push_str("</strong>"),
            Event::Start(Tag::Strikethrough) => self.out.push_str("<del>"),
            Event::End(TagEnd::Strikethrough) => self.out.push_str("</del>"),
            Event::Start(Tag::Link { link_type, dest_url, title, .. }) => {
                let scheme = if link_type == LinkType::Email { "mailto:" } else { "" };
                let url = format!("{scheme}{dest_url}");
                self.link_close = Some(inline::open_link(&mut self.out, &url, &title));
            }
            Event::End(TagEnd::Link) => {
                let close = self.link_close.take().unwrap_or_default();
                self.out.push_str(&close);
            }
            Event::Start(Tag::Image { dest_url, title, .. }) => {
                let (url, title) = (dest_url.into_string(), title.into_string());
                self.image = Some(Image { url, title, alt: String::new(), nested: 0 });
            }
            // Extensions that are not enabled.
            _ => (),
        }
    }

    /// Handles an event inside an image, whose description becomes the alternative text.
    fn image_event(&mut self, event: Event<'_>) {
        let Some(image) = &mut self.image else { return };
        match event {
            Event::Start(_) => image.nested += 1,
            Event::End(_) if image.nested > 0 => image.nested -= 1,
            Event::End(_) => {
                let in_link = self.link_close.is_some();
                inline::push_image(&mut self.out, &image.url, &image.title, &image.alt, in_link);
                self.image = None;
            }
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => {
                image.alt.push_str(&text);
            }
            Event::FootnoteReference(label) => {
                let _ = write!(image.alt, "[^{label}]");
            }
            _ => image.alt.push(' '),
        }
    }

    fn start_block(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph => self.open_leaf("p", "</p>", LeafKind::Paragraph),
            Tag::Heading { level, .. } => {
                let (name, close) = HEADINGS[level as usize - 1];
                self.open_leaf(name, close, LeafKind::Heading);
            }
            Tag::BlockQuote(kind) => {
                let class = kind.map_or("", alert_class);
                self.open_container("<blockquote", class, "</blockquote>");
            }
            Tag::List(None) => self.open_container("<ul", "", "</ul>"),
            Tag::List(Some(1)) => self.open_container("<ol", "", "</ol>"),
            Tag::List(Some(first)) => {
                self.open_container("<ol", &format!(" start=\"{first}\""), "</ol>");
            }
            Tag::Item => {
                self.open_child("<li", "</li>", range);
                if let Some(frame) = self.frames.last_mut() {
                    frame.is_item = true;
                }
            }
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.open_container("<table", " tabindex=\"0\"", "</tbody></table>");
            }
            Tag::TableHead => {
                self.in_head = true;
                self.cell = 0;
                self.open_within("<thead><tr>", "</tr></thead>");
            }
            Tag::TableRow => {
                self.cell = 0;
                self.open_child("<tr", "</tr>", range);
            }
            Tag::TableCell => {
                let (name, close) = if self.in_head { ("th", "</th>") } else { ("td", "</td>") };
                let class = align_class(self.alignments.get(self.cell));
                self.open_within(&format!("<{name}{class}>"), close);
            }
            Tag::FootnoteDefinition(label) => self.open_footnote(&label),
            Tag::CodeBlock(kind) => self.open_code(&kind, range),
            _ => {
                self.literal = Some(Literal { text: String::new(), code: None });
                self.frames.push(Frame::default());
            }
        }
    }

    fn open_code(&mut self, kind: &CodeBlockKind<'_>, range: Range<usize>) {
        let source = &self.source[range.clone()];
        let first_line = source.find('\n').map_or(source.len(), |it| it + 1);
        self.text_end = range.start + first_line;
        let code = match kind {
            CodeBlockKind::Indented => {
                Fenced { language: None, word: String::new(), state: FenceState::Complete }
            }
            CodeBlockKind::Fenced(info) => {
                let is_closed = is_closed_fence(source, self.frames.is_empty());
                let is_complete = is_closed || self.footnotes.is_some();
                let state = if is_complete { FenceState::Complete } else { FenceState::Open };
                let language = code::language_of_fence(info);
                let word = match language {
                    Some(language) => language.name(),
                    None => code::word_of_fence(info),
                };
                Fenced { language, word: word.to_owned(), state }
            }
        };
        self.literal = Some(Literal { text: String::new(), code: Some(code) });
        self.frames.push(Frame::default());
    }

    fn end_block(&mut self, tag: TagEnd, range: Range<usize>) {
        if let Some(literal) = self.literal.take() {
            self.write_literal(&literal);
        }
        if tag == TagEnd::FootnoteDefinition {
            self.end_footnote();
        }
        self.close();
        let is_parent = matches!(self.kind, Kind::List | Kind::Table);
        match (tag, self.frames.len()) {
            (TagEnd::TableHead, depth) => {
                self.in_head = false;
                if depth == 1 && self.kind == Kind::Table {
                    let _ = write!(self.out, "<tbody id=\"{}-body\">", self.block_id());
                    self.head = take(&mut self.out);
                } else if self.frames.last().is_some_and(|it| !it.close.is_empty()) {
                    self.out.push_str("<tbody>");
                }
            }
            (TagEnd::TableCell, _) => self.cell += 1,
            (_, 1) if is_parent => {
                let piece = self.take_piece();
                self.children.push(piece);
            }
            (_, 0) => self.end_top(range),
            _ => (),
        }
    }

    fn end_top(&mut self, range: Range<usize>) {
        let id = self.block_id();
        let body = match self.kind {
            Kind::List | Kind::Table => Body::Parts {
                parent: if self.kind == Kind::Table { format!("{id}-body") } else { id.clone() },
                head: take(&mut self.head),
                children: take(&mut self.children),
                foot: self.foot,
            },
            _ => Body::Whole(self.take_piece()),
        };
        self.done.push(Placed {
            block: Block { id, body },
            kind: self.kind,
            start: line_start(self.source, range.start),
            end: range.end,
            child_starts: take(&mut self.child_starts),
        });
        self.at = Position { block: self.at.block + 1, child: 0 };
        self.kind = Kind::Other;
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    is_block_end(tag.to_end())
}

fn is_block_end(tag: TagEnd) -> bool {
    use TagEnd::{Emphasis, Image, Link, Strikethrough, Strong, Subscript, Superscript};
    !matches!(tag, Emphasis | Strong | Strikethrough | Link | Image | Subscript | Superscript)
}

fn kind_of(tag: &Tag<'_>, source: &str) -> Kind {
    match tag {
        Tag::Paragraph => Kind::Paragraph,
        Tag::Heading { .. } => Kind::Heading,
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => {
            Kind::Fence { is_closed: is_closed_fence(source, true) }
        }
        Tag::BlockQuote(_) => Kind::Quote,
        Tag::List(_) => Kind::List,
        Tag::Table(_) => Kind::Table,
        _ => Kind::Other,
    }
}

fn align_class(alignment: Option<&Alignment>) -> &'static str {
    match alignment {
        Some(Alignment::Left) => " class=\"align-left\"",
        Some(Alignment::Center) => " class=\"align-center\"",
        Some(Alignment::Right) => " class=\"align-right\"",
        Some(Alignment::None) | None => "",
    }
}

fn alert_class(kind: BlockQuoteKind) -> &'static str {
    match kind {
        BlockQuoteKind::Note => " class=\"markdown-alert-note\"",
        BlockQuoteKind::Tip => " class=\"markdown-alert-tip\"",
        BlockQuoteKind::Important => " class=\"markdown-alert-important\"",
        BlockQuoteKind::Warning => " class=\"markdown-alert-warning\"",
        BlockQuoteKind::Caution => " class=\"markdown-alert-caution\"",
    }
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |it| it + 1)
}

/// Returns whether the source of a fenced code block ends with its closing line. In a container,
/// the indentation of that line is ignored.
fn is_closed_fence(source: &str, is_top: bool) -> bool {
    let Some(fence) = Fence::of(source.trim_start_matches(' ')) else { return false };
    let Some((_, lines)) = source.trim_end_matches('\n').split_once('\n') else { return false };
    let last = lines.rsplit('\n').next().unwrap_or(lines);
    fence.is_closed_by(if is_top { last } else { last.trim_start_matches([' ', '\t', '>']) })
}

/// Character and length of the line that opens a fenced code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    pub(super) fn of(source: &str) -> Option<Self> {
        let mark = source.chars().next().filter(|it| matches!(it, '`' | '~'))?;
        Some(Self { mark, length: source.len() - source.trim_start_matches(mark).len() })
    }

    pub(super) fn is_closed_by(self, line: &str) -> bool {
        let marks = line.trim_start_matches(' ');
        let rest = marks.trim_start_matches(self.mark);
        let is_blank = rest.chars().all(|it| matches!(it, ' ' | '\t'));
        line.len() - marks.len() < 4 && marks.len() - rest.len() >= self.length && is_blank
    }
}
