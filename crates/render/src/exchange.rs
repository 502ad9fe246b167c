//! What agents say to each other: the question in the asker's answer, and in the other session the
//! line that says where a message comes from.
//!
//! The block holds the question and how it ended. What the other agent did is that session's own
//! message: a view of its own within the block, fetched when the block is opened, and drawn in place
//! where there is nothing to fetch it from.

use std::borrow::Cow;
use std::collections::HashMap;

use maud::{Markup, PreEscaped, html};
use transcript::{
    ErrorCode, Exchange, ExchangeId, ExchangeMode, ExchangeOutcome, ExchangeState, Message, Sender,
    Seq, SessionId, Transcript,
};

use crate::call::LINE_MAX;
use crate::card::dock;
use crate::icon::icon;
use crate::json;
use crate::long::{self, Style};
use crate::message::message;
use crate::tree::Element;
use crate::view::{View, one_line};

/// The other side's answers, by their exchange: for a file that stands alone.
pub type Peers = HashMap<ExchangeId, (SessionId, Message)>;

pub(crate) fn block(view: &View, id: &str, first: Seq, exchange: &Exchange) -> Element {
    let (class, mark, word) = standing(exchange);
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
        .child(asked(view, &format!("{id}-q"), first, &exchange.text))
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

fn asked(view: &View, id: &str, first: Seq, text: &str) -> Element {
    let element = Element::new("blockquote", id);
    match long::is_long(text) {
        true => long::fill(element.class("cut"), view, id, first, text, Style::Plain),
        false => element.text(text),
    }
}

fn standing(exchange: &Exchange) -> (&'static str, Markup, &'static str) {
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

/// Why there is no answer, in the first line.
fn failure_line(exchange: &Exchange) -> Option<Cow<'_, str>> {
    let outcome = exchange.outcome.as_ref().filter(|it| !it.ok && !is_stopped(it))?;
    Some(one_line(&outcome.error.as_ref()?.message, LINE_MAX))
}

/// One of the two sides was stopped before there was an answer.
pub(crate) fn is_stopped(outcome: &ExchangeOutcome) -> bool {
    let code = outcome.error.as_ref().map(|it| &it.code);
    !outcome.ok && code == Some(&ErrorCode::AgentCancelled)
}

/// The other side's session and run, as they may stand in an address: a log may come from anywhere.
pub(crate) fn place(exchange: &Exchange) -> Option<(&str, &str)> {
    let session = exchange.peer_session_id.as_ref()?.as_str();
    let run = exchange.peer_response_id.as_ref()?.as_str();
    [session, run].iter().all(|it| SessionId::parse(it).is_some()).then_some((session, run))
}

/// Where the other session's own message goes.
fn other_side(view: &View, id: &str, exchange: &Exchange) -> Option<Element> {
    let (session, run) = place(exchange)?;
    let element = Element::div(id).class("peer");
    let element = element.attr("data-src", format!("/api/sessions/{session}/answers/{run}"));
    match view.peer(&exchange.id) {
        Some((session, answer)) => Some(element.child(message(&view.beside(session), answer))),
        None => has_begun(exchange).then_some(element),
    }
}

/// There is nothing to see of a question that waits, or that was never asked.
fn has_begun(exchange: &Exchange) -> bool {
    use ExchangeState::{AwaitingApproval, Running};
    matches!(exchange.state, Some(Running | AwaitingApproval))
}

/// The answer in the words that came back, or why there is none.
fn end(id: &str, exchange: &Exchange) -> Element {
    let element = Element::div(id).class("end");
    let Some(outcome) = &exchange.outcome else { return element };
    let ExchangeOutcome { result, error, .. } = outcome;
    element.html(html! {
        @if let Some(result) = result {
            div.body tabindex="0" {
                @if let Some(words) = result.as_str() { (long::excerpt(words)) }
                @else { (json::pretty(&long::excerpt(&result.to_string()))) }
            }
        }
        @if let Some(error) = error {
            div.failure.stop[is_stopped(outcome)] { (long::excerpt(&error.message)) " " code { (error.code.as_str()) } }
        }
    })
}

/// A file that stands alone leads nowhere.
fn link(view: &View, id: &str, exchange: &Exchange) -> Option<Element> {
    let (session, run) = place(exchange)?;
    let link = Element::new("a", id).class("meta there");
    Some(match view.is_alone() {
        true => link,
        false => link.attr("href", format!("/s/{session}#m={run}")).text("Open its session"),
    })
}

/// Above a message that an agent has said.
pub(crate) fn from(view: &View, from: &Sender) -> Markup {
    let Sender { session_id, agent, is_answer, .. } = from;
    let words = if *is_answer { "Answer from " } else { "From " };
    let there = SessionId::parse(session_id.as_str()).filter(|_| !view.is_alone());
    let there = there.map(|it| format!("/s/{it}"));
    html! {
        p.meta.from {
            (icon("agent")) " " (words) b { (agent) }
            a.there href=[&there] { @if there.is_some() { "Open its session" } }
        }
    }
}

/// An answer of another session, to stand within a page: `head` is the number that it is drawn at.
pub fn embedded(view: &View, head: Seq, answer: &Message) -> String {
    let drawn = PreEscaped(message(view, answer).to_html());
    html! { div.embedded data-session-id=(view.session) data-head=(head) { (drawn) } }.into_string()
}

/// The cards of another session, to stand within the page of one whose agent has asked it.
pub fn embedded_questions(view: &View, head: Seq, transcript: &Transcript) -> String {
    let drawn = PreEscaped(dock(view, transcript).to_html());
    html! { div.embedded data-session-id=(view.session) data-head=(head) { (drawn) } }.into_string()
}
