//! Compatibility APIs: what third-party clients may do, independent of the wire format.
//!
//! The conversation's id is the session's id, and the log is authoritative: of the messages that a client
//! sends, only the last ones are new. A response covers a run until the client has to act. A client that
//! disconnects does not stop the run, and can reconnect.

pub(crate) mod agui;
pub(crate) mod chat;
mod incoming;
mod run_response;
pub(crate) mod v1;

use std::collections::HashSet;
use std::sync::Arc;

use backends::ToolOutcome;
use formats::incoming::{BadRequest, Decided, IncomingMessage, Known};
use runtime::agents::tool_catalog::{failed, tool_error};
use store::{MessageKind, Store};
use transcript::{
    Attachment, CallId, ClientId, ClientTool, Event, MessageId, ResponseId, Scope, SendMode,
    SentForm, Seq, SessionId,
};

use crate::auth::hosts::Hosts;
use crate::error::{HttpError, RequestCode};
use crate::listener::StopSignal;
use runtime::agents::AgentCatalog;
use runtime::live::hub::Hub;
use runtime::live::record_stream::Records;
use runtime::{Sessions, import};
use session::{
    AnswerType, Answered, Approval, Command, MessageState, NewMessage, Refused, ReplyTo,
};

pub(crate) use incoming::{
    CompatBody, Import, IncomingConversation, NewConversation, create_session,
    find_or_create_session, path_parameters, session_exists,
};
pub(crate) use run_response::{Protocol, RunResponse, streamed};

use run_response::RunPosition;

/// A new message that a client of a compatibility API sends.
pub(crate) struct Submission {
    pub(crate) message: IncomingMessage,
    /// Id of the earlier message that the new message replaces; `None` if it replaces none.
    pub(crate) replaces: Option<MessageId>,
    /// Tools that the client offers to the agent and runs itself.
    pub(crate) tools: Vec<ClientTool>,
}

/// Result of applying a client's decisions about tool calls.
#[derive(Default)]
pub(crate) struct Decisions {
    /// Ids of the tool calls that are decided by now, by this client or another.
    pub(crate) calls: HashSet<CallId>,
    /// Whether the client sent a decision that was applied or had already been made. False if it
    /// only repeats results that it has received.
    pub(crate) has_decided: bool,
}

/// The last message in a session that a user sent.
pub(crate) struct LastUserMessage {
    pub(crate) first: Seq,
    pub(crate) text: String,
    pub(crate) client_id: Option<ClientId>,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) sent: Option<SentForm>,
}

/// The parts of the server that compatibility APIs use.
#[derive(Clone)]
pub(crate) struct CompatState {
    pub(crate) store: Store,
    pub(crate) hub: Arc<Hub>,
    pub(crate) sessions: Sessions,
    pub(crate) agents: AgentCatalog,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) stop: StopSignal,
}

/// A session, as a client of a compatibility API uses it.
#[derive(Clone)]
pub(crate) struct Conversation {
    pub(crate) server: CompatState,
    pub(crate) session: SessionId,
}

impl Conversation {
    /// Submits a message to the session and responds with the answer.
    pub(crate) async fn submit<P: Protocol>(
        self,
        submission: Submission,
        protocol: P,
    ) -> Result<RunResponse<P>, HttpError> {
        let Submission { message, replaces, tools: client_tools } = submission;
        let IncomingMessage { id, text, files, sent } = message;
        let mut attachments = Vec::new();
        for file in &files {
            attachments.push(import::attach(&self.server.store, file).await?);
        }
        let client_id = id.map(ClientId::new);
        let (mode, from) = (SendMode::Queue, None);
        let message = NewMessage { text, client_id, attachments, mode, from, client_tools, sent };
        let head = self.server.store.head(&self.session).await?.unwrap_or(Seq(0));
        let receipt = match replaces {
            Some(earlier) => self.ask(|reply| Command::Edit { earlier, message, reply }).await?,
            None => self.server.sessions.send(&self.session, message).await?,
        };
        let row = self.server.store.message_row(&self.session, receipt.message_id.as_str()).await?;
        let after = match (row, receipt.state) {
            (Some(row), _) => row.first.before(),
            (None, MessageState::Queued | MessageState::Steering) => head,
            // A repeated request for a message that was removed or steered a run.
            (None, MessageState::Started | MessageState::HandedOver) => return Err(nothing_to_do()),
        };
        RunResponse::of_answer(self, receipt.message_id, after, protocol).await
    }

