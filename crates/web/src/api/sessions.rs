//! Sessions over HTTP: create, list, update, send and cancel.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::NoContent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{MessageKind, Store};
use transcript::{
    Attachment, ClientId, Event, MessageId, Millis, ResponseId, RewindReason, SendMode, SentForm,
    Seq, SessionId, SessionState, Summary,
};

use crate::answer::{Accepted, Created};
use crate::error::{HttpError, RequestCode};
use crate::extract::{Input, Params, SessionPath, new_session_id};
use runtime::agents::AgentCatalog;
use runtime::clock;
use runtime::live::pulse::{Pulse, Pulses};
use runtime::{NewSession, Sessions};
use session::{Command, MessageState, NewMessage, Receipt, SessionPatch};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionObject {
    id: SessionId,
    agent: String,
    title: String,
    /// Workspace of the session itself; null if it uses the agent's workspace.
    workspace: Option<String>,
    /// Unconfirmed workspace of a session with an imported log. PATCH it as `workspace` to use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested_workspace: Option<String>,
    state: SessionState,
    archived: bool,
    created_at: Millis,
    updated_at: Millis,
    message_count: u64,
    head: Seq,
    /// Process of the agent's program, while it runs; always absent in lists of sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramObject>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProgramObject {
    pid: u32,
    started_at: Millis,
    /// Time at which the program wrote its last line; absent if it has written nothing yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_line_at: Option<Millis>,
}

impl SessionObject {
    pub(crate) fn new(id: SessionId, summary: &Summary, head: Seq) -> Self {
        Self {
            id,
            agent: summary.agent.clone(),
            title: summary.title().to_owned(),
            workspace: summary.workspace().map(str::to_owned),
            suggested_workspace: summary.suggested_workspace().map(str::to_owned),
            state: summary.state(),
            archived: summary.archived,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            message_count: summary.message_count,
            head,
            program: None,
        }
    }
}

impl From<&Pulse> for ProgramObject {
    fn from(pulse: &Pulse) -> Self {
        let (pid, started_at) = (pulse.pid(), pulse.started_at);
        Self { pid, started_at, last_line_at: pulse.last_line_at() }
    }
}

/// Reads session objects: from the log, with the activity of the session's program.
#[derive(Clone)]
pub(crate) struct SessionObjects {
    pub(crate) store: Store,
    pub(crate) pulses: Arc<Pulses>,
}

impl SessionObjects {
    pub(crate) async fn read(&self, id: SessionId) -> Result<SessionObject, HttpError> {
        let found = self.store.summary(&id).await?;
        let (summary, head) = found.ok_or_else(|| HttpError::no_session(id.as_str()))?;
        let program = self.pulses.of(&id).map(|it| ProgramObject::from(&*it));
        Ok(SessionObject { program, ..SessionObject::new(id, &summary, head) })
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    archived: Option<bool>,
    limit: Option<usize>,
    /// Value of `next` in the previous page of sessions.
    before: Option<String>,
}

pub(crate) const LIST_LIMIT: usize = 1000;

#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionList {
    sessions: Vec<SessionObject>,
    /// Value of the parameter `before` for the next page of sessions; null on the last page.
    next: Option<String>,
}

pub(crate) async fn list(
    State(store): State<Store>,
    Params(params): Params<ListParams>,
) -> Result<Json<SessionList>, HttpError> {
    let limit = params.limit.unwrap_or(100).clamp(1, LIST_LIMIT);
    let before = params.before.as_deref().map(parse_cursor).transpose()?;
    let listed = store.sessions(params.archived, limit, before).await?;
    let next = (listed.len() == limit).then(|| listed.last()).flatten();
    let next = next.map(|(id, summary, _)| cursor(id, summary));
    let sessions = listed
        .into_iter()
        .map(|(id, summary, head)| SessionObject::new(id, &summary, head))
        .collect();
    Ok(Json(SessionList { sessions, next }))
}

/// Returns the cursor for a page of the session list that starts after this session.
pub(crate) fn cursor(id: &SessionId, summary: &Summary) -> String {
    format!("{}.{id}", summary.updated_at.0)
}

