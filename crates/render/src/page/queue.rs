//! The queue, below the conversation: pending messages, and the choice to send or clear those that a stop or
//! an import holds.

use maud::html;
use transcript::{IMPORTED, QueuedMessage, SendMode, Transcript};

use crate::html::element::Element;
use crate::html::icon::icon;
use crate::message::exchange;
use crate::message::{attachments, links};
use crate::text::quantity::count;
use crate::view::View;

pub(crate) fn queue(view: &View, transcript: &Transcript) -> Element {
    let id = view.id("queue");
    let is_running = transcript.summary.open_run.is_some();
    let messages = transcript.queue.messages.iter().enumerate();
    let last = transcript.queue.messages.len().saturating_sub(1);
    let messages = messages.map(|(place, it)| queued(view, &id, it, (place, last), is_running));
    Element::div(&*id).class("queue").children(messages).child_if(held(&id, transcript))
}

fn held(id: &str, transcript: &Transcript) -> Option<Element> {
    let held = || transcript.queue.messages.iter().filter(|it| it.held);
    let is_imported = held().any(|it| it.held_because.as_deref() == Some(IMPORTED));
    let why = if is_imported { "This session was imported." } else { "You stopped the agent." };
    let held = held().count() as u64;
    (held > 0).then(|| {
        Element::div(format!("{id}-held")).class("held").html(html! {
            p { (why) " " (count(held, "message")) @if held == 1 { " is" } @else { " are" } " held back." }
            button type="button" id={ (id) "-release" } data-action="queue" data-type="release_queue" { "Send now" }
            button.quiet type="button" id={ (id) "-clear" } data-action="queue" data-type="clear_queue" { "Clear" }
        })
    })
}

/// Draws a message of the queue. Each of its elements is patched alone, so that an edit in progress
/// survives a change of position or state.
fn queued(
    view: &View,
    queue: &str,
    message: &QueuedMessage,
    place: (usize, usize),
    is_running: bool,
) -> Element {
    let id = format!("{queue}-{}", message.seq);
    let content = Element::div(format!("{id}-b")).class("waiting").html(html! {
        @if let Some(from) = &message.from { (exchange::from(view, from)) }
        (attachments(view, &message.attachments))
        (links(message.sent.as_ref()))
        @if !message.text.is_empty() { div.bubble dir="auto" { (message.text) } }
    });
    Element::new("article", &*id)
        .class("message queued")
        .attr("data-role", "user")
        .attr("aria-label", message.from.as_ref().map_or("You", |it| it.agent.as_str()))
        .attr("data-message-id", message.id.as_str())
        .attr_if("data-client-id", message.client_id.as_ref().map(|it| it.as_str()))
        .child(content)
        .child(controls(&id, message, place, is_running))
        .child(editor(&id, message))
}

/// Draws the state and the buttons of a queued message. `place` is the index of the message and the
/// last index.
fn controls(
    id: &str,
    message: &QueuedMessage,
    (place, last): (usize, usize),
    is_running: bool,
) -> Element {
    let message_id = message.id.as_str();
    let can_be_steered = is_running && message.mode == SendMode::Queue && message.is_steerable();
    let up = ("up", "arrow-up", "Alt+ArrowUp", place.checked_sub(1));
    let down = ("down", "arrow-down", "Alt+ArrowDown", (place < last).then_some(place + 1));
    Element::new("p", format!("{id}-m")).class("meta").html(html! {
        span.words { (state(message)) }
        @if can_be_steered {
            button.quiet.steer type="button" id={ (id) "-steer" } data-action="queue" data-type="steer_queued"
                data-message-id=(message_id) title="Hand it to the agent while it works" { "Steer now" }
        }
        @for (way, arrow, keys, position) in [up, down] {
            button.quiet type="button" id={ (id) "-" (way) } data-action="queue" data-type="move_queued"
                data-message-id=(message_id) data-position=[position] aria-disabled=[position.is_none().then_some("true")] aria-keyshortcuts=(keys) aria-label={ "Move " (way) } { (icon(arrow)) }
        }
        button.quiet type="button" id={ (id) "-drop" } data-action="queue" data-type="drop_queued"
            data-message-id=(message_id) { "Remove" }
    })
}

fn state(message: &QueuedMessage) -> &'static str {
    match message {
        QueuedMessage { mode: SendMode::Steer, .. } => {
            "On its way: the agent gets it at its next step"
        }
        QueuedMessage { held: true, .. } => "Held: starts when you send it",
        QueuedMessage { returned: true, .. } => {
            "The agent could not take it: starts when the agent has finished"
        }
        QueuedMessage { .. } => "Queued: starts when the agent has finished",
    }
}

fn editor(id: &str, message: &QueuedMessage) -> Element {
    Element::new("details", format!("{id}-e")).class("edit").html(html! {
        summary id={ (id) "-edit" } { "Edit" }
        textarea id={ (id) "-text" } rows="2" aria-label="Message that waits" autocomplete="off" dir="auto" { (message.text) }
        div.buttons {
            button.quiet type="button" id={ (id) "-cancel" } data-action="stop-rewriting" { "Cancel" }
            button.primary type="button" id={ (id) "-save" } data-action="queue" data-type="edit_queued"
                data-message-id=(message.id.as_str()) aria-keyshortcuts="Enter Control+Enter" { "Save" }
        }
    })
}
