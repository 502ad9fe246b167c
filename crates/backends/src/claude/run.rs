//! One run: the turns from a message, or from the program's own continuation, until it is idle.

mod messages;

use std::ops::Add;

use serde_json::Value;
use transcript::{ErrorInfo, Event, Level, MessageId, RunStatus, Usage};

use super::author::{Author, MessageEnd};
use super::calls::Calls;
use super::questions::{ANSWERED, Request};
use super::stdin::uuid_of;
use super::text::shortened;
use super::wire::{self, AboutCall, Init, Lifecycle, Line, TaskEnd, TurnResult};
use super::{Cx, Process, failure, notices, stdin};
use crate::emitter::Emitter;
use crate::ending::rounded_cost;
use crate::program::{Ask, MAX_AGENTS, Recent, TOOL_SERVER, newest};
use crate::steering::Steered;
use crate::{Exit, ProgramEffect, RunEffect, Verdict};

/// Time that Claude Code has to stop a run, or to begin a turn by itself.
const REACTION_TIMEOUT_MS: u64 = 5000;
/// Time that Claude Code has to begin the turn that reports stopped tasks to the model.
const REPORT_TIMEOUT_MS: u64 = 1000;

#[derive(Debug)]
pub(super) struct Run {
    calls: Calls,
    outer: Author,
    /// Sub-agents of the run, by the model service's id of the tool call that each works for.
    inner: Recent<Author>,
    /// Ids of Claude Code's requests that were answered or withdrawn, which it may repeat.
    answered: Recent,
    /// UUID of the line that began the run. `None` once Claude Code has read the line.
    prompt: Option<String>,
    is_turn_running: bool,
    /// Ids of commands that earlier runs have left in the background.
    earlier_tasks: Vec<String>,
    interrupted: Option<Interrupt>,
    /// Whether Claude Code has reported that the model's current message was stopped.
    is_aborted: bool,
    /// Whether the conversation was compacted and its summary has not arrived.
    awaits_summary: bool,
    /// Claude Code's name for the error of its model service in this turn.
    api_error: Option<String>,
    usage: Option<Usage>,
    cost: Option<f64>,
}

/// A request to Claude Code to stop the run.
#[derive(Debug)]
struct Interrupt {
    request_id: String,
    /// Whether background tasks are stopped too, which Claude Code will report to the model.
    stops_tasks: bool,
    /// Whether Claude Code has stopped its turn.
    is_done: bool,
}

impl Run {
    pub(super) fn new(process: &Process) -> Self {
        let commands = process.tasks.iter().filter(|it| !it.is_agent());
        Self {
            earlier_tasks: commands.map(|it| it.task_id.clone()).collect(),
            calls: Calls::default(),
            outer: Author::default(),
            inner: Recent::keeping(MAX_AGENTS),
            answered: Recent::keeping(ANSWERED),
            prompt: None,
            is_turn_running: false,
            interrupted: None,
            is_aborted: false,
            awaits_summary: false,
            api_error: None,
            usage: None,
            cost: None,
        }
    }

    /// Returns the tool calls of the run that had a sub-agent, by the model service's ids.
    pub(super) fn into_agents(self) -> impl Iterator<Item = String> {
        self.inner.into_names()
    }

    pub(super) fn start(&mut self, history: &[Value], cx: &mut Cx) {
        let uuid = uuid_of(cx.out.response_id().as_str());
        cx.out.write(stdin::user(&uuid, &newest(history)));
        self.prompt = Some(uuid);
        self.is_turn_running = true;
    }

    pub(super) fn steer(&mut self, message_id: MessageId, message: &Value, cx: &mut Cx) {
        if self.interrupted.is_some() {
            return cx.out.push(RunEffect::CannotSteer(message_id));
        }
        // The program accepts each uuid once, and a message may be handed to a later run again.
        let uuid = uuid_of(&format!("{}/{message_id}", cx.out.response_id()));
        cx.out.write(stdin::user(&uuid, message));
        cx.steering.send(uuid, message_id, stdin::text_of(message));
        cx.steering.hand_over(|_| true, &mut cx.out);
    }

    /// Asks Claude Code to give back the messages that it has not read.
    fn take_back_unread(&self, cx: &mut Cx) {
        let unread: Vec<String> = self
            .prompt
            .iter()
            .map(String::as_str)
            .chain(cx.steering.keys())
            .map(str::to_owned)
            .collect();
        for uuid in unread {
            let id = next_request(&mut cx.out);
            cx.out.write(stdin::take_back(&id, &uuid));
        }
    }

