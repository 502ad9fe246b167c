//! A run of Codex, which is one turn, and its notifications.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use transcript::{ErrorInfo, Level, RunStatus, Usage};

use super::agents::SubAgent;
use super::author::{Author, Call};
use super::items::{TEXT, fields};
use super::{Codex, Cx, END_TIMEOUT_MS, Link, Sent, failure, items, notices, wire};
use crate::emitter::Emitter;

/// Maximum number of notifications that are buffered before the id of the turn is known.
const EARLY: usize = 1024;

#[derive(Debug)]
pub(super) struct Run {
    pub(super) outer: Author,
    pub(super) agents: Vec<SubAgent>,
    /// Input of the turn, in Codex's form. `None` once it is sent, or if Codex began the turn by
    /// itself.
    pub(super) prompt: Option<Vec<Value>>,
    /// Id of Callboard's `turn/start` request for this run. `None` before it is sent.
    pub(super) start_request: Option<u64>,
    /// Codex's id of the run's turn. `None` until Codex has given it.
    pub(super) turn: Option<String>,
    /// Notifications about a turn that came before the id of the run's own turn, each parsed and as
    /// a raw line.
    early: Vec<(Value, String)>,
    pub(super) is_interrupted: bool,
    /// Outcome of the run's turn, after its end. The run goes on while sub-agents are active.
    pub(super) outcome: Option<(RunStatus, Option<ErrorInfo>)>,
    /// Whether Codex was asked to end the commands of the interrupted turn. It then reports their
    /// ends.
    pub(super) ends_commands: bool,
    /// Last error of Codex that it does not retry. The end of the turn follows.
    pub(super) last_error: Option<Value>,
}

impl Run {
    pub(super) fn new(workspace: &str) -> Self {
        Self {
            outer: Author::new(workspace),
            agents: Vec::new(),
            prompt: None,
            start_request: None,
            turn: None,
            early: Vec::new(),
            is_interrupted: false,
            outcome: None,
            ends_commands: false,
            last_error: None,
        }
    }

    /// Returns the author for Codex itself, or for the sub-agent whose thread is `agent`.
    pub(super) fn author_mut(&mut self, agent: Option<&str>) -> Option<&mut Author> {
        match agent {
            None => Some(&mut self.outer),
            Some(thread) => {
                Some(&mut self.agents.iter_mut().find(|it| it.thread == thread)?.author)
            }
        }
    }

    /// Returns the author for Codex itself, or for the sub-agent whose thread is `agent`.
    pub(super) fn author(&self, agent: Option<&str>) -> Option<&Author> {
        match agent {
            None => Some(&self.outer),
            Some(thread) => Some(&self.agents.iter().find(|it| it.thread == thread)?.author),
        }
    }

    /// Returns the shell commands that are running, each with the thread of its sub-agent; `None`
    /// for Codex itself.
    fn commands(&mut self) -> impl Iterator<Item = (Option<&str>, &mut Call)> {
        let agents = self.agents.iter_mut();
        let agents = agents.map(|it| (Some(it.thread.as_str()), &mut it.author));
        let all = std::iter::once((None, &mut self.outer)).chain(agents);
        let calls =
            all.flat_map(|(thread, it)| it.open_calls().iter_mut().map(move |it| (thread, it)));
        calls.filter(|(_, it)| it.name == "shell" && it.runs())
    }

    pub(super) fn turn_of_agent(&self, thread: &str) -> Option<&str> {
        self.agents.iter().find(|it| it.thread == thread)?.turn.as_deref()
    }

    /// Returns the token usage of Codex itself and its sub-agents in this run.
    pub(super) fn usage(&self) -> Option<Usage> {
        let agents = self.agents.iter().filter_map(|it| it.author.usage());
        self.outer.usage().into_iter().chain(agents).reduce(Usage::plus)
    }

