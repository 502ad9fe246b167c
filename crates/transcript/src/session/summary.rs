//! The summary of a session: the fields of the session list, and the open work that a starting server
//! has to resume or end.
//!
//! Deltas never change a summary, so the store need not update it while a response streams.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    CallId, ClientTool, Decision, Direction, ErrorCode, ErrorInfo, Event, EventGroup, ExchangeId,
    ExchangeMode, ExchangeState, MessageId, MessageRole, Millis, Record, ResponseId, RunEvent,
    RunStatus, Scope, Sender, SessionId, SteerState,
};

/// The state of a session without its messages, as the store keeps it beside the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Id of the agent that the session talks to.
    pub agent: String,
    /// Title that a person gave to the session; `None` if nobody did. [`Summary::title`] returns
    /// the title to show.
    pub given_title: Option<String>,
    /// Beginning of the first user message, used as the title if a person gave none.
    pub first_words: Option<String>,
    /// Id of the message from which `first_words` was taken.
    pub titled_by: Option<MessageId>,
    /// Path of the folder that the log names last as the workspace, confirmed or not; see
    /// [`Summary::workspace`].
    #[serde(rename = "workspace")]
    pub named_workspace: Option<String>,
    /// Whether a user of this server chose the workspace. False for logs of earlier versions, which
    /// do not record it.
    pub workspace_confirmed: bool,
    /// Whether the session is archived.
    pub archived: bool,
    /// Time at which the session was created.
    pub created_at: Millis,
    /// Time of the last record that changed the summary, not counting `session_updated`.
    pub updated_at: Millis,
    /// Number of user messages and runs in the session, including superseded ones.
    pub message_count: u64,
    /// Id of the run that has started and not finished; `None` if no run is active.
    pub open_run: Option<ResponseId>,
    /// Ids of the tool calls of the open run that wait for a person's decision.
    pub open_approvals: BTreeSet<CallId>,
    /// Grants for this session: the text of each [`crate::GrantScope`] with the time of the
    /// decision. The time is zero for grants that earlier versions stored.
    #[serde(deserialize_with = "deserialize_granted")]
    pub granted: BTreeMap<String, Millis>,
    /// Whether the last finished run of the session failed.
    pub last_run_failed: bool,
    /// Number of messages in the session's queue.
    pub queued: u32,
    /// Whether a user message needs a run that has not started. Holding the queue resets it.
    pub unanswered: bool,
    /// The agent that sent the newest user message; `None` if a person sent it.
    pub from: Option<Sender>,
    /// Id of the newest user message; `None` if there is none.
    pub newest_message: Option<MessageId>,
    /// Tools that clients run themselves, by the message that offers them: the newest user message
    /// and the queued ones.
    pub client_tools: BTreeMap<MessageId, Vec<ClientTool>>,
    /// Exchanges that this session started and that have not ended, by their ids.
    pub open_exchanges: BTreeMap<ExchangeId, OpenExchange>,
    /// Sum of the total tokens of all finished runs that reported their usage.
    pub total_tokens: u64,
    /// Sum of the cost in US dollars of all finished runs that reported it.
    pub total_cost: f64,
    /// The conversation that the agent's program keeps, for resuming it; `None` if there is none to
    /// resume.
    pub linked: Option<AgentLink>,
    /// The failed attempts to resume the program's own conversation.
    pub resuming: Resuming,
}

/// Count of the runs in which a restarted program failed to continue its own conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resuming {
    /// Number of runs in which the program exited before its first step, since it last completed a
    /// run or reported its conversation.
    pub failed: u32,
    /// Whether the program has started a step in the newest run.
    has_spoken: bool,
    /// Whether the newest run recorded that its agent ended, in contrast to one whose agent never
    /// started.
    has_ended: bool,
}

/// The conversation that the agent's program keeps, from the newest `agent_linked` event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentLink {
    /// The program's own id for its conversation.
    pub cli_session_id: String,
    /// Version of the program; `None` if unknown.
    pub version: Option<String>,
    /// Working directory to which the program's conversation belongs; `None` if unknown.
    #[serde(default)]
    pub cwd: Option<String>,
}