    /// Asks Claude Code to stop the run. Unread messages would begin the next turn after the stop,
    /// and background tasks would go on, so messages are taken back and tasks stopped first.
    pub(super) fn interrupt(&mut self, process: &mut Process, cx: &mut Cx) {
        if self.interrupted.is_some() {
            return;
        }
        self.take_back_unread(cx);
        let tasks = process.tasks.iter().map(|it| &it.task_id);
        let tasks: Vec<String> =
            tasks.filter(|it| !self.earlier_tasks.contains(it)).cloned().collect();
        for task in &tasks {
            let id = next_request(&mut cx.out);
            cx.out.write(stdin::stop_task(&id, task));
        }
        let request_id = next_request(&mut cx.out);
        cx.out.write(stdin::interrupt(&request_id));
        let stops_tasks = !tasks.is_empty();
        self.interrupted = Some(Interrupt { request_id, stops_tasks, is_done: false });
        cx.wake_after(REACTION_TIMEOUT_MS);
    }

    pub(super) fn time_out(&mut self, process: &Process, cx: &mut Cx) {
        let Some(interrupt) = &self.interrupted else {
            // The program would begin a turn with these messages. They go to the next run instead.
            if process.reports_lines {
                self.take_back_unread(cx);
                self.prompt = None;
                cx.steering.give_back(|_| true, &mut cx.out);
            }
            return self.complete(cx);
        };
        if !interrupt.is_done {
            cx.out.push(ProgramEffect::Quit);
        }
        self.end(RunStatus::Cancelled, None, cx);
    }

    pub(super) fn exited(&mut self, who: &str, exit: &Exit, cx: &mut Cx) {
        match self.interrupted {
            Some(_) => self.end(RunStatus::Cancelled, None, cx),
            None => self.end(RunStatus::Failed, Some(failure::exited(who, exit)), cx),
        }
    }

    pub(super) fn decide(&mut self, request: &Request, verdict: Verdict, cx: &mut Cx) {
        self.answered.insert(&request.id);
        let (line, refusal) = request.answer(verdict);
        cx.out.write(line);
        match refusal {
            None => self.calls.allow(&request.provider_call_id, &mut cx.out),
            Some(why) => self.calls.refuse(&request.provider_call_id, why),
        }
    }

    pub(super) fn handle_line(
        &mut self,
        line: Line,
        raw: &str,
        process: &mut Process,
        cx: &mut Cx,
    ) {
        self.abandon_oldest(cx);
        match line {
            Line::Init(init) => {
                self.turn_begins(process, cx);
                self.link(init, process, cx);
            }
            Line::Stream(stream) => self.handle_stream(stream, raw, process, cx),
            Line::Assistant(said) => self.handle_assistant(said, raw, process, cx),
            Line::User(said) => self.handle_user(said, raw, process, cx),
            Line::Result(result) => self.turn_ended(&result, process, cx),
            Line::Request(request) => self.handle_request(request, raw, cx),
            Line::RequestCancelled(cancelled) => {
                self.withdraw(|it| it.id == cancelled.request_id, cx);
            }
            Line::Response(it) => self.handle_response(&it.request_id, cx),
            Line::Lifecycle(it) => self.handle_lifecycle(&it, process, cx),
            Line::Background(_) => self.wait_for_turn(process, cx),
            Line::TaskStarted(it) => {
                let call = it.tool_use_id.unwrap_or_default();
                self.calls.run(&call, &mut cx.out);
            }
            Line::TaskUpdated(_) => self.wait_for_turn(process, cx),
            Line::TaskEnded(it) => {
                self.task_ended(&it, cx);
                self.wait_for_turn(process, cx);
            }
            Line::Retry(it) => cx.out.notice(Level::Info, notices::of_retry(&it)),
            Line::Compacted(it) => {
                self.awaits_summary = true;
                cx.out.notice(Level::Info, notices::of_compacted(it));
            }
            Line::Status(it) => {
                if let Some(text) = notices::of_mode(&it) {
                    cx.out.notice(Level::Info, text);
                }
                if let Some(text) = notices::of_status(it) {
                    cx.out.notice(Level::Error, text);
                }
            }
            Line::Limit(it) => {
                if let Some((level, text)) = notices::of_limit(&it.rate_limit_info, cx.out.now()) {
                    cx.out.notice(level, text);
                }
            }
            Line::Login(it) => {
                if let Some(text) = notices::of_login(&it) {
                    cx.out.notice(Level::Error, text);
                }
            }
            Line::Hook(it) => {
                if let Some(text) = notices::of_hook(&it) {
                    cx.out.notice(Level::Error, text);
                }
            }
            Line::Remark(it) => cx.out.notice(Level::Info, shortened(&it.content)),
            Line::CommandOutput(it) => self.outer.emit_text(it.content, &mut cx.out),
            Line::Ignored => (),
        }
    }