    /// Abandons the oldest sub-agents, tool calls and texts of the run, if too many are open.
    pub(super) fn abandon_excess(&mut self, cx: &mut Cx) {
        self.drop_excess_agents(cx);
        while let Some((agent, item)) = self.oldest_excess() {
            self.abandon(agent.as_deref(), &item, cx);
        }
        self.outer.close_excess_texts(&mut cx.out);
        for agent in &mut self.agents {
            agent.author.close_excess_texts(&mut cx.out);
        }
    }

    /// Returns the item of the oldest tool call of an author that has too many open, and the thread
    /// of the sub-agent that made it.
    fn oldest_excess(&self) -> Option<(Option<String>, String)> {
        let of_agent = |it: &SubAgent| Some((Some(it.thread.clone()), it.author.oldest_excess()?));
        let outer = self.outer.oldest_excess().map(|it| (None, it));
        outer.or_else(|| self.agents.iter().find_map(of_agent))
    }

    pub(super) fn abandon(&mut self, agent: Option<&str>, item: &str, cx: &mut Cx) {
        self.withdraw_about(agent, item, cx);
        if let Some(author) = self.author_mut(agent) {
            author.abandon(item, &mut cx.out);
        }
    }

    /// Handles a notification about the run's turn or a sub-agent. Returns false if its method is
    /// unknown.
    pub(super) fn handle_notification(
        &mut self,
        agent: Option<&str>,
        method: &str,
        params: &Value,
        line: &str,
        cx: &mut Cx,
    ) -> bool {
        let item = params["itemId"].as_str().unwrap_or_default();
        let delta = params["delta"].as_str().unwrap_or_default();
        let index = |name: &str| params[name].as_u64().unwrap_or(0);
        let Some(author) = self.author_mut(agent) else { return true };
        let out = &mut cx.out;
        match method {
            "item/started" => {
                author.item_started(&params["item"], out);
                self.begin_agents(agent, &params["item"]);
            }
            "item/completed" => {
                let item = &params["item"];
                self.withdraw_about(agent, item["id"].as_str().unwrap_or_default(), cx);
                self.begin_agents(agent, item);
                let Some(author) = self.author_mut(agent) else { return true };
                author.item_completed(item, line, &mut cx.out);
            }
            "item/agentMessage/delta" | "item/plan/delta" => {
                author.append_text(item, false, (TEXT, delta), out);
            }
            "item/reasoning/summaryTextDelta" => {
                author.append_text(item, true, (("summary", index("summaryIndex")), delta), out);
            }
            "item/reasoning/textDelta" => {
                author.append_text(item, true, (("content", index("contentIndex")), delta), out);
            }
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => {
                author.output(item, delta, out);
            }
            "item/mcpToolCall/progress" => {
                let message = params["message"].as_str().unwrap_or_default();
                author.output(item, &format!("{message}\n"), out);
            }
            "turn/plan/updated" => {
                let mut plan = fields(params, &["explanation", "plan"]);
                let steps = plan["plan"].as_array_mut().into_iter().flatten();
                for step in steps.filter(|it| it["status"] == "inProgress") {
                    // The spelling of the `update_plan` tool.
                    step["status"] = json!("in_progress");
                }
                author.whole_call("update_plan", &plan, out);
            }
            "hook/completed" => {
                if let Some(text) = notices::of_hook(&params["run"]) {
                    out.notice(Level::Error, text);
                }
            }
            "item/autoApprovalReview/completed" => {
                out.notice(Level::Info, notices::of_review(&params["review"]));
            }
            "thread/compacted" => author.compacted("notification", out),
            "serverRequest/resolved" => self.withdraw(&params["requestId"], cx),
            "error" => self.handle_error(agent, params, cx),
            _ => return false,
        }
        true
    }

    fn handle_error(&mut self, agent: Option<&str>, params: &Value, cx: &mut Cx) {
        let error = &params["error"];
        if params["willRetry"] != true {
            self.last_error = Some(error.clone());
            return;
        }
        if let Some(author) = self.author_mut(agent) {
            author.discard_texts(&mut cx.out);
        }
        let message = error["message"].as_str().unwrap_or("Trying again");
        let text = notices::of_retry(message, error["additionalDetails"].as_str());
        cx.out.notice(Level::Info, text);
    }
}

