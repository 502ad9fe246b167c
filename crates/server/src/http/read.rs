//! Reading a session: its log, and its messages in a format of the reader's choice.

use axum::Json;
use axum::extract::State;
use formats::callboard::ChatMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use store::{ReadRange, Stored, Window};
use transcript::{Record, Seq};

use super::App;
use super::answer::Written;
use super::error::HttpError;
use super::extract::{Named, Params};
use crate::window::{self, Opened};

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
    let session = id.clone();
    let read = app.store().off_thread(move |store| window::read_whole(store, &session, window));
    let found = read.await?.ok_or_else(|| HttpError::no_session(id.as_str()))?;
    let Opened { transcript, earlier: next, .. } = found;
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

/// `1` and `true` are yes.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" | "" => Ok(false),
        other => Err(serde::de::Error::custom(format!("{other:?} is neither 1 nor 0"))),
    }
}
