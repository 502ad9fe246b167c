//! A session in one row: what the list shows, and what a starting server must look after.
//!
//! Deltas never change it, so keeping it in the store costs nothing while a reply streams.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{CallId, Decision, Event, Millis, Record, ResponseId, RunStatus, Scope};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    pub agent: String,
    /// As given; see [`Summary::title`] for what to show.
    pub given_title: Option<String>,
    pub first_words: Option<String>,
    pub workspace: Option<String>,
    pub archived: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
    pub message_count: u64,
    /// The run that has begun and not finished.
    pub open_run: Option<ResponseId>,
    /// Calls of the open run that wait for a person.
    pub open_approvals: BTreeSet<CallId>,
    /// What a person has allowed for the whole session.
    pub granted: BTreeSet<String>,
    pub last_run_failed: bool,
    /// Messages that were accepted and wait for their run.
    pub queued: u32,
    /// The newest message has no run yet.
    pub unanswered: bool,
    /// Of all runs that have said so.
    pub total_tokens: u64,
    /// Where the agent is a program: its own conversation, to go on with.
    pub linked: Option<Linked>,
}

/// What the newest `agent_linked` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Linked {
    pub cli_session_id: String,
    pub version: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    Idle,
    Running,
    /// For a person's decision.
    Waiting,
    Failed,
}

const TITLE_CHARS: usize = 50;

impl Summary {
    pub fn title(&self) -> &str {
        let title = self.given_title.as_deref().or(self.first_words.as_deref());
        title.unwrap_or("New session")
    }

    pub fn state(&self) -> SessionState {
        match (&self.open_run, self.open_approvals.is_empty()) {
            (Some(_), false) => SessionState::Waiting,
            (Some(_), true) => SessionState::Running,
            (None, _) if self.last_run_failed => SessionState::Failed,
            (None, _) => SessionState::Idle,
        }
    }

    /// Takes in one record; true if anything but the time of the last change is different now.
    pub fn apply(&mut self, record: &Record) -> bool {
        let changed = self.take_in(record);
        if changed {
            self.updated_at = record.at;
        }
        changed
    }

    fn take_in(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::SessionCreated { agent, workspace, title } => {
                self.agent.clone_from(agent);
                self.workspace.clone_from(workspace);
                self.given_title.clone_from(title);
                self.created_at = record.at;
            }
            Event::SessionUpdated { agent, workspace, title, archived } => {
                // Another agent knows nothing of this one's conversation.
                if agent.as_ref().is_some_and(|it| *it != self.agent) {
                    self.linked = None;
                }
                self.agent = agent.clone().unwrap_or_else(|| self.agent.clone());
                self.workspace = workspace.clone().or_else(|| self.workspace.take());
                self.given_title = title.clone().or_else(|| self.given_title.take());
                self.archived = archived.unwrap_or(self.archived);
            }
            Event::UserMessage { text, .. } => {
                self.message_count += 1;
                self.unanswered = true;
                if self.first_words.is_none() {
                    self.first_words = first_words(text);
                }
            }
            Event::MessageQueued { .. } => self.queued += 1,
            Event::MessageDequeued { .. } | Event::MessageDropped { .. } => {
                self.queued = self.queued.saturating_sub(1);
            }
            Event::MessageSteered { state: crate::SteerState::HandedOver, .. } => {
                self.queued = self.queued.saturating_sub(1);
            }
            Event::RunStart { .. } => {
                self.message_count += 1;
                self.open_run.clone_from(&record.response_id);
                self.open_approvals.clear();
                self.unanswered = false;
            }
            Event::ToolApprovalRequested { call_id, .. } => {
                self.open_approvals.insert(call_id.clone());
            }
            Event::ToolApprovalResolved { call_id, decision, scope, covers, .. } => {
                self.open_approvals.remove(call_id);
                let holds_on = (*decision, *scope) == (Decision::Accepted, Some(Scope::Session));
                self.granted.extend(covers.clone().filter(|_| holds_on));
            }
            Event::RunFinish { status, usage, .. } => {
                let tokens = usage.map_or(0, |it| it.total_tokens);
                self.total_tokens = self.total_tokens.saturating_add(tokens);
                self.open_run = None;
                self.open_approvals.clear();
                self.last_run_failed = *status == RunStatus::Failed;
            }
            Event::AgentLinked { cli_session_id, version, .. } => {
                let (cli_session_id, version) = (cli_session_id.clone(), version.clone());
                self.linked = Some(Linked { cli_session_id, version });
            }
            Event::MessageEdited { .. }
            | Event::MessageMoved { .. }
            | Event::MessageSteered { .. }
            | Event::QueueHeld { .. }
            | Event::QueueReleased {}
            | Event::HistoryRewound { .. }
            | Event::StepStart { .. }
            | Event::StepFinish { .. }
            | Event::TextStart { .. }
            | Event::TextDelta { .. }
            | Event::TextDone { .. }
            | Event::ThinkingStart { .. }
            | Event::ThinkingDelta { .. }
            | Event::ThinkingDone { .. }
            | Event::ToolCallStart { .. }
            | Event::ToolArgumentsDelta { .. }
            | Event::ToolArgumentsDone { .. }
            | Event::ToolRunning { .. }
            | Event::ToolOutputDelta { .. }
            | Event::ToolRetry { .. }
            | Event::ToolResult { .. }
            | Event::Continuation { .. }
            | Event::Notice { .. }
            | Event::CancelRequested { .. }
            | Event::OutputCancelled { .. }
            | Event::AgentMessage { .. }
            | Event::AgentCallbackResult { .. }
            | Event::Unrecognized { .. }
            | Event::Other(_) => return false,
        }
        true
    }
}

/// The first line that says something, cut to the length of a title.
fn first_words(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut words: String = line.chars().take(TITLE_CHARS).collect();
    if words.len() < line.len() {
        words.push('…');
    }
    Some(words)
}
