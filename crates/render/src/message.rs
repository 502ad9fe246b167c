//! One message as one element. An answer is a flat list of its parts in chronological order, with its
//! activity line first; state, badges and footer follow the list.

pub(crate) mod approval_card;
pub(crate) mod badge;
pub(crate) mod call;
pub mod covers;
pub(crate) mod exchange;
pub(crate) mod form;
pub(crate) mod long_text;
pub(crate) mod part;
pub(crate) mod shown_parts;
pub(crate) mod tool;
pub(crate) mod weight;
pub(crate) mod whole_body;

use maud::{Markup, html};
use transcript::{
    Attachment, Call, CallState, CancelReason, Content, Exchange, ExchangeState, Link, Message,
    MessageRole, Part, RunMessage, RunStatus, SentForm, Seq, TextRole, UserMessage,
};

use self::long_text::TextStyle;
use self::shown_parts::ShownParts;
use crate::html::element::Element;
use crate::html::icon::icon;
use crate::text::invisible::marked;
use crate::text::quantity::{between, count, dollars, duration, grouped, size};
use crate::view::{RawOf, View, call_of};

pub(crate) fn message(view: &View, message: &Message) -> Element {
    let id = view.message_id(message);
    match &message.content {
        Content::User(user) => user_message(view, &id, message.first, user),
        Content::Run(answer) => self::answer(view, &id, answer),
        Content::Aside(kind) => article(&id, "system", "Note").child(part::aside(
            view,
            &part_id(&id, 0),
            message.first,
            kind,
        )),
    }
}

/// Creates the element of a message, labelled with its sender for screen readers.
fn article(id: &str, role: &str, speaker: &str) -> Element {
    let article = Element::new("article", id).class("message").attr("data-role", role);
    article.attr("aria-label", speaker)
}

pub(crate) fn part_id(message: &str, idx: usize) -> String {
    format!("{message}-{idx}")
}

fn user_message(view: &View, id: &str, first: Seq, message: &UserMessage) -> Element {
    let UserMessage { text, attachments, from, sent, .. } = message;
    if message.role == MessageRole::System {
        let words = long_text::content(view, id, first, text, TextStyle::Plain);
        let class = long_text::class("quiet-line", text);
        return article(id, "system", "Note").html(html! { div class=(class) { (words) } });
    }
    let client_id = message.client_id.as_ref().map(|it| it.as_str());
    let from = from.as_ref();
    let is_answer = from.is_some_and(|it| it.is_answer);
    let speaker = from.map_or("You", |it| it.agent.as_str());
    let element =
        article(id, "user", speaker).attr_if("data-callback", is_answer.then_some("true"));
    element.attr_if("data-client-id", client_id).attr("data-message-id", message.id.as_str()).html(html! {
        @if let Some(from) = from { (exchange::from(view, from)) }
        (self::attachments(view, attachments))
        (links(sent.as_ref()))
        @if is_answer { (part::bubble(view, id, first, text, TextStyle::CLOSED)) }
        @else if !text.is_empty() { (part::bubble(view, id, first, text, TextStyle::Plain)) }
        div.actions {
            button.quiet type="button" data-action="copy" data-of=".bubble" aria-label="Copy message" { (icon("copy")) }
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
                    a.attachment href=[&url] download=[view.is_standalone().then_some(name)] target="_blank" rel="noopener"
                        data-file=[serde_json::to_string(attachment).ok().filter(|_| !view.is_standalone())] {
                        @if let Some(url) = picture { img src=(url) alt=(name) loading="lazy"; }
                        @else { (icon("file")) }
                        span.name { (name) } " " span.meta { (size(*bytes)) }
                    }
                }
            }
        }
    }
}

/// Draws the links of a message to files on other servers. Nothing is fetched until a person
/// follows one.
pub(crate) fn links(sent: Option<&SentForm>) -> Markup {
    let links: Vec<Link<'_>> = sent.into_iter().flat_map(SentForm::links).collect();
    html! {
        @if !links.is_empty() {
            div.attachments {
                @for Link { url, media_type, name } in links {
                    a.attachment href=(url) target="_blank" rel="noopener noreferrer" {
                        (icon("file")) span.name { (name.unwrap_or(url)) } " " span.meta { (media_type) }
                    }
                }
            }
        }
    }
}

