//! Reading a session: its log, and its messages in several formats.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use formats::callboard::ChatMessage;
use formats::ui::{FileUrl, Profile};
use formats::{contract, openai};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use store::{ReadRange, Store, Stored, Window};
use transcript::{Attachment, Content, Message, Record, Seq, SessionId, Transcript, UserMessage};

use crate::answer::Written;
use crate::auth::hosts::Hosts;
use crate::error::HttpError;
use crate::extract::{Params, SessionPath};
use runtime::draw_pool::DrawPool;
use runtime::live::window::{self, Opened};

/// Maximum number of records or messages of a page. A larger requested limit is reduced, not
/// refused.
const LIMIT: usize = 1000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EventsParams {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
    #[serde(default, deserialize_with = "flag")]
    deltas: bool,
}

/// Schema of a page of a session's records. The JSON itself is assembled from stored text.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct EventsPage {
    events: Vec<Record>,
    /// Number of the last record of the session's log.
    head: Seq,
}

pub(crate) async fn events(
    State(draws): State<DrawPool>,
    State(store): State<Store>,
    SessionPath(id): SessionPath,
    Params(params): Params<EventsParams>,
) -> Result<Written<EventsPage>, HttpError> {
    let range = ReadRange {
        after: Seq(params.after),
        up_to: None,
        limit: params.limit.unwrap_or(LIMIT).clamp(1, LIMIT),
        deltas: params.deltas,
    };
    let permit = draws.permit().await;
    let page = store.read(&id, range).await?;
    if page.head == Seq(0) {
        return Err(HttpError::no_session(id.as_str()));
    }
    let write = move || {
        // Records are stored as JSON, so they are concatenated without parsing them.
        let events: Vec<String> = page.records.iter().map(Stored::to_json).collect();
        let body = format!(r#"{{"events":[{}],"head":{}}}"#, events.join(","), page.head);
        Written::new(body)
    };
    Ok(permit.draw(write).await)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MessagesParams {
    #[serde(default)]
    format: Format,
    /// Order of the messages. If omitted: `desc` for `format=ui-v4`, else `asc`.
    order: Option<Order>,
    /// Value of `next` in the previous page; returns older messages.
    before: Option<u64>,
    limit: Option<usize>,
    /// Return the messages of the session as it was at this record number.
    at: Option<u64>,
    /// Status messages to include, for `format=contract`: all of them, or only lasting ones if
    /// omitted.
    status: Option<Status>,
    /// Major version of the AI SDK in whose format messages are returned, for `format=ui`.
    #[serde(default)]
    profile: ProfileNumber,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
pub(crate) enum ProfileNumber {
    #[serde(rename = "5")]
    Five,
    #[default]
    #[serde(rename = "6")]
    Six,
    #[serde(rename = "7")]
    Seven,
}

impl From<ProfileNumber> for Profile {
    fn from(number: ProfileNumber) -> Self {
        match number {
            ProfileNumber::Five => Self::V5,
            ProfileNumber::Six => Self::V6,
            ProfileNumber::Seven => Self::V7,
        }
    }
}

/// Format in which the messages of a session are returned; see docs/formats.md.
#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Format {
    #[default]
    Callboard,
    Contract,
    Ui,
    UiV4,
    Openai,
    OpenaiStored,
    Fullstream,
    Agui,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Asc,
    Desc,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    All,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct MessagesPage {
    messages: Vec<ShownMessage>,
    /// Value of the parameter `before` for the next page of messages; null on the last page.
    next: Option<Seq>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ShownMessage {
    Callboard(Box<ChatMessage>),
    Contract(Box<contract::Message>),
    /// A message in the format of another vendor, such as the AI SDK, AG-UI or OpenAI.
    Foreign(Map<String, Value>),
}

pub(crate) async fn messages(
    State(store): State<Store>,
    State(draws): State<DrawPool>,
    State(hosts): State<Arc<Hosts>>,
    SessionPath(id): SessionPath,
    Params(params): Params<MessagesParams>,
    headers: HeaderMap,
) -> Result<Written<MessagesPage>, HttpError> {
    let host = headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
    let permit = draws.permit().await;
    let limit = params.limit.unwrap_or(100).clamp(1, LIMIT);
    let window = Window { before: params.before.map(Seq), limit };
    let at = params.at.map(Seq);
    let found = match params.format {
        Format::UiV4 => read_counted(&store, &id, at, window).await,
        _ => read_page(&store, &id, at, window).await,
    };
    let found = found?.ok_or_else(|| HttpError::no_session(id.as_str()))?;
    Ok(permit.draw(move || write_messages(&hosts, found, &params, &host)).await)
}

fn write_messages(
    hosts: &Hosts,
    found: Opened,
    params: &MessagesParams,
    host: &str,
) -> Written<MessagesPage> {
    let file_url = |file: &Attachment| hosts.file_url(host, file);
    let Opened { mut transcript, earlier: next, .. } = found;
    transcript.messages.retain(|message| !message.superseded);
    let mut messages = in_words(&transcript, params, &file_url);
    let newest_first = params.order.map_or(params.format == Format::UiV4, |it| it == Order::Desc);
    if newest_first {
        messages.reverse();
    }
    Written::of(&MessagesPage { messages, next })
}

fn in_words(
    transcript: &Transcript,
    params: &MessagesParams,
    file_url: FileUrl<'_>,
) -> Vec<ShownMessage> {
    let messages = transcript.messages.iter();
    match params.format {
        Format::Callboard => messages
            .map(|it| ShownMessage::Callboard(Box::new(formats::callboard::message(it))))
            .collect(),
        Format::Contract => {
            let statuses = match params.status {
                Some(Status::All) => contract::Statuses::All,
                None => contract::Statuses::Lasting,
            };
            let shown = messages.flat_map(|it| contract::messages(it, statuses));
            shown.map(|it| ShownMessage::Contract(Box::new(it))).collect()
        }
        Format::Ui => {
            let profile = params.profile.into();
            let shown =
                |it| Some(named_by_client(it, formats::ui::message(it, profile, file_url)?));
            foreign(messages.filter_map(shown))
        }
        Format::UiV4 => {
            let shown = |it| Some(named_by_client(it, formats::ui_v4::message(it, file_url)?));
            foreign(messages.filter_map(shown))
        }
        Format::Openai => {
            let files = openai::Files::LeftOut;
            let reader = openai::Reader { agent: "", model: None, system: None, files };
            foreign(openai::conversation(transcript, &reader))
        }
        Format::OpenaiStored => foreign(messages.flat_map(openai::stored)),
        Format::Fullstream => foreign(messages.filter_map(formats::fullstream::message)),
        Format::Agui => {
            let version = formats::agui::Version::V1;
            foreign(messages.flat_map(|it| formats::agui::messages(it, version, file_url)))
        }
    }
}

/// Replaces the id of a user message by the id that the client gave it, if there is one.
fn named_by_client(message: &Message, mut shown: Value) -> Value {
    if let Content::User(UserMessage { client_id: Some(client_id), .. }) = &message.content {
        shown["id"] = json!(client_id);
    }
    shown
}

fn foreign(messages: impl IntoIterator<Item = Value>) -> Vec<ShownMessage> {
    let fields = messages.into_iter().filter_map(|message| match message {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    fields.map(ShownMessage::Foreign).collect()
}

async fn read_page(
    store: &Store,
    session: &SessionId,
    at: Option<Seq>,
    window: Window,
) -> Result<Option<Opened>, store::Error> {
    match at {
        Some(at) => window::read_whole_at(store, session, at, window).await,
        None => window::read_whole(store, session, window).await,
    }
}

/// Reads a page of messages with the requested number of counted messages, see
/// [`formats::ui_v4::page_start`].
async fn read_counted(
    store: &Store,
    session: &SessionId,
    at: Option<Seq>,
    window: Window,
) -> Result<Option<Opened>, store::Error> {
    let mut n_read = window.limit;
    loop {
        let wider = Window { before: window.before, limit: n_read };
        let Some(mut found) = read_page(store, session, at, wider).await? else { return Ok(None) };
        let shown: Vec<&Message> =
            found.transcript.messages.iter().filter(|it| !it.superseded).collect();
        let start = formats::ui_v4::page_start(&shown, window.limit);
        let first = start.map(|idx| shown[idx].first);
        match first {
            Some(first) => {
                let n_before = found.transcript.messages.len();
                found.transcript.messages.retain(|message| message.first >= first);
                let has_earlier = found.transcript.messages.len() < n_before;
                found.earlier = found.earlier.or(has_earlier.then_some(first)).map(|_| first);
                return Ok(Some(found));
            }
            None if found.earlier.is_none() => return Ok(Some(found)),
            None => n_read = n_read.saturating_mul(2),
        }
    }
}

/// Deserializes a query parameter that is a flag: `1` and `true` as true, `0`, `false` and an empty
/// text as false.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" | "" => Ok(false),
        other => Err(serde::de::Error::custom(format!("{other:?} is neither 1 nor 0"))),
    }
}
