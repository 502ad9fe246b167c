//! Reading a session: its log, and its messages in a format of the reader's choice.

use axum::Json;
use axum::extract::State;
use formats::callboard::ChatMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use store::{ReadRange, Stored, Window};
use transcript::{Record, Seq, SessionId, Transcript};

use super::App;
use super::answer::Written;
use super::error::HttpError;
use super::extract::{Named, Params};
use crate::history;

/// More than this is cut, not refused.
const LIMIT: usize = 1000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct EventsParams {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
    #[serde(default, deserialize_with = "flag")]
    deltas: bool,
}

/// How the page looks; its text is put together without it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "a description")]
pub(super) struct EventsPage {
    events: Vec<Record>,
    /// The last number of the log.
    head: Seq,
}

pub(super) async fn events(
    State(app): State<App>,
    Named(id): Named,
    Params(params): Params<EventsParams>,
) -> Result<Written<EventsPage>, HttpError> {
    let range = ReadRange {
        after: Seq(params.after),
        up_to: None,
        limit: params.limit.unwrap_or(LIMIT).clamp(1, LIMIT),
        deltas: params.deltas,
    };
    let session = id.clone();
    let page = app.store().off_thread(move |store| store.read(&session, range)).await?;
    if page.head == Seq(0) {
        return Err(HttpError::no_session(id.as_str()));
    }
    // Bodies are JSON already: they are put together, not read and written again.
    let events: Vec<String> = page.records.iter().map(Stored::to_json).collect();
    let body = format!(r#"{{"events":[{}],"head":{}}}"#, events.join(","), page.head);
    Ok(Written::new(body))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct MessagesParams {
    #[serde(default)]
    format: Format,
    #[serde(default)]
    order: Order,
    /// `next` of the page before: older messages than those.
    before: Option<u64>,
    limit: Option<usize>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Callboard,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Asc,
    Desc,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct MessagesPage {
    messages: Vec<ChatMessage>,
    /// To be given as `before`; none if these are the first.
    next: Option<Seq>,
}

pub(super) async fn messages(
    State(app): State<App>,
    Named(id): Named,
    Params(params): Params<MessagesParams>,
) -> Result<Json<MessagesPage>, HttpError> {
    let limit = params.limit.unwrap_or(100).clamp(1, LIMIT);
    let window = Window { before: params.before.map(Seq), limit };
    let (transcript, next) = read_window(&app, id, window).await?;
    let shown = transcript.messages.iter().filter(|message| !message.superseded);
    let mut messages: Vec<ChatMessage> = shown
        .map(|message| match params.format {
            Format::Callboard => formats::callboard::message(message),
        })
        .collect();
    if params.order == Order::Desc {
        messages.reverse();
    }
    Ok(Json(MessagesPage { messages, next }))
}

/// Those messages, whole, and where the ones before them end. Costs what they cost, however long
/// the session.
pub(super) async fn read_window(
    app: &App,
    id: SessionId,
    window: Window,
) -> Result<(Transcript, Option<Seq>), HttpError> {
    let read = app.store().off_thread(move |store| {
        let Some((summary, head)) = store.summary(&id)? else {
            return Err(HttpError::no_session(id.as_str()));
        };
        let rows = store.messages(&id, window)?;
        let records = store.records_of(&id, &rows)?;
        let records: Vec<Record> = records.iter().map(Stored::record).collect();
        let mut transcript = Transcript::whole();
        transcript.extend(&records);
        transcript.queue = history::queue(store, &id, &summary)?;
        transcript.summary = summary;
        transcript.head = head;
        transcript.supersede(rows.iter().filter(|row| row.superseded).map(|row| row.id.as_str()));
        let next = rows.first().filter(|first| first.number > 1).map(|first| first.first);
        Ok((transcript, next))
    });
    read.await
}

/// `1` and `true` are yes.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" | "" => Ok(false),
        other => Err(serde::de::Error::custom(format!("{other:?} is neither 1 nor 0"))),
    }
}