/// Returns whether the page shows an attachment as an image: a known media type, up to 4 MiB.
pub fn is_picture(media_type: &str, bytes: u64) -> bool {
    const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    PICTURES.contains(&media_type) && bytes <= 4 * 1024 * 1024
}

fn answer(view: &View, id: &str, answer: &RunMessage) -> Element {
    let shown = ShownParts::new(view, answer);
    let badges = shown
        .iter()
        .filter_map(|idx| Some(badge::badge(view, id, idx, answer, call_of(answer, idx)?)));
    let parts = shown_parts::trees(view, id, answer, shown.iter());
    assemble(view, id, answer, shown.earlier(view, id, answer).into_iter().chain(parts), badges)
}

/// Draws an assistant message without its parts and badges, to compare when more than text, output
/// or arguments changed.
pub(crate) fn frame(view: &View, id: &str, answer: &RunMessage) -> Element {
    assemble(view, id, answer, [], [])
}

fn assemble(
    view: &View,
    id: &str,
    answer: &RunMessage,
    parts: impl IntoIterator<Item = Element>,
    badges: impl IntoIterator<Item = Element>,
) -> Element {
    let line = Element::new("details", format!("{id}-a")).class("activity").child(
        Element::new("summary", format!("{id}-as")).child(widget(&format!("{id}-w"), answer)),
    );
    let list = Element::div(list_id(id)).class("parts").child(line).children(parts);
    let words = words(answer);
    let speaker = if answer.agent.is_empty() { "Assistant" } else { &answer.agent };
    article(id, "assistant", speaker)
        .attr("data-response-id", answer.id.as_str())
        .attr("data-activity", activity(answer))
        .attr_if("data-words", (!words.is_empty()).then_some(words))
        .child(list)
        .child(tail(&format!("{id}-t"), answer))
        .child_if(badge::list(&badges_id(id), answer).map(|it| it.children(badges)))
        .child(footer(view, &format!("{id}-f"), answer))
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

/// Returns the state of a run for the stylesheet. It is an attribute, because a selector on the
/// children would make the browser check whole messages for every word that arrives.
fn activity(answer: &RunMessage) -> &'static str {
    match (answer.is_open(), answer.n_calls() > 0) {
        (false, false) => "none",
        (false, true) => "complete",
        (true, false) => "thinking",
        (true, true) if answer.waiting_calls().next().is_some() => "waiting",
        (true, true) => "working",
    }
}

/// Returns the kinds of texts in an assistant message, as words for the stylesheet: `none` if
/// nothing is visible, and during the run `undecided`, `short`, `settled` and `last`.
fn words(answer: &RunMessage) -> String {
    let undecided = || answer.undecided_texts();
    let is_settled = answer.has_final_text() || undecided().any(part::is_long);
    let is_last = answer.last_top_level().is_some_and(|it| part::text(it).is_some());
    let is_open = answer.is_open();
    let words = [
        ("none", answer.has_only_leaked()),
        ("last", is_open && is_last),
        ("settled", is_open && is_settled),
        ("undecided", is_open && undecided().next().is_some()),
        ("short", is_open && undecided().any(|it| !part::is_long(it))),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(_, is)| *is).map(|(word, _)| word).collect();
    words.join(" ")
}

