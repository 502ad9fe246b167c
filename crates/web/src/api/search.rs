//! `GET /api/search`: searches titles, messages, thoughts and texts of agents, and arguments, results and
//! output of calls.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Cursor, Query, Store};
use transcript::{Millis, Seq, SessionId};

use crate::error::HttpError;
use crate::extract::Params;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchParams {
    q: String,
    session_id: Option<String>,
    archived: Option<bool>,
    limit: Option<usize>,
    /// Value of `next` in the previous page of search results.
    before: Option<String>,
}

const LIMIT: usize = 200;

#[derive(Serialize, JsonSchema)]
pub(crate) struct SearchPage {
    hits: Vec<Hit>,
    /// Value of the parameter `before` for the next page of search results; null on the last page.
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Hit {
    session_id: SessionId,
    seq: Seq,
    at: Millis,
    /// Id of the message that contains the search hit; null for a hit in a title.
    message_id: Option<String>,
    kind: &'static str,
    snippet: Vec<Piece>,
}

/// A piece of the text snippet of a search hit. Matches are separate pieces, so that clients can
/// highlight them and escape all text.
#[derive(Serialize, JsonSchema)]
struct Piece {
    text: String,
    #[serde(rename = "match")]
    is_match: bool,
}

pub(crate) async fn search(
    State(store): State<Store>,
    Params(params): Params<SearchParams>,
) -> Result<Json<SearchPage>, HttpError> {
    let SearchParams { q, session_id, archived, limit, before } = params;
    let session = session_id.map(|id| SessionId::parse(&id).ok_or(id)).transpose();
    let session = session.map_err(|id| HttpError::no_session(&id))?;
    let limit = limit.unwrap_or(50).clamp(1, LIMIT);
    let unreadable = || HttpError::invalid("'before' must be the 'next' of the previous page");
    let before = before.map(|it| Cursor::parse(&it).ok_or_else(unreadable)).transpose()?;
    let query = Query { text: q, session, archived, limit, before };
    let found = store.search(query).await?;
    let next = found.next.map(|it| it.to_string());
    let hits = found.hits.into_iter().map(Hit::from).collect();
    Ok(Json(SearchPage { hits, next }))
}

impl From<store::Hit> for Hit {
    fn from(hit: store::Hit) -> Self {
        let pieces = hit.snippet.into_iter();
        Self {
            session_id: hit.session,
            seq: hit.seq,
            at: hit.at,
            message_id: hit.message_id,
            kind: hit.kind.word(),
            snippet: pieces.map(|(text, is_match)| Piece { text, is_match }).collect(),
        }
    }
}
