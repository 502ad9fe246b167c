//! One message as one element. An answer is one flat list of its parts in the order they happened,
//! with its activity line at the head, and what belongs to the whole of it after the list.

use std::collections::HashMap;

use maud::{Markup, html};
use transcript::{
    Answer, Attachment, Call, CallState, CancelReason, Content, Message, Queued, RunStatus, Said,
    SaidBy,
};

use crate::icon::icon;
use crate::tree::Element;
use crate::view::{View, call_of};
use crate::words::{between, count, duration, grouped, size};
use crate::{badge, call, part, tool};

pub(crate) fn message(view: &View, message: &Message) -> Element {
    let id = view.message_id(message);
    match &message.content {
        Content::Said(said) => self::said(view, &id, said),
        Content::Answer(answer) => self::answer(view, &id, answer),
        Content::Aside(kind) => article(&id, "system").child(part::aside(&part_id(&id, 0), kind)),
    }
}

fn article(id: &str, role: &str) -> Element {
    Element::new("article", id).class("message").attr("data-role", role)
}

pub(crate) fn part_id(message: &str, idx: usize) -> String {
    format!("{message}-{idx}")
}

fn said(view: &View, id: &str, said: &Said) -> Element {
    let Said { text, attachments, from, .. } = said;
    if said.role == SaidBy::System {
        return article(id, "system").html(html! { p.quiet-line { (text) } });
    }
    let client_id = said.client_id.as_ref().map(|it| it.as_str());
    let from = from.as_ref();
    article(id, "user").attr_if("data-client-id", client_id).attr("data-message-id", said.id.as_str()).html(html! {
        @if let Some(from) = from {
            p.meta.from { (icon("agent")) " From " b { (from.agent) } }
        }
        (self::attachments(view, attachments))
        @if !text.is_empty() { div.bubble { (text) } }
        div.actions {
            button.quiet type="button" data-action="copy-message" aria-label="Copy message" { (icon("copy")) }
            @if from.is_none() {
                button.quiet type="button" data-action="edit" aria-label="Edit and send again" { (icon("pencil")) }
            }
        }
    })
}

pub(crate) fn attachments(view: &View, attachments: &[Attachment]) -> Markup {
    html! {
        @if !attachments.is_empty() {
            div.attachments {
                @for attachment in attachments {
                    @let Attachment { blob, name, media_type, size: bytes } = attachment;
                    @let url = view.file_url(blob);
                    @let picture = url.as_ref().filter(|_| is_picture(media_type, *bytes));
                    a.attachment href=[&url] download=[view.is_alone().then_some(name)] target="_blank" rel="noopener"
                        data-file=[serde_json::to_string(attachment).ok().filter(|_| !view.is_alone())] {
                        @if let Some(url) = picture { img src=(url) alt=(name) loading="lazy"; }
                        @else { (icon("file")) }
                        span.name { (name) } " " span.meta { (size(*bytes)) }
                    }
                }
            }
        }
    }
}

/// Only these are shown, and only up to a size.
pub fn is_picture(media_type: &str, bytes: u64) -> bool {
    const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    PICTURES.contains(&media_type) && bytes <= 4 * 1024 * 1024
}

pub(crate) fn queued(view: &View, id: &str, message: &Queued) -> Element {
    let client_id = message.client_id.as_ref().map(|it| it.as_str());
    let element = Element::new("article", id).class("message queued").attr("data-role", "user");
    element.attr_if("data-client-id", client_id).html(html! {
        (attachments(view, &message.attachments))
        div.bubble { (message.text) }
        p.meta {
            "Queued: starts when the agent has finished"
            button.quiet type="button" data-action="drop-queued" data-message-id=(message.id.as_str()) { "Remove" }
        }
    })
}

fn answer(view: &View, id: &str, answer: &Answer) -> Element {
    let mut top = Vec::new();
    let mut nested: HashMap<usize, Vec<usize>> = HashMap::new();
    for idx in 0..answer.parts.len() {
        parent(answer, idx).map_or(&mut top, |it| nested.entry(it).or_default()).push(idx);
    }
    let drawn = top.iter().map(|&idx| tree(view, id, answer, &nested, idx));
    let badges = answer.parts.iter().enumerate().filter_map(|(idx, _)| {
        Some(badge::badge(view, &badge_id(id, idx), answer, call_of(answer, idx)?))
    });
    assemble(id, answer, drawn, badges)
}

