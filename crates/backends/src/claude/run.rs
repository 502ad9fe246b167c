//! One run: the turns from a message, or from when the program went on by itself, until it is idle.

mod said;

use std::ops::Add;

use serde_json::Value;
use transcript::{
    CallId, ErrorInfo, Event, Level, MessageId, Millis, ResponseId, RunStatus, SteerState, Usage,
};

use super::calls::Calls;
use super::questions::{Question, Questions};
use super::speaker::{MessageEnd, Speaker};
use super::unread::{Steered, UserLine, uuid_of};
use super::wire::{AboutCall, Init, Lifecycle, Line, Request, TaskEnd, TurnResult};
use super::words::shortened;
use super::{Process, SOURCE, failure, notices, stdin};
use crate::emitter::Emitter;
use crate::ending::price;
use crate::program::MOST_AGENTS;
use crate::program::Recent;
use crate::program::TOOL_SERVER;
use crate::program::newest;
use crate::{Effect, Ending, Exit, Verdict};

/// How long the program may take to stop, or to go on by itself.
const PATIENCE_MS: u64 = 5000;
/// How long it may take to tell the model of tasks that were stopped, which is a turn of its own.
const AFTERTHOUGHT_MS: u64 = 1000;

#[derive(Debug)]
pub(super) struct Run {
    response_id: ResponseId,
    out: Emitter,
    calls: Calls,
    outer: Speaker,
    /// Sub-agents, by the provider's id of the call that each works for.
    inner: Recent<Speaker>,
    questions: Questions,
    unread: Vec<UserLine>,
    is_turn_running: bool,
    /// Commands that earlier runs have left in the background.
    earlier_tasks: Vec<String>,
    interrupted: Option<Interrupt>,
    /// The program says that what it says was stopped.
    is_aborted: bool,
    wake_at: Option<Millis>,
    /// The conversation was compacted, and its summary has not come.
    awaits_summary: bool,
    /// The program's word for what went wrong with its model service.
    api_error: Option<String>,
    usage: Option<Usage>,
    cost: Option<f64>,
}

/// Somebody wants the run to stop.
#[derive(Debug)]
struct Interrupt {
    request_id: String,
    /// Something went on in the background, and the program will tell the model that it was stopped.
    stops_tasks: bool,
    /// The program has said that nothing runs.
    is_done: bool,
}

impl Run {
    pub(super) fn new(response_id: ResponseId, process: &Process) -> Self {
        let commands = process.tasks.iter().filter(|it| !it.is_agent());
        Self {
            earlier_tasks: commands.map(|it| it.task_id.clone()).collect(),
            out: Emitter::for_run(SOURCE, response_id.clone()),
            response_id,
            calls: Calls::default(),
            outer: Speaker::default(),
            inner: Recent::keeping(MOST_AGENTS),
            questions: Questions::default(),
            unread: Vec::new(),
            is_turn_running: false,
            interrupted: None,
            is_aborted: false,
            wake_at: None,
            awaits_summary: false,
            api_error: None,
            usage: None,
            cost: None,
        }
    }

