//! Incoming conversations: their session, their agent and their earlier messages.

use std::collections::HashMap;
use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use formats::import::{Entry, Setting};
use formats::incoming::File;
use schemars::JsonSchema;
use serde_json::{Map, Value};
use transcript::{ClientId, ClientTool, Event, Level, Record, Seq, SessionId, quiesce};

use super::{CompatState, Conversation};
use crate::api::import_export::make_session;
use crate::error::{HttpError, RequestCode};
use crate::extract::Input;
use crate::openapi::{DescribeInput, Operation};
use runtime::NewSession;
use runtime::clock;
use runtime::import::{files_of, with_summary};
use session::Refused;

const AGENT_HEADER: &str = "x-callboard-agent";

/// JSON body of a request to a compatibility API, and the agent that the request names. `T` is the
/// schema of the body, which the crate `formats` parses.
pub(crate) struct CompatBody<T> {
    pub(crate) json: Value,
    /// Id of the agent that the body, a header or the path names; `None` if none of them does.
    pub(crate) agent: Option<String>,
    description: PhantomData<T>,
}

impl<S: Send + Sync, T> FromRequest<S> for CompatBody<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let (mut parts, body) = request.into_parts();
        let in_path = path_parameters(&mut parts, state).await?.remove("agent");
        let header = parts.headers.get(AGENT_HEADER).and_then(|it| it.to_str().ok());
        let header = header.map(str::to_owned);
        let request = Request::from_parts(parts, body);
        let Input(fields) = Input::<Map<String, Value>>::from_request(request, state).await?;
        let in_body = fields.get("agent").and_then(Value::as_str).map(str::to_owned);
        let agent = in_body.or(header).or(in_path);
        Ok(Self { json: Value::Object(fields), agent, description: PhantomData })
    }
}

impl<T: JsonSchema> DescribeInput for CompatBody<T> {
    fn describe(operation: &mut Operation<'_>) {
        Input::<T>::describe(operation);
    }
}

/// Returns the parameters in the path of a request, by name.
pub(crate) async fn path_parameters<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<HashMap<String, String>, HttpError> {
    let segments = Path::from_request_parts(parts, state).await;
    segments.map(|Path(it)| it).map_err(|it| HttpError::invalid(it.body_text()))
}

/// Function that converts the earlier messages of a client's conversation to log entries.
pub(crate) type Import = fn(&Value, &Setting<'_>) -> Vec<Entry>;

/// A conversation that a client of a compatibility API sends.
pub(crate) struct IncomingConversation<'a> {
    /// Id that the client gave the conversation, used as the session's id; `None` if the server
    /// chooses one.
    pub(crate) session: Option<&'a str>,
    /// Id of the agent that the client names; `None` if it names none.
    pub(crate) agent: Option<&'a str>,
    /// Whether the client's conversation ends with a message to answer.
    pub(crate) has_message: bool,
    /// Messages of the conversation before the message to answer.
    pub(crate) earlier: &'a [Value],
    pub(crate) import: Import,
}

/// Returns the session of an incoming conversation and whether it is new. If it does not exist, it
/// is created with the earlier messages.
pub(crate) async fn find_or_create_session(
    server: &CompatState,
    incoming: &IncomingConversation<'_>,
) -> Result<(Conversation, bool), HttpError> {
    let session = match incoming.session {
        None => clock::new_session_id(),
        Some(id) => SessionId::parse(id).ok_or_else(|| {
            let form = SessionId::FORM;
            HttpError::invalid(format!("the conversation's `id` {id:?} is not {form}"))
        })?,
    };
    if session_exists(server, &session, incoming.agent).await? {
        return Ok((Conversation { server: server.clone(), session }, false));
    }
    if !incoming.has_message {
        return Err(HttpError::no_session(session.as_str()));
    }
    let agent = incoming.agent.or_else(|| server.agents.default_id());
    let new = NewConversation {
        session: &session,
        agent: agent.ok_or_else(|| HttpError::invalid("no agent is configured"))?,
        earlier: incoming.earlier,
        import: incoming.import,
        archived: false,
        tools: &[],
    };
    let is_new = create_session(server, &new).await?;
    Ok((Conversation { server: server.clone(), session }, is_new))
}

