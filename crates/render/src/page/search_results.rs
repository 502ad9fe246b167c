//! Search results, shown in place of the session list.

use maud::{Markup, html};
use transcript::{Millis, SessionId};

use crate::html::escape::percent_encoded;
use crate::page::document;
use crate::page::sidebar::ago;

/// A search and its results.
#[derive(Debug, Clone)]
pub struct SearchResults {
    /// The search query.
    pub words: String,
    /// The matches, best first.
    pub hits: Vec<SearchHit>,
}

/// A match of a search.
#[derive(Debug, Clone)]
pub struct SearchHit {
    /// The session that contains the match.
    pub session: SessionId,
    /// Title of the session.
    pub title: String,
    /// The message that contains the match; none if the title matches.
    pub message_id: Option<String>,
    /// Time of the message.
    pub at: Millis,
    /// Fragments of text, and whether each matches.
    pub snippet: Vec<(String, bool)>,
}

/// Draws only the results, for a page that already shows the rest.
pub fn search_results_page(search: &SearchResults) -> String {
    document("Search", None, &html! {}, &html! { body { (search_results(Some(search))) } })
}

/// Hidden if there is no search; the script fills it.
pub(crate) fn search_results(search: Option<&SearchResults>) -> Markup {
    let hits = search.map_or(&[][..], |it| &it.hits);
    html! {
        div #found hidden[search.is_none()] {
            ol { @for (number, hit) in hits.iter().enumerate() { (line(hit, &hits[..number])) } }
            p.hint { "No results. All words must match." }
        }
    }
}

/// One hit. The title appears above the first hit of a session.
fn line(hit: &SearchHit, before: &[SearchHit]) -> Markup {
    let SearchHit { session, title, message_id, at, snippet } = hit;
    let place =
        message_id.as_ref().map(|it| format!("#m={}", percent_encoded(it))).unwrap_or_default();
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
