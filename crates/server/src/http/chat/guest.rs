//! A chat that comes in: which session it is, who answers, and what it brings along.

use std::cell::RefCell;
use std::collections::HashMap;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use backends::arguments_summary;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use formats::import::{Entry, Setting};
use formats::incoming::{File, Given};
use schemars::JsonSchema;
use serde_json::{Map, Value};
use transcript::{Attachment, Event, Level, Record, Seq, SessionId};

use crate::clock;
use crate::http::App;
use crate::http::error::{HttpError, RequestCode};
use crate::http::extract::Input;
use crate::http::openapi::{Operation, Takes};
use crate::http::transfer::make_session;
use crate::session::{NewSession, Refused};

const AGENT_HEADER: &str = "x-callboard-agent";

/// The body of a chat request, and whom it is for.
pub(in crate::http) struct ChatBody {
    pub(super) json: Value,
    /// Named by the body, a header or the path.
    agent: Option<String>,
}

impl<S: Send + Sync> FromRequest<S> for ChatBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let (mut parts, body) = request.into_parts();
        let in_path = path(&mut parts, state).await?.remove("agent");
        let header = parts.headers.get(AGENT_HEADER).and_then(|it| it.to_str().ok());
        let header = header.map(str::to_owned);
        let request = Request::from_parts(parts, body);
        let Input(fields) = Input::<Map<String, Value>>::from_request(request, state).await?;
        let in_body = fields.get("agent").and_then(Value::as_str).map(str::to_owned);
        let agent = in_body.or(header).or(in_path);
        Ok(Self { json: Value::Object(fields), agent })
    }
}

/// How the body looks; it is read by `formats`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a description")]
struct ChatInput {
    /// The chat's, which is the session's.
    id: Option<String>,
    /// The whole chat; all but the last is read only where the session is new.
    messages: Option<Vec<Map<String, Value>>>,
    /// The last message alone.
    message: Option<Map<String, Value>>,
    trigger: Option<String>,
    message_id: Option<String>,
    /// Who answers a new chat.
    agent: Option<String>,
    /// Tools that the client runs itself: by name, each with `description` and `parameters`.
    tools: Option<Map<String, Value>>,
}

impl Takes for ChatBody {
    fn describe(operation: &mut Operation<'_>) {
        Input::<ChatInput>::describe(operation);
    }
}

/// The session that a path names, if there can be such a one.
pub(in crate::http) struct NamedChat(pub(super) Option<SessionId>);

impl<S: Send + Sync> FromRequestParts<S> for NamedChat {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let session = path(parts, state).await?.remove("session");
        Ok(Self(session.and_then(|it| SessionId::parse(&it))))
    }
}

impl Takes for NamedChat {
    fn describe(operation: &mut Operation<'_>) {
        operation.refuses(&[RequestCode::InvalidRequest]);
    }
}

async fn path<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<HashMap<String, String>, HttpError> {
    let segments = Path::from_request_parts(parts, state).await;
    segments.map(|Path(it)| it).map_err(|it| HttpError::invalid(it.body_text()))
}

