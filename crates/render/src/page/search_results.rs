//! Search results, shown in place of the session list.

use maud::{Markup, html};
use transcript::{Millis, SessionId};

use crate::html::escape::percent_encoded;
use crate::page::document;
use crate::page::sidebar::ago;

/// A search in all sessions and its results.
#[derive(Debug, Clone)]
pub struct SearchResults {
    /// Text of the search query.
    pub words: String,
    /// Matches of the search, best first.
    pub hits: Vec<SearchHit>,
}

/// Match of a search in all sessions.
#[derive(Debug, Clone)]
pub struct SearchHit {
    /// Id of the session that contains the match.
    pub session: SessionId,
    /// Title of the session that contains the match.
    pub title: String,
    /// Id of the message that contains the match; `None` if the title of the session matches.
    pub message_id: Option<String>,
    /// Time of the record that contains the match.
    pub at: Millis,
    /// Fragments of the text around the match, each with whether it matches.
    pub snippet: Vec<(String, bool)>,
}

/// Draws only the search results, for a page that already shows the rest.
pub fn search_results_page(search: &SearchResults) -> String {
    document("Search", None, &html! {}, &html! { body { (search_results(Some(search))) } })
}

/// Draws the search results in the sidebar. They are hidden without a search; the script fills
/// them.
pub(crate) fn search_results(search: Option<&SearchResults>) -> Markup {
    let hits = search.map_or(&[][..], |it| &it.hits);
    html! {
        div #found hidden[search.is_none()] {
            ol { @for (number, hit) in hits.iter().enumerate() { (line(hit, &hits[..number])) } }
            p.hint { "No results. All words must match." }
        }
    }
}

/// Draws one search result. The title appears above the first result of a session.
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