pub(crate) fn parse_cursor(cursor: &str) -> Result<(Millis, SessionId), HttpError> {
    let parsed = cursor
        .split_once('.')
        .and_then(|(at, id)| Some((Millis(at.parse().ok()?), SessionId::parse(id)?)));
    parsed.ok_or_else(|| HttpError::invalid("'before' must be the 'next' of the previous page"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateInput {
    id: Option<String>,
    agent: Option<String>,
    title: Option<String>,
    /// Workspace of the new session. A relative path is resolved against the agent's workspace.
    workspace: Option<String>,
}

pub(crate) async fn create(
    State(sessions): State<Sessions>,
    State(agents): State<AgentCatalog>,
    State(objects): State<SessionObjects>,
    Input(input): Input<CreateInput>,
) -> Result<Created<SessionObject>, HttpError> {
    let CreateInput { id, agent, title, workspace } = input;
    let id = match id {
        None => clock::new_session_id(),
        Some(id) => new_session_id(&id)?,
    };
    let default = || agents.default_id().unwrap_or_default().to_owned();
    let agent = agent.unwrap_or_else(default);
    let own = agents.workspace(&agent);
    let workspace = workspace.map(|named| existing_folder(&own, &named)).transpose()?;
    let title = title.filter(|it| !it.trim().is_empty());
    let session = NewSession { id: id.clone(), agent, title, workspace };
    sessions.create(session).await?;
    objects.read(id).await.map(Created)
}

fn existing_folder(own: &Path, named: &str) -> Result<String, HttpError> {
    let folder = own.join(named);
    if folder.is_absolute() && folder.is_dir() {
        return Ok(folder.display().to_string());
    }
    let folder = folder.display();
    Err(HttpError::invalid(format!("There is no folder {folder}. Give the path of a folder.")))
}

pub(crate) async fn show(
    State(objects): State<SessionObjects>,
    SessionPath(id): SessionPath,
) -> Result<Json<SessionObject>, HttpError> {
    objects.read(id).await.map(Json)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateInput {
    title: Option<String>,
    archived: Option<bool>,
    /// New workspace of the session, given as for a new session; confirms `suggestedWorkspace`.
    /// Refused while a run is active.
    workspace: Option<String>,
}

pub(crate) async fn update(
    State(sessions): State<Sessions>,
    State(agents): State<AgentCatalog>,
    State(objects): State<SessionObjects>,
    SessionPath(id): SessionPath,
    Input(UpdateInput { title, archived, workspace }): Input<UpdateInput>,
) -> Result<Json<SessionObject>, HttpError> {
    let workspace = match workspace {
        Some(named) => {
            let agent = sessions.agent_of(&id).await?;
            let agent = agent.ok_or_else(|| HttpError::no_session(id.as_str()))?;
            Some(existing_folder(&agents.workspace(&agent), &named)?)
        }
        None => None,
    };
    let patch = SessionPatch { title, archived, workspace };
    sessions.ask(&id, |reply| Command::Update { patch, reply }).await?;
    objects.read(id).await.map(Json)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeleteParams {
    /// Delay in seconds during which the deletion can be undone and the session cannot be used;
    /// immediate if omitted.
    seconds: Option<u64>,
}

/// Maximum delay of a session's deletion, in seconds.
const MAX_DELETION_DELAY: u64 = 3600;

pub(crate) async fn delete(
    State(sessions): State<Sessions>,
    SessionPath(id): SessionPath,
    Params(DeleteParams { seconds }): Params<DeleteParams>,
) -> Result<NoContent, HttpError> {
    match seconds {
        Some(seconds) => {
            let after = Duration::from_secs(seconds.min(MAX_DELETION_DELAY));
            sessions.delete_after(&id, after).await?;
        }
        None => sessions.ask(&id, |reply| Command::Delete { reply }).await?,
    }
    Ok(NoContent)
}

pub(crate) async fn restore(
    State(sessions): State<Sessions>,
    State(objects): State<SessionObjects>,
    SessionPath(id): SessionPath,
) -> Result<Json<SessionObject>, HttpError> {
    let session = objects.read(id.clone()).await?;
    if !sessions.restore(&id).await {
        let message = "the session has no pending deletion; a completed deletion cannot be undone";
        return Err(HttpError::new(RequestCode::NothingToDo, message));
    }
    Ok(Json(session))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SendInput {
    pub(crate) text: String,
    pub(crate) client_id: Option<ClientId>,
    #[serde(default)]
    pub(crate) attachments: Vec<Attachment>,
    /// Mode of the message: whether to queue it during a run, or to steer the run with it. `state`
    /// in the response is `queued` if the agent could not be steered.
    #[serde(default)]
    pub(crate) mode: SendMode,
    /// Id of an earlier message that this message replaces; the messages after it are superseded.
    pub(crate) replaces: Option<MessageId>,
}

impl SendInput {
    /// Sends the message to a session, or replaces an earlier message of the session with it.
    pub(crate) async fn send_to(
        mut self,
        store: &Store,
        sessions: &Sessions,
        session: &SessionId,
    ) -> Result<Receipt, HttpError> {
        let earlier = match self.replaces.take() {
            // A repeated request sends one message, and the earlier message is already replaced.
            Some(earlier) if !self.is_known(store, session).await? => earlier,
            _ => {
                let message = self.into_message(store).await?;
                return Ok(sessions.send(session, message).await?);
            }
        };
        let mut message = self.into_message(store).await?;
        // An edited message keeps its links to files, because the editor shows only the text.
        let sent = as_sent(store, session, &earlier).await?;
        message.sent = sent.and_then(|it| it.links_with(&message.text, &message.attachments));
        let edit = |reply| Command::Edit { earlier, message, reply };
        Ok(sessions.ask(session, edit).await?)
    }

    async fn is_known(&self, store: &Store, session: &SessionId) -> Result<bool, store::Error> {
        let Some(client_id) = &self.client_id else { return Ok(false) };
        Ok(store.message_of_client_id(session, client_id).await?.is_some())
    }

    async fn into_message(self, store: &Store) -> Result<NewMessage, HttpError> {
        if self.text.trim().is_empty() && self.attachments.is_empty() {
            return Err(HttpError::invalid("the message is empty: give it a text"));
        }
        if self.client_id.as_ref().is_some_and(|it| !(1..=128).contains(&it.as_str().len())) {
            return Err(HttpError::invalid("clientId must have 1 to 128 bytes"));
        }
        let Self { text, client_id, attachments, mode, replaces: _ } = self;
        check_attachments(store, &attachments).await?;
        let client_tools = Vec::new();
        Ok(NewMessage { text, client_id, attachments, mode, from: None, client_tools, sent: None })
    }
}

async fn as_sent(
    store: &Store,
    session: &SessionId,
    message: &MessageId,
) -> Result<Option<SentForm>, HttpError> {
    let said = MessageKind::Said;
    let records = store.records_of_message(session, said, message.as_str()).await?;
    Ok(records.iter().find_map(|it| match it.record().event {
        Event::UserMessage { sent, .. } => sent,
        _ => None,
    }))
}

/// Checks that the attachments of a message are stored files of the given sizes.
async fn check_attachments(store: &Store, attachments: &[Attachment]) -> Result<(), HttpError> {
    for Attachment { blob, name, size, .. } in attachments {
        let found = store.blob(blob).await?;
        if found.is_none_or(|bytes| bytes.len() as u64 != *size) {
            let message =
                format!("attachment {name:?}: POST it to /api/blobs first, and give its size");
            return Err(HttpError::invalid(message));
        }
    }
    Ok(())
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sent {
    message_id: MessageId,
    /// Current state of the message that was sent.
    state: MessageState,
}

impl From<Receipt> for Sent {
    fn from(Receipt { message_id, state }: Receipt) -> Self {
        Self { message_id, state }
    }
}

pub(crate) async fn send(
    State(store): State<Store>,
    State(sessions): State<Sessions>,
    SessionPath(id): SessionPath,
    Input(input): Input<SendInput>,
) -> Result<Accepted<Sent>, HttpError> {
    Ok(Accepted(input.send_to(&store, &sessions, &id).await?.into()))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cancelled {
    /// Whether an active run of the session was cancelled.
    cancelled: bool,
    response_id: Option<ResponseId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelParams {
    /// Whether to refuse the cancellation while the run waits for an approval.
    #[serde(default)]
    unless_asking: bool,
}

pub(crate) async fn cancel(
    State(sessions): State<Sessions>,
    SessionPath(id): SessionPath,
    Params(CancelParams { unless_asking }): Params<CancelParams>,
) -> Result<Json<Cancelled>, HttpError> {
    let by = "user".to_owned();
    let run = sessions.ask(&id, |reply| Command::Cancel { by, unless_asking, reply }).await?;
    Ok(Json(Cancelled { cancelled: run.is_some(), response_id: run }))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Started {
    response_id: ResponseId,
}

pub(crate) async fn go_on(
    State(sessions): State<Sessions>,
    SessionPath(id): SessionPath,
) -> Result<Accepted<Started>, HttpError> {
    let response_id = sessions.ask(&id, |reply| Command::Continue { reply }).await?;
    Ok(Accepted(Started { response_id }))
}

pub(crate) async fn retry(
    State(sessions): State<Sessions>,
    SessionPath(id): SessionPath,
) -> Result<Accepted<Started>, HttpError> {
    let (of, reason) = (None, RewindReason::Retry);
    let response_id = sessions.ask(&id, |reply| Command::Retry { of, reason, reply }).await?;
    Ok(Accepted(Started { response_id }))
}
