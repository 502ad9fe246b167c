//! Callers that wait for a reply of the session.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use session::{Answer, Command, Refused, ReplyId};
use tokio::sync::oneshot;

/// Channel for the reply to a caller.
pub(crate) type Reply = oneshot::Sender<Result<Answer, Refused>>;

/// Returns a new caller id that is unique in this process.
pub(crate) fn new_reply_id() -> ReplyId {
    static LAST: AtomicU64 = AtomicU64::new(0);
    ReplyId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

/// A command to a session, with the channel for its reply.
pub(crate) struct Envelope {
    pub(crate) command: Command,
    pub(crate) reply: Reply,
}

impl Envelope {
    pub(crate) fn refuse(self, why: Refused) {
        let _ = self.reply.send(Err(why));
    }

    pub(super) fn is_stop(&self) -> bool {
        matches!(self.command, Command::Stop { .. })
    }

    /// Replies that the command is done, without handling it.
    pub(super) fn confirm(self) {
        let _ = self.reply.send(Ok(Answer::Done));
    }
}

/// The callers that wait for replies of a session.
#[derive(Default)]
pub(super) struct Callers {
    waiting: HashMap<ReplyId, Reply>,
    /// Callers that wait for the outcome of a relayed tool call, which is cancelled when they
    /// disconnect.
    of_tools: HashSet<ReplyId>,
}

impl Callers {
    /// Adds the caller of a command and returns the command.
    pub(super) fn add(&mut self, envelope: Envelope) -> Command {
        let Envelope { command, reply } = envelope;
        let caller = command.caller();
        self.waiting.insert(caller, reply);
        if matches!(command, Command::CallTool { .. }) {
            self.of_tools.insert(caller);
        }
        command
    }

    pub(super) fn reply(&mut self, to: ReplyId, answer: Result<Answer, Refused>) {
        self.of_tools.remove(&to);
        if let Some(reply) = self.waiting.remove(&to) {
            // A caller that has disconnected needs no reply.
            let _ = reply.send(answer);
        }
    }

    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Refuses the commands of all callers that still wait.
    pub(super) fn refuse_all(&mut self, why: &Refused) {
        self.of_tools.clear();
        for (_, reply) in self.waiting.drain() {
            let _ = reply.send(Err(why.clone()));
        }
    }

    /// Waits until the caller of a relayed tool call has disconnected, and returns its id.
    pub(super) async fn next_gone(&mut self) -> ReplyId {
        poll_fn(|context| self.poll_gone(context)).await
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<ReplyId> {
        let is_gone = |it: &&ReplyId| {
            let reply = self.waiting.get_mut(it);
            reply.is_none_or(|it| it.poll_closed(context).is_ready())
        };
        let Some(gone) = self.of_tools.iter().find(is_gone).copied() else { return Poll::Pending };
        self.of_tools.remove(&gone);
        self.waiting.remove(&gone);
        Poll::Ready(gone)
    }
}
