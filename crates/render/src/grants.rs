//! The permissions for more than one call, where they can be revoked. There may be thousands, so that the
//! list is fetched when the settings are opened, and bounded.

use maud::{Markup, html};

use crate::covers;
use crate::page::document;
use crate::words::count;

/// Grants that are listed, of the session that is open and of all sessions.
#[derive(Debug, Default)]
pub struct Grants {
    pub session: Vec<ListedGrant>,
    /// The newest.
    pub always: Vec<ListedGrant>,
    /// How many there are for all sessions, listed or not.
    pub n_always: u64,
}

#[derive(Debug)]
pub struct ListedGrant {
    /// Address that it is deleted at.
    pub address: String,
    /// See [`transcript::GrantScope`].
    pub covers: String,
}

/// The list alone, for a page that has the rest already.
pub fn grants_page(grants: &Grants) -> String {
    document("Permissions", None, &html! {}, &html! { body { (section(Some(grants))) } })
}

/// None where the script has yet to fetch it.
pub(crate) fn section(grants: Option<&Grants>) -> Markup {
    html! {
        section #grants.servers aria-label="Always allowed" {
            @if let Some(Grants { session, always, n_always }) = grants {
                @if !session.is_empty() {
                    h3 { "Allowed in this session" }
                    (list(session))
                }
                h3 { "Always allowed" }
                @if always.is_empty() { p.meta { "Nothing yet." } }
                (list(always))
                @let hidden = n_always.saturating_sub(always.len() as u64);
                @if hidden > 0 { p.meta { (count(hidden, "older one")) " not shown. GET /api/grants lists all." } }
            }
        }
    }
}

fn list(grants: &[ListedGrant]) -> Markup {
    html! {
        ul {
            @for ListedGrant { address, covers } in grants {
                li {
                    span { (covers::listed(covers)) }
                    button.quiet type="button" data-action="revoke" data-grant=(address) { "Revoke" }
                }
            }
        }
    }
}