    /// Closes the oldest sub-agents and tool calls of the run, if too many are open.
    fn abandon_oldest(&mut self, cx: &mut Cx) {
        while let Some((call, mut author)) = self.inner.take_excess() {
            author.finish_message(MessageEnd::Whole, &mut self.calls, &mut cx.out);
            self.abandon(&call, cx);
        }
        while let Some(call) = self.calls.oldest_excess() {
            self.sub_agent_ended(&call, cx);
            self.abandon(&call, cx);
        }
    }

    fn abandon(&mut self, call: &str, cx: &mut Cx) {
        self.withdraw(|it| it.provider_call_id == call, cx);
        self.calls.abandon(call, &mut cx.out);
    }

    /// Handles the end of a background task, which ends the tool call that launched it.
    fn task_ended(&mut self, task: &TaskEnd, cx: &mut Cx) {
        let call = task.tool_use_id.as_deref().unwrap_or_default();
        self.sub_agent_ended(call, cx);
        let was_open = self.calls.end_launched(call, Some(task), &mut cx.out);
        let is_stopped = self.interrupted.is_some();
        if let Some(text) = task.trouble().filter(|_| !was_open && !is_stopped) {
            cx.out.notice(Level::Info, shortened(text));
        }
    }

    fn turn_begins(&mut self, process: &mut Process, cx: &mut Cx) {
        let begins = !std::mem::replace(&mut self.is_turn_running, true);
        match &mut self.interrupted {
            // A person who stopped the run does not want the turn that reports it.
            Some(interrupt) if begins => {
                interrupt.request_id = next_request(&mut cx.out);
                interrupt.is_done = false;
                cx.out.write(stdin::interrupt(&interrupt.request_id));
                cx.wake_after(REACTION_TIMEOUT_MS);
            }
            Some(_) => (),
            None => cx.deadline = None,
        }
        if !process.reports_lines {
            self.prompt = None;
        }
    }

    fn link(&mut self, init: Init, process: &mut Process, cx: &mut Cx) {
        if process.linked.as_ref() == Some(&init.session_id) {
            return;
        }
        process.linked = Some(init.session_id.clone());
        cx.out.emit(Event::AgentLinked {
            cli_session_id: init.session_id,
            cwd: init.cwd,
            version: init.claude_code_version,
        });
        let servers = init.mcp_servers.into_iter().flatten();
        for server in servers.filter(|it| it.status == "failed") {
            let is_ours = process.offers_tools && server.name == TOOL_SERVER;
            cx.out.notice(Level::Error, notices::of_failed_server(&server.name, is_ours));
        }
    }

    fn handle_request(&mut self, request: wire::Request, raw: &str, cx: &mut Cx) {
        let request_id = request.request_id.clone();
        let Some(about) = request.about_call() else {
            cx.out.unrecognized(raw);
            return cx.out.write(stdin::refuse(&request_id));
        };
        if self.answered.contains(&request_id) {
            return;
        }
        let reason = about.reason().map(|it| shortened(&it));
        let AboutCall { tool_use_id, tool_name, input, .. } = about;
        let tool_use_id = tool_use_id
            .or_else(|| self.calls.unasked(&tool_name, &input))
            .unwrap_or_else(|| cx.out.unused_name());
        // The request may come before the call.
        self.calls.start(&tool_use_id, &tool_name, None, &mut cx.out);
        self.calls.finish_arguments(&tool_use_id, &input, &mut cx.out);
        let Some(call_id) = self.calls.id(&tool_use_id).cloned() else { return };
        self.calls.ask(&tool_use_id);
        let form = input.get("questions").filter(|_| tool_name == "AskUserQuestion").cloned();
        let (id, provider_call_id, has_form) = (request_id, tool_use_id, form.is_some());
        let ask = Ask { can_edit: true, form, reason, is_judged: true };
        cx.approvals.ask(
            call_id,
            Request { id, provider_call_id, input, has_form },
            ask,
            &mut cx.out,
        );
    }

    fn withdraw(&mut self, is_it: impl Fn(&Request) -> bool, cx: &mut Cx) {
        if let Some((_, request)) = cx.approvals.withdraw(|_, it| is_it(it), &mut cx.out) {
            self.answered.insert(&request.id);
        }
    }

    /// Handles the response to an interrupt. It is the only confirmation of the stop if no turn
    /// runs.
    fn handle_response(&mut self, request_id: &str, cx: &mut Cx) {
        let is_ours = self.interrupted.as_ref().is_some_and(|it| it.request_id == request_id);
        if is_ours && !self.is_turn_running {
            self.stopped(cx);
        }
    }

    fn stopped(&mut self, cx: &mut Cx) {
        match &mut self.interrupted {
            Some(interrupt) if interrupt.stops_tasks => {
                interrupt.is_done = true;
                cx.wake_after(REPORT_TIMEOUT_MS);
            }
            _ => self.end(RunStatus::Cancelled, None, cx),
        }
    }

