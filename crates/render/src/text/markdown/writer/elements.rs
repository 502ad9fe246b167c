//! How elements are opened and closed, and which of them have an id.

use std::fmt::Write;
use std::mem::take;
use std::ops::Range;

use super::{FenceState, Fenced, Frame, Kind, Literal, Writer, line_start};
use crate::html::escape::push_escaped;
use crate::html::icon::icon;
use crate::text::code;
use crate::text::markdown::block::{Leaf, LeafKind, Piece};

/// Nesting depth from which Markdown containers (quotes, lists, tables) have no element of their
/// own.
const MAX_DEPTH: usize = 64;

impl Writer<'_> {
    pub(super) fn block_id(&self) -> String {
        format!("{}-{}", self.prefix, self.at.block)
    }

    /// Returns the attribute ` id="..."` for a top-level block; empty inside a block.
    pub(super) fn top_id(&self) -> String {
        if self.frames.is_empty() { format!(" id=\"{}\"", self.block_id()) } else { String::new() }
    }

    /// Returns the id of the piece being written: that of the block, or of its next item or row.
    fn piece_id(&self) -> String {
        match self.kind {
            Kind::List | Kind::Table => {
                format!("{}-{}", self.block_id(), self.at.child + self.children.len())
            }
            _ => self.block_id(),
        }
    }

    /// Returns the id of the next element with text: that of the block for a paragraph or heading.
    fn leaf_id(&mut self) -> String {
        if matches!(self.kind, Kind::Paragraph | Kind::Heading) {
            return self.block_id();
        }
        self.n_leaves += 1;
        format!("{}-t{}", self.piece_id(), self.n_leaves)
    }

    /// Returns the attribute for the text direction of a top-level block, which follows its words.
    /// Nested elements inherit it: one with its own direction would not count for the block.
    pub(super) fn direction(&self) -> &'static str {
        if self.frames.is_empty() { " dir=\"auto\"" } else { "" }
    }

    pub(super) fn open_leaf(&mut self, name: &str, close: &'static str, kind: LeafKind) {
        let id = self.leaf_id();
        let direction = self.direction();
        let _ = write!(self.out, "<{name} id=\"{id}\"{direction}>");
        self.frames.push(Frame { close, leaf: Some((id, kind)), ..Frame::default() });
    }

    /// Writes the start tag of a quote, list or table. A top-level list or table is kept separate
    /// from its children.
    pub(super) fn open_container(&mut self, start: &str, attributes: &str, close: &'static str) {
        if self.frames.len() >= MAX_DEPTH {
            return self.frames.push(Frame::default());
        }
        let (id, direction) = (self.top_id(), self.direction());
        let _ = write!(self.out, "{start}{id}{direction}{attributes}>");
        if self.frames.is_empty() {
            match self.kind {
                Kind::List => self.head = take(&mut self.out),
                // The head row follows.
                Kind::Table => (),
                _ => return self.frames.push(Frame { close, ..Frame::default() }),
            }
            self.foot = close;
        }
        self.frames.push(Frame { close, ..Frame::default() });
    }

    /// Opens the element of a list item or table row.
    pub(super) fn open_child(&mut self, start: &str, close: &'static str, range: Range<usize>) {
        if self.frames.len() == 1 {
            self.child_starts.push(line_start(self.source, range.start));
            let id = self.piece_id();
            let _ = write!(self.out, "{start} id=\"{id}\">");
            return self.frames.push(Frame { close, ..Frame::default() });
        }
        self.open_within(&format!("{start}>"), close);
    }

    /// Opens an element that is only valid inside its parent's element, such as a table cell. It is
    /// omitted if the parent has no element.
    pub(super) fn open_within(&mut self, open: &str, close: &'static str) {
        if self.frames.last().is_some_and(|it| it.close.is_empty()) {
            return self.frames.push(Frame::default());
        }
        self.out.push_str(open);
        self.frames.push(Frame { close, ..Frame::default() });
    }

    pub(super) fn close(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if let Some((id, kind)) = frame.leaf {
            let (html_end, source_end) = (self.out.len(), self.text_end);
            self.leaf = Some(Leaf { id, kind, html_end, source_end });
        }
        let is_parent = matches!(self.kind, Kind::List | Kind::Table);
        if !(is_parent && self.frames.is_empty()) {
            self.out.push_str(frame.close);
        }
    }

    pub(super) fn open_item_paragraph(&mut self) {
        if self.frames.last().is_some_and(|it| it.is_item) {
            self.open_leaf("p", "</p>", LeafKind::Paragraph);
            if let Some(frame) = self.frames.last_mut() {
                frame.is_item_paragraph = true;
            }
        }
    }

    /// Uses the paragraph that a task's checkbox has opened in a list item as the item's own
    /// paragraph. Returns false if there is none. In a loose list the checkbox may precede its
    /// paragraph.
    pub(super) fn adopt_item_paragraph(&mut self) -> bool {
        match self.frames.last_mut() {
            Some(frame) if frame.is_item_paragraph => {
                frame.is_item_paragraph = false;
                true
            }
            _ => false,
        }
    }

    pub(super) fn close_item_paragraph(&mut self) {
        if self.frames.last().is_some_and(|it| it.is_item_paragraph) {
            self.close();
        }
    }

    pub(super) fn take_piece(&mut self) -> Piece {
        let id = self.piece_id();
        self.n_leaves = 0;
        Piece { id, html: take(&mut self.out), leaf: self.leaf.take() }
    }

    pub(super) fn write_literal(&mut self, literal: &Literal) {
        let is_top = self.frames.len() == 1;
        let top_id = if is_top { format!(" id=\"{}\"", self.block_id()) } else { String::new() };
        let Some(Fenced { language, word, state }) = &literal.code else {
            let _ = write!(self.out, "<pre{top_id} class=\"raw-html\" tabindex=\"0\">");
            push_escaped(&mut self.out, &literal.text);
            return self.out.push_str("</pre>");
        };
        let id = self.leaf_id();
        let class =
            language.map_or(String::new(), |it| format!(" class=\"language-{}\"", it.name()));
        let _ = write!(self.out, "<div{top_id} class=\"code-block\" dir=\"ltr\">");
        self.write_code_bar(&id, word);
        let _ = write!(self.out, "<pre tabindex=\"0\"><code id=\"{id}\"{class}>");
        match (language, state) {
            (Some(language), FenceState::Complete) => {
                let key = (*language, literal.text.clone());
                let highlight = || code::highlight(&literal.text, *language).into_string();
                self.out.push_str(self.highlights.entry(key).or_insert_with(highlight));
            }
            _ => push_escaped(&mut self.out, &literal.text),
        }
        if *state == FenceState::Open {
            let (html_end, source_end) = (self.out.len(), self.text_end);
            let kind = LeafKind::OpenFence;
            self.leaf = Some(Leaf { id, kind, html_end, source_end });
        } else {
            self.leaf = None;
        }
        self.out.push_str("</code></pre></div>");
    }

    /// Writes the bar of a code block: language and buttons. The stylesheet shows the language, so
    /// that it is not part of the text. The buttons have ids, so that focus survives a redraw.
    fn write_code_bar(&mut self, code: &str, language: &str) {
        self.out.push_str("<div class=\"code-bar\" data-language=\"");
        push_escaped(&mut self.out, language);
        self.out.push_str("\">");
        for (action, of, label, symbol) in
            [("wrap", "", "Wrap lines", "wrap"), ("copy", " data-of=\"code\"", "Copy code", "copy")]
        {
            let _ = write!(
                self.out,
                "<button id=\"{code}-{action}\" class=\"quiet\" type=\"button\" \
                 data-action=\"{action}\"{of} aria-label=\"{label}\" title=\"{label}\">{}</button>",
                icon(symbol).into_string()
            );
        }
        self.out.push_str("</div>");
    }
}