impl Codex {
    /// Handles a notification of Codex about any thread.
    pub(super) fn handle_notification(
        &mut self,
        method: &str,
        params: &Value,
        line: &str,
        cx: &mut Cx,
    ) {
        if wire::is_silent(method) {
            return;
        }
        if !self.is_of_thread(params) {
            return self.handle_agent_notification(method, params, line, cx);
        }
        match method {
            "turn/started" => self.turn_started(params, cx),
            "turn/completed" => self.turn_completed(params, cx),
            "thread/status/changed" => self.status_changed(&params["status"], cx),
            "thread/tokenUsage/updated" => self.usage_updated(params, cx),
            "mcpServer/startupStatus/updated" => self.tool_server_changed(params, cx),
            "model/rerouted" | "warning" | "guardianWarning" => self.warned(method, params, cx),
            "item/completed" if params["item"]["type"] == "userMessage" => {
                self.message_seen(&params["item"], cx);
            }
            _ if !self.is_of_turn(params) => (),
            _ => {
                let Some(run) = &mut self.run else { return };
                // Activity shows that it is not idle.
                let is_waiting = !run.is_interrupted && run.outcome.is_none();
                if is_waiting && method.starts_with("item/") {
                    cx.deadline = None;
                }
                if !run.handle_notification(None, method, params, line, cx) {
                    cx.out.unrecognized(line);
                }
                self.end_if_idle(cx);
            }
        }
    }

    /// Buffers a notification about a turn while the id of the run's own turn is not known yet.
    /// Returns false if the notification must be handled now.
    pub(super) fn buffer_if_early(&mut self, message: &Value, line: &str) -> bool {
        let params = &message["params"];
        let of = params["turnId"].as_str().filter(|_| params["turn"].is_null());
        if of.is_none() || of == self.ended_turn.as_deref() || !self.is_of_thread(params) {
            return false;
        }
        let is_unnamed = |it: &&mut Run| it.turn.is_none() && it.start_request.is_some();
        let Some(run) = self.run.as_mut().filter(is_unnamed) else { return false };
        if run.early.len() < EARLY {
            run.early.push((message.clone(), line.to_owned()));
        }
        true
    }

    pub(super) fn is_of_thread(&self, params: &Value) -> bool {
        match (params["threadId"].as_str(), &self.link) {
            (None, _) => true,
            (Some(of), Link::Open { thread }) => of == thread,
            // The conversation that is being opened sends notifications before the response that names it.
            (Some(_), Link::Opening) => true,
            (Some(_), _) => false,
        }
    }

    pub(super) fn is_of_turn(&self, params: &Value) -> bool {
        let of = params["turnId"].as_str();
        self.run.as_ref().is_some_and(|it| of.is_none() || it.turn.as_deref() == of)
    }

    /// Takes the id of the run's turn from the first report of its start or end, and handles the
    /// buffered notifications. Other messages may belong to an earlier turn.
    pub(super) fn take_turn(&mut self, turn: &str, cx: &mut Cx) {
        let is_old = self.ended_turn.as_deref() == Some(turn);
        let Some(run) = self.run.as_mut().filter(|_| !is_old) else { return };
        if run.turn.is_none() {
            run.turn = Some(turn.to_owned());
            let early = std::mem::take(&mut run.early);
            self.interrupt_turn(cx);
            for (message, line) in early {
                self.handle_message(&message, &line, cx);
            }
        }
    }

    fn turn_started(&mut self, params: &Value, cx: &mut Cx) {
        let Some(turn) = params["turn"]["id"].as_str() else { return };
        if let Some(run) = &mut self.run {
            // Codex continues by itself when its agents have finished.
            if run.outcome.take().is_some() {
                run.turn = None;
            }
            self.take_turn(turn, cx);
        }
    }

