//! One message to one element.

use maud::{Markup, html};
use transcript::{
    Answer, Body, Call, CallState, Content, Level, Message, Part, PartKind, Queued, RunStatus,
    SaidBy, TextRole,
};

pub(crate) fn message(message: &Message) -> Markup {
    match &message.content {
        Content::Said(said) => {
            let role = if said.role == SaidBy::System { "system" } else { "user" };
            html! {
                article.message data-role=(role) { div.text { (said.text) } }
            }
        }
        Content::Answer(answer) => html! {
            article.message data-role="assistant" data-response-id=(answer.id.as_str()) {
                @for part in &answer.parts { (self::part(answer, part)) }
                (ending(answer))
            }
        },
        Content::Aside(kind) => html! {
            article.message data-role="system" { (aside(kind)) }
        },
    }
}

pub(crate) fn queued(message: &Queued) -> Markup {
    html! {
        article.message.queued data-role="user" {
            div.text { (message.text) }
            p.meta { "Queued: starts when the agent has finished" }
        }
    }
}

fn part(answer: &Answer, part: &Part) -> Markup {
    match &part.kind {
        PartKind::Text(text) => html! {
            div.text.commentary[matches!(text.role, TextRole::Commentary { .. })]
                .undecided[text.role == TextRole::Undecided]
                .discarded[text.role == TextRole::Discarded]
                .leaked[text.leaked] { (text.text) }
        },
        PartKind::Thinking(thinking) => html! {
            details.thinking {
                summary { @if thinking.open { "Thinking…" } @else { "Thought" } }
                div.text { (thinking.text) }
            }
        },
        PartKind::Call(call) => tool_block(answer, call),
        kind => aside(kind),
    }
}

fn tool_block(answer: &Answer, call: &Call) -> Markup {
    let (class, word) = state(call.state);
    let outcome = call.outcome.as_ref();
    let is_done = outcome.is_some() || !answer.is_open();
    html! {
        details.tool-block.(class) data-call-id=(call.id.as_str()) {
            summary {
                span.name { (call.label()) }
                @if !call.summary.is_empty() { " " code { (call.summary) } }
                span.state { (word) }
                @if let Some(outcome) = outcome { span.meta { "(" (outcome.duration_ms) "ms)" } }
                @else if !is_done { span.spinner {} }
            }
            h4 { "Arguments" }
            pre { (arguments(call)) }
            @if !call.stdout.is_empty() { h4 { "Output" } pre { (shown(&call.stdout)) } }
            @if !call.stderr.is_empty() { h4 { "Errors" } pre { (shown(&call.stderr)) } }
            @if let Some(result) = outcome.and_then(|it| it.result.as_ref()) {
                h4 { "Result" }
                pre { (pretty(&shown(result))) }
            }
            @if let Some(error) = outcome.and_then(|it| it.error.as_ref()) {
                p.error { (error.message) " " code { (error.code.as_str()) } }
            }
        }
    }
}

fn ending(answer: &Answer) -> Markup {
    let failed = answer.finish.as_ref().filter(|it| it.status == RunStatus::Failed);
    html! {
        @if answer.is_open() { p.typing role="status" { "Working…" } }
        @if let Some(error) = failed.and_then(|it| it.error.as_ref()) {
            p.error role="alert" { (error.message) " " code { (error.code.as_str()) } }
        } @else if answer.was_interrupted() {
            p.interrupted-mark { "Interrupted" }
        }
    }
}

fn aside(kind: &PartKind) -> Markup {
    match kind {
        PartKind::Notice { level, text } => html! {
            p.notice.error[*level == Level::Error] { (text) }
        },
        PartKind::Unrecognized { source, raw } => html! {
            details.unrecognized { summary { "Not understood, from " (source) } pre { (raw) } }
        },
        PartKind::Steered(steered) => html! { div.text.steered { (steered.text) } },
        PartKind::Exchange(exchange) => html! {
            div.exchange { p.meta { "Message to " (exchange.agent) } div.text { (exchange.text) } }
        },
        PartKind::Text(_) | PartKind::Thinking(_) | PartKind::Call(_) => html! {},
    }
}

/// The class of a call's block, and its state in words.
fn state(state: CallState) -> (&'static str, &'static str) {
    match state {
        CallState::StreamingInput => ("pending", "preparing"),
        CallState::AwaitingApproval => ("pending", "waiting for you"),
        CallState::Queued => ("pending", "queued"),
        CallState::Running => ("pending", "running"),
        CallState::Succeeded => ("success", "done"),
        CallState::Failed => ("error", "failed"),
        CallState::Denied => ("error", "denied"),
        CallState::Interrupted => ("interrupted", "⚠ Interrupted"),
    }
}

/// Missing arguments show as `{}`; those that do not parse, as they are.
fn arguments(call: &Call) -> String {
    if call.arguments.is_empty() { "{}".to_owned() } else { pretty(&shown(&call.arguments)) }
}

fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json);
    value.and_then(|it| serde_json::to_string_pretty(&it)).unwrap_or_else(|_| json.to_owned())
}

const SHOWN: usize = 4000;

/// The beginning, and how much more there is.
fn shown(body: &Body) -> String {
    let text = body.whole().unwrap_or_else(|| body.head().to_owned());
    let mut cut: String = text.chars().take(SHOWN).collect();
    let hidden = body.bytes() - cut.len() as u64;
    if hidden > 0 {
        cut.push_str(&format!("\n… {hidden} more bytes"));
    }
    cut
}