    pub(super) fn set_now(&mut self, now: Millis) {
        self.out.set_now(now);
    }

    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        self.out.take_effects()
    }

    /// The calls in which somebody spoke, when the run is over.
    pub(super) fn take_agents(&mut self) -> impl Iterator<Item = String> {
        std::mem::take(&mut self.inner).into_names()
    }

    pub(super) fn start(&mut self, history: &[Value]) {
        let uuid = uuid_of(self.response_id.as_str());
        self.out.write(stdin::user(&uuid, &newest(history)));
        self.unread.push(UserLine { uuid, steered: None });
        self.is_turn_running = true;
    }

    pub(super) fn begin_by_itself(&mut self) {
        self.out.push(Effect::Begin);
    }

    pub(super) fn steer(&mut self, message_id: MessageId, message: &Value) {
        if self.interrupted.is_some() {
            return self.out.push(Effect::CannotSteer(message_id));
        }
        // The program takes each uuid once, and a message may be handed to a later run again.
        let uuid = uuid_of(&format!("{}/{message_id}", self.response_id));
        self.out.write(stdin::user(&uuid, message));
        let steered = Steered::new(message_id, message);
        self.out.emit(steered.event(SteerState::HandedOver));
        self.unread.push(UserLine { uuid, steered: Some(steered) });
    }

    /// Lines that wait would begin the next turn as soon as this one has stopped, and what this run has in
    /// the background would go on, so they are taken back and stopped first.
    pub(super) fn interrupt(&mut self, process: &mut Process) {
        if self.interrupted.is_some() {
            return;
        }
        for line in &self.unread {
            self.out.write(stdin::take_back(&process.next_request(), &line.uuid));
        }
        let tasks = process.tasks.iter().map(|it| &it.task_id);
        let tasks: Vec<String> =
            tasks.filter(|it| !self.earlier_tasks.contains(it)).cloned().collect();
        for task in &tasks {
            self.out.write(stdin::stop_task(&process.next_request(), task));
        }
        let request_id = process.next_request();
        self.out.write(stdin::interrupt(&request_id));
        let stops_tasks = !tasks.is_empty();
        self.interrupted = Some(Interrupt { request_id, stops_tasks, is_done: false });
        self.wake_after(PATIENCE_MS);
    }

    pub(super) fn wake(&mut self, process: &mut Process) {
        match self.wake_at {
            Some(at) if at > self.out.now() => self.out.push(Effect::WakeAt(at)),
            Some(_) => match &self.interrupted {
                None => {
                    // They would begin a turn of their own later, and are to be said again.
                    let unread = self.unread.iter().filter(|_| process.reports_lines);
                    let uuids: Vec<String> = unread.map(|it| it.uuid.clone()).collect();
                    for uuid in uuids {
                        self.out.write(stdin::take_back(&process.next_request(), &uuid));
                        self.give_back(&uuid);
                    }
                    self.complete();
                }
                Some(interrupt) => {
                    let is_stuck = !interrupt.is_done;
                    self.out.extend(is_stuck.then_some(Effect::Quit));
                    self.end(RunStatus::Cancelled, None);
                }
            },
            None => (),
        }
    }

    pub(super) fn exited(&mut self, who: &str, exit: &Exit) {
        match self.interrupted {
            Some(_) => self.end(RunStatus::Cancelled, None),
            None => self.end(RunStatus::Failed, Some(failure::exited(who, exit))),
        }
    }

    pub(super) fn decided(&mut self, call_id: &CallId, verdict: Verdict) {
        let Some(question) = self.questions.take(|it| it.call_id == *call_id) else { return };
        let (line, refusal) = question.answer(verdict);
        self.out.write(line);
        match refusal {
            None => self.calls.allow(&question.provider_call_id, &mut self.out),
            Some(why) => self.calls.refuse(&question.provider_call_id, why),
        }
    }

    pub(super) fn hear_nonsense(&mut self, raw: &str) {
        self.out.unrecognized(raw);
    }

    pub(super) fn hear(&mut self, line: Line, raw: &str, process: &mut Process) {
        self.leave_behind();
        match line {
            Line::Init(init) => {
                self.turn_begins(process);
                self.link(init, process);
            }
            Line::Stream(stream) => self.hear_stream(stream, raw, process),
            Line::Assistant(said) => self.hear_assistant(said, raw, process),
            Line::User(said) => self.hear_user(said, raw, process),
            Line::Result(result) => self.turn_ended(&result, process),
            Line::Request(request) => self.hear_request(request, raw),
            Line::RequestCancelled(cancelled) => {
                self.withdraw(|it| it.request_id == cancelled.request_id);
            }
            Line::Response(it) => self.hear_response(&it.request_id),
            Line::Lifecycle(it) => self.hear_lifecycle(&it, process),
            Line::Background(_) => self.wait_for_turn(process),
            Line::TaskStarted(it) => {
                let call = it.tool_use_id.unwrap_or_default();
                self.calls.run(&call, &mut self.out);
            }
            Line::TaskUpdated(_) => self.wait_for_turn(process),
            Line::TaskEnded(it) => {
                self.task_ended(&it);
                self.wait_for_turn(process);
            }
            Line::Retry(it) => self.out.notice(Level::Info, notices::of_retry(&it)),
            Line::Compacted(it) => {
                self.awaits_summary = true;
                self.out.notice(Level::Info, notices::of_compacted(it));
            }
            Line::Status(it) => {
                if let Some(text) = notices::of_mode(&it) {
                    self.out.notice(Level::Info, text);
                }
                if let Some(text) = notices::of_status(it) {
                    self.out.notice(Level::Error, text);
                }
            }
            Line::Limit(it) => {
                if let Some((level, text)) = notices::of_limit(&it.rate_limit_info, self.out.now())
                {
                    self.out.notice(level, text);
                }
            }
            Line::Login(it) => {
                if let Some(text) = notices::of_login(&it) {
                    self.out.notice(Level::Error, text);
                }
            }
            Line::Hook(it) => {
                if let Some(text) = notices::of_hook(&it) {
                    self.out.notice(Level::Error, text);
                }
            }
            Line::Remark(it) => self.out.notice(Level::Info, shortened(&it.content)),
            Line::CommandOutput(it) => self.outer.say(it.content, &mut self.out),
            Line::Ignored => (),
        }
    }

    /// What the program has begun and will never end, as it seems.
    fn leave_behind(&mut self) {
        while let Some((call, mut speaker)) = self.inner.left_behind() {
            speaker.finish_message(MessageEnd::Whole, &mut self.calls, &mut self.out);
            self.abandon(&call);
        }
        while let Some(call) = self.calls.left_behind() {
            self.sub_agent_ended(&call);
            self.abandon(&call);
        }
    }

    fn abandon(&mut self, call: &str) {
        self.withdraw(|it| it.provider_call_id == call);
        self.calls.abandon(call, &mut self.out);
    }

    /// A call that went on in the background ends here.
    fn task_ended(&mut self, task: &TaskEnd) {
        let call = task.tool_use_id.as_deref().unwrap_or_default();
        self.sub_agent_ended(call);
        let was_open = self.calls.end_launched(call, Some(task), &mut self.out);
        let is_stopped = self.interrupted.is_some();
        if let Some(text) = task.trouble().filter(|_| !was_open && !is_stopped) {
            self.out.notice(Level::Info, shortened(text));
        }
    }

    fn turn_begins(&mut self, process: &mut Process) {
        let begins = !std::mem::replace(&mut self.is_turn_running, true);
        match &mut self.interrupted {
            // An afterthought is not what somebody who stopped it wants.
            Some(interrupt) if begins => {
                interrupt.request_id = process.next_request();
                interrupt.is_done = false;
                self.out.write(stdin::interrupt(&interrupt.request_id));
                self.wake_after(PATIENCE_MS);
            }
            Some(_) => (),
            None => self.wake_at = None,
        }
        if !process.reports_lines {
            self.unread.retain(|it| it.steered.is_some());
        }
    }

    fn link(&mut self, init: Init, process: &mut Process) {
        if process.linked.as_ref() == Some(&init.session_id) {
            return;
        }
        process.linked = Some(init.session_id.clone());
        self.out.emit(Event::AgentLinked {
            cli_session_id: init.session_id,
            cwd: init.cwd,
            version: init.claude_code_version,
        });
        let servers = init.mcp_servers.into_iter().flatten();
        for server in servers.filter(|it| it.status == "failed") {
            let is_ours = process.offers_tools && server.name == TOOL_SERVER;
            self.out.notice(Level::Error, notices::of_failed_server(&server.name, is_ours));
        }
    }

    fn hear_request(&mut self, request: Request, raw: &str) {
        let request_id = request.request_id.clone();
        let Some(about) = request.about_call() else {
            self.out.unrecognized(raw);
            return self.out.write(stdin::refuse(&request_id));
        };
        if self.questions.was_answered(&request_id) {
            return;
        }
        let reason = about.reason().map(|it| shortened(&it));
        let AboutCall { tool_use_id, tool_name, input, .. } = about;
        let tool_use_id = tool_use_id
            .or_else(|| self.calls.unasked(&tool_name, &input))
            .unwrap_or_else(|| self.out.unused_name());
        // It may ask before it has said what it wants to call.
        self.calls.start(&tool_use_id, &tool_name, None, &mut self.out);
        self.calls.finish_arguments(&tool_use_id, &input, &mut self.out);
        let Some(call_id) = self.calls.id(&tool_use_id).cloned() else { return };
        self.calls.ask(&tool_use_id);
        let form = input.get("questions").filter(|_| tool_name == "AskUserQuestion").cloned();
        let (asked, has_form) = (call_id.clone(), form.is_some());
        let provider_call_id = tool_use_id;
        if self.questions.add(Question { request_id, call_id, provider_call_id, input, has_form }) {
            let (call_id, can_edit, is_judged) = (asked, true, true);
            self.out.push(Effect::Ask { call_id, can_edit, form, reason, is_judged });
        }
    }

    fn withdraw(&mut self, is_it: impl Fn(&Question) -> bool) {
        if let Some(question) = self.questions.take(is_it) {
            self.out.push(Effect::Withdraw(question.call_id));
        }
    }

    /// Where no turn runs, this is all that comes of an interrupt.
    fn hear_response(&mut self, request_id: &str) {
        let is_ours = self.interrupted.as_ref().is_some_and(|it| it.request_id == request_id);
        if is_ours && !self.is_turn_running {
            self.stopped();
        }
    }

    fn stopped(&mut self) {
        match &mut self.interrupted {
            Some(interrupt) if interrupt.stops_tasks => {
                interrupt.is_done = true;
                self.wake_after(AFTERTHOUGHT_MS);
            }
            _ => self.end(RunStatus::Cancelled, None),
        }
    }

    fn hear_lifecycle(&mut self, lifecycle: &Lifecycle, process: &mut Process) {
        let Lifecycle { command_uuid, state } = lifecycle;
        let Some(at) = self.unread.iter().position(|it| it.uuid == *command_uuid) else { return };
        match state.as_str() {
            "started" | "completed" => {
                self.turn_begins(process);
                if let Some(steered) = self.unread.remove(at).steered {
                    self.out.emit(steered.event(SteerState::Seen));
                }
            }
            "cancelled" if self.unread[at].steered.is_some() => self.give_back(command_uuid),
            "cancelled" => {
                self.unread.remove(at);
                self.is_turn_running = false;
            }
            _ => (),
        }
    }

    /// No model has seen the message, and none will because of this run.
    fn give_back(&mut self, uuid: &str) {
        let lines = self.unread.extract_if(.., |it| it.uuid == uuid);
        let steered = lines.filter_map(|it| it.steered);
        self.out.extend(steered.map(|it| Effect::CannotSteer(it.id)));
    }

    fn turn_ended(&mut self, result: &TurnResult, process: &mut Process) {
        process.turn_ended(&self.calls.launched());
        self.is_turn_running = false;
        self.is_aborted = false;
        self.outer.finish_message(MessageEnd::Whole, &mut self.calls, &mut self.out);
        self.add_usage(result.used());
        self.add_cost(result.cost());
        let api_error = self.api_error.take();
        let was_aborted =
            result.terminal_reason.as_deref().is_some_and(|it| it.starts_with("aborted"));
        if self.interrupted.is_some() || was_aborted {
            return self.stopped();
        }
        let has_failed = result.is_error == Some(true) || result.subtype.starts_with("error");
        let has_visible_text = std::mem::take(&mut self.outer.has_visible_text);
        // It repeats the answer; some commands have no other.
        let words = result.result.as_ref().filter(|it| !has_visible_text && !it.trim().is_empty());
        if let Some(words) = words.filter(|_| !has_failed) {
            self.outer.say(words.clone(), &mut self.out);
        }
        let error = has_failed.then(|| failure::of_turn(result, api_error.as_deref()));
        match (self.goes_on(process), error) {
            (None, None) => self.complete(),
            (None, Some(error)) => self.end(RunStatus::Failed, Some(error)),
            (Some(why), error) => {
                if let Some(error) = error {
                    self.out.notice(Level::Error, error.message);
                }
                self.out.continuation(true, why, "Agent");
                self.wait_for_turn(process);
            }
        }
    }

    /// Why the program will begin another turn by itself.
    fn goes_on(&self, process: &Process) -> Option<&'static str> {
        if process.has_agents() {
            Some("agents_at_work")
        } else if process.reports_lines && !self.unread.is_empty() {
            Some("message_waits")
        } else {
            None
        }
    }

    /// The program begins the next turn as soon as it can; if it does not, there is none.
    fn wait_for_turn(&mut self, process: &Process) {
        let is_waiting = !self.is_turn_running && self.interrupted.is_none();
        if is_waiting && !process.has_agents() && self.wake_at.is_none() {
            self.wake_after(PATIENCE_MS);
        }
    }

    fn wake_after(&mut self, ms: u64) {
        let at = self.out.now().plus(ms);
        self.wake_at = Some(at);
        self.out.push(Effect::WakeAt(at));
    }

    fn add_usage(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage.filter(|it| it.total_tokens > 0) else { return };
        self.usage = Some(self.usage.map_or(usage, |before| before.plus(usage)));
    }

    fn add_cost(&mut self, cost: Option<f64>) {
        self.cost = self.cost.into_iter().chain(cost).reduce(f64::add).and_then(price);
    }

    fn complete(&mut self) {
        // Nobody has said what became of them, and nothing runs any more.
        for call in self.calls.launched() {
            self.calls.end_launched(&call, None, &mut self.out);
        }
        self.end(RunStatus::Completed, None);
    }

    fn end(&mut self, status: RunStatus, error: Option<ErrorInfo>) {
        let (stop_reason, resolved_by) = match status {
            RunStatus::Completed => ("completed", "Agent"),
            RunStatus::Failed => ("error", "ErrorPolicy"),
            RunStatus::Cancelled => ("user_requested", "UserCancel"),
        };
        if status != RunStatus::Completed {
            let steered = self.unread.drain(..).filter_map(|it| it.steered);
            self.out.extend(steered.map(|it| Effect::CannotSteer(it.id)));
        }
        self.out.continuation(false, stop_reason, resolved_by);
        let (usage, cost) = (self.usage, self.cost);
        self.out.end_run(Ending { status, error, usage, cost });
    }
}
