//! Footnotes. Ids consist of the prefix and the number; an open text shows their source.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use pulldown_cmark::{Event, Tag};

use super::{Frame, Writer};
use crate::html::escape::push_escaped;

/// Footnotes of a complete Markdown text, numbered by first appearance.
#[derive(Default)]
pub(in crate::text::markdown) struct Footnotes {
    numbers: HashMap<String, usize>,
    referenced: HashSet<usize>,
    n_written: HashMap<usize, usize>,
    defined: HashSet<usize>,
    /// Number of the footnote whose definition is being written; `None` outside of definitions.
    current: Option<usize>,
}

impl Footnotes {
    pub(in crate::text::markdown) fn of<'e, 't: 'e>(
        events: impl Iterator<Item = &'e Event<'t>>,
    ) -> Self {
        let mut this = Self::default();
        for event in events {
            match event {
                Event::FootnoteReference(label) => {
                    let number = this.number(label);
                    this.referenced.insert(number);
                }
                Event::Start(Tag::FootnoteDefinition(label)) => {
                    this.number(label);
                }
                _ => (),
            }
        }
        this
    }

    fn number(&mut self, label: &str) -> usize {
        let next = self.numbers.len() + 1;
        *self.numbers.entry(label.to_lowercase()).or_insert(next)
    }
}

impl Writer<'_> {
    pub(super) fn footnote_reference(&mut self, label: &str) {
        let prefix = self.prefix;
        let Some(notes) = &mut self.footnotes else {
            return push_escaped(&mut self.out, &format!("[^{label}]"));
        };
        let number = notes.number(label);
        let count = notes.n_written.entry(number).or_default();
        *count += 1;
        let _ = write!(
            self.out,
            "<sup class=\"footnote-reference\" id=\"{prefix}-fnref{number}-{count}\">\
             <a href=\"#{prefix}-fn{number}\">{number}</a></sup>"
        );
    }

    pub(super) fn open_footnote(&mut self, label: &str) {
        let top_id = self.top_id();
        let prefix = self.prefix;
        let direction = self.direction();
        let _ = write!(self.out, "<div{top_id}{direction} class=\"footnote-definition\">");
        match &mut self.footnotes {
            None => {
                self.out.push_str("<sup class=\"footnote-definition-label\">");
                push_escaped(&mut self.out, &format!("[^{label}]"));
            }
            Some(notes) => {
                let number = notes.number(label);
                let is_first = notes.defined.insert(number);
                notes.current = Some(number).filter(|_| is_first);
                self.out.push_str("<sup class=\"footnote-definition-label\"");
                if is_first {
                    let _ = write!(self.out, " id=\"{prefix}-fn{number}\"");
                }
                let _ = write!(self.out, ">{number}");
            }
        }
        self.out.push_str("</sup>");
        self.frames.push(Frame { close: "</div>", ..Frame::default() });
    }

    pub(super) fn end_footnote(&mut self) {
        let prefix = self.prefix;
        let Some(notes) = &mut self.footnotes else { return };
        if let Some(number) = notes.current.take()
            && notes.referenced.contains(&number)
        {
            let _ = write!(
                self.out,
                "<a class=\"footnote-back\" href=\"#{prefix}-fnref{number}-1\" \
                 aria-label=\"Back to the text\">↩</a>"
            );
        }
    }
}
