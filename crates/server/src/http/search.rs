//! `GET /api/search`: titles, messages, what agents thought and said, arguments, results, output.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Cursor, Query};
use transcript::SessionId;

use super::App;
use super::error::{HttpError, Params};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchParams {
    q: String,
    session_id: Option<String>,
    archived: Option<bool>,
    limit: Option<usize>,
    /// `next` of the page before.
    before: Option<String>,
}

const LIMIT: usize = 200;

pub(super) async fn search(
    State(app): State<App>,
    Params(params): Params<SearchParams>,
) -> Result<Json<Value>, HttpError> {
    let SearchParams { q, session_id, archived, limit, before } = params;
    let session = session_id.map(|id| SessionId::parse(&id).ok_or(id)).transpose();
    let session = session.map_err(|id| HttpError::no_session(&id))?;
    let limit = limit.unwrap_or(50).clamp(1, LIMIT);
    let unreadable = || HttpError::invalid("`before` takes the `next` of the page before");
    let before = before.map(|it| Cursor::parse(&it).ok_or_else(unreadable)).transpose()?;
    let query = Query { text: q, session, archived, limit, before };
    let found = app.store().search(query).await?;
    let next = found.next.map(|it| it.to_string());
    let hits: Vec<Value> = found.hits.into_iter().map(hit).collect();
    Ok(Json(json!({ "hits": hits, "next": next })))
}

/// Pieces of the snippet, so that whoever shows it can mark the matches and must escape the rest.
fn hit(hit: store::Hit) -> Value {
    let snippet: Vec<Value> = hit
        .snippet
        .into_iter()
        .map(|(text, is_match)| json!({ "text": text, "match": is_match }))
        .collect();
    json!({
        "sessionId": hit.session,
        "seq": hit.seq,
        "at": hit.at,
        "messageId": hit.message_id,
        "kind": hit.kind.word(),
        "snippet": snippet,
    })
}
