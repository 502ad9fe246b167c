//! The AG-UI protocol for one request: a run as server-sent events, after a beginning that depends on the
//! messages that the client has.

use formats::agui::{Stream, Version, messages, snapshots};
use serde_json::Value;
use store::Window;
use transcript::{Attachment, ResponseId, Seq, Transcript};

use crate::compat::{Conversation, Protocol};
use crate::error::HttpError;
use runtime::live::window;

pub(super) struct AgUi {
    pub(super) conversation: Conversation,
    /// Host under which the AG-UI client reaches the server, for the URLs of files.
    pub(super) host: String,
    /// Id that the AG-UI client gave the run.
    pub(super) run: String,
    pub(super) version: Version,
    /// Ids of the messages that the AG-UI client has.
    pub(super) known: Vec<String>,
    pub(super) reason: Reason,
}

/// Reason why an AG-UI client requests a run.
pub(super) enum Reason {
    /// The client begins a conversation. The session is new, so the client has all earlier
    /// messages.
    NewConversation,
    NewMessage,
    /// The client submits results of tool calls, or decisions about them.
    Resume,
    /// The client reconnects and needs the current state.
    Rejoin,
}

impl Protocol for AgUi {
    type Encoder = Stream;

    async fn encoder(&self, run: ResponseId) -> Result<Stream, HttpError> {
        let mut stream = Stream::new(run.clone(), self.conversation.session.as_str(), &self.run);
        match &self.reason {
            Reason::NewConversation | Reason::Resume => (),
            Reason::NewMessage => {
                if let Some(all) = self.unknown(&run).await? {
                    stream.open_with(snapshots(&self.known, all));
                }
            }
            Reason::Rejoin => {
                let earlier = self.earlier(self.start_of(&run).await?).await?;
                stream.rejoin(self.known.clone(), earlier);
            }
        }
        Ok(stream)
    }
}

/// Number of messages before a run that are compared with the messages of the AG-UI client. The
/// last message that the client has received is among them, unless more notices followed.
const LOOK_BACK: usize = 10;

impl AgUi {
    /// Returns the number of the record before the run's first record; 0 if the session has no such
    /// run.
    async fn start_of(&self, run: &ResponseId) -> Result<Seq, HttpError> {
        Ok(self.conversation.find_run(run).await?.map_or(Seq(0), |it| it.after))
    }

    /// Returns all messages before the run in AG-UI's format; `None` if the client has the last of
    /// them.
    async fn unknown(&self, run: &ResponseId) -> Result<Option<Vec<Value>>, HttpError> {
        let up_to = self.start_of(run).await?;
        let window = Window { before: Some(up_to.next()), limit: LOOK_BACK };
        let Conversation { server, session } = &self.conversation;
        let found = window::read_whole(&server.store, session, window).await?;
        let found = found.map(|it| self.messages(&it.transcript)).unwrap_or_default();
        let ends: Vec<Option<&str>> =
            found.iter().rev().take(2).map(|it| it["id"].as_str()).collect();
        let known: Vec<Option<&str>> =
            self.known.iter().rev().take(2).map(|it| Some(it.as_str())).collect();
        if ends == known { Ok(None) } else { self.earlier(up_to).await.map(Some) }
    }

    async fn earlier(&self, up_to: Seq) -> Result<Vec<Value>, HttpError> {
        let Conversation { server, session } = &self.conversation;
        let read = window::read_all(&server.store, session, Some(up_to), Transcript::whole());
        Ok(read.await?.map(|it| self.messages(&it)).unwrap_or_default())
    }

    fn messages(&self, transcript: &Transcript) -> Vec<Value> {
        let file_url =
            |file: &Attachment| self.conversation.server.hosts.file_url(&self.host, file);
        let shown = transcript.messages.iter().filter(|it| !it.superseded);
        shown.flat_map(|it| messages(it, self.version, &file_url)).collect()
    }
}
