//! Exchanges between agents: the block in the sender's answer, and the line that names the sender in the
//! other session.
//!
//! The block shows the message and its outcome. The other agent's own message is fetched when the block is
//! opened; an export contains it.

use std::borrow::Cow;
use std::collections::HashMap;

use maud::{Markup, PreEscaped, html};
use transcript::{
    ErrorCode, Exchange, ExchangeId, ExchangeMode, ExchangeOutcome, ExchangeState, Message, Sender,
    Seq, SessionId, Transcript,
};

use crate::html::element::Element;
use crate::html::icon::icon;
use crate::message::approval_card::dock;
use crate::message::call::LINE_MAX;
use crate::message::long_text::{self, TextStyle};
use crate::message::message;
use crate::text::json;
use crate::view::{View, one_line};

/// Messages of other sessions that a standalone file embeds, by the id of their exchange.
pub type Peers = HashMap<ExchangeId, (SessionId, Message)>;

pub(crate) fn block(view: &View, id: &str, first: Seq, exchange: &Exchange) -> Element {
    let (class, mark, word) = status(exchange);
    let summary = html! {
        span.mark { (mark) }
        span.kind { (icon("agent")) }
        span.name { "Message to " (exchange.agent) }
        span.spread {}
        @if exchange.mode == ExchangeMode::Async { span.about { "in the background" } }
        span.state { (word) }
        span.chevron { (icon("chevron")) }
        @if let Some(why) = failure_line(exchange) { span.why { (why) } }
    };
    let inside = Element::div(format!("{id}-i"))
        .class("inside")
        .child(sent_message(view, &format!("{id}-q"), first, &exchange.text))
        .child_if(other_side(view, &format!("{id}-p"), exchange))
        .child(end(&format!("{id}-e"), exchange))
        .child_if(link(view, &format!("{id}-l"), exchange));
    Element::div(id)
        .class(format!("tool-block exchange agent-callback {class}"))
        .attr("data-exchange-id", exchange.id.as_str())
        .child(
            Element::new("details", format!("{id}-d"))
                .child(Element::new("summary", format!("{id}-s")).html(summary))
                .child(inside),
        )
}

fn sent_message(view: &View, id: &str, first: Seq, text: &str) -> Element {
    let element = Element::new("blockquote", id);
    match long_text::is_long(text) {
        true => long_text::fill(element.class("cut"), view, id, first, text, TextStyle::Plain),
        false => element.text(text),
    }
}

fn status(exchange: &Exchange) -> (&'static str, Markup, &'static str) {
    let spinner = html! { span.spinner aria-hidden="true" {} };
    match (&exchange.outcome, exchange.state) {
        (Some(outcome), _) if outcome.ok => ("success", icon("check"), "answered"),
        (Some(outcome), _) if is_stopped(outcome) => {
            ("interrupted", icon("warning"), "⚠ Interrupted")
        }
        (Some(_), _) => ("error", icon("alert"), "failed"),
        (None, Some(ExchangeState::Queued)) => ("pending", spinner, "queued"),
        (None, Some(ExchangeState::AwaitingApproval)) => {
            ("pending", icon("alert"), "waiting for you")
        }
        (None, Some(ExchangeState::Running)) => ("pending", spinner, "at work"),
        (None, None) => ("pending", spinner, "waiting"),
    }
}

/// Returns the reason for the failure of an exchange, in one line; `None` if it has not failed.
fn failure_line(exchange: &Exchange) -> Option<Cow<'_, str>> {
    let outcome = exchange.outcome.as_ref().filter(|it| !it.ok && !is_stopped(it))?;
    Some(one_line(&outcome.error.as_ref()?.message, LINE_MAX))
}

/// Returns whether an exchange ended because one of the two agents was stopped before the reply.
pub(crate) fn is_stopped(outcome: &ExchangeOutcome) -> bool {
    let code = outcome.error.as_ref().map(|it| &it.code);
    !outcome.ok && code == Some(&ErrorCode::AgentCancelled)
}

/// Returns the ids of an exchange's other session and run, if both are valid for a URL: a log may
/// come from anywhere.
pub(crate) fn place(exchange: &Exchange) -> Option<(&str, &str)> {
    let session = exchange.peer_session_id.as_ref()?.as_str();
    let run = exchange.peer_response_id.as_ref()?.as_str();
    [session, run].iter().all(|it| SessionId::parse(it).is_some()).then_some((session, run))
}

/// Draws the other session's message of an exchange, or a placeholder that fetches it; `None` if
/// neither is available.
fn other_side(view: &View, id: &str, exchange: &Exchange) -> Option<Element> {
    let (session, run) = place(exchange)?;
    let element = Element::div(id).class("peer");
    let element = element.attr("data-src", format!("/api/sessions/{session}/answers/{run}"));
    match view.peer(&exchange.id) {
        Some((session, answer)) => Some(element.child(message(&view.for_session(session), answer))),
        None => has_begun(exchange).then_some(element),
    }
}

/// Returns whether the other agent of an exchange has started to work on the message.
fn has_begun(exchange: &Exchange) -> bool {
    use ExchangeState::{AwaitingApproval, Running};
    matches!(exchange.state, Some(Running | AwaitingApproval))
}

/// Draws the reply of an exchange, or the reason why there is none.
fn end(id: &str, exchange: &Exchange) -> Element {
    let element = Element::div(id).class("end");
    let Some(outcome) = &exchange.outcome else { return element };
    let ExchangeOutcome { result, error, .. } = outcome;
    element.html(html! {
        @if let Some(result) = result {
            div.body tabindex="0" {
                @if let Some(words) = result.as_str() { (long_text::excerpt(words)) }
                @else { (json::pretty(&long_text::excerpt(&result.to_string()))) }
            }
        }
        @if let Some(error) = error {
            div.failure.stop[is_stopped(outcome)] { (long_text::excerpt(&error.message)) " " code { (error.code.as_str()) } }
        }
    })
}

/// Draws the link of an exchange to the other session; in a standalone file it has no target.
fn link(view: &View, id: &str, exchange: &Exchange) -> Option<Element> {
    let (session, run) = place(exchange)?;
    let link = Element::new("a", id).class("meta there");
    Some(match view.is_standalone() {
        true => link,
        false => link.attr("href", format!("/s/{session}#m={run}")).text("Open its session"),
    })
}

/// Draws the line above a message that names the agent that sent it.
pub(crate) fn from(view: &View, from: &Sender) -> Markup {
    let Sender { session_id, agent, is_answer, .. } = from;
    let words = if *is_answer { "Answer from " } else { "From " };
    let there = SessionId::parse(session_id.as_str()).filter(|_| !view.is_standalone());
    let there = there.map(|it| format!("/s/{it}"));
    html! {
        p.meta.from {
            (icon("agent")) " " (words) b { (agent) }
            a.there href=[&there] { @if there.is_some() { "Open its session" } }
        }
    }
}

/// Draws an assistant message of another session for embedding in a page; `head` is the last record
/// that it includes.
pub fn embedded(view: &View, head: Seq, answer: &Message) -> String {
    let drawn = PreEscaped(message(view, answer).to_html());
    html! { div.embedded data-session-id=(view.session) data-head=(head) { (drawn) } }.into_string()
}

/// Draws the approval cards of another session for embedding in a page; `head` is the last record
/// that they include.
pub fn embedded_approvals(view: &View, head: Seq, transcript: &Transcript) -> String {
    let drawn = PreEscaped(dock(view, transcript).to_html());
    html! { div.embedded data-session-id=(view.session) data-head=(head) { (drawn) } }.into_string()
}
