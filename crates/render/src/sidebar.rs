//! The list of sessions.

use maud::{Markup, html};
use transcript::{Millis, SessionId, SessionState};

use crate::icon::icon;
use crate::surroundings::{state_dot, state_id};
use crate::tree::Element;

#[derive(Debug, Clone)]
pub struct ListedSession {
    pub id: SessionId,
    pub title: String,
    pub agent: String,
    pub state: SessionState,
    pub archived: bool,
    pub updated_at: Millis,
}

const LIST: &str = "sessions";

pub(crate) fn sidebar(sessions: &[ListedSession], open: Option<&SessionId>) -> Markup {
    html! {
        nav #sidebar aria-label="Sessions" {
            div.top {
                a.brand href="/" { "Callboard" }
                a.new href="/" { (icon("plus")) " New" }
            }
            form #search role="search" action="/" {
                label.sr for="query" { "Search in all sessions" }
                (icon("search"))
                input #query name="q" type="search" placeholder="Search" autocomplete="off";
            }
            div #found hidden {
                ol {}
                p.hint { "Nothing found. Every word must match; the last may be a beginning." }
            }
            (maud::PreEscaped(session_list(sessions, open).to_html()))
            div.bottom {
                button.quiet type="button" data-action="settings" { (icon("gear")) " Settings" }
                button.quiet type="button" data-action="import" { (icon("arrow-down")) " Import" }
                button.quiet type="button" data-action="keys" aria-label="Keyboard shortcuts" { kbd { "?" } }
            }
        }
    }
}

pub fn session_list(sessions: &[ListedSession], open: Option<&SessionId>) -> Element {
    let lines = sessions.iter().map(|it| line(it, open == Some(&it.id)));
    let list = Element::new("ol", LIST).children(lines);
    if sessions.is_empty() {
        return list.html(html! { li.hint { "No sessions yet" } });
    }
    list
}

fn line(session: &ListedSession, is_open: bool) -> Element {
    let ListedSession { id, title, agent, state, updated_at, archived } = session;
    let element = Element::new("li", format!("{LIST}-{id}"))
        .attr("data-session-id", id.as_str())
        .attr("data-state", state_id(*state))
        .attr_if("data-archived", archived.then_some("true"));
    let current = is_open.then_some("page");
    element.html(html! {
        a href={ "/s/" (id.as_str()) } aria-current=[current] {
            span.row { (state_dot(*state)) span.title { (title) } }
            span.row.meta { span.agent { (agent) } span.ago data-at=(updated_at.0) {} }
        }
        button.quiet.more type="button" data-action="session-menu" aria-haspopup="menu"
            aria-label={ "More for " (title) } { (icon("dots")) }
    })
}
