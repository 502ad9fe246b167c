//! A conversation that comes in: which session it is, who answers, and what it brings along.

use std::collections::HashMap;
use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use formats::import::{Entry, Setting};
use formats::incoming::File;
use schemars::JsonSchema;
use serde_json::{Map, Value};
use transcript::{ClientId, ClientTool, Event, Level, Record, Seq, SessionId, quiesce};

use super::files::attach;
use crate::clock;
use crate::http::App;
use crate::http::error::{HttpError, RequestCode};
use crate::http::extract::Input;
use crate::http::openapi::{Operation, Takes};
use crate::http::transfer::make_session;
use crate::import::{files_of, with_summary};
use crate::session::NewSession;
use session::Refused;

const AGENT_HEADER: &str = "x-callboard-agent";

/// The body of a request, which is read by `formats` and looks like `T`, and whom it is for.
pub(in crate::http) struct Brought<T> {
    pub(in crate::http) json: Value,
    /// Named by the body, a header or the path.
    pub(in crate::http) agent: Option<String>,
    looks: PhantomData<T>,
}

impl<S: Send + Sync, T> FromRequest<S> for Brought<T> {
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
        Ok(Self { json: Value::Object(fields), agent, looks: PhantomData })
    }
}

impl<T: JsonSchema> Takes for Brought<T> {
    fn describe(operation: &mut Operation<'_>) {
        Input::<T>::describe(operation);
    }
}

/// What the path leaves open, by name.
pub(in crate::http) async fn path<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<HashMap<String, String>, HttpError> {
    let segments = Path::from_request_parts(parts, state).await;
    segments.map(|Path(it)| it).map_err(|it| HttpError::invalid(it.body_text()))
}

/// How the messages are read that a conversation brings along.
pub(in crate::http) type Import = fn(&Value, &Setting<'_>) -> Vec<Entry>;

pub(in crate::http) struct Arrival<'a> {
    /// The client's name for the conversation; none if it leaves that to us.
    pub(in crate::http) session: Option<&'a str>,
    /// Whoever is meant, if somebody is.
    pub(in crate::http) agent: Option<&'a str>,
    /// Whether it comes with something to answer.
    pub(in crate::http) says: bool,
    /// What was said before that.
    pub(in crate::http) earlier: &'a [Value],
    pub(in crate::http) import: Import,
}

/// The conversation's session, which is made if it is not there, with what was said elsewhere before.
/// True if it is new.
pub(in crate::http) async fn welcome(
    app: &App,
    arrival: &Arrival<'_>,
) -> Result<(SessionId, bool), HttpError> {
    let session = match arrival.session {
        None => clock::new_session_id(),
        Some(id) => SessionId::parse(id).ok_or_else(|| {
            let why = "is not 1 to 128 letters, digits, '-' or '_'";
            HttpError::invalid(format!("the conversation's `id` {id:?} {why}"))
        })?,
    };
    if is_known(app, &session, arrival.agent).await? {
        return Ok((session, false));
    }
    if !arrival.says {
        return Err(HttpError::no_session(session.as_str()));
    }
    let agent = arrival.agent.or_else(|| app.shared.agents.default_id());
    let beginning = Beginning {
        session: &session,
        agent: agent.ok_or_else(|| HttpError::invalid("no agent is configured"))?,
        earlier: arrival.earlier,
        import: arrival.import,
        archived: false,
        tools: &[],
    };
    let is_new = begin(app, &beginning).await?;
    Ok((session, is_new))
}

