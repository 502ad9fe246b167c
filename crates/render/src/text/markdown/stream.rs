//! Streamed Markdown: text in, operations out.
//!
//! Only the text after the sealed part is parsed. Plain words at the end of a paragraph, and lines of an open
//! fence, are appended without parsing, because they cannot mean anything else.

use super::block::{Block, Body, Leaf, LeafKind, Piece, patch, patch_children};
use super::parse::{self, Definitions, Highlights, Parsed, Position};
use super::writer::{Fence, Kind, Placed, line_start};
use crate::Op;
use crate::html::escape::escaped;

/// Number of bytes above which an open Markdown block is shown as plain text, to bound the work per
/// delta.
const MAX_PARSED: usize = 16 << 10;

/// A Markdown text that is drawn while it streams in.
#[derive(Debug, Default)]
pub struct Stream {
    prefix: String,
    text: String,
    /// Whether the last added character was a carriage return, to which a following line feed
    /// belongs.
    after_return: bool,
    blocks: Vec<Block>,
    sealed: Sealed,
    definitions: Definitions,
    highlights: Highlights,
    /// Code fence of the last block; `None` unless it is open and its lines can be appended
    /// unchanged.
    fence: Option<Fence>,
    n_parsed: usize,
}

/// Extent of the final part of an open Markdown text: everything before `end`, all blocks before
/// `at`, and in an open list or table at `at` the children before `at.child`.
#[derive(Clone, Debug, Default)]
struct Sealed {
    end: usize,
    at: Position,
    parent: Option<Parent>,
}

/// Open list or table in which the unsealed text is parsed.
#[derive(Clone, Debug)]
enum Parent {
    List,
    /// A table, with the source of its header row and delimiter row.
    Table(String),
}

