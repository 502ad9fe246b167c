//! What is said over the WebSocket, in both directions.

use axum::extract::ws::Utf8Bytes;
use render::{Op, Settings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use transcript::{Attachment, CallId, ClientId, MessageId, Record, SendMode, Seq, SessionId};

use super::approvals::DecisionInput;
use super::error::{HttpError, RequestCode};
use super::sessions::SessionObject;
use session::MessageState;

/// What a client may say.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum ClientFrame {
    Subscribe {
        session_id: Option<String>,
        /// The list of sessions instead of one.
        #[serde(default)]
        sessions: bool,
        /// The last number that the client has.
        #[serde(default)]
        after: u64,
        /// Every record, also those that others cover.
        #[serde(default)]
        deltas: Flag,
        /// How to be told: with the records, or with what they change on the page.
        #[serde(default)]
        view: ViewKind,
        /// Of the list, as a page: those that were put away.
        #[serde(default)]
        archived: bool,
        /// Of the list, as a page: how many sessions.
        limit: Option<usize>,
        /// `data-version` of the list that the page shows: while it is current, no patch is sent.
        version: Option<String>,
    },
    /// Without a session: the list.
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
        /// Refuse while the run waits for a person's decision.
        #[serde(default)]
        unless_asking: bool,
    },
    /// Decides about a call that waits for it.
    ApproveTool {
        session_id: String,
        call_id: CallId,
        #[serde(flatten)]
        decision: DecisionInput,
    },
    /// Takes back what a decision about a call allowed for more than once.
    UndoApproval {
        session_id: String,
        call_id: CallId,
    },
    /// Takes back a grant of the session.
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
    /// Says an earlier message again in other words; what followed it is put aside.
    EditMessage {
        session_id: String,
        message_id: MessageId,
        text: String,
        client_id: Option<ClientId>,
        /// All that the message is to have; those it had are not kept by themselves.
        #[serde(default)]
        attachments: Vec<Attachment>,
    },
    /// Says a message that waits for its turn in other words.
    EditQueued {
        session_id: String,
        message_id: MessageId,
        text: String,
    },
    /// Puts a message that waits to that place, from 0.
    MoveQueued {
        session_id: String,
        message_id: MessageId,
        position: u32,
    },
    /// Takes back a message that waits for its turn.
    DropQueued {
        session_id: String,
        message_id: MessageId,
    },
    /// Hands a message that waits to the run that is active.
    SteerQueued {
        session_id: String,
        message_id: MessageId,
    },
    /// Lets start what a stop has held.
    ReleaseQueue {
        session_id: String,
    },
    /// Takes back every message that waits.
    ClearQueue {
        session_id: String,
    },
    Ping {},
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ViewKind {
    #[default]
    Records,
    Html,
}

/// `true` or `1`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Flag {
    #[default]
    Absent,
    Word(bool),
    Number(u8),
}

impl Flag {
    pub(super) fn is_set(&self) -> bool {
        matches!(self, Self::Word(true) | Self::Number(1))
    }
}

/// What the server says, apart from the records themselves.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Notice {
    /// Comes before the first record.
    Subscribed {
        session_id: SessionId,
        head: Seq,
    },
    #[serde(rename = "subscribed")]
    SubscribedToList {
        sessions: bool,
    },
    /// All that the log had is sent; what follows has just happened.
    CaughtUp {
        session_id: SessionId,
        seq: Seq,
    },
    /// What changes on the page of a session, or in its list of sessions. Each op is `["put", id,
    /// html]`, `["add", parentId, html]`, `["before", nextId, html]`, `["move", id, nextId or null]`,
    /// `["text", id, string]`, `["attr", id, name, value]` or `["drop", id]`; one on an absent id is
    /// to be ignored.
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
    /// The page is too old to be patched: load it again.
    Reload {
        session_id: SessionId,
    },
    /// The page settings, changed by this page or another one.
    Settings {
        settings: Settings,
    },
    /// A line of the list has changed.
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
        /// Worth trying again later without a change.
        retryable: bool,
    },
    Pong {},
}

impl Notice {
    pub(super) fn error(session: Option<String>, error: HttpError) -> Self {
        let retryable = error.retryable();
        Self::Error { session_id: session, code: error.code, message: error.message, retryable }
    }

    pub(super) fn to_frame(&self) -> Utf8Bytes {
        serde_json::to_string(self).unwrap_or_default().into()
    }
}

/// Whatever the server says. Only described: records are on the wire as they are in the log.
pub(super) struct ServerFrame;

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
