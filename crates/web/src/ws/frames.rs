//! WebSocket frames in both directions.

use axum::body::Bytes;
use axum::extract::ws::Utf8Bytes;
use render::{Op, Settings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use transcript::{Attachment, CallId, ClientId, MessageId, Record, SendMode, Seq, SessionId};

use crate::api::approvals::DecisionInput;
use crate::api::sessions::SessionObject;
use crate::error::{HttpError, RequestCode};
use session::MessageState;

/// A command that a client sends over the WebSocket.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum ClientFrame {
    Subscribe {
        session_id: Option<String>,
        /// Whether to subscribe to the list of sessions instead of one session.
        #[serde(default)]
        sessions: bool,
        /// Number of the last record that the client has, after which records or patches are sent.
        #[serde(default)]
        after: u64,
        /// Whether to send all records, also deltas that later records contain.
        #[serde(default)]
        deltas: Flag,
        /// Content to receive: records, or patches of the page.
        #[serde(default)]
        view: ViewKind,
        /// Whether to show archived sessions, for the session list as HTML.
        #[serde(default)]
        archived: bool,
        /// Number of sessions to show, for the session list as HTML.
        limit: Option<usize>,
        /// `data-version` of the session list on the page. No patch is sent while it is current.
        version: Option<String>,
    },
    /// Unsubscribe from a session, or from the list if no session is given.
    Unsubscribe {
        session_id: Option<String>,
    },
    SendMessage {
        session_id: String,
        text: String,
        client_id: Option<ClientId>,
        #[serde(default)]
        attachments: Vec<Attachment>,
        #[serde(default)]
        mode: SendMode,
    },
    CancelOutput {
        session_id: String,
        /// Whether to refuse the cancellation while the run waits for an approval.
        #[serde(default)]
        unless_asking: bool,
    },
    /// Approve or deny a pending tool call.
    ApproveTool {
        session_id: String,
        call_id: CallId,
        #[serde(flatten)]
        decision: DecisionInput,
    },
    /// Revoke the grant that the approval of a tool call created.
    UndoApproval {
        session_id: String,
        call_id: CallId,
    },
    /// Revoke a grant of the session.
    RevokeGrant {
        session_id: String,
        grant_id: String,
    },
    Continue {
        session_id: String,
    },
    Retry {
        session_id: String,
    },
    /// Replace an earlier message; the messages after it are superseded.
    EditMessage {
        session_id: String,
        message_id: MessageId,
        text: String,
        client_id: Option<ClientId>,
        /// All attachments of the new message. Attachments of the earlier message are not kept automatically.
        #[serde(default)]
        attachments: Vec<Attachment>,
    },
    /// Change the text of a queued message.
    EditQueued {
        session_id: String,
        message_id: MessageId,
        text: String,
    },
    /// Move a queued message to this position, counted from 0.
    MoveQueued {
        session_id: String,
        message_id: MessageId,
        position: u32,
    },
    /// Remove a queued message.
    DropQueued {
        session_id: String,
        message_id: MessageId,
    },
    /// Steer the active run with a queued message.
    SteerQueued {
        session_id: String,
        message_id: MessageId,
    },
    /// Release the held queue of the session.
    ReleaseQueue {
        session_id: String,
    },
    /// Clear the queue of the session.
    ClearQueue {
        session_id: String,
    },
    Ping {},
}

impl ClientFrame {
    /// Returns the id of the session that the command addresses; `None` if it addresses none.
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Ping {} | Self::Unsubscribe { .. } => None,
            Self::Subscribe { session_id, .. } => Some(session_id.as_deref().unwrap_or_default()),
            Self::SendMessage { session_id, .. }
            | Self::CancelOutput { session_id, .. }
            | Self::ApproveTool { session_id, .. }
            | Self::UndoApproval { session_id, .. }
            | Self::RevokeGrant { session_id, .. }
            | Self::Continue { session_id }
            | Self::Retry { session_id }
            | Self::EditMessage { session_id, .. }
            | Self::EditQueued { session_id, .. }
            | Self::MoveQueued { session_id, .. }
            | Self::DropQueued { session_id, .. }
            | Self::SteerQueued { session_id, .. }
            | Self::ReleaseQueue { session_id }
            | Self::ClearQueue { session_id } => Some(session_id),
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ViewKind {
    #[default]
    Records,
    Html,
}

/// Flag of a command, which is set by `true` or `1`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Flag {
    #[default]
    Absent,
    Word(bool),
    Number(u8),
}

impl Flag {
    pub(crate) fn is_set(&self) -> bool {
        matches!(self, Self::Word(true) | Self::Number(1))
    }
}

/// A frame that the server sends over the WebSocket, other than a record.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Notice {
    /// The subscription to a session has started. Sent before its first record.
    Subscribed {
        session_id: SessionId,
        head: Seq,
    },
    #[serde(rename = "subscribed")]
    SubscribedToList {
        sessions: bool,
    },
    /// The subscription to a session has sent the last record of the log. The following records are
    /// live.
    CaughtUp {
        session_id: SessionId,
        seq: Seq,
    },
    /// Changes to the page of a session, or to the list of sessions. Each op is `["put", id,
    /// html]`, `["add", parentId, html]`, `["before", nextId, html]`, `["move", id, nextId or null]`,
    /// `["text", id, string]`, `["attr", id, name, value]` or `["drop", id]`. Ignore ops
    /// on absent ids.
    Patch {
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sessions: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<Seq>,
        #[schemars(with = "Vec<Vec<Option<String>>>")]
        ops: Vec<Op>,
    },
    /// The page is too old to be patched and has to reload.
    Reload {
        session_id: SessionId,
    },
    /// Page settings, after a change by this page or another one.
    Settings {
        settings: Settings,
    },
    /// A session in the list of sessions has changed.
    Session(SessionObject),
    SessionDeleted {
        id: SessionId,
    },
    Ack {
        client_id: Option<ClientId>,
        message_id: MessageId,
        state: MessageState,
    },
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        code: RequestCode,
        message: String,
        /// Whether the same command may succeed if it is sent again later.
        retryable: bool,
    },
    Pong {},
}

impl Notice {
    pub(crate) fn error(session: Option<String>, error: HttpError) -> Self {
        let retryable = error.retryable();
        Self::Error { session_id: session, code: error.code, message: error.message, retryable }
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn to_frame(&self) -> Utf8Bytes {
        self.to_json().into()
    }
}

/// Returns shared JSON as the text of a WebSocket frame, without a copy.
pub(crate) fn text_of(json: Bytes) -> Utf8Bytes {
    let lossy = || String::from_utf8_lossy(&json).into_owned().into();
    Utf8Bytes::try_from(json.clone()).unwrap_or_else(|_| lossy())
}

/// Schema of the server's WebSocket frames. Records are sent as they are in the log.
pub(crate) struct ServerFrame;

impl JsonSchema for ServerFrame {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ServerFrame".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (record, notice) =
            (generator.subschema_for::<Record>(), generator.subschema_for::<Notice>());
        json_schema!({ "anyOf": [record, notice] })
    }
}