/// Draws the activity line of an assistant message: the current activity of the agent, or a summary
/// of its tool calls after the run.
fn widget(id: &str, answer: &RunMessage) -> Element {
    let element = Element::new("span", id);
    let waits = answer.waiting_calls().next();
    let (state, markup) = match (answer.is_open(), answer.n_calls()) {
        (false, 0) => return element.class("no-widget"),
        (false, _) => (
            "complete",
            html! { (icon(worst_icon(answer))) span.words { (used(answer)) (time_taken(answer)) } },
        ),
        (true, 0) => ("thinking", html! { span.pulse { "Thinking..." } }),
        (true, _) => (
            "working",
            match (
                waits,
                agent_awaiting_approval(answer),
                answer.current_call().or_else(|| answer.last_open_call()),
            ) {
                (Some(_), ..) => {
                    html! { (icon("alert")) span.words { "Waiting for your decision" } }
                }
                (None, Some(agent), _) => {
                    html! { (icon("alert")) span.words { b { (agent) } " is waiting for you" } }
                }
                (None, None, Some(call)) => html! {
                    span.spinner aria-hidden="true" {}
                    span.words { (named(call)) }
                    @if let Some(retry) = call::retrying(call) { span.retrying { (retry) } }
                },
                (None, None, None) => {
                    html! { span.spinner aria-hidden="true" {} span.words { (used(answer)) } }
                }
            },
        ),
    };
    let markup = html! { (markup) span.chevron { (icon("chevron")) } };
    element
        .class("tool-widget")
        .attr("data-state", state)
        .attr_if("data-outcome", outcome(answer))
        .html(markup)
}

/// Returns the id of the agent in an open exchange that waits for a person's decision.
pub(crate) fn agent_awaiting_approval(answer: &RunMessage) -> Option<&str> {
    let is_held_up = |it: &&Exchange| it.state == Some(ExchangeState::AwaitingApproval);
    answer.open_exchanges().find(is_held_up).map(|it| it.agent.as_str())
}

/// Returns the state of the tool call with the worst outcome; `None` if all succeeded.
fn outcome(answer: &RunMessage) -> Option<&'static str> {
    let worst = [
        (answer.n_failed(), CallState::Failed),
        (answer.n_interrupted(), CallState::Interrupted),
        (answer.n_denied(), CallState::Denied),
    ];
    worst.into_iter().find(|(n, _)| *n > 0).map(|(_, state)| state.as_str())
}

fn named(call: &Call) -> Markup {
    html! { b { (call.label()) } @if let Some(about) = tool::subject(call) { " " code { (marked(&about)) } } }
}

/// Draws the counts of used tools and of failed, denied and interrupted tool calls. A denied call
/// does not count as used.
fn used(answer: &RunMessage) -> Markup {
    let (n_calls, denied) = (answer.n_calls(), answer.n_denied());
    let (failed, interrupted) = (answer.n_failed(), answer.n_interrupted());
    // The line has space for one reason.
    let why = answer.failed_calls().next().and_then(call::failure_line);
    let of_which = if failed > 1 { ", first: " } else { ": " };
    html! {
        @if n_calls > denied { "Used " (count((n_calls - denied) as u64, "tool")) }
        @if failed > 0 { " · " span.failed { (failed) " failed" @if let Some(why) = why { (of_which) (why) } } }
        @if denied > 0 {
            @if n_calls > denied { " · " span.denied { (denied) " denied" } }
            @else { span.denied { (count(denied as u64, "call")) " denied" } }
        }
        @if interrupted > 0 { " · " span.stopped { (interrupted) " interrupted" } }
    }
}

/// Returns the name of the icon for the tool call with the worst outcome.
fn worst_icon(answer: &RunMessage) -> &'static str {
    match outcome(answer) {
        Some("failed") => "alert",
        Some("interrupted") => "warning",
        Some(_) => "cross",
        None => "check",
    }
}

/// Draws the working time of the agent in a run, and separately the time spent waiting for a
/// person.
fn time_taken(answer: &RunMessage) -> Markup {
    let took = answer.finish.as_ref().and_then(|it| it.duration_ms);
    let waited = time_waited(answer);
    html! {
        @if let Some(ms) = took { span.took { " · " (duration(ms.saturating_sub(waited))) } }
        @if waited >= 1000 { span.took { " · waited " (duration(waited)) " for you" } }
    }
}