/// Whether there is such a session. A session stays with its agent.
pub(in crate::http) async fn is_known(
    app: &App,
    session: &SessionId,
    agent: Option<&str>,
) -> Result<bool, HttpError> {
    match (app.store().summary(session).await?, agent) {
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

/// A session to be.
pub(in crate::http) struct Beginning<'a> {
    pub(in crate::http) session: &'a SessionId,
    pub(in crate::http) agent: &'a str,
    /// What was said and done elsewhere before.
    pub(in crate::http) earlier: &'a [Value],
    pub(in crate::http) import: Import,
    /// It is not to fill the list.
    pub(in crate::http) archived: bool,
    /// What the client can run itself, where it has said its last word already.
    pub(in crate::http) tools: &'a [ClientTool],
}

/// False if there is such a session already: another request of the same conversation was faster.
pub(in crate::http) async fn begin(
    app: &App,
    beginning: &Beginning<'_>,
) -> Result<bool, HttpError> {
    let Beginning { session, agent, earlier, archived, .. } = beginning;
    let made = if earlier.is_empty() && !archived {
        let (id, agent) = ((*session).clone(), (*agent).to_owned());
        let new = NewSession { id, agent, title: None, workspace: None };
        app.sessions.create(new).await.map_err(HttpError::from)
    } else {
        bring_along(app, beginning).await
    };
    match made {
        Err(error) if error.code == RequestCode::SessionExists => Ok(false),
        made => made.map(|()| true),
    }
}

async fn bring_along(app: &App, beginning: &Beginning<'_>) -> Result<(), HttpError> {
    let Beginning { session, agent, earlier, import, archived, tools } = *beginning;
    let agent = agent.to_owned();
    if !app.shared.agents.knows(&agent) {
        let known = app.shared.agents.names().join(", ");
        return Err(Refused::NoAgent { name: agent, known }.into());
    }
    let now = clock::now();
    let messages = Value::from(earlier);
    let mut kept = HashMap::new();
    for file in files_of(|setting| import(&messages, setting), now) {
        // One that cannot be had is no reason to lose the message.
        if let Ok(attachment) = attach(app, &file).await {
            kept.insert(file.url, attachment);
        }
    }
    let attach = |file: &File| kept.get(&file.url).cloned();
    let mut entries = import(&messages, &Setting { agent: &agent, now, attach: &attach });
    entries.iter_mut().for_each(|it| name_as_client(&mut it.event, earlier));
    let created =
        Event::SessionCreated { agent, workspace: None, workspace_confirmed: false, title: None };
    let archived = archived.then_some(Event::SessionUpdated {
        agent: None,
        workspace: None,
        workspace_confirmed: false,
        title: None,
        archived: Some(true),
    });
    let text = "The messages above were brought along by the client.".to_owned();
    let mark = (!earlier.is_empty()).then_some(Event::Notice { level: Level::Info, text });
    let tools = tools_for_last_message(&entries, tools);
    let entry = |event| Entry { at: now, response_id: None, event };
    let before = [created].into_iter().chain(archived).map(entry);
    let after = mark.into_iter().chain(tools).map(entry);
    let records = before.chain(entries).chain(after).zip(1..).map(|(entry, seq)| {
        let Entry { at, response_id, event } = with_summary(entry);
        Record::new(Seq(seq), at, session.clone(), response_id, event)
    });
    let mut records: Vec<Record> = records.collect();
    // Only what comes next is to be answered.
    records.extend(quiesce(&records));
    make_session(app, session, records.into()).await
}

/// The client finds its messages again by its own names for them.
fn name_as_client(event: &mut Event, earlier: &[Value]) {
    if let Event::UserMessage { message_id, client_id: client_id @ None, .. } = event
        && earlier.iter().any(|it| it["id"] == message_id.as_str())
    {
        *client_id = Some(ClientId::new(message_id.as_str()));
    }
}

/// Tools belong to a message: the run that goes on after it may call them.
fn tools_for_last_message(entries: &[Entry], tools: &[ClientTool]) -> Option<Event> {
    let message_id = entries.iter().rev().find_map(|entry| match &entry.event {
        Event::UserMessage { message_id, .. } => Some(message_id.clone()),
        _ => None,
    })?;
    (!tools.is_empty()).then(|| Event::ClientTools { message_id, tools: tools.to_vec() })
}
