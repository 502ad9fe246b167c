//! One run: from a prompt, or from when Pi begins by itself, until Pi is idle.

use std::sync::Arc;

use serde_json::Value;
use transcript::{
    CallId, ErrorCode, Event, Level, MessageId, Millis, ResponseId, RunStatus, SteerState,
};

use super::command::{self, Prompt};
use super::telling::{Stop, Telling};
use super::tools::Ended;
use super::wire::{
    CompactionEnd, Dialog, Execution, Line, Message, Response, ResponseData, RetryStart, ToolSaid,
};
use super::{Out, Settings, failure};
use crate::{Effect, Ending, Exit, Verdict};

/// How long an interrupted program has to come to its end.
const GRACE_MS: u64 = 5000;
/// After this, a prompt of which nothing came may have been a command that needs no answer.
const SILENCE_MS: u64 = 5000;
/// When to ask again whether Pi is idle.
const AGAIN_MS: u64 = 500;
/// The title of our own extension's dialogs.
const QUESTION: &str = "callboard:tool_call";

pub(super) struct Run {
    settings: Arc<Settings>,
    telling: Telling,
    phase: Phase,
    /// The command that began it. None: Pi did.
    prompt: Option<String>,
    steers: Vec<Steer>,
    questions: Vec<Question>,
    /// Why the model stopped last.
    stop: Option<Stop>,
    /// Pi says itself when it is done.
    settles: bool,
    /// Somebody wants it to stop: by when it has to.
    interrupt: Option<Millis>,
    /// When to ask whether Pi is idle.
    ask_at: Option<Millis>,
    /// What the driver was told last.
    wakes_at: Option<Millis>,
}

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
struct Steer {
    command: String,
    message_id: MessageId,
    text: String,
    is_handed_over: bool,
}

/// An open dialog about a call.
struct Question {
    call_id: CallId,
    dialog: String,
    /// Our extension asks, which takes more than a yes or no.
    is_ours: bool,
}

impl Run {
    pub(super) fn by_itself(id: ResponseId, settings: Arc<Settings>) -> Self {
        Self {
            settings,
            telling: Telling::new(id),
            phase: Phase::Working,
            prompt: None,
            steers: Vec::new(),
            questions: Vec::new(),
            stop: None,
            settles: false,
            interrupt: None,
            ask_at: None,
            wakes_at: None,
        }
    }

    pub(super) fn prompted(
        id: ResponseId,
        settings: Arc<Settings>,
        prompt: Prompt,
        out: &mut Out,
    ) -> Self {
        let command = out.command("prompt", |id| command::prompt(id, prompt));
        Self { phase: Phase::Prompted, prompt: Some(command), ..Self::by_itself(id, settings) }
    }

    pub(super) fn hear(&mut self, now: Millis, line: Line, out: &mut Out) {
        match line {
            Line::Response(response) => self.answered(now, response, out),
            Line::AgentStart => self.agent_started(out),
            Line::AgentEnd(end) => {
                self.settles |= end.will_retry.is_some();
                self.rest(out);
            }
            Line::AgentSettled(settled) => {
                if settled.aborted {
                    self.stop = Some(Stop::Aborted);
                }
                self.settles = true;
                if !matches!(self.phase, Phase::Prompted) {
                    self.finish(out);
                }
            }
            Line::MessageStart(message) => self.message_started(&message, out),
            Line::MessageUpdate(update) => self.telling.update(&update, out),
            Line::MessageEnd(message) => self.message_ended(now, message, out),
            Line::ToolStart(Execution { tool_call_id, tool_name, args, .. }) => {
                let call = self.telling.call(&tool_call_id, &tool_name, out);
                call.take_up(now, args.as_ref(), self.settings.asks(), out);
            }
            Line::ToolUpdate(Execution { tool_call_id, tool_name, args, result, .. }) => {
                let call = self.telling.call(&tool_call_id, &tool_name, out);
                call.finish_arguments(args.as_ref(), out);
                call.print(now, result.unwrap_or_default().content.text(), out);
            }
            Line::ToolEnd(execution) => self.tool_ended(now, execution, out),
            Line::RetryStart(retry) => self.retry(&retry, out),
            Line::RetryEnd(end) => {
                if !end.success {
                    self.rest_on(out);
                }
            }
            Line::CompactionStart(start) => self.compact(&start.reason, out),
            Line::CompactionEnd(end) => self.compacted(end, out),
            Line::Dialog(dialog) => self.asked(dialog, out),
            Line::ExtensionError(error) => {
                let (path, why) = (error.extension_path, failure::shortened(&error.error));
                notice(Level::Error, format!("Pi's extension {path} failed: {why}."), out);
            }
            Line::Ignorable => (),
        }
        self.schedule(out);
    }

