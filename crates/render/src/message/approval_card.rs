//! Approval cards above the composer: one card for each call that waits for a decision, and for each form
//! that an agent wants filled in.
//!
//! A card shows everything that will run. Its parts are separate elements, so that a patch of one keeps what
//! the reader opened or typed in another.

use maud::{Markup, html};
use transcript::{ApprovalOptions, Call, Exchange, ExchangeState, RunMessage, Scope, Transcript};

use crate::html::element::Element;
use crate::html::icon::icon;
use crate::message::exchange::place;
use crate::message::tool::{self, Headline, Kind};
use crate::message::whole_body::BodyKind;
use crate::message::{covers, form};
use crate::text::invisible::{is_invisible, marked};
use crate::text::json;
use crate::view::{View, inline};

/// Draws the approval cards of a session, and placeholders for the cards of agents that it has
/// messaged.
pub(crate) fn dock(view: &View, transcript: &Transcript) -> Element {
    let id = view.id("dock");
    let open = || {
        let answers = transcript.messages.iter().filter_map(|it| Some((it.first, it.run()?)));
        answers.filter(|(_, answer)| answer.is_open())
    };
    let waiting = || {
        open().flat_map(|(first, answer)| {
            answer.waiting_calls().map(move |call| (first, answer, call))
        })
    };
    let n_cards = waiting().count();
    let cards = waiting().enumerate().map(|(idx, (first, answer, call))| {
        let approval = ApprovalCard { view, transcript, answer, call };
        approval.card(&format!("{id}-{first}-{}", call.number), (idx + 1, n_cards))
    });
    let peers = open().flat_map(|(first, answer)| {
        let exchanges = answer.open_exchanges().enumerate();
        exchanges.filter_map(move |(idx, it)| Some((first, idx, questions_url(it)?)))
    });
    let peers = peers.map(|(first, idx, url)| {
        Element::div(format!("{id}-{first}-x{idx}")).class("peer").attr("data-src", url)
    });
    Element::div(&*id).class("dock").children(cards).children(peers)
}

/// Returns the URL of the approval cards of a messaged agent; `None` unless it waits for a decision
/// itself.
fn questions_url(exchange: &Exchange) -> Option<String> {
    let (session, run) = place(exchange)?;
    let waits = exchange.state == Some(ExchangeState::AwaitingApproval);
    waits.then(|| format!("/api/sessions/{session}/answers/{run}?part=questions"))
}

struct ApprovalCard<'a> {
    view: &'a View,
    transcript: &'a Transcript,
    answer: &'a RunMessage,
    call: &'a Call,
}