    /// Applies the decisions of a client about tool calls and the results of tool calls that it has
    /// run, and responds with the rest of their run.
    pub(crate) async fn resume<P: Protocol>(
        self,
        decided: Vec<Decided>,
        known: &Known,
        protocol: P,
    ) -> Result<RunResponse<P>, HttpError> {
        let Decisions { calls, .. } = self.decide(decided).await?;
        self.resume_run_of(&calls, known, protocol).await
    }

    pub(crate) async fn decide(&self, decided: Vec<Decided>) -> Result<Decisions, HttpError> {
        let mut decisions = Decisions::default();
        for decided in decided {
            let (call, command) = self.apply_decision(decided).await;
            match command {
                Ok(()) | Err(Refused::Decided { .. }) => decisions.has_decided = true,
                Err(Refused::NotAwaited(_)) => (),
                Err(Refused::NoCall(_)) => continue,
                Err(refused) => return Err(refused.into()),
            }
            decisions.calls.insert(call);
        }
        Ok(decisions)
    }

    /// Applies the decisions about tool calls that accompany a message, so that the message does
    /// not wait for them. A client repeats all decisions about its last answer; only the active run
    /// can wait for any of them.
    pub(crate) async fn apply_piggybacked_decisions(
        &self,
        mut decided: Vec<Decided>,
    ) -> Result<(), HttpError> {
        let Some(run) = self.open_run().await? else { return Ok(()) };
        decided.retain(|it| CallId::new(it.call()).run().as_ref() == Some(&run));
        self.decide(decided).await.map(drop)
    }

    /// Submits the results of tool calls to their run. Returns `None` if the run does not wait for
    /// all of them, because another request was faster or the run has ended.
    pub(crate) async fn give_results(
        &self,
        results: Vec<Decided>,
    ) -> Result<Option<HashSet<CallId>>, HttpError> {
        let mut calls = HashSet::new();
        for result in results {
            match self.apply_decision(result).await {
                (call, Ok(())) => drop(calls.insert(call)),
                (_, Err(Refused::Decided { .. } | Refused::NotAwaited(_) | Refused::NoCall(_))) => {
                    return Ok(None);
                }
                (_, Err(refused)) => return Err(refused.into()),
            }
        }
        Ok(Some(calls))
    }

    /// Responds with the run of these tool calls: first with the parts that the client does not
    /// have, and then with live events.
    pub(crate) async fn resume_run_of<P: Protocol>(
        self,
        calls: &HashSet<CallId>,
        known: &Known,
        protocol: P,
    ) -> Result<RunResponse<P>, HttpError> {
        let run = run_of_calls(calls).ok_or_else(nothing_to_do)?;
        let position = self.find_run(&run).await?.ok_or_else(nothing_to_do)?;
        RunResponse::of_run(self, position, Some(known), protocol).await
    }

    /// Responds with a run of the session from its beginning, and then with live events.
    pub(crate) async fn stream_run<P: Protocol>(
        self,
        run: &ResponseId,
        protocol: P,
    ) -> Result<RunResponse<P>, HttpError> {
        let position = self.find_run(run).await?.ok_or_else(nothing_to_do)?;
        RunResponse::of_run(self, position, None, protocol).await
    }

