//! The parts of an answer that a page shows: the last ones, and the calls that contain them.
//!
//! How many are hidden depends only on the number of parts and changes in steps, so that an open page rarely
//! removes parts. A standalone file contains all.

use std::collections::{BTreeSet, HashMap};

use maud::{PreEscaped, html};
use transcript::{Message, RunMessage};

use crate::html::element::Element;
use crate::message::call::nested_id;
use crate::message::part;
use crate::message::part_id;
use crate::text::quantity::count;
use crate::view::{Bodies, View};

/// Maximum number of shown parts of one assistant message, not counting the tool calls around them.
pub(crate) const MAX_SHOWN: usize = 200;
/// Number of parts of an assistant message that are hidden, or fetched, together.
const STEP: usize = 100;
/// Maximum number of otherwise hidden tool calls that are shown around a nested part.
const MAX_AROUND: usize = 8;

/// Indexes of the parts of an assistant message that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownParts {
    parts: BTreeSet<usize>,
    n_left_out: usize,
}

impl ShownParts {
    pub(crate) fn new(view: &View, answer: &RunMessage) -> Self {
        let first = first_shown(view, answer.parts.len());
        let mut parts = BTreeSet::new();
        for idx in first..answer.parts.len() {
            let around = std::iter::successors(answer.parent_of(idx), |&it| answer.parent_of(it));
            let around: Vec<usize> = around.take_while(|it| !parts.contains(it)).collect();
            if around.iter().filter(|&&it| it < first).count() <= MAX_AROUND {
                parts.extend(around);
                parts.insert(idx);
            }
        }
        Self { n_left_out: answer.parts.len() - parts.len(), parts }
    }

    pub(crate) fn contains(&self, idx: usize) -> bool {
        self.parts.contains(&idx)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().copied()
    }

    /// Returns the index of the first shown part that is not nested in a tool call.
    pub(crate) fn first_at_top(&self, answer: &RunMessage) -> Option<usize> {
        self.iter().find(|&idx| answer.parent_of(idx).is_none())
    }

    /// Draws the link to the hidden parts of an assistant message; `None` if all parts are shown.
    pub(crate) fn earlier(
        &self,
        view: &View,
        message: &str,
        answer: &RunMessage,
    ) -> Option<Element> {
        let before = first_shown(view, answer.parts.len());
        (self.n_left_out > 0).then(|| {
            let id = format!("{message}-e");
            let words = format!("{} · Show", count(self.n_left_out as u64, "earlier step"));
            let line = Element::new("p", format!("{id}m")).class("gap");
            let url = address(view, answer, before);
            Element::div(id).class("earlier-parts cut").child(line.html(html! {
                a.show-all href=(url) data-action="show-all" { (words) }
                button.quiet.show-less type="button" data-action="show-less" { "Show less" }
            }))
        })
    }
}

/// Returns the index of the first shown part of an assistant message, which depends only on the
/// number of its parts.
pub(crate) fn first_shown(view: &View, n_parts: usize) -> usize {
    match view.bodies {
        Bodies::Whole => 0,
        Bodies::Cut => n_parts.saturating_sub(MAX_SHOWN).div_ceil(STEP) * STEP,
    }
}

fn address(view: &View, answer: &RunMessage, before: usize) -> String {
    let run = crate::html::escape::percent_encoded(answer.id.as_str());
    format!("/api/sessions/{}/answers/{run}?before={before}", view.session)
}

/// Draws parts of an assistant message with their nested parts. A part whose parent is not drawn is
/// at the top level.
pub(crate) fn trees(
    view: &View,
    message: &str,
    answer: &RunMessage,
    parts: impl IntoIterator<Item = usize>,
) -> Vec<Element> {
    let parts: BTreeSet<usize> = parts.into_iter().collect();
    let (mut top, mut nested) = (Vec::new(), HashMap::<usize, Vec<usize>>::new());
    for &idx in &parts {
        let around = answer.parent_of(idx).filter(|it| parts.contains(it));
        around.map_or(&mut top, |it| nested.entry(it).or_default()).push(idx);
    }
    top.into_iter().map(|idx| tree(view, message, answer, &nested, idx)).collect()
}

fn tree(
    view: &View,
    message: &str,
    answer: &RunMessage,
    nested: &HashMap<usize, Vec<usize>>,
    idx: usize,
) -> Element {
    let id = part_id(message, idx);
    let element = part::part(view, &id, &answer.parts[idx]);
    let Some(underneath) = nested.get(&idx) else { return element };
    let parts = underneath.iter().map(|&it| tree(view, message, answer, nested, it));
    element.fill(&nested_id(&id), parts)
}

/// Draws the hidden parts of an assistant message that precede the index `before`, with a link to
/// earlier ones.
pub fn earlier_parts(view: &View, message: &Message, before: usize) -> String {
    let Some(answer) = message.run() else { return String::new() };
    let (id, shown) = (view.message_id(message), ShownParts::new(view, answer));
    let before = before.min(answer.parts.len());
    let first = before.saturating_sub(STEP);
    let parts = (first..before).filter(|&idx| !shown.contains(idx));
    let parts = trees(view, &id, answer, parts);
    let earlier = (first > 0).then(|| address(view, answer, first));
    html! {
        @if let Some(url) = earlier {
            div.earlier-parts.cut {
                p.gap { a.show-all href=(url) data-action="show-all" { (count(first as u64, "earlier step")) " · Show" } }
            }
        }
        div.parts { @for part in &parts { (PreEscaped(part.to_html())) } }
    }
    .into_string()
}
