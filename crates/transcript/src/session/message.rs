//! Messages of a session, as a reader sees them. Filled in by the reducer, see `transcript.rs`.

use crate::{
    Attachment, ClientId, Link, MessageId, MessageRole, Millis, PartKind, RunMessage, Sender,
    SentForm, Seq,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The record that made it.
    pub first: Seq,
    /// The record that changed it last.
    pub changed: Seq,
    pub created_at: Millis,
    /// The history was rewound to before it: shown behind a link, absent from history.
    pub superseded: bool,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    User(UserMessage),
    Run(Box<RunMessage>),
    /// Something that happened outside any run, in its place.
    Aside(PartKind),
}

/// From a person, or from another agent.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    pub id: MessageId,
    pub client_id: Option<ClientId>,
    pub role: MessageRole,
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub from: Option<Sender>,
    pub sent: Option<SentForm>,
}

impl UserMessage {
    /// Files that are elsewhere.
    pub fn links(&self) -> impl Iterator<Item = Link<'_>> {
        self.sent.iter().flat_map(SentForm::links)
    }
}

impl Message {
    /// A user message's messageId, an assistant message's responseId.
    pub fn id(&self) -> String {
        match &self.content {
            Content::User(said) => said.id.to_string(),
            Content::Run(answer) => answer.id.to_string(),
            Content::Aside(_) => format!("n{}", self.first),
        }
    }

    pub fn run(&self) -> Option<&RunMessage> {
        match &self.content {
            Content::Run(answer) => Some(answer),
            Content::User(_) | Content::Aside(_) => None,
        }
    }
}
