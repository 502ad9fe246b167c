//! The parts of the page around the messages, drawn from the log: heading, sequence diagram, queue, folder
//! suggestion, status line and approval cards.

use maud::{Markup, html};
use transcript::{
    Call, CallState, Message, Millis, Part, PartKind, RunMessage, SessionState, Text, Thinking,
    Transcript,
};

use crate::html::element::Element;
use crate::html::icon::icon;
use crate::html::op::Op;
use crate::message::agent_awaiting_approval;
use crate::message::approval_card::dock;
use crate::message::tool;
use crate::page::queue::queue;
use crate::page::sequence::sequence;
use crate::text::invisible::marked;
use crate::text::quantity::{dollars, grouped};
use crate::view::View;

/// Number of messages of a session that a page shows at first.
pub const WINDOW: usize = 50;

pub(crate) struct Chrome {
    pub(crate) heading: Element,
    pub(crate) sequence: Element,
    pub(crate) queue: Element,
    pub(crate) suggestion: Element,
    pub(crate) now: Element,
    pub(crate) dock: Element,
}

impl Chrome {
    pub(crate) fn new(view: &View, transcript: &Transcript) -> Self {
        Self {
            heading: heading(view, &view.id("heading"), transcript),
            sequence: sequence(view, transcript),
            queue: queue(view, transcript),
            suggestion: suggestion(view, transcript),
            now: now(&view.id("now"), transcript),
            dock: dock(view, transcript),
        }
    }

    fn all(&self) -> [&Element; 6] {
        [&self.heading, &self.sequence, &self.queue, &self.suggestion, &self.now, &self.dock]
    }

    pub(crate) fn patch(&self, next: &Self, ops: &mut Vec<Op>) {
        for (old, new) in self.all().into_iter().zip(next.all()) {
            old.patch(new, ops);
        }
    }

    /// Returns whether an approval card, or a placeholder for one, is shown.
    pub(crate) fn has_approvals(&self) -> bool {
        !self.dock.is_empty()
    }

    pub(crate) fn put_all(&self, ops: &mut Vec<Op>) {
        ops.extend(self.all().map(Element::put));
    }
}

/// Returns the last messages of a session, which every page has loaded, however long it has been
/// open.
pub(crate) fn last_messages(transcript: &Transcript) -> &[Message] {
    let messages = &transcript.messages;
    &messages[messages.len().saturating_sub(WINDOW)..]
}

fn heading(view: &View, id: &str, transcript: &Transcript) -> Element {
    let summary = &transcript.summary;
    let folder = summary.workspace().or(view.folder.as_deref());
    let model = last_messages(transcript).iter().rev().find_map(|it| it.run()?.model.as_deref());
    let rename = Element::new("button", format!("{id}-tb")).attr("type", "button");
    let rename = rename.attr("data-action", "rename").attr("aria-label", "Rename");
    let title = Element::new("h1", format!("{id}-t")).attr("dir", "auto").text(summary.title());
    // The button covers the title, so that the title stays where renaming is not possible.
    let titled = Element::div(format!("{id}-h")).class("titled").child(title);
    let about = Element::new("p", format!("{id}-m")).class("meta").html(html! {
        span.agent { (summary.agent) }
        @if let Some(model) = model { " · " (model) }
        " · " span.state { (state_word(summary.state())) }
        @if summary.total_tokens > 0 { " · " (grouped(summary.total_tokens)) " tokens" }
        @if summary.total_cost > 0.0 { " · " (dollars(summary.total_cost)) }
        @if summary.archived { " · archived" }
        @if let Some(folder) = folder { " · " span.folder title=(folder) { (folder) } }
    });
    Element::div(id)
        .class("heading")
        .attr("data-state", state_id(summary.state()))
        .attr_if("data-archived", summary.archived.then_some("true"))
        .child(titled.child(rename.attr("title", "Rename")))
        .child(about)
}

