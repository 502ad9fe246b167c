//! Messages of a session, as a reader sees them. The reducer in `transcript.rs` builds them.

use crate::{
    Attachment, ClientId, Link, MessageId, MessageRole, Millis, PartKind, RunMessage, Sender,
    SentForm, Seq,
};

/// A message of a session: a user message, the assistant message of a run, or a part outside any
/// run.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Sequence number of the record that created the message.
    pub first: Seq,
    /// Sequence number of the record that changed the message last.
    pub changed: Seq,
    /// Time of the record that created the message.
    pub created_at: Millis,
    /// Whether the message is superseded: the history was rewound to a point before it. The page
    /// shows it behind a link, and the model's history omits it.
    pub superseded: bool,
    /// Content of the message.
    pub content: Content,
}

/// The content of a message, by the kind of message.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A message from a person or from another agent.
    User(UserMessage),
    /// The assistant message of a run.
    Run(Box<RunMessage>),
    /// A notice, an exchange or unrecognized output that belongs to no run.
    Aside(PartKind),
}

/// A message from a person or from another agent.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// Id of the user message.
    pub id: MessageId,
    /// The client's idempotency key for the message; `None` if it sent none.
    pub client_id: Option<ClientId>,
    /// Role of the sender: user, or system for instructions.
    pub role: MessageRole,
    /// Text of the message.
    pub text: String,
    /// Files that are attached to the message.
    pub attachments: Vec<Attachment>,
    /// The agent that sent the message; `None` for a person.
    pub from: Option<Sender>,
    /// Parts and metadata of the message as its client sent them, if the other fields lose
    /// information.
    pub sent: Option<SentForm>,
}

impl UserMessage {
    /// Iterates over the files on the web that the message links to.
    pub fn links(&self) -> impl Iterator<Item = Link<'_>> {
        self.sent.iter().flat_map(SentForm::links)
    }
}

impl Message {
    /// Returns the id of the message: the `messageId` of a user message, the `responseId` of an
    /// assistant message, or `n` and the number of the first record for a part outside any run.
    pub fn id(&self) -> String {
        match &self.content {
            Content::User(message) => message.id.to_string(),
            Content::Run(run) => run.id.to_string(),
            Content::Aside(_) => format!("n{}", self.first),
        }
    }

    /// Returns the assistant message of the run; `None` for other messages.
    pub fn run(&self) -> Option<&RunMessage> {
        match &self.content {
            Content::Run(run) => Some(run),
            Content::User(_) | Content::Aside(_) => None,
        }
    }
}
