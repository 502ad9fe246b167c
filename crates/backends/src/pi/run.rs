//! One run: from a prompt, or from when Pi begins by itself, until Pi is idle.

use std::sync::Arc;

use serde_json::Value;
use transcript::{CallId, ErrorCode, Event, Level, MessageId, Millis, RunStatus, SteerState};

use super::command::{self, Prompt};
use super::questions::Questions;
use super::speaker::{Speaker, Stop};
use super::tools::Ended;
use super::wire::{
    CompactionEnd, Dialog, Execution, Line, Message, Response, ResponseData, RetryStart, ToolSaid,
};
use super::{Settings, failure};
use crate::abandoned::abandoned;
use crate::emitter::Emitter;
use crate::{Effect, Ending, Exit, Verdict};

/// How long an interrupted program has to come to its end.
const GRACE_MS: u64 = 5000;
/// After this, a prompt of which nothing came may have been a command that needs no answer.
const SILENCE_MS: u64 = 5000;
/// How long a package that has said what it does next is given to say that it is done.
const SETTLE_MS: u64 = 2000;
/// When to ask again whether Pi is idle.
const AGAIN_MS: u64 = 500;

#[derive(Debug)]
pub(super) struct Run {
    settings: Arc<Settings>,
    speaker: Speaker,
    phase: Phase,
    /// What Pi is to be told as soon as it may.
    held: Option<Prompt>,
    /// The command that began it. None: Pi did.
    prompt: Option<String>,
    /// Pi has repeated it, as it understands it.
    has_said_prompt: bool,
    steers: Vec<Steer>,
    questions: Questions,
    /// Why the model stopped last.
    stop: Option<Stop>,
    /// Pi may say itself when it is done: its `agent_end` tells what follows. Not every package that tells
    /// this says it.
    may_settle: bool,
    /// Somebody wants it to stop: by when it has to.
    interrupt: Option<Millis>,
    /// When to ask whether Pi is idle.
    ask_at: Option<Millis>,
    /// What the driver was told last.
    wakes_at: Option<Millis>,
}

#[derive(Debug)]
enum Phase {
    /// Nothing has come of the prompt yet.
    Prompted,
    Working,
    /// The agent has ended, for now. `asked` is the command whose answer says whether for good.
    Resting {
        asked: Option<String>,
    },
}

/// A message that is on its way into the run.
#[derive(Debug)]
struct Steer {
    command: String,
    message_id: MessageId,
    text: String,
    is_handed_over: bool,
}

