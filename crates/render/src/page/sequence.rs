//! Sequence diagram of the messages between this session's agent and other agents.
//!
//! It is drawn from the last messages, which every page has loaded, and in an export from all. It is empty if
//! no agents have exchanged messages.

use std::collections::BTreeMap;

use maud::{Markup, html};
use transcript::{
    Content, Exchange, ExchangeId, ExchangeMode, Message, Millis, RunMessage, Transcript, Trigger,
    UserMessage,
};

use crate::html::element::Element;
use crate::message::exchange::is_stopped;
use crate::page::chrome::last_messages;
use crate::text::quantity::between;
use crate::view::{View, one_line};

const COLUMN: usize = 150;
const ROW: usize = 40;
const TOP: usize = 40;
const MARGIN: usize = 74;
const LABEL_CHARS: usize = 22;
/// Number of columns up to which the sequence diagram is scaled to fit; more would be too small to
/// read.
const FITTING: usize = 6;
const PERSON: &str = "You";

/// One message in the sequence diagram, from the column of its sender to another.
struct Arrow<'a> {
    at: Millis,
    from: &'a str,
    to: &'a str,
    text: &'a str,
    class: &'static str,
}

pub(crate) fn sequence(view: &View, transcript: &Transcript) -> Element {
    let id = view.id("sequence");
    let shown =
        if view.is_standalone() { &transcript.messages[..] } else { last_messages(transcript) };
    let arrows = arrows(&transcript.summary.agent, shown);
    let element = Element::new("details", id.as_str()).class("sequence");
    if arrows.is_empty() {
        return element.attr("hidden", "");
    }
    let summary = Element::new("summary", format!("{id}-s")).text("Who asked whom");
    let picture = Element::div(format!("{id}-p")).class("picture").attr("tabindex", "0");
    element.child(summary).child(picture.html(draw(&id, &arrows)))
}

fn arrows<'a>(me: &'a str, messages: &'a [Message]) -> Vec<Arrow<'a>> {
    let shown = || messages.iter().filter(|it| !it.superseded);
    if !shown().any(is_between_agents) {
        return Vec::new();
    }
    // The reply to an asynchronous exchange is placed where it arrived.
    let mut later: BTreeMap<&ExchangeId, Arrow<'_>> = BTreeMap::new();
    let mut arrows = Vec::new();
    let mut asker = PERSON;
    for message in shown() {
        match &message.content {
            Content::User(UserMessage { from: Some(from), .. }) if from.is_answer => {
                arrows.extend(later.remove(&from.exchange_id));
            }
            Content::User(said) => {
                asker = said.from.as_ref().map_or(PERSON, |it| it.agent.as_str());
                let (at, text) = (message.created_at, said.text.as_str());
                arrows.push(Arrow { at, from: asker, to: me, text, class: "asks" });
            }
            Content::Run(answer) => {
                for (at, exchange) in exchanges(answer) {
                    arrows.push(question(me, at, exchange));
                    match (end(me, exchange), exchange.mode) {
                        (Some(end), ExchangeMode::Async) => {
                            later.insert(&exchange.id, end);
                        }
                        (end, _) => arrows.extend(end),
                    }
                }
                arrows.extend(own_answer(me, asker, answer));
            }
            Content::Aside(_) => (),
        }
    }
    arrows.extend(later.into_values());
    arrows
}

fn is_between_agents(message: &Message) -> bool {
    match &message.content {
        Content::User(said) => said.from.is_some(),
        Content::Run(answer) => answer.has_exchanges(),
        Content::Aside(_) => false,
    }
}

fn exchanges(answer: &RunMessage) -> impl Iterator<Item = (Millis, &Exchange)> {
    let parts = answer.parts.iter().filter(|_| answer.has_exchanges());
    parts.filter_map(|part| match &part.kind {
        transcript::PartKind::Exchange(exchange) => Some((part.started_at, &**exchange)),
        _ => None,
    })
}

