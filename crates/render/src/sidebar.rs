//! The list of sessions.

use maud::{Markup, html};
use transcript::{Millis, SessionId, SessionState};

use crate::found::{Search, found};
use crate::icon::icon;
use crate::surroundings::{state_dot, state_id};
use crate::tree::Element;
use crate::view::fnv1a;

#[derive(Debug, Clone)]
pub struct ListedSession {
    pub id: SessionId,
    pub title: String,
    pub agent: String,
    pub state: SessionState,
    pub archived: bool,
    /// It will be gone in a moment, unless somebody takes that back.
    pub leaving: bool,
    pub updated_at: Millis,
}

/// A part of the sessions, the last changed first.
#[derive(Debug, Clone, Default)]
pub struct SessionList {
    /// All that go on only when a person has answered, whatever part this is.
    pub waiting: Vec<ListedSession>,
    pub sessions: Vec<ListedSession>,
    /// They are those that were put away.
    pub archived: bool,
    /// Where the next part is, if there is one.
    pub more: Option<String>,
    /// What was found stands there instead.
    pub search: Option<Search>,
}

const LIST: &str = "sessions";
const VERSION: &str = "data-version";

pub(crate) fn sidebar(list: &SessionList, open: Option<&SessionId>) -> Markup {
    let (other, word) =
        if list.archived { ("/", "Sessions") } else { ("/?archived=true", "Archived") };
    let words = list.search.as_ref().map(|it| &it.words);
    html! {
        nav #sidebar aria-label="Sessions" {
            div.top {
                a.brand href="/" { "Callboard" }
                a.new href="/" aria-keyshortcuts="Alt+N" { (icon("plus")) " New" }
            }
            form #search role="search" action="/" {
                label.sr for="query" { "Search in all sessions" }
                (icon("search"))
                input #query name="q" type="search" value=[words] placeholder="Search" autocomplete="off"
                    aria-keyshortcuts="Control+K";
            }
            (found(list.search.as_ref()))
            @if list.archived { h2 { "Archived" } }
            // What scrolls is never replaced.
            div.scroller { (maud::PreEscaped(session_list(list, open).to_html())) }
            p.elsewhere { a href=(other) { (icon("archive")) " " (word) } }
            div.bottom {
                button.quiet type="button" data-action="settings" { (icon("gear")) " Settings" }
                button.quiet type="button" command="show-modal" commandfor="import" { (icon("arrow-down")) " Import" }
                button.quiet type="button" command="show-modal" commandfor="keys"
                    aria-keyshortcuts="?" aria-label="Keyboard shortcuts" { kbd { "?" } }
            }
        }
    }
}

/// Draws the list of sessions, with the version that [`session_list_version`] returns for it.
///
/// The version does not depend on which session is open, so that a server can tell whether a page
/// already shows a list without knowing what else is on the page.
pub fn session_list(list: &SessionList, open: Option<&SessionId>) -> Element {
    let drawn = lines_of(list, None);
    let version = format!("{:016x}", fnv1a(&drawn.to_html()));
    let drawn = if open.is_some() { lines_of(list, open) } else { drawn };
    drawn.attr(VERSION, version)
}

/// Returns the version that a list drawn by [`session_list`] carries.
pub fn session_list_version(list: &Element) -> Option<&str> {
    list.attribute(VERSION).map(String::as_str)
}

fn lines_of(list: &SessionList, open: Option<&SessionId>) -> Element {
    let SessionList { waiting, sessions, archived, more, .. } = list;
    // No session's id has a dot.
    let other = |name: &str| Element::new("li", format!("{LIST}.{name}"));
    let lines = |of: &[ListedSession]| -> Vec<Element> {
        of.iter().map(|it| line(it, open == Some(&it.id))).collect()
    };
    let title =
        (!waiting.is_empty()).then(|| other("waiting").class("day").text("Waiting for you"));
    let words = if *archived { "Nothing is archived" } else { "No sessions yet" };
    let is_empty = sessions.is_empty() && (*archived || waiting.is_empty());
    let hint = is_empty.then(|| other("none").class("hint").text(words));
    let more = more.as_ref().map(|href| {
        let link = html! { a href=(href) data-action="more-sessions" { "Older sessions" } };
        other("more").class("hint").html(link)
    });
    Element::new("ol", LIST)
        .attr_if("data-archived", archived.then_some("true"))
        .children(title)
        .children(lines(waiting))
        .children(lines(sessions))
        .children(hint)
        .children(more)
}

fn line(session: &ListedSession, is_open: bool) -> Element {
    let ListedSession { id, title, agent, state, updated_at, archived, leaving } = session;
    let element = Element::new("li", format!("{LIST}-{id}"))
        .attr("data-session-id", id.as_str())
        .attr("data-state", state_id(*state))
        .attr_if("data-archived", archived.then_some("true"));
    if *leaving {
        let row = Element::new("p", format!("{LIST}.gone-{id}")).class("row leaving");
        return element.child(row.html(html! {
            span.title dir="auto" { (title) } span.meta { "deleted" }
        }));
    }
    // Each by itself: the line stays, with what somebody writes or has in focus there.
    let link = Element::new("a", format!("{LIST}.a-{id}")).attr("href", format!("/s/{id}"));
    let link = link.attr_if("aria-current", is_open.then_some("page")).html(html! {
        span.row { (state_dot(*state)) span.title dir="auto" { (title) } }
        span.row.meta { span.agent { (agent) } (ago(*updated_at)) }
    });
    let more = Element::new("button", format!("{LIST}.menu-{id}")).class("quiet more");
    let more = more.attr("type", "button").attr("data-action", "session-menu");
    let more = more.attr("aria-haspopup", "menu").attr("aria-label", format!("More for {title}"));
    element.child(link).child(more.html(icon("dots")))
}

/// How long ago it was says the script; readers without it see the day.
pub(crate) fn ago(at: Millis) -> Markup {
    let day: String = at.to_string().chars().take(10).collect();
    html! { span.ago data-at=(at.0) { noscript { (day) } } }
}