/// The answer without its parts and its badges: what is drawn again when anything but text, output
/// or arguments has come.
pub(crate) fn frame(id: &str, answer: &Answer) -> Element {
    assemble(id, answer, [], [])
}

fn assemble(
    id: &str,
    answer: &Answer,
    parts: impl IntoIterator<Item = Element>,
    badges: impl IntoIterator<Item = Element>,
) -> Element {
    let activity = Element::new("details", format!("{id}-a")).class("activity").child(
        Element::new("summary", format!("{id}-as")).child(widget(&format!("{id}-w"), answer)),
    );
    let list = Element::div(list_id(id)).class("parts").child(activity).children(parts);
    article(id, "assistant")
        .attr("data-response-id", answer.id.as_str())
        .child(list)
        .child(tail(&format!("{id}-t"), answer))
        .child_if(badge::list(&badges_id(id), answer).map(|it| it.children(badges)))
        .child(footer(&format!("{id}-f"), answer))
}

pub(crate) fn list_id(message: &str) -> String {
    format!("{message}-l")
}

pub(crate) fn badges_id(message: &str) -> String {
    format!("{message}-b")
}

pub(crate) fn badge_id(message: &str, idx: usize) -> String {
    format!("{message}-b{idx}")
}

/// A part with all that happened underneath it.
fn tree(
    view: &View,
    message: &str,
    answer: &Answer,
    nested: &HashMap<usize, Vec<usize>>,
    idx: usize,
) -> Element {
    let id = part_id(message, idx);
    let element = part::part(view, &id, &answer.parts[idx]);
    let Some(underneath) = nested.get(&idx) else { return element };
    let parts = underneath.iter().map(|&it| tree(view, message, answer, nested, it));
    element.fill(&call::nested_id(&id), parts)
}

/// The call that a part happened under. One that came after the part is not believed.
pub(crate) fn parent(answer: &Answer, idx: usize) -> Option<usize> {
    let call = answer.parts[idx].parent.as_ref()?;
    answer.call_index(call).filter(|&it| it < idx)
}

/// One line: what the agent is doing, or what it did.
fn widget(id: &str, answer: &Answer) -> Element {
    let element = Element::new("span", id);
    let calls: Vec<&Call> = answer.calls().collect();
    let waits = calls.iter().find(|it| it.waits_for_approval());
    let (state, markup) = match (answer.is_open(), &calls[..]) {
        (false, []) => return element.class("no-widget"),
        (false, calls) => (
            "complete",
            html! { (icon(worst(calls))) span.words { (used(calls)) (outcomes(calls)) (took(answer)) } },
        ),
        (true, []) => ("thinking", html! { span.pulse { "Thinking..." } }),
        (true, calls) => (
            "working",
            match (waits, answer.current_call()) {
                (Some(call), _) => {
                    html! { (icon("alert")) span.words { "Waiting for you: " (named(call)) } }
                }
                (None, Some(call)) => {
                    html! { span.spinner aria-hidden="true" {} span.words { (named(call)) } }
                }
                (None, None) => {
                    html! { span.spinner aria-hidden="true" {} span.words { (used(calls)) (outcomes(calls)) } }
                }
            },
        ),
    };
    let markup = html! { (markup) span.chevron { (icon("chevron")) } };
    element.class("tool-widget").attr("data-state", state).html(markup)
}

fn named(call: &Call) -> Markup {
    html! { b { (call.label()) } @if let Some(about) = tool::subject(call) { " " code { (about) } } }
}

fn used(calls: &[&Call]) -> String {
    format!("Used {}", count(calls.len() as u64, "tool"))
}

fn outcomes(calls: &[&Call]) -> Markup {
    let number = |state: CallState| calls.iter().filter(|it| it.state == state).count();
    let failed = number(CallState::Failed);
    let denied = number(CallState::Denied);
    let interrupted = number(CallState::Interrupted);
    html! {
        @if failed > 0 { " · " span.failed { (failed) " failed" } }
        @if denied > 0 { " · " span.denied { (denied) " denied" } }
        @if interrupted > 0 { " · " span.stopped { (interrupted) " interrupted" } }
    }
}

/// The icon of the call that went worst.
fn worst(calls: &[&Call]) -> &'static str {
    let any = |state: CallState| calls.iter().any(|it| it.state == state);
    match () {
        () if any(CallState::Failed) => "alert",
        () if any(CallState::Interrupted) => "warning",
        () if any(CallState::Denied) => "cross",
        () => "check",
    }
}

