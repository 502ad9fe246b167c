//! The session list.

use maud::{Markup, html};
use transcript::{Millis, SessionId, SessionState};

use crate::html::element::Element;
use crate::html::icon::icon;
use crate::page::chrome::{state_dot, state_id};
use crate::page::search_results::{SearchResults, search_results};
use crate::view::fnv1a;

/// Session in the session list.
#[derive(Debug, Clone)]
pub struct ListedSession {
    /// Id of the session.
    pub id: SessionId,
    /// Title of the session.
    pub title: String,
    /// Id of the session's agent.
    pub agent: String,
    /// State of the session, shown as a coloured dot.
    pub state: SessionState,
    /// Whether the session is archived.
    pub archived: bool,
    /// Whether the session is deleted in a few seconds, unless the deletion is undone.
    pub pending_deletion: bool,
    /// Time of the last change of the session.
    pub updated_at: Millis,
}

/// Part of the session list that one page shows, most recently changed first.
#[derive(Debug, Clone, Default)]
pub struct SessionList {
    /// All sessions that wait for a person, on whichever page of the list they would be.
    pub waiting: Vec<ListedSession>,
    /// Sessions on this page of the list, without those that wait for a person.
    pub sessions: Vec<ListedSession>,
    /// Whether the list shows the archived sessions instead of the others.
    pub archived: bool,
    /// URL of the next page of the list; `None` on the last page.
    pub more: Option<String>,
    /// Search results to show instead of the list; `None` without a search.
    pub search: Option<SearchResults>,
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
            (search_results(list.search.as_ref()))
            @if list.archived { h2 { "Archived" } }
            // The scrolling element is never replaced.
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

/// Draws the session list of the sidebar, with the version that [`session_list_version`] returns
/// for it.
///
/// The version does not depend on which session is open, so that a server can tell whether a page
/// already shows a list without knowing what else is on the page.
pub fn session_list(list: &SessionList, open: Option<&SessionId>) -> Element {
    let drawn = lines_of(list, None);
    let version = format!("{:016x}", fnv1a(&drawn.to_html()));
    let drawn = if open.is_some() { lines_of(list, open) } else { drawn };
    drawn.attr(VERSION, version)
}

/// Returns the version of a session list drawn by [`session_list`], which changes with its content.
pub fn session_list_version(list: &Element) -> Option<&str> {
    list.attribute(VERSION).map(String::as_str)
}

fn lines_of(list: &SessionList, open: Option<&SessionId>) -> Element {
    let SessionList { waiting, sessions, archived, more, .. } = list;
    // A session id never contains a dot.
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
    let ListedSession { id, title, agent, state, updated_at, archived, pending_deletion } = session;
    let element = Element::new("li", format!("{LIST}-{id}"))
        .attr("data-session-id", id.as_str())
        .attr("data-state", state_id(*state))
        .attr_if("data-archived", archived.then_some("true"));
    if *pending_deletion {
        let row = Element::new("p", format!("{LIST}.gone-{id}")).class("row leaving");
        return element.child(row.html(html! {
            span.title dir="auto" { (title) } span.meta { "deleted" }
        }));
    }
    // Separate elements, so that focus and edits in the line survive a patch.
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

/// Draws the time since a change. The script fills it in; without script the date is shown.
pub(crate) fn ago(at: Millis) -> Markup {
    let day: String = at.to_string().chars().take(10).collect();
    html! { span.ago data-at=(at.0) { noscript { (day) } } }
}
