//! What is said over the WebSocket, in both directions.

use axum::extract::ws::Utf8Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use transcript::{Attachment, ClientId, MessageId, Record, SendMode, Seq, SessionId};

use super::error::{HttpError, RequestCode};
use super::sessions::SessionObject;

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
    },
    Continue {
        session_id: String,
    },
    Retry {
        session_id: String,
    },
    Ping {},
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
    /// A line of the list has changed.
    Session(SessionObject),
    SessionDeleted {
        id: SessionId,
    },
    Ack {
        client_id: Option<ClientId>,
        message_id: MessageId,
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
