//! What a search has found, in the place of the list of sessions.

use maud::{Markup, html};
use transcript::{Millis, SessionId};

use crate::escape::in_address;
use crate::page::document;
use crate::sidebar::ago;

#[derive(Debug, Clone)]
pub struct Search {
    pub words: String,
    pub hits: Vec<FoundHit>,
}

#[derive(Debug, Clone)]
pub struct FoundHit {
    pub session: SessionId,
    /// Of the session.
    pub title: String,
    /// The message that shows it; a title is in none.
    pub message_id: Option<String>,
    pub at: Millis,
    /// In pieces; those that match are marked.
    pub snippet: Vec<(String, bool)>,
}

/// What was found, alone: for a page that has the rest already.
pub fn found_page(search: &Search) -> String {
    document("Search", None, &html! {}, &html! { body { (found(Some(search))) } })
}

/// Hidden where nothing was searched for: the script fills it.
pub(crate) fn found(search: Option<&Search>) -> Markup {
    let hits = search.map_or(&[][..], |it| &it.hits);
    html! {
        div #found hidden[search.is_none()] {
            ol { @for (number, hit) in hits.iter().enumerate() { (line(hit, &hits[..number])) } }
            p.hint { "No results. All words must match." }
        }
    }
}

/// The title stands over the first of a session's hits.
fn line(hit: &FoundHit, before: &[FoundHit]) -> Markup {
    let FoundHit { session, title, message_id, at, snippet } = hit;
    let place = message_id.as_ref().map(|it| format!("#m={}", in_address(it))).unwrap_or_default();
    let is_first = before.last().is_none_or(|it| it.session != *session);
    html! {
        li {
            a href={ "/s/" (session.as_str()) (place) } {
                (ago(*at))
                @if is_first { span dir="auto" { (title) } }
                span.snippet dir="auto" {
                    @for (text, is_match) in snippet {
                        @if *is_match { mark { (text) } } @else { (text) }
                    }
                }
            }
        }
    }
}