    fn handle_lifecycle(&mut self, lifecycle: &Lifecycle, process: &mut Process, cx: &mut Cx) {
        let Lifecycle { command_uuid, state } = lifecycle;
        let is_prompt = self.prompt.as_ref() == Some(command_uuid);
        if !is_prompt && !cx.steering.keys().any(|it| it == command_uuid) {
            return;
        }
        let is_it = |it: &Steered| it.key == *command_uuid;
        match state.as_str() {
            "started" | "completed" => {
                self.turn_begins(process, cx);
                self.prompt.take_if(|_| is_prompt);
                cx.steering.mark_seen(is_it, &mut cx.out);
            }
            "cancelled" if is_prompt => {
                self.prompt = None;
                self.is_turn_running = false;
            }
            "cancelled" => cx.steering.give_back(is_it, &mut cx.out),
            _ => (),
        }
    }

    fn turn_ended(&mut self, result: &TurnResult, process: &mut Process, cx: &mut Cx) {
        process.turn_ended(&self.calls.launched());
        self.is_turn_running = false;
        self.is_aborted = false;
        self.outer.finish_message(MessageEnd::Whole, &mut self.calls, &mut cx.out);
        self.add_usage(result.used());
        self.add_cost(result.cost());
        let api_error = self.api_error.take();
        let was_aborted =
            result.terminal_reason.as_deref().is_some_and(|it| it.starts_with("aborted"));
        if self.interrupted.is_some() || was_aborted {
            return self.stopped(cx);
        }
        let has_failed = result.is_error == Some(true) || result.subtype.starts_with("error");
        let has_visible_text = std::mem::take(&mut self.outer.has_visible_text);
        // The result repeats the answer. For some commands it is the only answer.
        let words = result.result.as_ref().filter(|it| !has_visible_text && !it.trim().is_empty());
        if let Some(words) = words.filter(|_| !has_failed) {
            self.outer.emit_text(words.clone(), &mut cx.out);
        }
        let error = has_failed.then(|| failure::of_turn(result, api_error.as_deref()));
        match (self.goes_on(process, cx), error) {
            (None, None) => self.complete(cx),
            (None, Some(error)) => self.end(RunStatus::Failed, Some(error), cx),
            (Some(why), error) => {
                if let Some(error) = error {
                    cx.out.notice(Level::Error, error.message);
                }
                cx.out.continuation(true, why, "Agent");
                self.wait_for_turn(process, cx);
            }
        }
    }

    /// Returns the reason for which Claude Code will begin another turn by itself. `None` if it
    /// will not.
    fn goes_on(&self, process: &Process, cx: &Cx) -> Option<&'static str> {
        if process.has_agents() {
            Some("agents_at_work")
        } else if process.reports_lines && (self.prompt.is_some() || !cx.steering.is_empty()) {
            Some("message_waits")
        } else {
            None
        }
    }

    /// Sets a deadline for the next turn, if no turn and no agent is active: Claude Code begins the
    /// turn soon, or not at all.
    fn wait_for_turn(&mut self, process: &Process, cx: &mut Cx) {
        let is_waiting = !self.is_turn_running && self.interrupted.is_none();
        if is_waiting && !process.has_agents() && cx.deadline.is_none() {
            cx.wake_after(REACTION_TIMEOUT_MS);
        }
    }

    fn add_usage(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage.filter(|it| it.total_tokens > 0) else { return };
        self.usage = Some(self.usage.map_or(usage, |before| before.plus(usage)));
    }

    fn add_cost(&mut self, cost: Option<f64>) {
        self.cost = self.cost.into_iter().chain(cost).reduce(f64::add).and_then(rounded_cost);
    }

    fn complete(&mut self, cx: &mut Cx) {
        // Nothing runs any more, but the ends of these calls were not reported.
        for call in self.calls.launched() {
            self.calls.end_launched(&call, None, &mut cx.out);
        }
        self.end(RunStatus::Completed, None, cx);
    }

    fn end(&mut self, status: RunStatus, error: Option<ErrorInfo>, cx: &mut Cx) {
        let (stop_reason, resolved_by) = match status {
            RunStatus::Completed => ("completed", "Agent"),
            RunStatus::Failed => ("error", "ErrorPolicy"),
            RunStatus::Cancelled => ("user_requested", "UserCancel"),
        };
        if status != RunStatus::Completed {
            cx.steering.give_back(|_| true, &mut cx.out);
        }
        cx.out.continuation(false, stop_reason, resolved_by);
        cx.end_run(status, error, self.usage, self.cost);
    }
}

fn next_request(out: &mut Emitter) -> String {
    format!("callboard-{}", out.next_request())
}