/// An exchange that this session started and that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenExchange {
    /// Id of the run that sent the message; `None` if it belongs to no run.
    pub response_id: Option<ResponseId>,
    /// Id of the agent that the message was sent to.
    pub agent: String,
    /// Whether the run that sent the message waits for the reply.
    pub mode: ExchangeMode,
    /// Number of messages between agents since a person's last message; see [`Sender::depth`].
    pub depth: u32,
    /// Id of the receiver's session; `None` if there is none.
    pub peer_session_id: Option<SessionId>,
    /// Progress on the receiving side, as last reported; `None` before the first report.
    pub state: Option<ExchangeState>,
}

impl OpenExchange {
    /// Returns the event that ends this exchange with its reply, or with the reason why there is
    /// none. `run` is the id of the receiver's run, if it is to be named.
    pub fn end(
        self,
        id: ExchangeId,
        run: Option<ResponseId>,
        outcome: Result<String, ErrorInfo>,
    ) -> RunEvent {
        let end = Event::AgentCallbackResult {
            exchange_id: id,
            direction: Direction::Sent,
            agent: self.agent,
            peer_session_id: self.peer_session_id,
            peer_response_id: run,
            ok: outcome.is_ok(),
            result: outcome.as_ref().ok().map(|it| it.as_str().into()),
            error: outcome.err(),
        };
        (self.response_id, end)
    }
}

/// The state of a session, derived from its runs and open approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// No run of the session is active, and the last one did not fail.
    Idle,
    /// A run of the session is active.
    Running,
    /// The active run waits for a person's decision about a tool call.
    Waiting,
    /// No run of the session is active, and the last one failed.
    Failed,
}

/// Maximum length in characters of a title that is taken from a message.
const TITLE_CHARS: usize = 200;

impl Summary {
    /// Returns the title of the session to show: the given title, the beginning of the first user
    /// message, or `New session`.
    pub fn title(&self) -> &str {
        let title = self.given_title.as_deref().or(self.first_words.as_deref());
        title.unwrap_or("New session")
    }

    /// Returns the path of the workspace if a user of this server chose it.
    pub fn workspace(&self) -> Option<&str> {
        self.named_workspace.as_deref().filter(|_| self.workspace_confirmed)
    }

    /// Returns the path of the workspace that the log names but no user of this server has
    /// confirmed. It is not used until a person confirms it.
    pub fn suggested_workspace(&self) -> Option<&str> {
        self.named_workspace.as_deref().filter(|_| !self.workspace_confirmed)
    }

    /// Returns the state of the session, derived from its runs and open approvals.
    pub fn state(&self) -> SessionState {
        match (&self.open_run, self.open_approvals.is_empty()) {
            (Some(_), false) => SessionState::Waiting,
            (Some(_), true) => SessionState::Running,
            (None, _) if self.last_run_failed => SessionState::Failed,
            (None, _) => SessionState::Idle,
        }
    }

