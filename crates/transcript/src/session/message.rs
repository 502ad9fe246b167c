//! Messages of a session, as a reader sees them. The reducer in `transcript.rs` builds them.

use crate::{
    Attachment, ClientId, Link, MessageId, MessageRole, Millis, PartKind, RunMessage, Sender,
    SentForm, Seq,
};

/// A message of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The record that created the message.
    pub first: Seq,
    /// The record that changed the message last.
    pub changed: Seq,
    /// Time of the first record.
    pub created_at: Millis,
    /// Whether the history was rewound to a point before the message: the page shows it behind a link,
    /// and the model's history omits it.
    pub superseded: bool,
    /// The content.
    pub content: Content,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A message from a person or from another agent.
    User(UserMessage),
    /// The assistant message of a run.
    Run(Box<RunMessage>),
    /// A part outside any run.
    Aside(PartKind),
}

/// A message from a person or from another agent.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// Id of the message.
    pub id: MessageId,
    /// The client's idempotency key.
    pub client_id: Option<ClientId>,
    /// Role of the sender.
    pub role: MessageRole,
    /// The text.
    pub text: String,
    /// Attached files.
    pub attachments: Vec<Attachment>,
    /// The agent that sent the message; `None` for a person.
    pub from: Option<Sender>,
    /// The form in which the client sent the message, if the other fields lose information.
    pub sent: Option<SentForm>,
}

impl UserMessage {
    /// Iterates over the linked files, which are stored elsewhere.
    pub fn links(&self) -> impl Iterator<Item = Link<'_>> {
        self.sent.iter().flat_map(SentForm::links)
    }
}

impl Message {
    /// Returns the `messageId` of a user message, the `responseId` of an assistant message.
    pub fn id(&self) -> String {
        match &self.content {
            Content::User(message) => message.id.to_string(),
            Content::Run(run) => run.id.to_string(),
            Content::Aside(_) => format!("n{}", self.first),
        }
    }

    /// Returns the run, if this is an assistant message.
    pub fn run(&self) -> Option<&RunMessage> {
        match &self.content {
            Content::Run(run) => Some(run),
            Content::User(_) | Content::Aside(_) => None,
        }
    }
}