    pub(crate) async fn last_user_message(&self) -> Result<Option<LastUserMessage>, HttpError> {
        let records = self.server.store.records_of_last(&self.session, MessageKind::Said).await?;
        Ok(records.iter().map(store::Stored::record).find_map(|it| match it.event {
            Event::UserMessage { text, client_id, attachments, sent, .. } => {
                Some(LastUserMessage { first: it.seq, text, client_id, attachments, sent })
            }
            _ => None,
        }))
    }

    /// Returns the id of the session's active run; `None` if no run is active.
    pub(crate) async fn open_run(&self) -> Result<Option<ResponseId>, HttpError> {
        let found = self.server.store.summary(&self.session).await?;
        Ok(found.and_then(|(summary, _)| summary.open_run))
    }

    pub(crate) async fn find_run(
        &self,
        run: &ResponseId,
    ) -> Result<Option<RunPosition>, HttpError> {
        let row = self.server.store.message_row(&self.session, run.as_str()).await?;
        let row = row.filter(|it| it.kind == MessageKind::Answer);
        Ok(row.map(|it| RunPosition { id: run.clone(), after: it.first.before() }))
    }

    /// Sends a command to the session and waits for the reply.
    pub(crate) async fn ask<T: AnswerType>(
        &self,
        command: impl FnOnce(ReplyTo<T>) -> Command,
    ) -> Result<T, Refused> {
        self.server.sessions.ask(&self.session, command).await
    }

    fn feed(&self, after: Seq) -> Records {
        Records::after(&self.server.store, &self.server.hub, &self.session, after)
    }

    /// Returns whether a queued message is held now. The records about it may be outdated.
    async fn is_held(&self, message: &MessageId) -> Result<bool, HttpError> {
        let queue = self.server.store.queue(&self.session).await?;
        Ok(queue.messages.iter().any(|it| it.id == *message && it.held))
    }

    async fn apply_decision(&self, decided: Decided) -> (CallId, Result<(), Refused>) {
        let (call, outcome) = match decided {
            Decided::Approval { call, approved, reason, arguments } => {
                let call_id = CallId::new(call);
                let arguments = arguments.map(|it| it.to_string());
                let answer = if approved {
                    Answered::Accepted { scope: Scope::Once, arguments }
                } else {
                    Answered::Rejected
                };
                let by = "user".to_owned();
                let approval = Approval { call_id: call_id.clone(), answer, feedback: reason, by };
                let result = self.ask(|reply| Command::Approve { approval, reply }).await;
                return (call_id, result);
            }
            Decided::Output { call, output } => {
                (call, ToolOutcome { ok: true, result: output, error: None })
            }
            Decided::Error { call, error } => (call, failed(tool_error(error))),
        };
        let call_id = CallId::new(call);
        let given = call_id.clone();
        (given, self.ask(|reply| Command::GiveResult { call_id, outcome, reply }).await)
    }
}

/// Returns the run of the tool calls that a client decides about. If they belong to several runs,
/// the client has repeated earlier decisions, and the last run counts.
pub(crate) fn run_of_calls(calls: &HashSet<CallId>) -> Option<ResponseId> {
    calls.iter().filter_map(CallId::run).max()
}

/// Returns the session in which the run of a tool call is active; `None` if the run is not active.
pub(crate) async fn session_of(
    store: &Store,
    call: &CallId,
) -> Result<Option<SessionId>, HttpError> {
    let Some(run) = call.run() else { return Ok(None) };
    let mut active = store.needing_attention().await?.into_iter();
    Ok(active.find(|(_, summary, _)| summary.open_run.as_ref() == Some(&run)).map(|it| it.0))
}

pub(crate) fn nothing_to_do() -> HttpError {
    HttpError::new(RequestCode::NothingToDo, "there is nothing to answer or to continue")
}

impl From<BadRequest> for HttpError {
    fn from(why: BadRequest) -> Self {
        let error = Self::invalid(why.to_string());
        match why.param {
            Some(param) => error.about(param),
            None => error,
        }
    }
}