/// The time that the agent worked; what it waited for a person stands apart.
fn took(answer: &Answer) -> Markup {
    let took = answer.finish.as_ref().map(|it| it.duration_ms).filter(|it| *it > 0);
    let waited = waited(answer);
    html! {
        @if let Some(ms) = took { span.took { " · " (duration(ms.saturating_sub(waited))) } }
        @if waited >= 1000 { span.took { " · waited " (duration(waited)) " for you" } }
    }
}

/// How long at least one call waited for a decision.
fn waited(answer: &Answer) -> u64 {
    let mut waits: Vec<(i64, i64)> = answer
        .calls()
        .filter_map(|call| {
            let approval = call.approval.as_ref()?;
            Some((approval.requested_at.0, approval.resolved.as_ref()?.at.0))
        })
        .collect();
    waits.sort_unstable();
    let (mut total, mut until) = (0_u64, i64::MIN);
    for (from, to) in waits {
        total += u64::try_from(to.saturating_sub(from.max(until))).unwrap_or(0);
        until = until.max(to);
    }
    total
}

/// How it stands with the answer: still coming, stopped, failed; and what can be done.
fn tail(id: &str, answer: &Answer) -> Element {
    let element = Element::div(id).class("tail");
    let Some(finish) = &answer.finish else {
        return element.html(html! {
            p.typing role="status" { span.dots aria-hidden="true" { i {} i {} i {} } span.sr { "The agent is working" } }
        });
    };
    let stopped = answer
        .continuation
        .as_ref()
        .filter(|it| !it.should_continue && it.stop_reason != "completed");
    element.html(html! {
        @if answer.was_interrupted() { (interrupted(answer)) }
        @if let Some(stop) = stopped.filter(|_| !answer.was_interrupted()) {
            p.stopped-line { "Agent stopped: " (stop.stop_reason.replace('_', " ")) }
        }
        @if finish.status == RunStatus::Failed {
            div.banner role="alert" {
                (icon("alert"))
                @if let Some(error) = &finish.error {
                    span { (error.message) " " code { (error.code.as_str()) } }
                } @else { span { "The run failed and did not say why." } }
            }
        }
        div.offers {
            @if finish.status == RunStatus::Failed || answer.was_interrupted() {
                button type="button" data-action="retry" { (icon("retry")) " Try again" }
            }
            @if stopped.is_some() || answer.was_interrupted() {
                button type="button" data-action="continue" { "Continue" }
            }
        }
    })
}

fn interrupted(answer: &Answer) -> Markup {
    let why = match answer.cancelled {
        Some(CancelReason::UserCancel) => "stopped by you",
        Some(CancelReason::Restart) => "the server was restarted",
        Some(CancelReason::Timeout) => "it took too long",
        Some(CancelReason::Error) => "it failed",
        None => "",
    };
    let after = answer.finish.as_ref().map(|it| between(answer.started_at, it.at));
    html! {
        p.interrupted-mark {
            (icon("warning")) " Interrupted"
            @if !why.is_empty() { " (" (why) @if let Some(after) = after { " after " (after) } ")" }
        }
    }
}

/// Time and tokens, and what can be done with the answer.
fn footer(id: &str, answer: &Answer) -> Element {
    let element = Element::new("footer", id).class("meta");
    let Some(finish) = &answer.finish else { return element };
    let tokens = answer.usage().map(|it| it.total_tokens).filter(|it| *it > 0);
    let trace = answer.continuation.as_ref().map(|it| &it.evaluations).filter(|it| !it.is_empty());
    element.html(html! {
        span.timing {
            "Assistant · " (duration(finish.duration_ms))
            @if let Some(tokens) = tokens { " · " (grouped(tokens)) " tokens" }
            @if let Some(cost) = finish.cost { " · $" (format!("{cost:.4}")) }
        }
        button.quiet type="button" data-action="copy-answer" aria-label="Copy answer" { (icon("copy")) }
        button.quiet.regenerate type="button" data-action="retry" aria-label="Answer again" { (icon("retry")) }
        @if let Some(trace) = trace {
            details.trace {
                summary { "Why it stopped" }
                ul { @for it in trace { li { b { (it.criterion) } ": " (it.decision) ", " (it.reason) } } }
            }
        }
    })
}
