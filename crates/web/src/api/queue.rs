//! The queue of a session: list, change, move, remove and steer.

use axum::Json;
use axum::extract::State;
use axum::response::NoContent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transcript::{Attachment, MessageId, Millis, QueuedMessage, SendMode, Sender};

use crate::answer::Accepted;
use crate::api::sessions::Sent;
use crate::error::HttpError;
use crate::extract::{Input, MessagePath, SessionPath};
use runtime::Sessions;
use session::{Command, QueuedChange};
use store::Store;

#[derive(Serialize, JsonSchema)]
pub(crate) struct QueueObject {
    /// Messages in the queue of the session, in the order in which they will start.
    messages: Vec<QueuedObject>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Queued")]
#[serde(rename_all = "camelCase")]
struct QueuedObject {
    id: MessageId,
    queued_at: Millis,
    text: String,
    attachments: Vec<Attachment>,
    /// Mode of the queued message: `steer` if it is being handed to the active run, else `queue`.
    mode: SendMode,
    /// Whether the message is held because a run was stopped. It does not start before the queue is
    /// released.
    held: bool,
    /// The agent that sent the message; null if a person sent it.
    from: Option<Sender>,
}

impl From<QueuedMessage> for QueuedObject {
    fn from(message: QueuedMessage) -> Self {
        let QueuedMessage { id, at, text, attachments, mode, held, from, .. } = message;
        Self { id, queued_at: at, text, attachments, mode, held, from }
    }
}

pub(crate) async fn show(
    State(store): State<Store>,
    SessionPath(id): SessionPath,
) -> Result<Json<QueueObject>, HttpError> {
    if store.head(&id).await?.is_none() {
        return Err(HttpError::no_session(id.as_str()));
    }
    let queue = store.queue(&id).await?;
    Ok(Json(QueueObject { messages: queue.messages.into_iter().map(QueuedObject::from).collect() }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeInput {
    text: Option<String>,
    /// New position of the message in the queue, counted from 0. Larger values mean the end of the
    /// queue.
    position: Option<u32>,
}

pub(crate) async fn change(
    State(sessions): State<Sessions>,
    MessagePath { session, message }: MessagePath,
    Input(ChangeInput { text, position }): Input<ChangeInput>,
) -> Result<NoContent, HttpError> {
    // The position first, because a change of the text gives an agent's message a new id.
    let position = position.map(QueuedChange::Position);
    let text = text.map(words).transpose()?;
    let changes: Vec<QueuedChange> = position.into_iter().chain(text).collect();
    if changes.is_empty() {
        return Err(HttpError::invalid("give a text, a position, or both"));
    }
    for change in changes {
        let message_id = message.clone();
        let command = |reply| Command::ChangeQueued { message_id, change, reply };
        sessions.ask(&session, command).await?;
    }
    Ok(NoContent)
}

/// Returns the change that replaces a queued message's text, or an error if the new text is blank.
pub(crate) fn words(text: String) -> Result<QueuedChange, HttpError> {
    if text.trim().is_empty() {
        return Err(HttpError::invalid("the message would be empty: remove it instead"));
    }
    Ok(QueuedChange::Text(text))
}

pub(crate) async fn remove(
    State(sessions): State<Sessions>,
    MessagePath { session, message: message_id }: MessagePath,
) -> Result<NoContent, HttpError> {
    let change = QueuedChange::Dropped;
    let command = |reply| Command::ChangeQueued { message_id, change, reply };
    sessions.ask(&session, command).await?;
    Ok(NoContent)
}

pub(crate) async fn steer(
    State(sessions): State<Sessions>,
    MessagePath { session, message: message_id }: MessagePath,
) -> Result<Accepted<Sent>, HttpError> {
    let command = |reply| Command::SteerQueued { message_id, reply };
    let receipt = sessions.ask(&session, command).await?;
    Ok(Accepted(receipt.into()))
}

pub(crate) async fn release(
    State(sessions): State<Sessions>,
    SessionPath(id): SessionPath,
) -> Result<NoContent, HttpError> {
    sessions.ask(&id, |reply| Command::ReleaseQueue { reply }).await?;
    Ok(NoContent)
}

pub(crate) async fn clear(
    State(sessions): State<Sessions>,
    SessionPath(id): SessionPath,
) -> Result<NoContent, HttpError> {
    sessions.ask(&id, |reply| Command::ClearQueue { reply }).await?;
    Ok(NoContent)
}