/// Returns the milliseconds during which at least one tool call of the run waited for a decision.
fn time_waited(answer: &RunMessage) -> u64 {
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

/// Draws the state of a run (running, interrupted, failed) and the buttons to retry or continue it.
fn tail(id: &str, answer: &RunMessage) -> Element {
    let element = Element::div(id).class("tail");
    let Some(finish) = &answer.finish else {
        return element.html(html! {
            p.typing role="status" { span.dots aria-hidden="true" { i {} i {} i {} } span.sr { "The agent is working" } }
        });
    };
    let stopped =
        answer.continuation().filter(|it| !it.should_continue && it.stop_reason != "completed");
    // The banner says why it failed.
    let is_marked = answer.was_interrupted() && finish.status != RunStatus::Failed;
    let can_retry = can_retry(answer);
    let can_continue = stopped.is_some() || answer.was_interrupted();
    element.html(html! {
        @if is_marked { (interrupted(answer)) }
        @if is_silent(answer) && finish.status == RunStatus::Completed {
            p.quiet-line { "The agent ended without a word." }
        }
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
        @if can_retry || can_continue {
            div.offers {
                @if can_retry { button type="button" data-action="retry" { (icon("retry")) " Try again" } }
                @if can_continue { button type="button" data-action="continue" { "Continue" } }
            }
        }
    })
}

fn can_retry(answer: &RunMessage) -> bool {
    let has_failed = answer.finish.as_ref().is_some_and(|it| it.status == RunStatus::Failed);
    has_failed || answer.was_interrupted()
}

fn is_silent(answer: &RunMessage) -> bool {
    let is_blank = |part: &Part| part::text(part).is_some_and(|it| it.text.trim().is_empty());
    answer.parts.iter().all(is_blank)
}

fn interrupted(answer: &RunMessage) -> Markup {
    let why = match answer.cancelled {
        Some(CancelReason::UserCancel) => "stopped by you",
        Some(CancelReason::Restart) => "the server was restarted",
        Some(CancelReason::Timeout) => "it took too long",
        Some(CancelReason::Error) => "it failed",
        Some(CancelReason::Import) => "it was not complete when it was imported",
        None => "",
    };
    // For an import, the recorded time is not the time of the interruption.
    let is_known = answer.cancelled != Some(CancelReason::Import);
    let after = answer.finish.as_ref().filter(|_| is_known);
    let after = after.map(|it| between(answer.started_at, it.at));
    html! {
        p.interrupted-mark {
            (icon("warning")) " Interrupted"
            @if !why.is_empty() { " (" (why) @if let Some(after) = after { " after " (after) } ")" }
        }
    }
}

/// Draws the footer of an assistant message: time, tokens and cost of the run, and its buttons.
/// Empty until the run has ended.
fn footer(view: &View, id: &str, answer: &RunMessage) -> Element {
    let element = Element::new("footer", id).class("meta");
    let Some(finish) = &answer.finish else { return element };
    let tokens = answer.usage().map(|it| it.total_tokens).filter(|it| *it > 0);
    let cost = answer.cost().filter(|it| *it > 0.0);
    let mut texts = answer.parts.iter().filter_map(part::text);
    let has_text = texts.any(|it| it.role == TextRole::Final && !it.text.trim().is_empty());
    let trace = answer.continuation().map(|it| &it.evaluations).filter(|it| !it.is_empty());
    element.html(html! {
        span.timing {
            "Assistant"
            @if let Some(ms) = finish.duration_ms { " · " (duration(ms)) }
            @if let Some(tokens) = tokens { " · " (grouped(tokens)) " tokens" }
            @if let Some(cost) = cost { " · " (dollars(cost)) }
        }
        @if has_text {
            button.quiet type="button" data-action="copy" data-src=(view.answer_url(&answer.id)) aria-label="Copy answer" { (icon("copy")) }
        }
        @if !can_retry(answer) {
            button.quiet.regenerate type="button" data-action="retry" aria-label="Answer again" { (icon("retry")) }
        }
        @if let Some(url) = view.raw_url(RawOf::Run(&answer.id)) {
            a.raw-link href=(url) target="_blank" rel="noopener" title="Raw output" { "Raw" }
        }
        @if let Some(trace) = trace {
            details.trace {
                summary { "Show details: why it stopped" }
                ul { @for it in trace { li { b { (it.criterion) } ": " (it.decision) ", " (it.reason) } } }
            }
        }
    })
}
