//! The list of grants in the settings, where they can be revoked. There can be thousands, so the list is
//! bounded and fetched when the settings are opened.

use maud::{Markup, html};

use crate::message::covers;
use crate::page::document;
use crate::text::quantity::count;

/// Grants that the settings list, for the open session and for all sessions.
#[derive(Debug, Default)]
pub struct Grants {
    /// Grants that apply to the open session only.
    pub session: Vec<ListedGrant>,
    /// Newest grants for all sessions.
    pub always: Vec<ListedGrant>,
    /// Number of all grants for all sessions, including those not listed.
    pub n_always: u64,
}

/// Grant in the list of the settings.
#[derive(Debug)]
pub struct ListedGrant {
    /// URL that revokes the grant, with the method DELETE.
    pub address: String,
    /// Tool calls that the grant covers, in the form of [`transcript::GrantScope`].
    pub covers: String,
}

/// Draws only the list of grants, for a page that already shows the rest.
pub fn grants_page(grants: &Grants) -> String {
    document("Permissions", None, &html! {}, &html! { body { (section(Some(grants))) } })
}

/// Draws the list of grants; empty until the script has fetched it.
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