/// Returns whether a session exists. It is an error if the session belongs to another agent.
pub(crate) async fn session_exists(
    server: &CompatState,
    session: &SessionId,
    agent: Option<&str>,
) -> Result<bool, HttpError> {
    match (server.store.summary(session).await?, agent) {
        (None, _) => Ok(false),
        (Some((summary, _)), Some(agent)) if *agent != summary.agent => {
            Err(HttpError::invalid(format!(
                "the session is with the agent '{}'; begin a new one to talk to '{agent}'",
                summary.agent
            )))
        }
        (Some(_), _) => Ok(true),
    }
}

/// A session to create for a client's conversation.
pub(crate) struct NewConversation<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) agent: &'a str,
    /// Earlier messages of the conversation, which are imported into the session.
    pub(crate) earlier: &'a [Value],
    pub(crate) import: Import,
    /// Whether the session is created as archived.
    pub(crate) archived: bool,
    /// Tools that the client runs itself, for a run that continues from the last earlier message.
    pub(crate) tools: &'a [ClientTool],
}

/// Creates a session for a client's conversation. Returns false if it exists already, because
/// another request was faster.
pub(crate) async fn create_session(
    server: &CompatState,
    new: &NewConversation<'_>,
) -> Result<bool, HttpError> {
    let NewConversation { session, agent, earlier, archived, .. } = new;
    let created = if earlier.is_empty() && !archived {
        let (id, agent) = ((*session).clone(), (*agent).to_owned());
        let empty = NewSession { id, agent, title: None, workspace: None };
        server.sessions.create(empty).await.map_err(HttpError::from)
    } else {
        create_with_messages(server, new).await
    };
    match created {
        Err(error) if error.code == RequestCode::SessionExists => Ok(false),
        created => created.map(|()| true),
    }
}

async fn create_with_messages(
    server: &CompatState,
    new: &NewConversation<'_>,
) -> Result<(), HttpError> {
    let NewConversation { session, agent, earlier, import, archived, tools } = *new;
    let agent = agent.to_owned();
    if !server.agents.knows(&agent) {
        let known = server.agents.names().join(", ");
        return Err(Refused::NoAgent { name: agent, known }.into());
    }
    let now = clock::now();
    let messages = Value::from(earlier);
    let mut kept = HashMap::new();
    for file in files_of(|setting| import(&messages, setting), now) {
        // A message is imported without a file that cannot be stored.
        if let Ok(attachment) = runtime::import::attach(&server.store, &file).await {
            kept.insert(file.url, attachment);
        }
    }
    let attach = |file: &File| kept.get(&file.url).cloned();
    let mut entries = import(&messages, &Setting { agent: &agent, now, attach: &attach });
    entries.iter_mut().for_each(|it| name_as_client(&mut it.event, earlier));
    let first =
        Event::SessionCreated { agent, workspace: None, workspace_confirmed: false, title: None };
    let archived = archived.then_some(Event::SessionUpdated {
        agent: None,
        workspace: None,
        workspace_confirmed: false,
        title: None,
        archived: Some(true),
    });
    let text = "The client sent the messages above with its request.".to_owned();
    let mark = (!earlier.is_empty()).then_some(Event::Notice { level: Level::Info, text });
    let tools = tools_for_last_message(&entries, tools);
    let entry = |event| Entry { at: now, response_id: None, event };
    let before = [first].into_iter().chain(archived).map(entry);
    let after = mark.into_iter().chain(tools).map(entry);
    let records = before.chain(entries).chain(after).zip(1..).map(|(entry, seq)| {
        let Entry { at, response_id, event } = with_summary(entry);
        Record::new(Seq(seq), at, session.clone(), response_id, event)
    });
    let mut records: Vec<Record> = records.collect();
    // Imported calls and runs must not stay open, because only the next message is answered.
    records.extend(quiesce(&records));
    make_session(&server.sessions, session, records.into()).await
}

/// Sets the client id of an imported user message to the client's own id, by which the client
/// refers to it.
fn name_as_client(event: &mut Event, earlier: &[Value]) {
    if let Event::UserMessage { message_id, client_id: client_id @ None, .. } = event
        && earlier.iter().any(|it| it["id"] == message_id.as_str())
    {
        *client_id = Some(ClientId::new(message_id.as_str()));
    }
}

/// Returns the event that offers the client's tools to the run that answers the last message.
fn tools_for_last_message(entries: &[Entry], tools: &[ClientTool]) -> Option<Event> {
    let message_id = entries.iter().rev().find_map(|entry| match &entry.event {
        Event::UserMessage { message_id, .. } => Some(message_id.clone()),
        _ => None,
    })?;
    (!tools.is_empty()).then(|| Event::ClientTools { message_id, tools: tools.to_vec() })
}