impl Stream {
    /// Creates an empty Markdown stream whose blocks are children of the element with the id
    /// `prefix`.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), ..Self::default() }
    }

    /// Returns the blocks of the Markdown text streamed so far.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the blocks of the Markdown text streamed so far, without copying them.
    pub fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }

    /// Returns the number of bytes parsed so far; text that was parsed repeatedly counts each time.
    pub fn n_parsed(&self) -> usize {
        self.n_parsed
    }

    /// Adds Markdown text and returns the operations that show it on the page.
    ///
    /// Works line by line, so that sealing depends on the text and not on how it was split.
    pub fn push(&mut self, delta: &str) -> Vec<Op> {
        let mut ops = Vec::new();
        for line in delta.split_inclusive(['\n', '\r']) {
            let from = self.text.len();
            self.append(line);
            if self.text.len() > from {
                self.step(from, &mut ops);
            }
        }
        ops
    }

    /// Ends the stream and returns the operations that show `text`, the final text, instead of the
    /// streamed text.
    pub fn close(mut self, text: &str) -> Vec<Op> {
        let closed = parse::closed(&super::plain_lines(text), &self.prefix, &mut self.highlights);
        let mut ops = Vec::new();
        patch(&self.blocks, &closed, &self.prefix, &mut ops);
        ops
    }

    fn append(&mut self, delta: &str) {
        for it in delta.chars() {
            match it {
                '\n' if self.after_return => (),
                '\r' => self.text.push('\n'),
                '\0' => self.text.push('\u{fffd}'),
                it => self.text.push(it),
            }
            self.after_return = it == '\r';
        }
    }

    /// Appends the operations that show the text from `from` on, which was added within one line.
    fn step(&mut self, from: usize, ops: &mut Vec<Op>) {
        if let Some(end) = self.plain_end(from) {
            self.grow_leaf(end, ops);
        } else if self.fence.is_none() && self.is_too_long() {
            self.show_unparsed(ops);
        } else {
            self.parse_tail(ops);
        }
    }

    fn is_too_long(&self) -> bool {
        self.text.len() - self.sealed.end > MAX_PARSED
    }

    /// Returns the end of the text that only extends the last leaf; `None` if anything else may
    /// have changed.
    fn plain_end(&self, from: usize) -> Option<usize> {
        let piece = self.blocks.last()?.last_piece()?;
        let leaf = piece.leaf.as_ref()?;
        let ends_in_text = !piece.html[..leaf.html_end].ends_with('>');
        match leaf.kind {
            LeafKind::Unparsed => Some(self.text.len()),
            _ if self.fence.is_none() && self.is_too_long() => None,
            LeafKind::OpenFence => match self.fence {
                Some(fence) => self.plain_code_end(fence, leaf.source_end),
                None if ends_in_text => self.plain_code_in_line(from, leaf.source_end),
                None => None,
            },
            LeafKind::Paragraph | LeafKind::Heading if ends_in_text => {
                self.plain_words_end(from, leaf.source_end)
            }
            LeafKind::Paragraph | LeafKind::Heading => None,
        }
    }

    /// Returns the end of the text that is plain code after the shown lines of an open fence;
    /// `None` if a line closes the fence.
    fn plain_code_end(&self, fence: Fence, shown: usize) -> Option<usize> {
        let mut at = line_start(&self.text, shown);
        while let Some(length) = self.text[at..].find('\n') {
            if fence.is_closed_by(&self.text[at..at + length]) {
                return None;
            }
            at += length + 1;
        }
        Some(if is_marker_line(&self.text[at..]) { at } else { self.text.len() })
    }

    /// Returns the end of the text if it only continues a started line of code in a fence inside a
    /// list or quote; else `None`.
    fn plain_code_in_line(&self, from: usize, shown: usize) -> Option<usize> {
        let line = &self.text[line_start(&self.text, from)..from];
        let has_begun = shown == from && !line.is_empty() && !is_marker_line(line);
        (has_begun && !self.text[from..].contains('\n')).then_some(self.text.len())
    }

    /// Returns the end of the text if everything since `from` is words that follow words in a
    /// paragraph or heading; else `None`.
    fn plain_words_end(&self, from: usize, shown: usize) -> Option<usize> {
        let line = &self.text[line_start(&self.text, from)..from];
        let before = &self.text[shown..from];
        let delta = &self.text[from..];
        let last_word = line.rsplit(char::is_whitespace).next().unwrap_or_default();
        let since_last_word = &self.text[from - last_word.len()..];
        let has_address = ["://", "www."].into_iter().any(|it| since_last_word.contains(it));
        let ends_in_word = line.trim_end_matches([' ', ',', '.']).ends_with(char::is_alphanumeric);
        let is_plain = ends_in_word
            && before.bytes().all(|it| it == b' ')
            && line.contains(char::is_alphabetic)
            && !line.contains('<')
            && !has_address
            && delta.chars().all(|it| it.is_alphanumeric() || matches!(it, ' ' | ',' | '.'));
        is_plain.then_some(self.text.trim_end_matches(' ').len())
    }

    /// Appends the text up to `end` to the last leaf.
    fn grow_leaf(&mut self, end: usize, ops: &mut Vec<Op>) {
        let piece = self.blocks.last_mut().and_then(Block::last_piece_mut);
        let Some(piece) = piece else { return };
        let Some(leaf) = piece.leaf.as_mut().filter(|it| it.source_end < end) else { return };
        let text = &self.text[leaf.source_end..end];
        let html = escaped(text);
        piece.html.insert_str(leaf.html_end, &html);
        leaf.html_end += html.len();
        leaf.source_end = end;
        match ops.last_mut() {
            Some(Op::Text { id, text: before }) if *id == leaf.id => before.push_str(text),
            _ => ops.push(Op::Text { id: leaf.id.clone(), text: text.to_owned() }),
        }
    }

    fn parse_tail(&mut self, ops: &mut Vec<Op>) {
        let last_line = line_start(&self.text, self.text.len());
        // A line that may end the block above is held back, unless there is nothing to end.
        if last_line > self.sealed.end && is_marker_line(&self.text[last_line..]) {
            let parsed = self.parse_to(last_line);
            if self.can_be_ended(&parsed.blocks, last_line) {
                return self.show(parsed, ops);
            }
        }
        let parsed = self.parse_to(self.text.len());
        self.show(parsed, ops);
    }

    /// Shows the unsealed text as plain text until the stream closes, because its block is too long
    /// to be parsed repeatedly.
    fn show_unparsed(&mut self, ops: &mut Vec<Op>) {
        let is_in_parent = self.sealed.parent.is_some();
        let id = format!("{}-{}", self.prefix, self.sealed.at.block + usize::from(is_in_parent));
        let plain = unparsed(id, &self.text[self.sealed.end..], self.text.len());
        if is_in_parent {
            // Its open children are removed; the plain text contains their content.
            self.replace(vec![self.blocks[self.sealed.at.block].without_children(), plain], ops);
        } else {
            self.replace(vec![plain], ops);
        }
    }

    /// Parses the unsealed text before `end`; positions in the result are relative to the whole
    /// text.
    fn parse_to(&mut self, end: usize) -> Parsed {
        let tail = &self.text[self.sealed.end..end];
        let head = match &self.sealed.parent {
            Some(Parent::Table(head)) => head.as_str(),
            Some(Parent::List) | None => "",
        };
        let source = format!("{head}{tail}");
        self.n_parsed += source.len();
        let mut parsed = parse::open(
            &source,
            &self.prefix,
            self.sealed.at,
            &self.definitions,
            &mut self.highlights,
        );
        let in_text = |at: usize| (self.sealed.end + at).saturating_sub(head.len());
        parsed.blocks.iter_mut().for_each(|it| it.move_by(in_text));
        parsed.definitions.iter_mut().for_each(|it| it.end = in_text(it.end));
        parsed
    }

    /// Returns whether the incomplete line at `at` may still become the end of a fence, an
    /// underline or a rule that ends the block above it.
    fn can_be_ended(&self, blocks: &[Placed], at: usize) -> bool {
        let leaf = blocks.last().and_then(|it| it.block.last_piece()?.leaf.as_ref());
        leaf.is_some_and(|leaf| match leaf.kind {
            LeafKind::OpenFence => true,
            LeafKind::Paragraph => self.text[leaf.source_end..at].trim_matches(' ') == "\n",
            LeafKind::Heading | LeafKind::Unparsed => false,
        })
    }

    fn show(&mut self, parsed: Parsed, ops: &mut Vec<Op>) {
        let sealed = self.sealed_by(&parsed.blocks);
        self.fence = parsed.blocks.last().and_then(|it| it.open_fence(&self.text));
        for found in parsed.definitions.into_iter().filter(|it| it.end <= sealed.end) {
            self.definitions.entry(found.label).or_insert(found.target);
        }
        self.replace(parsed.blocks.into_iter().map(|it| it.block).collect(), ops);
        self.sealed = sealed;
    }

    /// Replaces all blocks and children that are not sealed by `new`.
    fn replace(&mut self, mut new: Vec<Block>, ops: &mut Vec<Op>) {
        let mut old = self.blocks.split_off(self.sealed.at.block);
        if self.sealed.parent.is_some() && !old.is_empty() && !new.is_empty() {
            let (parent, children) = (old.remove(0), new.remove(0));
            self.blocks.push(replace_tail(parent, children, self.sealed.at.child, ops));
        }
        patch(&old, &new, &self.prefix, ops);
        self.blocks.extend(new);
    }

    /// Returns the extent of the text that is sealed now. A block that starts on a complete line
    /// ends all blocks before it.
    fn sealed_by(&self, blocks: &[Placed]) -> Sealed {
        let complete = line_start(&self.text, self.text.len());
        let Some(last) = blocks.iter().rposition(|it| it.start < complete) else {
            return self.sealed.clone();
        };
        let (block, index) = (&blocks[last], self.sealed.at.block + last);
        // Children are counted from the sealed ones.
        let first_child = if last == 0 { self.sealed.at.child } else { 0 };
        let before = Position { block: index, child: first_child };
        if block.is_ended(&self.text[..complete]) {
            let at = Position { block: index + 1, child: 0 };
            return Sealed { end: complete, at, parent: None };
        }
        match block.kind {
            Kind::List => {
                let n_begun = block.child_starts.iter().filter(|it| **it < complete).count();
                let n_ended = n_begun.saturating_sub(1);
                let at = Position { child: first_child + n_ended, ..before };
                Sealed { end: block.child_starts[n_ended], at, parent: Some(Parent::List) }
            }
            Kind::Table => {
                let head = match (&self.sealed.parent, last) {
                    (Some(Parent::Table(head)), 0) => Some(head.clone()),
                    _ => two_lines(&self.text[block.start..complete]).map(str::to_owned),
                };
                let Some(head) = head else {
                    return Sealed { end: block.start, at: before, parent: None };
                };
                let n_ended = block.child_starts.iter().filter(|it| **it < complete).count();
                let at = Position { child: first_child + n_ended, ..before };
                Sealed { end: complete, at, parent: Some(Parent::Table(head)) }
            }
            _ => Sealed { end: block.start, at: before, parent: None },
        }
    }
}