impl ApprovalCard<'_> {
    /// Draws the approval card of a tool call. `place` is the number of the card and the count of
    /// open cards.
    fn card(&self, id: &str, place: (usize, usize)) -> Element {
        let card = Element::div(id)
            .class("card")
            .attr("role", "group")
            .attr("tabindex", "-1")
            .attr("aria-labelledby", format!("{id}-h"))
            .attr("aria-keyshortcuts", "Alt+A")
            .attr("data-call-id", self.call.id.as_str());
        let form = self.options().and_then(|it| it.form.as_ref()).and_then(form::form);
        match form {
            Some(form) => {
                let words = html! { (self.answer.agent) " has a question" };
                card.child(head(id, place, "agent", &words))
                    .child_if(self.reasons(id))
                    .child(Element::new("form", format!("{id}-q")).class("answers").html(form))
                    .child(Element::div(format!("{id}-l")).class("links").html(reason(id)))
                    .child(foot(id, &form::buttons(&format!("{id}-q"))))
            }
            None => {
                let icon = Kind::of(&self.call.name).icon();
                card.child(head(id, place, icon, &self.headline().html()))
                    .child(self.view.approval_arguments(&format!("{id}-v"), self.call))
                    .child_if(self.reasons(id))
                    .child(Element::div(format!("{id}-l")).class("links").html(html! {
                        (self.edit(id)) (reason(id))
                    }))
                    .child(foot(id, &self.buttons(id)))
            }
        }
    }

    fn options(&self) -> Option<&ApprovalOptions> {
        self.call.approval.as_ref()?.options.as_ref()
    }

    fn workspace(&self) -> Option<&str> {
        let own = self.transcript.summary.workspace();
        own.or(self.view.folder.as_deref())
    }

    fn headline(&self) -> Headline {
        tool::headline(self.call, self.workspace())
    }

    /// Draws the program's reason for asking and the commentary before the tool call; `None` if
    /// there is neither.
    fn reasons(&self, id: &str) -> Option<Element> {
        let reason = self.options().and_then(|it| it.reason.as_deref());
        let commentary = self.answer.commentary(self.call);
        (reason.is_some() || commentary.is_some()).then(|| {
            Element::div(format!("{id}-w")).class("reasons").html(html! {
                @for why in reason.into_iter().chain(commentary.as_deref()) {
                    blockquote.why { (with_code(why)) }
                }
            })
        })
    }

    fn can_edit(&self) -> bool {
        self.options().is_some_and(|it| it.can_edit)
    }

    /// Draws the editor for the arguments of the tool call; long arguments are fetched when it is
    /// opened. A program that cannot run edited arguments receives them as a correction.
    fn edit(&self, id: &str) -> Markup {
        let (view, call, can_edit) = (self.view, self.call, self.can_edit());
        let is_there = view.is_standalone() || inline(&call.arguments).is_some();
        let source = format!("{}&format=html", view.body_url(call, BodyKind::Edit));
        html! {
            details.edit.correction[!can_edit] id={ (id) "-edit" } data-src=[(!is_there).then_some(source)] {
                summary { @if can_edit { "Edit before running" } @else { "Suggest a correction" } }
                @if is_there { (edited(call)) }
            }
        }
    }

    fn buttons(&self, id: &str) -> Markup {
        let options = self.options();
        let allows = |scope| options.is_none_or(|it| it.scopes.contains(&scope));
        let has_more = allows(Scope::Session) || allows(Scope::Always);
        let covers = options.and_then(|it| it.covers.as_deref());
        html! {
            @if allows(Scope::Always) {
                div.always id={ (id) "-always" } hidden {
                    p {
                        "From now on, in every session, never ask again about "
                        (covers.map_or_else(|| html! { "this" }, |it| marked(&covers::words(it)))) "?"
                    }
                    button type="button" id={ (id) "-sure" } data-action="allow" data-scope="always" { "Yes, always allow" }
                    button.quiet type="button" data-action="not-always" { "Cancel" }
                }
            }
            div.buttons {
                button.primary type="button" data-action="allow" data-scope="once" aria-keyshortcuts="1" { "Allow once" kbd { "1" } }
                @if has_more {
                    div.split {
                        @if allows(Scope::Session) {
                            button type="button" data-action="allow" data-scope="session" aria-keyshortcuts="2" { "Allow for this session" kbd { "2" } }
                        }
                        @if allows(Scope::Always) {
                            button type="button" data-action="always" aria-keyshortcuts="3" aria-controls={ (id) "-always" } { "Always…" kbd { "3" } }
                        }
                    }
                }
                button.danger type="button" data-action="deny" aria-keyshortcuts="N" { "Deny" kbd { "N" } }
                @if !self.can_edit() {
                    button.danger.correct type="button" data-action="correct" { "Deny with this correction" }
                }
            }
            @if let Some(covers) = covers.filter(|_| has_more) {
                p.covers.meta { (marked(&covers::sentence(covers))) }
            }
        }
    }
}

fn head(id: &str, (place, n_cards): (usize, usize), icon_name: &str, words: &Markup) -> Element {
    Element::div(format!("{id}-t")).class("card-head").html(html! {
        (icon(icon_name))
        h2 id={ (id) "-h" } { (words) }
        // The script also counts the cards of other agents.
        div.place hidden[n_cards < 2] {
            span.meta { (place) " of " (n_cards) }
            button.quiet type="button" id={ (id) "-next" } data-action="next-card" { "Next" }
        }
    })
}

/// Draws the foot of an approval card: buttons and input errors. It stays visible while the rest of
/// the card scrolls.
fn foot(id: &str, buttons: &Markup) -> Element {
    Element::div(format!("{id}-f")).class("decide").html(html! {
        p.fault role="alert" {}
        (buttons)
        p.meta.escape { "Press Esc twice to stop the run" }
    })
}

fn reason(id: &str) -> Markup {
    html! {
        details.reason id={ (id) "-reason" } {
            summary { "Add a reason" }
            input.note id={ (id) "-note" } type="text" placeholder="Reason (optional), sent when you deny"
                aria-label="Reason (optional)" autocomplete="off";
        }
    }
}

/// Draws a text area with the proposed arguments of a tool call. Invisible characters are written
/// as JSON escapes.
pub(crate) fn edited(call: &Call) -> Markup {
    let arguments = json::indented(&call.arguments.whole().unwrap_or_default());
    let mut text = String::with_capacity(arguments.len());
    for letter in arguments.chars() {
        match is_invisible(letter) && !matches!(letter, '\n' | '\t') {
            true => text
                .extend(letter.encode_utf16(&mut [0; 2]).iter().map(|it| format!("\\u{it:04x}"))),
            false => text.push(letter),
        }
    }
    html! { textarea.edited aria-label="Arguments" rows="6" spellcheck="false" { (text) } }
}

/// Draws a text, with the parts between backticks as code.
pub(crate) fn with_code(text: &str) -> Markup {
    let pieces: Vec<&str> = text.split('`').collect();
    html! {
        @if pieces.len().is_multiple_of(2) { (marked(text)) }
        @else {
            @for (idx, piece) in pieces.iter().enumerate() {
                @if !idx.is_multiple_of(2) { code { (marked(piece)) } } @else { (marked(piece)) }
            }
        }
    }
}