fn question<'a>(me: &'a str, at: Millis, exchange: &'a Exchange) -> Arrow<'a> {
    Arrow { at, from: me, to: &exchange.agent, text: &exchange.text, class: "asks" }
}

fn end<'a>(me: &'a str, exchange: &'a Exchange) -> Option<Arrow<'a>> {
    let outcome = exchange.outcome.as_ref()?;
    let words = outcome.result.as_ref().and_then(|it| it.as_str());
    let code = outcome.error.as_ref().map(|it| it.code.as_str());
    let class = match outcome.ok {
        true => "answers",
        false if is_stopped(outcome) => "stops",
        false => "fails",
    };
    let text = code.or(words).unwrap_or_default();
    Some(Arrow { at: outcome.at, from: &exchange.agent, to: me, text, class })
}

/// Returns the arrow of a finished run's answer, to the agent or person that asked; `None` while
/// the run is open.
fn own_answer<'a>(me: &'a str, asker: &'a str, answer: &'a RunMessage) -> Option<Arrow<'a>> {
    let finish = answer.finish.as_ref()?;
    let to = if answer.trigger == Trigger::Agent { asker } else { PERSON };
    let error = finish.error.as_ref().map(|it| it.code.as_str());
    let (text, class) = match (error, answer.was_interrupted()) {
        (Some(code), _) => (code, "fails"),
        (None, true) => ("stopped", "stops"),
        (None, false) => ("answers", "answers"),
    };
    Some(Arrow { at: finish.at, from: me, to, text, class })
}

fn draw(id: &str, arrows: &[Arrow<'_>]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for name in arrows.iter().flat_map(|it| [it.from, it.to]) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let x = |name: &str| {
        let column = names.iter().position(|it| *it == name).unwrap_or_default();
        MARGIN + 70 + column * COLUMN
    };
    let (width, height) = (MARGIN + names.len() * COLUMN, TOP + ROW * arrows.len() + 12);
    let first = arrows.first().map_or(Millis::default(), |it| it.at);
    html! {
        svg viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" class=[(names.len() <= FITTING).then_some("fits")]
            aria-labelledby={ (id) "-t" } aria-describedby={ (id) "-x" } {
            title id={ (id) "-t" } { "Who asked whom, and when" }
            @for name in &names {
                line.life x1=(x(name)) x2=(x(name)) y1=(TOP - 12) y2=(height) {}
                text.who x=(x(name)) y="18" { (one_line(name, LABEL_CHARS)) }
            }
            @for (row, arrow) in arrows.iter().enumerate() {
                (line(TOP + ROW * (row + 1) - 10, x(arrow.from), x(arrow.to), first, arrow))
            }
        }
        ol id={ (id) "-x" } .sr {
            @for it in arrows {
                li { "After " (between(first, it.at)) ": " (it.from) " to " (it.to) ": " (one_line(it.text, 80)) }
            }
        }
    }
}

fn line(y: usize, from: usize, to: usize, first: Millis, arrow: &Arrow<'_>) -> Markup {
    let (tip, middle) = (if to > from { to - 7 } else { to + 7 }, usize::midpoint(from, to));
    html! {
        g class=(arrow.class) {
            text.when x="8" y=(y + 4) { (between(first, arrow.at)) }
            @if from == to {
                path.line d={ "M" (from) " " (y - 8) "h24v8h-17" } {}
                path.head d={ "M" (from) " " (y) "l7 -4v8z" } {}
                text.label x=(from + 30) y=(y) { (one_line(arrow.text, LABEL_CHARS)) }
            } @else {
                line.line x1=(from) x2=(tip) y1=(y) y2=(y) {}
                path.head d={ "M" (to) " " (y) @if to > from { "l-7 -4v8z" } @else { "l7 -4v8z" } } {}
                text.label.middle x=(middle) y=(y - 6) { (one_line(arrow.text, LABEL_CHARS)) }
            }
        }
    }
}