/// Draws the folder that an imported log names, and the button that confirms it; empty if there is
/// nothing to confirm.
fn suggestion(view: &View, transcript: &Transcript) -> Element {
    let element = Element::div(view.id("suggestion")).class("suggestion");
    let suggested = transcript.summary.suggested_workspace();
    // The agent's own folder needs no confirmation.
    let Some(folder) = suggested.filter(|it| Some(*it) != view.folder.as_deref()) else {
        return element;
    };
    element.html(html! {
        p.notice {
            "This session names the folder " code { (marked(folder)) } ", which is not confirmed on this server. "
            @if let Some(own) = &view.folder { "The agent works in " code { (own) } " instead. " }
            button type="button" data-action="use-folder" data-folder=(folder) { "Use this folder" }
        }
    })
}

/// Draws the status line of a session: the current activity of its run, and since when.
fn now(id: &str, transcript: &Transcript) -> Element {
    let state = transcript.summary.state();
    let element = Element::div(id).class("now").attr("data-state", state_id(state));
    let element = element.attr("role", "status");
    let answer = transcript.messages.iter().rev().find_map(|it| it.run().filter(|it| it.is_open()));
    let Some(answer) = answer else { return element };
    let (words, since) = waiting_for(answer);
    element.html(html! {
        span.spinner aria-hidden="true" {}
        span.words { (words) }
        // A screen reader would read the clock every second.
        span.clock aria-hidden="true" data-since=(since.0) {}
    })
}

fn waiting_for(answer: &RunMessage) -> (Markup, Millis) {
    if let Some((by, at)) = &answer.cancel_requested {
        return (html! { "Stopping, asked by " (by) }, *at);
    }
    let named = |call: &Call| {
        html! { b { (call.label()) } @if let Some(about) = tool::subject(call) { " " code { (marked(&about)) } } }
    };
    if let Some(call) = answer.waiting_calls().next() {
        let since = call.approval.as_ref().map_or(answer.started_at, |it| it.requested_at);
        return (html! { "Waiting for your decision: " (named(call)) }, since);
    }
    if let Some(agent) = agent_awaiting_approval(answer) {
        let since = answer.current_call().and_then(|it| it.running_since);
        let words = html! { b { (agent) } " is waiting for you" };
        return (words, since.unwrap_or(answer.started_at));
    }
    if let Some(call) = answer.current_call() {
        let since = call.running_since.unwrap_or(answer.started_at);
        return (html! { "Running " (named(call)) }, since);
    }
    match answer.parts.last() {
        Some(Part { kind: PartKind::Text(Text { open: true, .. }), started_at, .. }) => {
            (html! { "Writing" }, *started_at)
        }
        Some(Part {
            kind: PartKind::Thinking(Thinking { open: true, .. }), started_at, ..
        }) => (html! { "Thinking" }, *started_at),
        Some(Part { kind: PartKind::Call(call), started_at, .. })
            if call.state == CallState::StreamingInput =>
        {
            (html! { "Preparing " (named(call)) }, *started_at)
        }
        // Nothing followed the notice: usually a failing service that is retried.
        Some(Part { kind: PartKind::Notice { text, .. }, started_at, .. }) => {
            (html! { "Waiting for " (answer.agent) " · " (text) }, *started_at)
        }
        _ => {
            let since = answer.steps.last().map_or(answer.started_at, |it| it.started_at);
            (html! { "Waiting for " (answer.agent) }, since)
        }
    }
}

pub(crate) fn state_id(state: SessionState) -> &'static str {
    match state {
        SessionState::Idle => "idle",
        SessionState::Running => "running",
        SessionState::Waiting => "waiting",
        SessionState::Failed => "failed",
    }
}

pub(crate) fn state_word(state: SessionState) -> &'static str {
    match state {
        SessionState::Idle => "ready",
        SessionState::Running => "working",
        SessionState::Waiting => "waiting for you",
        SessionState::Failed => "failed",
    }
}

/// Draws the dot that shows the state of a session, with the state's name for screen readers.
pub(crate) fn state_dot(state: SessionState) -> Markup {
    html! {
        span.dot data-state=(state_id(state)) { span.sr { (state_word(state)) } }
        @if state == SessionState::Waiting { (icon("alert")) }
    }
}