    fn turn_completed(&mut self, params: &Value, cx: &mut Cx) {
        let turn = &params["turn"];
        let Some(id) = turn["id"].as_str() else { return };
        self.take_turn(id, cx);
        let Some(run) = self.run.as_mut().filter(|it| it.turn.as_deref() == Some(id)) else {
            return;
        };
        // Codex repeats the report.
        if run.outcome.is_some() {
            return;
        }
        let is_interrupted = run.is_interrupted || turn["status"] == "interrupted";
        if is_interrupted {
            self.end_commands(cx);
        }
        let Some(run) = &mut self.run else { return };
        let error = run.last_error.take();
        run.outcome = Some(match turn["status"].as_str() {
            _ if is_interrupted => (RunStatus::Cancelled, None),
            Some("failed") => {
                let error = Some(&turn["error"]).filter(|it| !it.is_null()).or(error.as_ref());
                (RunStatus::Failed, Some(failure::of_turn(error.unwrap_or(&Value::Null))))
            }
            _ => (RunStatus::Completed, None),
        });
        if !is_interrupted && run.has_agents_at_work() {
            cx.deadline = None;
            run.outer.finish_step(None, &mut cx.out);
            cx.out.continuation(true, "agents_at_work", "Codex");
        }
        self.end_if_idle(cx);
    }

    /// Ends the run if its turn and the turns of all sub-agents have ended.
    pub(super) fn end_if_idle(&mut self, cx: &mut Cx) {
        let Some(run) = self.run.as_mut().filter(|it| !it.has_agents_at_work()) else { return };
        if run.ends_commands && run.commands().next().is_some() {
            return;
        }
        self.end_as_it_did(cx);
    }

    /// Ends the run with the outcome of its turn. Does nothing if the turn has not ended.
    pub(super) fn end_as_it_did(&mut self, cx: &mut Cx) {
        let Some(run) = &mut self.run else { return };
        match run.outcome.take() {
            Some(_) if run.is_interrupted => self.end(RunStatus::Cancelled, None, cx),
            Some((RunStatus::Completed, _)) => self.complete(cx),
            Some((status, error)) => self.end(status, error, cx),
            None => (),
        }
    }

    /// Asks Codex to end the commands of an interrupted turn, which it leaves running. The run ends
    /// when Codex reports their ends; a command that does not end is left to the driver.
    fn end_commands(&mut self, cx: &mut Cx) {
        let (Some(run), Link::Open { thread }) = (&mut self.run, &self.link) else { return };
        let mut threads = BTreeSet::new();
        for (of, call) in run.commands() {
            threads.insert(of.unwrap_or(thread).to_owned());
            // This is the reason, whatever Codex reports.
            call.refusal = Some(items::stopped());
        }
        if threads.is_empty() {
            return;
        }
        run.ends_commands = true;
        cx.wake_after(END_TIMEOUT_MS);
        for thread in threads {
            let params = json!({ "threadId": thread });
            self.request("thread/backgroundTerminals/clean", &params, Sent::Other, cx);
        }
    }

    /// Handles a new status of the Codex thread. While it is idle, a deadline runs, because the
    /// report of the turn's end may be lost.
    fn status_changed(&mut self, status: &Value, cx: &mut Cx) {
        let Some(run) = &mut self.run else { return };
        run.outer.awaits_decision = awaits_person(status);
        if run.is_interrupted || run.turn.is_none() || run.outcome.is_some() {
            return;
        }
        let is_idle = matches!(status["type"].as_str(), Some("idle" | "systemError"));
        cx.deadline = None;
        if is_idle {
            cx.wake_after(END_TIMEOUT_MS);
        }
    }