    /// Returns the tools that the client of the newest user message runs itself.
    pub fn newest_client_tools(&self) -> &[ClientTool] {
        let newest = self.newest_message.as_ref();
        newest.and_then(|it| self.client_tools.get(it)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether the active run needs a person's decision to continue: about a tool call of
    /// its own, or of another agent whose reply it waits for.
    pub fn waits_for_person(&self) -> bool {
        let is_held_up = |it: &OpenExchange| {
            it.mode == ExchangeMode::Sync && it.state == Some(ExchangeState::AwaitingApproval)
        };
        self.open_run.is_some()
            && (!self.open_approvals.is_empty() || self.open_exchanges.values().any(is_held_up))
    }

    /// Applies one record of the session's log. Returns whether anything but `updated_at` changed.
    ///
    /// Renaming or archiving a session does not change `updated_at`.
    pub fn apply(&mut self, record: &Record) -> bool {
        let changed = self.apply_event(record);
        if changed && !matches!(record.event, Event::SessionUpdated { .. }) {
            self.updated_at = record.at;
        }
        changed
    }

    fn apply_event(&mut self, record: &Record) -> bool {
        match record.event.group() {
            EventGroup::Session => self.apply_session_event(record),
            EventGroup::Queue => self.apply_queue_event(&record.event),
            EventGroup::Run => self.apply_run_event(record),
            EventGroup::Call => self.apply_call_event(record),
            EventGroup::Exchange => self.apply_exchange_event(record),
            EventGroup::Part | EventGroup::Other => false,
        }
    }

    fn apply_session_event(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::SessionCreated { agent, workspace, workspace_confirmed, title } => {
                self.agent.clone_from(agent);
                self.name_workspace(workspace.as_ref(), *workspace_confirmed);
                self.given_title.clone_from(title);
                self.created_at = record.at;
            }
            Event::SessionUpdated { agent, workspace, workspace_confirmed, title, archived } => {
                // Another agent cannot resume this one's conversation.
                if agent.as_ref().is_some_and(|it| *it != self.agent) {
                    self.linked = None;
                    self.resuming = Resuming::default();
                }
                self.agent = agent.clone().unwrap_or_else(|| self.agent.clone());
                self.name_workspace(workspace.as_ref(), *workspace_confirmed);
                if let Some(title) = title {
                    // A blank title takes the given one back.
                    self.given_title = Some(title.clone()).filter(|it| !it.trim().is_empty());
                }
                self.archived = archived.unwrap_or(self.archived);
            }
            Event::UserMessage { message_id, role, text, from, .. } => {
                self.message_count += 1;
                // Instructions want no answer, and say nothing of what is talked about.
                let is_instruction = *role == MessageRole::System;
                self.unanswered |= !is_instruction;
                self.from.clone_from(from);
                if let Some(before) = self.newest_message.replace(message_id.clone()) {
                    self.client_tools.remove(&before);
                }
                if self.first_words.is_none() && !is_instruction {
                    self.first_words = first_words(text);
                    self.titled_by = self.first_words.is_some().then(|| message_id.clone());
                }
            }
            Event::AgentLinked { cli_session_id, version, cwd } => {
                let (cli_session_id, version) = (cli_session_id.clone(), version.clone());
                self.linked = Some(AgentLink { cli_session_id, version, cwd: cwd.clone() });
                self.resuming = Resuming { has_spoken: true, ..Resuming::default() };
            }
            Event::GrantRevoked { scope: Scope::Session, covers, .. } => {
                return self.granted.remove(covers).is_some();
            }
            // The message that the title was taken from is superseded.
            Event::HistoryRewound { before_message_id, .. }
                if self.titled_by.as_ref().is_some_and(|it| it.as_str() == before_message_id) =>
            {
                (self.first_words, self.titled_by) = (None, None);
            }
            _ => return false,
        }
        true
    }

    fn apply_queue_event(&mut self, event: &Event) -> bool {
        match event {
            Event::MessageQueued { .. } => self.queued += 1,
            Event::MessageDequeued { .. } => self.queued = self.queued.saturating_sub(1),
            Event::MessageDropped { message_id, .. } => self.unqueue(message_id),
            Event::ClientTools { message_id, tools } => {
                self.client_tools.insert(message_id.clone(), tools.clone());
            }
            // A held queue also holds a message whose run has not started.
            Event::QueueHeld { .. } => return std::mem::take(&mut self.unanswered),
            _ => return false,
        }
        true
    }

    fn apply_run_event(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::RunStart { .. } => {
                self.message_count += 1;
                self.open_run.clone_from(&record.response_id);
                self.open_approvals.clear();
                self.unanswered = false;
                (self.resuming.has_spoken, self.resuming.has_ended) = (false, false);
            }
            Event::StepStart { .. } => {
                return !std::mem::replace(&mut self.resuming.has_spoken, true);
            }
            Event::Continuation { .. } => {
                return !std::mem::replace(&mut self.resuming.has_ended, true);
            }
            Event::MessageSteered { message_id, state: SteerState::HandedOver, .. } => {
                self.unqueue(message_id);
            }
            Event::RunFinish { status, usage, cost, error, .. } => {
                let has_exited = error.as_ref().is_some_and(|it| it.code == ErrorCode::AgentExited);
                self.resuming.run_ended(*status, has_exited);
                let tokens = usage.map_or(0, |it| it.total_tokens);
                self.total_tokens = self.total_tokens.saturating_add(tokens);
                self.total_cost += cost.unwrap_or_default();
                self.open_run = None;
                self.open_approvals.clear();
                self.last_run_failed = *status == RunStatus::Failed;
            }
            _ => return false,
        }
        true
    }