    pub(super) fn steer(&mut self, message_id: MessageId, message: &Value, out: &mut Out) {
        let is_over = matches!(self.phase, Phase::Resting { .. }) || self.interrupt.is_some();
        if is_over {
            out.effects.push(Effect::CannotSteer(message_id));
            return;
        }
        let prompt = Prompt::of(message);
        let text = prompt.text.clone();
        let command = out.command("steer", |id| command::steer(id, prompt));
        self.steers.push(Steer { command, message_id, text, is_handed_over: false });
    }

    pub(super) fn decided(
        &mut self,
        now: Millis,
        call_id: &CallId,
        verdict: &Verdict,
        out: &mut Out,
    ) {
        let Some(idx) = self.questions.iter().position(|it| it.call_id == *call_id) else {
            return;
        };
        let Question { dialog, is_ours, .. } = self.questions.swap_remove(idx);
        out.write(match is_ours {
            true => command::decide(&dialog, verdict),
            false => command::confirm(&dialog, verdict),
        });
        let Some(call) = self.telling.calls.iter_mut().find(|it| it.id == *call_id) else {
            return;
        };
        match verdict {
            Verdict::Allowed { arguments: Some(edited), .. }
                if command::as_object(edited).is_none() =>
            {
                call.forbid(ErrorCode::InvalidArguments);
            }
            Verdict::Allowed { .. } => call.run(now, out),
            Verdict::Denied { .. } => call.forbid(ErrorCode::ToolDenied),
            Verdict::TimedOut => call.forbid(ErrorCode::ApprovalTimeout),
        }
    }

    pub(super) fn interrupt(&mut self, now: Millis, out: &mut Out) {
        if self.interrupt.is_some() {
            return;
        }
        self.interrupt = Some(now.plus(GRACE_MS));
        out.command("abort", command::abort);
        for question in std::mem::take(&mut self.questions) {
            out.write(command::cancel_dialog(&question.dialog));
            out.effects.push(Effect::Withdraw(question.call_id));
        }
        self.schedule(out);
    }

    pub(super) fn wake(&mut self, now: Millis, out: &mut Out) {
        self.wakes_at = None;
        if self.interrupt.is_some_and(|deadline| deadline <= now) {
            out.effects.push(Effect::Quit);
            return self.finish(out);
        }
        if self.ask_at.is_some_and(|at| at <= now) {
            self.ask(out);
        }
        self.schedule(out);
    }

    pub(super) fn exited(&mut self, exit: &Exit, out: &mut Out) {
        if self.interrupt.is_some() {
            return self.finish(out);
        }
        self.telling.keep_failed("error", out);
        self.decide("error", "AgentExited", out);
        self.end(RunStatus::Failed, Some(failure::exited(exit)), out);
    }

    fn answered(&mut self, now: Millis, response: Response, out: &mut Out) {
        let Some(id) = response.id.as_deref() else { return };
        let data = response.data.unwrap_or_default();
        if self.prompt.as_deref() == Some(id) {
            let error = response.error.unwrap_or_default();
            return self.prompt_answered(now, response.success, &error, &data, out);
        }
        if matches!(&self.phase, Phase::Resting { asked: Some(asked) } if asked == id) {
            return self.state_answered(now, &data, out);
        }
        let Some(idx) = self.steers.iter().position(|it| it.command == id) else { return };
        if response.success {
            let steer = &mut self.steers[idx];
            steer.is_handed_over = true;
            out.emit(steer.told(SteerState::HandedOver));
        } else {
            out.effects.push(Effect::CannotSteer(self.steers.remove(idx).message_id));
        }
    }

