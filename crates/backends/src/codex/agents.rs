//! Sub-agents of Codex: threads of their own, whose messages belong to the call that started them.
//!
//! Codex ends that call as soon as its agent has started; here it runs for as long as the agent is active.
//! Agents may outlive the turn: the run ends when none is active.

use serde_json::{Value, json};
use transcript::{CallId, ErrorCode, ErrorInfo, Level, Usage};

use super::author::{Author, Outcome};
use super::turn::{Run, awaits_person, spent};
use super::{Codex, Cx, Sent, failure};
use crate::program::MAX_AGENTS;

#[derive(Debug)]
pub(super) struct SubAgent {
    pub(super) thread: String,
    /// Codex's id of the sub-agent's turn. `None` while the sub-agent is idle.
    pub(super) turn: Option<String>,
    pub(super) author: Author,
    used: Usage,
    parent_call: ParentCall,
}

/// The tool call that a sub-agent of Codex works for.
#[derive(Debug)]
struct ParentCall {
    /// Thread of the sub-agent that made the tool call. `None` if Codex itself made it.
    thread: Option<String>,
    item: String,
}

impl Run {
    /// Adds the sub-agents that a tool call names: those that it has started, or those of an
    /// earlier run. `of` is the thread of the sub-agent that makes the call, `None` for Codex
    /// itself.
    pub(super) fn begin_agents(&mut self, of: Option<&str>, item: &Value) {
        let is_start = item["tool"] == "spawnAgent" || item["kind"] == "started";
        let named: Vec<&str> = match item["type"].as_str() {
            Some("collabAgentToolCall") => item["receiverThreadIds"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect(),
            Some("subAgentActivity") if is_start => {
                item["agentThreadId"].as_str().into_iter().collect()
            }
            _ => return,
        };
        let Some(id) = item["id"].as_str() else { return };
        for thread in named {
            if self.agents.iter().any(|it| it.thread == thread) {
                continue;
            }
            let Some(author) = self.author_mut(of) else { return };
            let Some(call) = author.open_call(id).map(|it| it.id.clone()) else { return };
            if is_start {
                author.hold(id);
            }
            let parent_call = ParentCall { thread: of.map(str::to_owned), item: id.to_owned() };
            self.add_agent(thread, call, parent_call);
        }
    }

    fn add_agent(&mut self, thread: &str, call: CallId, parent_call: ParentCall) {
        self.agents.push(SubAgent {
            thread: thread.to_owned(),
            turn: None,
            author: Author::within(call, &self.outer.workspace),
            used: Usage::default(),
            parent_call,
        });
    }

    /// Adds a sub-agent that works for this turn and that no tool call has named. A call that
    /// starts an agent names it at its end, which may be later; without such a call the agent gets
    /// a call of its own.
    fn adopt(&mut self, thread: &str, cx: &mut Cx) {
        if let Some((item, call)) = self.unassigned_spawn_call() {
            self.outer.hold(&item);
            return self.add_agent(thread, call, ParentCall { thread: None, item });
        }
        let item = format!("agent-{thread}");
        let Some(call) = self.outer.call(&item, "spawn_agent", &mut cx.out) else {
            return;
        };
        let call = call.id.clone();
        self.outer.set_arguments(&item, &json!({}), &mut cx.out);
        self.outer.running(&item, &mut cx.out);
        self.outer.hold(&item);
        let outcome = Outcome { ok: true, result: None, error: None, duration_ms: None };
        self.outer.finish_call(&item, outcome, &mut cx.out);
        self.add_agent(thread, call, ParentCall { thread: None, item });
    }

    /// Returns the item and the id of the oldest open tool call that starts a sub-agent and has
    /// none yet.
    fn unassigned_spawn_call(&mut self) -> Option<(String, CallId)> {
        let agents = &self.agents;
        let has_agent = |item: &str| {
            agents.iter().any(|it| it.parent_call.thread.is_none() && it.parent_call.item == item)
        };
        let mut calls = self.outer.open_calls().iter();
        let call = calls.find(|it| it.name == "spawn_agent" && !has_agent(&it.item))?;
        Some((call.item.clone(), call.id.clone()))
    }

    /// Drops the oldest sub-agents, idle ones first, if there are more than [`MAX_AGENTS`].
    pub(super) fn drop_excess_agents(&mut self, cx: &mut Cx) {
        while self.agents.len() > MAX_AGENTS {
            let idle = self.agents.iter().position(|it| it.turn.is_none());
            let mut agent = self.agents.remove(idle.unwrap_or(0));
            agent.author.finish_step(None, &mut cx.out);
            self.abandon(agent.parent_call.thread.as_deref(), &agent.parent_call.item, cx);
        }
    }

    pub(super) fn has_agents_at_work(&self) -> bool {
        self.agents.iter().any(|it| it.turn.is_some())
    }

    /// Handles the end of a sub-agent's turn, which also ends the tool call that it worked for.
    fn agent_turn_ended(&mut self, thread: &str, turn: &Value, cx: &mut Cx) {
        let Some(agent) = self.agents.iter_mut().find(|it| it.thread == thread) else { return };
        agent.turn = None;
        agent.author.finish_step(None, &mut cx.out);
        // Calls of a stopped run stay open: the end of the run closes them.
        if self.is_interrupted {
            return;
        }
        let (of, item) = (agent.parent_call.thread.clone(), agent.parent_call.item.clone());
        if let Some(author) = self.author_mut(of.as_deref()) {
            author.release(&item, |outcome| apply_turn_outcome(outcome, thread, turn), &mut cx.out);
        }
    }

    /// Ends the tool calls that are still held open for sub-agents, for instance because these
    /// never started. Does nothing in an interrupted run.
    pub(super) fn release_all(&mut self, cx: &mut Cx) {
        if self.is_interrupted {
            return;
        }
        self.outer.release_all(&mut cx.out);
        for agent in &mut self.agents {
            agent.author.release_all(&mut cx.out);
        }
    }
}

/// Changes the outcome of the tool call that started a sub-agent to that of the sub-agent's turn.
fn apply_turn_outcome(outcome: &mut Outcome, thread: &str, turn: &Value) {
    if let Some(state) = outcome.result.as_mut().and_then(|it| it.get_mut(thread)?.as_object_mut())
    {
        state.insert("status".to_owned(), turn["status"].clone());
    }
    let error = match turn["status"].as_str() {
        Some("failed") => failure::of_turn(&turn["error"]),
        Some("interrupted") => ErrorInfo::new(ErrorCode::ToolInterrupted, "The agent was stopped."),
        _ => return,
    };
    (outcome.ok, outcome.error) = (false, Some(error));
}

impl Codex {
    /// Handles a notification about a thread other than the session's own: a sub-agent's, or one to
    /// ignore.
    pub(super) fn handle_agent_notification(
        &mut self,
        method: &str,
        params: &Value,
        line: &str,
        cx: &mut Cx,
    ) {
        let (Some(run), Some(thread)) = (&mut self.run, params["threadId"].as_str()) else {
            return;
        };
        let turn = &params["turn"];
        let is_known = run.agents.iter().any(|it| it.thread == thread);
        if method == "turn/started" && !is_known {
            // A turn with another root belongs to another conversation.
            let root = turn["rootTurnId"].as_str();
            if root.is_some() && root == run.turn.as_deref() {
                run.adopt(thread, cx);
            }
        }
        let Some(agent) = run.agents.iter_mut().find(|it| it.thread == thread) else { return };
        match method {
            "turn/started" => {
                agent.turn = turn["id"].as_str().map(str::to_owned);
                self.interrupt_agents(cx);
            }
            "turn/completed" => {
                run.agent_turn_ended(thread, turn, cx);
                self.end_if_idle(cx);
            }
            "thread/status/changed" => {
                agent.author.awaits_decision = awaits_person(&params["status"])
            }
            "thread/tokenUsage/updated" => {
                let spent = spent(&mut agent.used, &params["tokenUsage"]);
                agent.author.model_call_ended(Some(spent), &mut cx.out);
            }
            "error" if params["willRetry"] != true => {
                let error = failure::of_turn(&params["error"]);
                cx.out.notice(
                    Level::Error,
                    format!("A sub-agent of Codex failed: {}", error.message),
                );
            }
            _ => {
                if !run.handle_notification(Some(thread), method, params, line, cx) {
                    cx.out.unrecognized(line);
                }
                self.end_if_idle(cx);
            }
        }
    }

    /// Asks Codex to interrupt all active sub-agents of an interrupted run, because they would
    /// outlive its turn.
    pub(super) fn interrupt_agents(&mut self, cx: &mut Cx) {
        let Some(run) = self.run.as_ref().filter(|it| it.is_interrupted) else { return };
        let at_work = run.agents.iter().filter_map(|it| Some((&it.thread, it.turn.as_ref()?)));
        let turns: Vec<Value> =
            at_work.map(|(thread, turn)| json!({ "threadId": thread, "turnId": turn })).collect();
        for params in turns {
            self.request("turn/interrupt", &params, Sent::Other, cx);
        }
    }
}