    fn apply_call_event(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::ToolApprovalRequested { call_id, .. } => {
                self.open_approvals.insert(call_id.clone());
            }
            Event::ToolApprovalResolved { call_id, decision, scope, covers, .. } => {
                self.open_approvals.remove(call_id);
                let holds_on = (*decision, *scope) == (Decision::Accepted, Some(Scope::Session));
                let covers = covers.clone().filter(|_| holds_on);
                self.granted.extend(covers.map(|it| (it, record.at)));
            }
            _ => return false,
        }
        true
    }

    fn apply_exchange_event(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::AgentMessage {
                exchange_id,
                direction: Direction::Sent,
                agent,
                mode,
                depth,
                peer_session_id,
                ..
            } => {
                let exchange = OpenExchange {
                    response_id: record.response_id.clone(),
                    agent: agent.clone(),
                    mode: *mode,
                    depth: *depth,
                    peer_session_id: peer_session_id.clone(),
                    state: None,
                };
                self.open_exchanges.insert(exchange_id.clone(), exchange);
            }
            Event::AgentProgress { exchange_id, state } => {
                let Some(exchange) = self.open_exchanges.get_mut(exchange_id) else {
                    return false;
                };
                exchange.state = Some(*state);
            }
            Event::AgentCallbackResult { exchange_id, .. } => {
                return self.open_exchanges.remove(exchange_id).is_some();
            }
            _ => return false,
        }
        true
    }

    fn unqueue(&mut self, message: &MessageId) {
        self.queued = self.queued.saturating_sub(1);
        self.client_tools.remove(message);
    }

    /// Sets the workspace that the log names. A suggestion never replaces a confirmed workspace.
    fn name_workspace(&mut self, workspace: Option<&String>, is_confirmed: bool) {
        let Some(workspace) = workspace.filter(|_| is_confirmed || !self.workspace_confirmed)
        else {
            return;
        };
        // A program finds its conversation only in the folder in which it was started.
        let is_elsewhere = |it: &AgentLink| it.cwd.as_ref().is_some_and(|cwd| cwd != workspace);
        if self.linked.as_ref().is_some_and(is_elsewhere) {
            self.linked = None;
            self.resuming = Resuming::default();
        }
        self.named_workspace = Some(workspace.clone());
        self.workspace_confirmed = is_confirmed;
    }
}

impl Resuming {
    fn run_ended(&mut self, status: RunStatus, has_exited: bool) {
        match status {
            RunStatus::Completed => self.failed = 0,
            RunStatus::Failed if has_exited && self.has_ended && !self.has_spoken => {
                self.failed = self.failed.saturating_add(1);
            }
            RunStatus::Failed | RunStatus::Cancelled => (),
        }
    }
}

/// Deserializes the grants of a session; accepts the list without times that earlier versions
/// stored.
fn deserialize_granted<'de, D: Deserializer<'de>>(
    stored: D,
) -> Result<BTreeMap<String, Millis>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        WithTimes(BTreeMap<String, Millis>),
        List(Vec<String>),
    }
    Ok(match Stored::deserialize(stored)? {
        Stored::WithTimes(granted) => granted,
        Stored::List(list) => list.into_iter().map(|it| (it, Millis::default())).collect(),
    })
}

/// Returns the beginning of a message for its use as a title: the first line that is not blank, cut
/// to the maximum length, after a word if possible. `None` if the message is blank.
fn first_words(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let Some((end, _)) = line.char_indices().nth(TITLE_CHARS) else { return Some(line.to_owned()) };
    let cut = &line[..end];
    let words = cut.rsplit_once(char::is_whitespace).map_or(cut, |(words, _)| words.trim_end());
    Some(format!("{words}…"))
}