    fn prompt_answered(
        &mut self,
        now: Millis,
        success: bool,
        error: &str,
        data: &ResponseData,
        out: &mut Out,
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
            None => self.ask_at = Some(now.plus(SILENCE_MS)),
        }
    }

    fn state_answered(&mut self, now: Millis, state: &ResponseData, out: &mut Out) {
        if state.is_streaming || state.is_compacting {
            self.phase = Phase::Resting { asked: None };
            self.ask_at = Some(now.plus(AGAIN_MS));
        } else {
            self.finish(out);
        }
    }

    fn agent_started(&mut self, out: &mut Out) {
        self.telling.discard_failed(out);
        self.phase = Phase::Working;
        self.ask_at = None;
        // It may have been too early: before it had begun, there was nothing to stop.
        if self.interrupt.is_some() {
            out.command("abort", command::abort);
        }
    }

    /// The agent has ended: for good, if nothing is said to follow.
    fn rest(&mut self, out: &mut Out) {
        self.phase = Phase::Resting { asked: None };
        self.rest_on(out);
    }

    /// What was to follow is over, too.
    fn rest_on(&mut self, out: &mut Out) {
        if matches!(self.phase, Phase::Resting { asked: None }) && !self.settles {
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

    fn ask(&mut self, out: &mut Out) {
        self.ask_at = None;
        self.phase = Phase::Resting { asked: Some(out.command("state", command::get_state)) };
    }

    fn message_started(&mut self, message: &Message, out: &mut Out) {
        match message.role.as_str() {
            "assistant" => self.telling.start_message(out),
            "user" => self.user_said(&message.content.text(), out),
            "custom" if message.display => {
                notice(Level::Info, message.content.text(), out);
            }
            _ => (),
        }
    }

    fn user_said(&mut self, text: &str, out: &mut Out) {
        let steered = self.steers.iter().position(|it| it.is_handed_over && it.text == text);
        match steered {
            Some(idx) => out.emit(self.steers.remove(idx).told(SteerState::Seen)),
            None if self.prompt.is_none() => {
                notice(Level::Info, format!("Pi goes on: {text}"), out)
            }
            // It is the prompt, as Pi understands it.
            None => (),
        }
    }

    fn message_ended(&mut self, now: Millis, message: Message, out: &mut Out) {
        match message.role.as_str() {
            "assistant" => self.stop = Some(self.telling.end_message(message, out)),
            "toolResult" => {
                let Message { tool_call_id, content, details, is_error, duration_ms, .. } = message;
                let calls = &mut self.telling.calls;
                let is_it = |id: &str| Some(id) == tool_call_id.as_deref();
                let Some(call) = calls.iter_mut().find(|it| is_it(&it.provider_id)) else { return };
                let said = ToolSaid { content, details, structured_content: None };
                let is_interrupted = self.interrupt.is_some();
                call.end(now, Ended { said, is_error, duration_ms, is_interrupted }, out);
            }
            _ => (),
        }
    }

    fn tool_ended(&mut self, now: Millis, execution: Execution, out: &mut Out) {
        let Execution { tool_call_id, tool_name, result, is_error, duration_ms, .. } = execution;
        let call = self.telling.call(&tool_call_id, &tool_name, out);
        let questions = &mut self.questions;
        if let Some(idx) = questions.iter().position(|it| it.call_id == call.id) {
            out.effects.push(Effect::Withdraw(questions.swap_remove(idx).call_id));
        }
        let said = result.unwrap_or_default();
        let is_interrupted = self.interrupt.is_some();
        call.end(now, Ended { said, is_error, duration_ms, is_interrupted }, out);
    }

    fn retry(&mut self, retry: &RetryStart, out: &mut Out) {
        self.telling.discard_failed(out);
        self.stay();
        let RetryStart { attempt, max_attempts, .. } = *retry;
        let why = failure::words(&retry.error_message);
        let seconds = retry.delay_ms.whole() as f64 / 1000.0;
        let text = format!(
            "The model service failed ({why}). Pi tries again in {seconds} s (attempt {attempt} of \
             {max_attempts})."
        );
        notice(Level::Info, text, out);
    }

    fn compact(&mut self, reason: &str, out: &mut Out) {
        self.stay();
        let why = match reason {
            "overflow" => "The conversation no longer fits into the model's context. ",
            _ => "",
        };
        notice(Level::Info, format!("{why}Pi is shortening the conversation."), out);
    }

    fn compacted(&mut self, end: CompactionEnd, out: &mut Out) {
        match (end.error_message, end.aborted) {
            (Some(error), _) => {
                let why = failure::shortened(&error);
                let text = format!("Pi could not shorten the conversation: {why}.");
                notice(Level::Error, text, out);
            }
            (None, true) => notice(Level::Info, "Pi did not shorten the conversation.", out),
            (None, false) => notice(Level::Info, "Pi has shortened the conversation.", out),
        }
        if end.will_retry {
            self.stay();
        } else {
            self.rest_on(out);
        }
    }

    fn asked(&mut self, dialog: Dialog, out: &mut Out) {
        if !dialog.is_question() {
            if let ("notify", Some(message)) = (dialog.method.as_str(), dialog.message) {
                let is_error = dialog.notify_type.as_deref() == Some("error");
                let level = if is_error { Level::Error } else { Level::Info };
                notice(level, message, out);
            }
            return;
        }
        let is_ours = dialog.method == "input" && dialog.title == QUESTION;
        let about = if is_ours { &dialog.placeholder } else { &dialog.message };
        let call_id = about.as_deref().and_then(|it| self.call_in(it));
        match call_id {
            _ if self.interrupt.is_some() => dialog.decline(out),
            Some(call_id) => {
                out.effects.push(Effect::Ask {
                    call_id: call_id.clone(),
                    can_edit: is_ours,
                    form: None,
                });
                self.questions.push(Question { call_id, dialog: dialog.id, is_ours });
            }
            None => {
                dialog.decline(out);
                let title = failure::shortened(&dialog.title);
                let text = format!(
                    "An extension of Pi asks “{title}”. Callboard cannot show its questions, and has \
                     declined."
                );
                notice(Level::Info, text, out);
            }
        }
    }

    /// The open call that a question names, if nobody was asked about it yet.
    fn call_in(&self, question: &str) -> Option<CallId> {
        let question: Value = serde_json::from_str(question).ok()?;
        let id = question.get("toolCallId")?.as_str()?;
        let mut calls = self.telling.calls.iter();
        let call = calls.find(|it| it.provider_id == id && it.may_be_asked_about())?;
        let is_asked = self.questions.iter().any(|it| it.call_id == call.id);
        (!is_asked).then(|| call.id.clone())
    }

    /// Pi is idle, or its time is over.
    fn finish(&mut self, out: &mut Out) {
        // The new package also calls it an error if it was stopped.
        let is_stopped = self.interrupt.is_some() || self.stop == Some(Stop::Aborted);
        self.telling.keep_failed(if is_stopped { "cancelled" } else { "error" }, out);
        if self.interrupt.is_some() {
            self.decide("user_requested", "UserCancel", out);
            return self.end(RunStatus::Cancelled, None, out);
        }
        match self.stop.take() {
            Some(Stop::Error(error)) => {
                self.decide("error", "ErrorPolicy", out);
                self.end(RunStatus::Failed, Some(failure::reported(&error)), out);
            }
            Some(Stop::Aborted) => {
                self.decide("user_requested", "Agent", out);
                self.end(RunStatus::Cancelled, None, out);
            }
            Some(Stop::Length) => {
                self.decide("token_limit", "OutputLimit", out);
                self.end(RunStatus::Completed, None, out);
            }
            Some(Stop::Done | Stop::Tools | Stop::Other) => {
                self.decide("completed", "Agent", out);
                self.end(RunStatus::Completed, None, out);
            }
            None => {
                notice(Level::Info, "Pi has taken the message and did not answer.", out);
                self.decide("completed", "Agent", out);
                self.end(RunStatus::Completed, None, out);
            }
        }
    }

    fn decide(&self, stop_reason: &str, resolved_by: &str, out: &mut Out) {
        out.emit(Event::Continuation {
            should_continue: false,
            stop_reason: stop_reason.to_owned(),
            resolved_by: resolved_by.to_owned(),
            evaluations: Vec::new(),
        });
    }

    fn end(&mut self, status: RunStatus, error: Option<transcript::ErrorInfo>, out: &mut Out) {
        let waiting = self.steers.drain(..).filter(|it| !it.is_handed_over);
        out.effects.extend(waiting.map(|it| Effect::CannotSteer(it.message_id)));
        // The sum of the steps' usage is the driver's to make.
        out.effects.push(Effect::End(Ending { status, error, usage: None }));
    }

    fn schedule(&mut self, out: &mut Out) {
        if matches!(out.effects.last(), Some(Effect::End(_))) {
            return;
        }
        let next = self.interrupt.into_iter().chain(self.ask_at).min();
        if next != self.wakes_at {
            self.wakes_at = next;
            out.effects.extend(next.map(Effect::WakeAt));
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

fn notice(level: Level, text: impl Into<String>, out: &mut Out) {
    out.emit(Event::Notice { level, text: text.into() });
}