/// Replaces the children of the list or table `old`, from index `n_kept` on, by those of `new`.
fn replace_tail(mut old: Block, new: Block, n_kept: usize, ops: &mut Vec<Op>) -> Block {
    if let (Body::Parts { children, parent, .. }, Body::Parts { children: new, .. }) =
        (&mut old.body, new.body)
    {
        let replaced = children.split_off(n_kept);
        patch_children(&replaced, &new, parent, ops);
        children.extend(new);
    }
    old
}

fn unparsed(id: String, text: &str, source_end: usize) -> Block {
    let html = format!("<div id=\"{id}\" class=\"unparsed\">{}</div>", escaped(text));
    let html_end = html.len() - "</div>".len();
    let leaf = Leaf { id: id.clone(), kind: LeafKind::Unparsed, html_end, source_end };
    let piece = Piece { id: id.clone(), html, leaf: Some(leaf) };
    Block { id, body: Body::Whole(piece) }
}

impl Placed {
    fn move_by(&mut self, moved: impl Fn(usize) -> usize) {
        self.start = moved(self.start);
        self.end = moved(self.end);
        self.child_starts.iter_mut().for_each(|it| *it = moved(*it));
        if let Some(leaf) = self.block.last_piece_mut().and_then(|it| it.leaf.as_mut()) {
            leaf.source_end = moved(leaf.source_end);
        }
    }

    /// Returns whether the complete lines end this block, although no other block has started.
    fn is_ended(&self, lines: &str) -> bool {
        let is_complete = self.end <= lines.len();
        let last_line = &lines[line_start(lines, lines.len().saturating_sub(1))..];
        match self.kind {
            Kind::Heading | Kind::Rule => is_complete,
            Kind::Fence { is_closed } => is_complete && is_closed,
            Kind::Paragraph | Kind::Quote | Kind::Table => {
                is_complete && last_line.trim_matches([' ', '\t', '\n']).is_empty()
            }
            Kind::List | Kind::Other => false,
        }
    }

    fn open_fence(&self, text: &str) -> Option<Fence> {
        let is_open = self.kind == Kind::Fence { is_closed: false };
        let source = &text[self.start..];
        Fence::of(source).filter(|_| is_open && source.contains('\n'))
    }
}

/// Returns whether an incomplete line of Markdown may still become a fence, an underline or a rule.
fn is_marker_line(line: &str) -> bool {
    !line.is_empty() && line.chars().all(|it| " \t>-=|:`~".contains(it))
}

fn two_lines(text: &str) -> Option<&str> {
    let (end, _) = text.match_indices('\n').nth(1)?;
    Some(&text[..=end])
}