impl Run {
    pub(super) fn by_itself(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            speaker: Speaker::default(),
            phase: Phase::Working,
            held: None,
            prompt: None,
            has_said_prompt: false,
            steers: Vec::new(),
            questions: Questions::default(),
            stop: None,
            may_settle: false,
            interrupt: None,
            ask_at: None,
            wakes_at: None,
        }
    }

    pub(super) fn prompted(settings: Arc<Settings>, prompt: Prompt) -> Self {
        Self { phase: Phase::Prompted, held: Some(prompt), ..Self::by_itself(settings) }
    }

    /// Tells Pi what it was not told yet.
    pub(super) fn prompt(&mut self, out: &mut Emitter) {
        if let Some(prompt) = self.held.take() {
            self.prompt = Some(command::send("prompt", |id| command::prompt(id, prompt), out));
        }
    }

    /// Pi must do nothing.
    pub(super) fn refuse(&mut self, out: &mut Emitter) {
        out.continuation(false, "error", "ErrorPolicy");
        out.push(Effect::Quit);
        self.end(RunStatus::Failed, Some(failure::unguarded()), out);
    }

    pub(super) fn hear(&mut self, line: Line, out: &mut Emitter) {
        while let Some(call) = self.speaker.left_behind() {
            self.questions.withdraw(&call.id, out);
            call.break_off(abandoned(), out);
        }
        match line {
            Line::Response(response) => self.answered(response, out),
            Line::AgentStart => self.agent_started(out),
            Line::AgentEnd(end) => {
                self.may_settle |= end.will_retry.is_some();
                self.phase = Phase::Resting { asked: None };
                self.ask_at = None;
                if end.will_retry != Some(true) {
                    self.rest_on(out);
                }
            }
            Line::AgentSettled(settled) => self.settled(settled.aborted, out),
            Line::MessageStart(message) => self.message_started(&message, out),
            Line::MessageUpdate(update) => self.speaker.update(&update, out),
            Line::MessageEnd(message) => self.message_ended(message, out),
            Line::ToolStart(Execution { tool_call_id, tool_name, args, .. }) => {
                let call = self.speaker.call(&tool_call_id, &tool_name, out);
                call.take_up(args.as_ref(), self.settings.asks(), out);
            }
            Line::ToolUpdate(Execution { tool_call_id, tool_name, args, result, .. }) => {
                let call = self.speaker.call(&tool_call_id, &tool_name, out);
                call.finish_arguments(args.as_ref(), out);
                call.print(result.unwrap_or_default().content.text(), out);
            }
            Line::ToolEnd(execution) => self.tool_ended(execution, out),
            Line::RetryStart(retry) => self.retry(&retry, out),
            Line::RetryEnd(end) => {
                if !end.success {
                    self.rest_on(out);
                }
            }
            Line::CompactionStart(start) => self.compact(&start.reason, out),
            Line::CompactionEnd(end) => self.compacted(end, out),
            Line::Dialog(dialog) if self.interrupt.is_some() => dialog.decline(out),
            Line::Dialog(dialog) => self.hear_dialog(dialog, out),
            Line::ExtensionError(error) => {
                let (path, why) = (error.extension_path, failure::shortened(&error.error));
                out.notice(Level::Error, format!("Pi's extension {path} failed: {why}."));
            }
            Line::Ignorable => (),
        }
        self.schedule(out);
    }

    pub(super) fn steer(&mut self, message_id: MessageId, message: &Value, out: &mut Emitter) {
        let is_over = matches!(self.phase, Phase::Resting { .. }) || self.interrupt.is_some();
        if is_over || self.held.is_some() {
            out.push(Effect::CannotSteer(message_id));
            return;
        }
        let prompt = Prompt::of(message);
        let text = prompt.text.clone();
        let command = command::send("steer", |id| command::steer(id, prompt), out);
        self.steers.push(Steer { command, message_id, text, is_handed_over: false });
    }

    pub(super) fn decided(&mut self, call_id: &CallId, verdict: &Verdict, out: &mut Emitter) {
        if !self.questions.decide(call_id, verdict, out) {
            return;
        }
        let Some(call) = self.speaker.calls.iter_mut().find(|it| it.id == *call_id) else {
            return;
        };
        if call.is_question {
            return call.answered(verdict, out);
        }
        match verdict {
            Verdict::Allowed { arguments: Some(edited), .. }
                if command::as_object(edited).is_none() =>
            {
                call.forbid(ErrorCode::InvalidArguments);
            }
            Verdict::Allowed { .. } => call.run(out),
            Verdict::Denied { .. } => call.forbid(ErrorCode::ToolDenied),
            Verdict::TimedOut => call.forbid(ErrorCode::ApprovalTimeout),
        }
    }

    /// A question that is about no call becomes one.
    fn hear_dialog(&mut self, dialog: Dialog, out: &mut Emitter) {
        let Some(dialog) = self.questions.hear(dialog, &self.speaker.calls, out) else { return };
        let Some(asks) = dialog.asks() else { return dialog.give_up(out) };
        let name = dialog.call_name();
        if self.speaker.calls.iter().any(|it| it.provider_id == name) {
            return;
        }
        let call = self.speaker.call(&name, "elicitation", out);
        call.is_question = true;
        call.finish_arguments(Some(&asks), out);
        let id = call.id.clone();
        self.questions.put(&dialog, id, out);
    }

    pub(super) fn interrupt(&mut self, out: &mut Emitter) {
        if self.interrupt.is_some() {
            return;
        }
        self.interrupt = Some(out.now().plus(GRACE_MS));
        if self.held.is_some() {
            return self.finish(out);
        }
        command::send("abort", command::abort, out);
        self.questions.cancel_all(out);
        self.schedule(out);
    }

    pub(super) fn wake(&mut self, out: &mut Emitter) {
        self.wakes_at = None;
        if self.interrupt.is_some_and(|deadline| deadline <= out.now()) {
            out.push(Effect::Quit);
            return self.finish(out);
        }
        if self.ask_at.is_some_and(|at| at <= out.now()) {
            self.ask(out);
        }
        self.schedule(out);
    }

    /// `is_kept`: Pi has a conversation to go on with.
    pub(super) fn exited(&mut self, exit: &Exit, is_kept: bool, out: &mut Emitter) {
        if !is_kept && !matches!(self.phase, Phase::Prompted) {
            let text = "Pi keeps a conversation only from its first answer on: the next message begins \
                        a new one, which knows nothing of this.";
            out.notice(Level::Error, text);
        }
        let is_resting = matches!(self.phase, Phase::Resting { .. });
        let has_answered = is_resting && matches!(self.stop, Some(Stop::Done | Stop::Length));
        if has_answered || self.interrupt.is_some() {
            return self.finish(out);
        }
        self.speaker.keep_failed("error", out);
        out.continuation(false, "error", "AgentExited");
        self.end(RunStatus::Failed, Some(failure::exited(exit)), out);
    }

    fn answered(&mut self, response: Response, out: &mut Emitter) {
        let Some(id) = response.id.as_deref() else { return };
        let data = response.data.unwrap_or_default();
        if self.prompt.as_deref() == Some(id) {
            let error = response.error.unwrap_or_default();
            return self.prompt_answered(response.success, &error, &data, out);
        }
        if matches!(&self.phase, Phase::Resting { asked: Some(asked) } if asked == id) {
            return self.state_answered(&data, out);
        }
        let Some(idx) = self.steers.iter().position(|it| it.command == id) else { return };
        if response.success {
            let steer = &mut self.steers[idx];
            steer.is_handed_over = true;
            out.emit(steer.told(SteerState::HandedOver));
        } else {
            out.push(Effect::CannotSteer(self.steers.remove(idx).message_id));
        }
    }

    fn prompt_answered(
        &mut self,
        success: bool,
        error: &str,
        data: &ResponseData,
        out: &mut Emitter,
    ) {
        if !matches!(self.phase, Phase::Prompted) {
            return;
        }
        if !success {
            self.stop = Some(Stop::Error(error.to_owned()));
            return self.finish(out);
        }
        match data.disposition.as_deref() {
            // A command of an extension, which need not lead to an answer.
            Some("handled") => self.ask(out),
            Some(_) => (),
            // The old package does not say what it makes of it.
            None => self.ask_at = Some(out.now().plus(SILENCE_MS)),
        }
    }

    fn state_answered(&mut self, state: &ResponseData, out: &mut Emitter) {
        if state.is_streaming || state.is_compacting || self.questions.are_open() {
            self.phase = Phase::Resting { asked: None };
            self.ask_at = Some(out.now().plus(AGAIN_MS));
        } else {
            self.finish(out);
        }
    }

    fn agent_started(&mut self, out: &mut Emitter) {
        self.speaker.discard_failed(out);
        self.phase = Phase::Working;
        self.ask_at = None;
        // It may have been too early: before it had begun, there was nothing to stop.
        if self.interrupt.is_some() {
            command::send("abort", command::abort, out);
        }
    }

    fn settled(&mut self, aborted: bool, out: &mut Emitter) {
        // Of what was before the prompt.
        if matches!(self.phase, Phase::Prompted) {
            return;
        }
        if aborted {
            self.stop = Some(Stop::Aborted);
        }
        self.finish(out);
    }

    /// The agent has ended, and what was to follow is over too: for good, if nothing more is said to follow.
    fn rest_on(&mut self, out: &mut Emitter) {
        if !matches!(self.phase, Phase::Resting { asked: None }) {
            return;
        }
        if self.may_settle {
            self.ask_at = Some(out.now().plus(SETTLE_MS));
        } else {
            self.ask(out);
        }
    }

    /// Something follows; it will be heard of.
    fn stay(&mut self) {
        if let Phase::Resting { asked } = &mut self.phase {
            *asked = None;
            self.ask_at = None;
        }
    }

    fn ask(&mut self, out: &mut Emitter) {
        self.ask_at = None;
        self.phase =
            Phase::Resting { asked: Some(command::send("state", command::get_state, out)) };
    }

    fn message_started(&mut self, message: &Message, out: &mut Emitter) {
        match message.role.as_str() {
            "assistant" => self.speaker.start_message(out),
            "user" => self.user_said(&message.content.text(), out),
            "custom" if message.display => {
                out.notice(Level::Info, message.content.text());
            }
            _ => (),
        }
    }

    fn user_said(&mut self, text: &str, out: &mut Emitter) {
        let is_prompt =
            self.prompt.is_some() && !std::mem::replace(&mut self.has_said_prompt, true);
        let same = self.steers.iter().position(|it| it.is_handed_over && it.text == text);
        // Pi may have put other words in its place.
        let first = || self.steers.iter().position(|it| it.is_handed_over).filter(|_| !is_prompt);
        match same.or_else(first) {
            Some(idx) => out.emit(self.steers.remove(idx).told(SteerState::Seen)),
            None if self.prompt.is_none() => {
                out.notice(Level::Info, format!("Pi goes on: {text}"));
            }
            None => (),
        }
    }

    fn message_ended(&mut self, message: Message, out: &mut Emitter) {
        match message.role.as_str() {
            "assistant" => self.stop = Some(self.speaker.end_message(message, out)),
            "toolResult" => {
                let Message { tool_call_id, content, details, is_error, duration_ms, .. } = message;
                let calls = &mut self.speaker.calls;
                let is_it = |id: &str| Some(id) == tool_call_id.as_deref();
                let Some(call) = calls.iter_mut().find(|it| is_it(&it.provider_id)) else { return };
                let said = ToolSaid { content, details, structured_content: None };
                let is_interrupted = self.interrupt.is_some();
                call.end(Ended { said, is_error, duration_ms, is_interrupted }, out);
            }
            "bashExecution" => {
                let Message { command, output, .. } = message;
                let (command, output) = (command.unwrap_or_default(), output.unwrap_or_default());
                out.notice(Level::Info, format!("Pi was told to run {command}\n{output}"));
            }
            _ => (),
        }
    }

    fn tool_ended(&mut self, execution: Execution, out: &mut Emitter) {
        let Execution { tool_call_id, tool_name, result, is_error, duration_ms, .. } = execution;
        let call = self.speaker.call(&tool_call_id, &tool_name, out);
        self.questions.withdraw(&call.id, out);
        let said = result.unwrap_or_default();
        let is_interrupted = self.interrupt.is_some();
        call.end(Ended { said, is_error, duration_ms, is_interrupted }, out);
    }

    fn retry(&mut self, retry: &RetryStart, out: &mut Emitter) {
        self.speaker.discard_failed(out);
        self.stay();
        let RetryStart { attempt, max_attempts, .. } = *retry;
        let why = failure::words(&retry.error_message);
        let seconds = retry.delay_ms.whole() as f64 / 1000.0;
        let text = format!(
            "The model service failed ({why}). Pi tries again in {seconds} s (attempt {attempt} of \
             {max_attempts})."
        );
        out.notice(Level::Info, text);
    }

    fn compact(&mut self, reason: &str, out: &mut Emitter) {
        self.stay();
        let why = match reason {
            "overflow" => "The conversation no longer fits into the model's context. ",
            _ => "",
        };
        out.notice(Level::Info, format!("{why}Pi is shortening the conversation."));
    }

    fn compacted(&mut self, end: CompactionEnd, out: &mut Emitter) {
        match (end.error_message, end.aborted) {
            (Some(error), _) => {
                let why = failure::shortened(&error);
                // It may have tried, or only say that it will not try once more.
                let text = format!("Pi says of shortening the conversation: {why}.");
                out.notice(Level::Error, text);
            }
            (None, true) => out.notice(Level::Info, "Pi did not shorten the conversation."),
            (None, false) => out.notice(Level::Info, "Pi has shortened the conversation."),
        }
        if end.will_retry {
            self.stay();
        } else {
            self.rest_on(out);
        }
    }

    /// Pi is idle, or its time is over.
    fn finish(&mut self, out: &mut Emitter) {
        // The new package also calls it an error if it was stopped.
        let is_stopped = self.interrupt.is_some() || self.stop == Some(Stop::Aborted);
        self.speaker.keep_failed(if is_stopped { "cancelled" } else { "error" }, out);
        if self.interrupt.is_some() {
            out.continuation(false, "user_requested", "UserCancel");
            return self.end(RunStatus::Cancelled, None, out);
        }
        match self.stop.take() {
            Some(Stop::Error(error)) => {
                out.continuation(false, "error", "ErrorPolicy");
                self.end(RunStatus::Failed, Some(failure::reported(&error)), out);
            }
            Some(Stop::Aborted) => {
                out.continuation(false, "user_requested", "Agent");
                self.end(RunStatus::Cancelled, None, out);
            }
            Some(Stop::Length) => {
                out.continuation(false, "token_limit", "OutputLimit");
                self.end(RunStatus::Completed, None, out);
            }
            Some(Stop::Done | Stop::Tools | Stop::Other) => {
                out.continuation(false, "completed", "Agent");
                self.end(RunStatus::Completed, None, out);
            }
            None => {
                out.notice(Level::Info, "Pi has taken the message and did not answer.");
                out.continuation(false, "completed", "Agent");
                self.end(RunStatus::Completed, None, out);
            }
        }
    }

    fn end(&mut self, status: RunStatus, error: Option<transcript::ErrorInfo>, out: &mut Emitter) {
        // Pi would give them to the next prompt, and there is no way to take them back but this.
        if self.steers.iter().any(|it| it.is_handed_over) {
            out.push(Effect::Quit);
        }
        // Pi would wait for the answer for ever.
        self.questions.cancel_all(out);
        let unseen = self.steers.drain(..);
        out.extend(unseen.map(|it| Effect::CannotSteer(it.message_id)));
        // The sum of what the steps have used and cost is the driver's to make.
        out.end_run(Ending { status, error, usage: None, cost: None });
    }

    fn schedule(&mut self, out: &mut Emitter) {
        if matches!(out.last(), Some(Effect::End(_))) {
            return;
        }
        let next = self.interrupt.into_iter().chain(self.ask_at).min();
        if next != self.wakes_at {
            self.wakes_at = next;
            out.extend(next.map(Effect::WakeAt));
        }
    }
}

impl Steer {
    fn told(&self, state: SteerState) -> Event {
        Event::MessageSteered {
            message_id: self.message_id.clone(),
            text: self.text.clone(),
            state,
        }
    }
}