    /// Computes the usage of a model call from the counts of the whole thread. Codex's own count
    /// for the model call, `last`, is wrong for an answer that was cut off.
    fn usage_updated(&mut self, params: &Value, cx: &mut Cx) {
        let total = usage(&params["tokenUsage"]["total"]);
        let before = self.used.replace(total);
        if !self.is_of_turn(params) {
            return;
        }
        let spent = before.and_then(|before| difference(total, before));
        let spent = spent.unwrap_or_else(|| usage(&params["tokenUsage"]["last"]));
        if let Some(run) = &mut self.run {
            run.outer.model_call_ended(Some(spent), &mut cx.out);
        }
    }

    fn tool_server_changed(&mut self, params: &Value, cx: &mut Cx) {
        if params["status"] != "failed" {
            return;
        }
        let name = params["name"].as_str().unwrap_or_default();
        let why = params["error"].as_str().unwrap_or("it did not say why");
        let text = format!("Codex could not start its MCP server {name}: {why}");
        cx.out.notice(Level::Error, text);
    }

    fn warned(&mut self, method: &str, params: &Value, cx: &mut Cx) {
        let field = |name: &str| params[name].as_str().unwrap_or_default();
        let text = match method {
            "warning" | "guardianWarning" => field("message").to_owned(),
            _ => format!(
                "The service answers with {} instead of {}.",
                field("toModel"),
                field("fromModel")
            ),
        };
        cx.out.notice(Level::Info, text);
    }

    fn message_seen(&mut self, item: &Value, cx: &mut Cx) {
        let client_id = item["clientId"].as_str().unwrap_or_default();
        self.echoes_ids |= !client_id.is_empty();
        cx.steering.mark_seen(|it| it.message_id.as_str() == client_id, &mut cx.out);
    }
}

/// Emits the event that says why the run ends.
pub(super) fn emit_stop(status: RunStatus, out: &mut Emitter) {
    let (stop_reason, resolved_by) = match status {
        RunStatus::Completed => ("completed", "Codex"),
        RunStatus::Failed => ("error", "ErrorPolicy"),
        RunStatus::Cancelled => ("user_requested", "UserCancel"),
    };
    out.continuation(false, stop_reason, resolved_by);
}

fn usage(tokens: &Value) -> Usage {
    let number = |name: &str| tokens[name].as_u64();
    Usage {
        input_tokens: number("inputTokens").unwrap_or(0),
        output_tokens: number("outputTokens").unwrap_or(0),
        total_tokens: number("totalTokens").unwrap_or(0),
        cached_tokens: number("cachedInputTokens"),
        reasoning_tokens: number("reasoningOutputTokens"),
    }
}

/// Returns the usage of a sub-agent's model call. `before` is the usage of its thread until then,
/// and is updated.
pub(super) fn spent(before: &mut Usage, tokens: &Value) -> Usage {
    let total = usage(&tokens["total"]);
    let spent = difference(total, std::mem::replace(before, total));
    spent.unwrap_or_else(|| usage(&tokens["last"]))
}

/// Returns whether a Codex thread waits for a person's approval. A tool call that begins meanwhile
/// does not run yet.
pub(super) fn awaits_person(status: &Value) -> bool {
    let flags = status["activeFlags"].as_array().map(Vec::as_slice).unwrap_or_default();
    flags.iter().any(|it| it == "waitingOnApproval")
}

/// Returns the usage `after - before`. `None` if the counts were reset in between.
fn difference(after: Usage, before: Usage) -> Option<Usage> {
    let part = |after: Option<u64>, before: Option<u64>| match after {
        Some(after) => after.checked_sub(before.unwrap_or(0)).map(Some),
        None => Some(None),
    };
    Some(Usage {
        input_tokens: after.input_tokens.checked_sub(before.input_tokens)?,
        output_tokens: after.output_tokens.checked_sub(before.output_tokens)?,
        total_tokens: after.total_tokens.checked_sub(before.total_tokens)?,
        cached_tokens: part(after.cached_tokens, before.cached_tokens)?,
        reasoning_tokens: part(after.reasoning_tokens, before.reasoning_tokens)?,
    })
}