/// How the messages are read that a chat brings along.
pub(super) type Import = fn(&Value, &Setting<'_>) -> Vec<Entry>;

/// The chat's session, which is made if it is not there, with what was said elsewhere before. True if
/// it is new.
pub(super) async fn welcome(
    app: &App,
    body: &ChatBody,
    request: &formats::ui::Request,
    import: Import,
) -> Result<(SessionId, bool), HttpError> {
    let session = match &request.chat {
        None => clock::new_session_id(),
        Some(id) => SessionId::parse(id).ok_or_else(|| {
            HttpError::invalid("`id` is not 1 to 128 letters, digits, '-' or '_'")
        })?,
    };
    if let Some((summary, _)) = app.store().summary(&session)? {
        return match &body.agent {
            Some(agent) if *agent != summary.agent => Err(HttpError::invalid(format!(
                "the chat is with the agent '{}'; begin a new one to talk to '{agent}'",
                summary.agent
            ))),
            _ => Ok((session, false)),
        };
    }
    if !matches!(request.given, Given::Said(_)) {
        return Err(HttpError::no_session(session.as_str()));
    }
    let agent = body.agent.clone().or_else(|| app.shared.agents.default_id().map(str::to_owned));
    let agent = agent.ok_or_else(|| HttpError::invalid("no agent is configured"))?;
    let earlier = earlier_messages(&body.json);
    let made = match earlier.as_array().is_some_and(|it| it.is_empty()) {
        true => {
            let new = NewSession { id: session.clone(), agent, title: None, workspace: None };
            app.sessions.create(new).await.map_err(HttpError::from)
        }
        false => bring_along(app, &session, agent, &earlier, import).await,
    };
    match made {
        // Another request of the same chat was faster.
        Err(error) if error.code == RequestCode::SessionExists => Ok((session, false)),
        made => made.map(|()| (session, true)),
    }
}

/// All but the last, which is new.
fn earlier_messages(body: &Value) -> Value {
    let messages = body["messages"].as_array().filter(|_| body["message"].is_null());
    let (_, earlier) = messages.and_then(|it| it.split_last()).unwrap_or((&Value::Null, &[]));
    Value::Array(earlier.to_vec())
}

async fn bring_along(
    app: &App,
    session: &SessionId,
    agent: String,
    messages: &Value,
    import: Import,
) -> Result<(), HttpError> {
    if !app.shared.agents.knows(&agent) {
        let known = app.shared.agents.names().join(", ");
        return Err(Refused::NoAgent { name: agent, known }.into());
    }
    let now = clock::now();
    let mut kept = HashMap::new();
    for file in files_of(messages, import) {
        // One that cannot be had is no reason to lose the message.
        if let Ok(attachment) = attach(app, &file).await {
            kept.insert(file.url, attachment);
        }
    }
    let attach = |file: &File| kept.get(&file.url).cloned();
    let entries = import(messages, &Setting { agent: &agent, now, attach: &attach });
    let created = Event::SessionCreated { agent: agent.clone(), workspace: None, title: None };
    let text = "The messages above were brought along by the client.".to_owned();
    let mark = Event::Notice { level: Level::Info, text };
    let first = Entry { at: now, response_id: None, event: created };
    let last = Entry { at: now, response_id: None, event: mark };
    // What had no answer there gets none here: the client has said something else since.
    let rest = Event::QueueHeld { reason: Some("imported".to_owned()) };
    let rest = Entry { at: now, response_id: None, event: rest };
    let entries = [first].into_iter().chain(entries).chain([rest, last]);
    let records = entries.zip(1..).map(|(entry, seq)| {
        let Entry { at, response_id, event } = with_summary(entry);
        Record::new(Seq(seq), at, session.clone(), response_id, event)
    });
    make_session(app, session, records.collect()).await
}

/// Files that messages name, found by reading them once without.
fn files_of(messages: &Value, import: Import) -> Vec<File> {
    let found: RefCell<Vec<File>> = RefCell::default();
    let collect = |file: &File| -> Option<Attachment> {
        found.borrow_mut().push(file.clone());
        None
    };
    import(messages, &Setting { agent: "", now: clock::now(), attach: &collect });
    found.into_inner()
}

fn with_summary(mut entry: Entry) -> Entry {
    if let Event::ToolArgumentsDone { arguments, summary, .. } = &mut entry.event {
        *summary = arguments_summary(arguments);
    }
    entry
}

const BLOBS: &str = "/api/blobs/";

/// Keeps a file that came with a message, unless it is one of ours.
pub(super) async fn attach(app: &App, file: &File) -> Result<Attachment, HttpError> {
    let File { media_type, name, url } = file;
    let held = url.strip_prefix("data:").and_then(|it| it.split_once(";base64,"));
    let (blob, size) = match (held, url.split_once(BLOBS)) {
        (Some((_, data)), _) => {
            let bytes = BASE64_STANDARD
                .decode(data)
                .map_err(|why| HttpError::invalid(format!("a file's `url` is no base64: {why}")))?;
            let size = bytes.len() as u64;
            (app.store().put_blob(bytes, clock::now()).await?, size)
        }
        (None, Some((_, hash))) => {
            let (blob, wanted) = (hash.to_owned(), hash.to_owned());
            let found = app.store().off_thread(move |store| store.blob(&wanted)).await?;
            let missing = || HttpError::invalid(format!("there is no file {hash:?}"));
            (blob, found.ok_or_else(missing)?.len() as u64)
        }
        (None, None) => {
            return Err(HttpError::invalid(
                "files are sent along, with a `url` that begins with \"data:\", or put to \
                 /api/blobs first; Callboard fetches none",
            ));
        }
    };
    let name = name.clone().unwrap_or_else(|| "file".to_owned());
    Ok(Attachment { blob, name, media_type: media_type.clone(), size })
}
