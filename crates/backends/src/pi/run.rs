//! One run: from a prompt, or from when Pi begins by itself, until Pi is idle.

use std::sync::Arc;

use serde_json::Value;
use transcript::{CallId, ErrorCode, Level, MessageId, Millis, RunStatus};

use super::author::{Author, Stop};
use super::command::{self, Prompt};
use super::questions::{self, Request};
use super::tools::Ended;
use super::wire::{
    CompactionEnd, Dialog, Execution, Line, Message, Response, ResponseData, RetryStart, ToolOutput,
};
use super::{Cx, Settings, failure};
use crate::program::abandoned;
use crate::{Exit, ProgramEffect, RunEffect, Verdict};

/// Time that an interrupted Pi has to end its run.
const GRACE_MS: u64 = 5000;
/// Time after Pi's response to a prompt until Pi is asked whether it is idle, because the prompt
/// may be a command without an answer.
const SILENCE_MS: u64 = 5000;
/// Time that Pi has to report `agent_settled` if its `agent_end` has `willRetry`.
const SETTLE_MS: u64 = 2000;
/// Time after which a busy Pi is asked again whether it is idle.
const POLL_INTERVAL_MS: u64 = 500;

#[derive(Debug)]
pub(super) struct Run {
    settings: Arc<Settings>,
    author: Author,
    phase: Phase,
    /// Prompt that may not be sent yet. `None` once it is sent.
    held: Option<Prompt>,
    /// Id of the prompt command that began the run. `None` before it is sent, or if Pi began the
    /// run by itself.
    prompt: Option<String>,
    /// Whether Pi has echoed the prompt of the run as a message.
    has_echoed_prompt: bool,
    /// Reason for which the model stopped writing its last message. `None` before its first message
    /// ends.
    stop: Option<Stop>,
    /// Whether Pi may report `agent_settled`, because its `agent_end` has `willRetry`. Not every
    /// package with that field does.
    may_settle: bool,
    /// Deadline of an interrupted run. `None` if nobody asked to stop it.
    interrupt: Option<Millis>,
    /// Time at which to ask Pi whether it is idle. `None` if that is not necessary.
    ask_at: Option<Millis>,
}

#[derive(Debug)]
enum Phase {
    /// The prompt was sent or is held, and Pi has not begun to work on it.
    Prompted,
    Working,
    /// Pi's agent has ended, but may continue. `asked` is the id of the `get_state` command whose
    /// response decides that.
    AgentEnded {
        asked: Option<String>,
    },
}

impl Run {
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            author: Author::default(),
            phase: Phase::Working,
            held: None,
            prompt: None,
            has_echoed_prompt: false,
            stop: None,
            may_settle: false,
            interrupt: None,
            ask_at: None,
        }
    }

    /// Stores the prompt of the run until it may be sent.
    pub(super) fn hold(&mut self, prompt: Prompt) {
        (self.phase, self.held) = (Phase::Prompted, Some(prompt));
    }

    /// Sends the held prompt to Pi, if there is one.
    pub(super) fn prompt(&mut self, cx: &mut Cx) {
        if let Some(prompt) = self.held.take() {
            self.prompt =
                Some(command::send("prompt", |id| command::prompt(id, prompt), &mut cx.out));
        }
    }

    /// Ends the run as failed, and the Pi process, because Pi would not ask for approvals.
    pub(super) fn refuse(&mut self, cx: &mut Cx) {
        cx.out.continuation(false, "error", "ErrorPolicy");
        cx.out.push(ProgramEffect::Quit);
        self.end(RunStatus::Failed, Some(failure::unguarded()), cx);
    }

    pub(super) fn handle_line(&mut self, line: Line, cx: &mut Cx) {
        while let Some(call) = self.author.oldest_excess() {
            cx.approvals.withdraw(|it, _| *it == call.id, &mut cx.out);
            call.break_off(abandoned(), &mut cx.out);
        }
        match line {
            Line::Response(response) => self.answered(response, cx),
            Line::AgentStart => self.agent_started(cx),
            Line::AgentEnd(end) => {
                self.may_settle |= end.will_retry.is_some();
                self.phase = Phase::AgentEnded { asked: None };
                self.ask_at = None;
                if end.will_retry != Some(true) {
                    self.confirm_end(cx);
                }
            }
            Line::AgentSettled(settled) => self.settled(settled.aborted, cx),
            Line::MessageStart(message) => self.message_started(&message, cx),
            Line::MessageUpdate(update) => self.author.update(&update, &mut cx.out),
            Line::MessageEnd(message) => self.message_ended(message, cx),
            Line::ToolStart(Execution { tool_call_id, tool_name, args, .. }) => {
                let call = self.author.call(&tool_call_id, &tool_name, &mut cx.out);
                call.take_up(args.as_ref(), self.settings.asks(), &mut cx.out);
            }
            Line::ToolUpdate(Execution { tool_call_id, tool_name, args, result, .. }) => {
                let call = self.author.call(&tool_call_id, &tool_name, &mut cx.out);
                call.finish_arguments(args.as_ref(), &mut cx.out);
                call.print(result.unwrap_or_default().content.text(), &mut cx.out);
            }
            Line::ToolEnd(execution) => self.tool_ended(execution, cx),
            Line::RetryStart(retry) => self.retry(&retry, cx),
            Line::RetryEnd(end) => {
                if !end.success {
                    self.confirm_end(cx);
                }
            }
            Line::CompactionStart(start) => self.compact(&start.reason, cx),
            Line::CompactionEnd(end) => self.compacted(end, cx),
            Line::Dialog(dialog) if self.interrupt.is_some() => dialog.decline(&mut cx.out),
            Line::Dialog(dialog) => self.handle_dialog(dialog, cx),
            Line::ExtensionError(error) => {
                let (path, why) = (error.extension_path, failure::shortened(&error.error));
                cx.out.notice(Level::Error, format!("Pi's extension {path} failed: {why}."));
            }
            Line::Ignorable => (),
        }
        self.schedule(cx);
    }

    pub(super) fn steer(&mut self, message_id: MessageId, message: &Value, cx: &mut Cx) {
        let is_over = matches!(self.phase, Phase::AgentEnded { .. }) || self.interrupt.is_some();
        if is_over || self.held.is_some() {
            cx.out.push(RunEffect::CannotSteer(message_id));
            return;
        }
        let prompt = Prompt::of(message);
        let text = prompt.text.clone();
        let command = command::send("steer", |id| command::steer(id, prompt), &mut cx.out);
        cx.steering.send(command, message_id, text);
    }

    pub(super) fn decide(
        &mut self,
        call_id: &CallId,
        request: &Request,
        verdict: &Verdict,
        cx: &mut Cx,
    ) {
        cx.out.write(request.answer(verdict));
        let Some(call) = self.author.calls.iter_mut().find(|it| it.id == *call_id) else {
            return;
        };
        if call.is_question {
            return call.answered(verdict, &mut cx.out);
        }
        match verdict {
            Verdict::Allowed { arguments: Some(edited), .. }
                if command::as_object(edited).is_none() =>
            {
                call.forbid(ErrorCode::InvalidArguments);
            }
            Verdict::Allowed { .. } => call.run(&mut cx.out),
            Verdict::Denied { .. } => call.forbid(ErrorCode::ToolDenied),
            Verdict::TimedOut => call.forbid(ErrorCode::ApprovalTimeout),
        }
    }

    /// Asks a person about a dialog of an extension. A question that is about no tool call becomes
    /// a call.
    fn handle_dialog(&mut self, dialog: Dialog, cx: &mut Cx) {
        let Some(dialog) = dialog.ask_about_call(&self.author.calls, cx) else { return };
        let Some(asks) = dialog.asks() else { return dialog.give_up(&mut cx.out) };
        let name = dialog.call_name();
        if self.author.calls.iter().any(|it| it.provider_id == name) {
            return;
        }
        let call = self.author.call(&name, "elicitation", &mut cx.out);
        call.is_question = true;
        call.finish_arguments(Some(&asks), &mut cx.out);
        let id = call.id.clone();
        dialog.ask_as_call(id, cx);
    }

    pub(super) fn interrupt(&mut self, cx: &mut Cx) {
        if self.interrupt.is_some() {
            return;
        }
        self.interrupt = Some(cx.out.now().plus(GRACE_MS));
        if self.held.is_some() {
            return self.finish(cx);
        }
        command::send("abort", command::abort, &mut cx.out);
        questions::cancel_all(cx);
        self.schedule(cx);
    }

    pub(super) fn time_out(&mut self, cx: &mut Cx) {
        if self.interrupt.is_some_and(|deadline| deadline <= cx.out.now()) {
            cx.out.push(ProgramEffect::Quit);
            return self.finish(cx);
        }
        if self.ask_at.is_some_and(|at| at <= cx.out.now()) {
            self.ask(cx);
        }
        self.schedule(cx);
    }

    /// Ends the run because the Pi process has ended. `is_kept`: Pi has saved the conversation.
    pub(super) fn exited(&mut self, exit: &Exit, is_kept: bool, cx: &mut Cx) {
        if !is_kept && !matches!(self.phase, Phase::Prompted) {
            let text = "Pi saves a conversation only after its first answer: the next message begins a \
                        new one without this one.";
            cx.out.notice(Level::Error, text);
        }
        let has_agent_ended = matches!(self.phase, Phase::AgentEnded { .. });
        let has_answered = has_agent_ended && matches!(self.stop, Some(Stop::Done | Stop::Length));
        if has_answered || self.interrupt.is_some() {
            return self.finish(cx);
        }
        self.author.keep_failed("error", &mut cx.out);
        cx.out.continuation(false, "error", "AgentExited");
        self.end(RunStatus::Failed, Some(failure::exited(exit)), cx);
    }

    fn answered(&mut self, response: Response, cx: &mut Cx) {
        let Some(id) = response.id.as_deref() else { return };
        let data = response.data.unwrap_or_default();
        if self.prompt.as_deref() == Some(id) {
            let error = response.error.unwrap_or_default();
            return self.prompt_answered(response.success, &error, &data, cx);
        }
        if matches!(&self.phase, Phase::AgentEnded { asked: Some(asked) } if asked == id) {
            return self.state_answered(&data, cx);
        }
        if response.success {
            cx.steering.hand_over(|it| it.key == id, &mut cx.out);
        } else {
            cx.steering.give_back(|it| it.key == id, &mut cx.out);
        }
    }

    fn prompt_answered(&mut self, success: bool, error: &str, data: &ResponseData, cx: &mut Cx) {
        if !matches!(self.phase, Phase::Prompted) {
            return;
        }
        if !success {
            self.stop = Some(Stop::Error(error.to_owned()));
            return self.finish(cx);
        }
        match data.disposition.as_deref() {
            // An extension's command, which may have no answer.
            Some("handled") => self.ask(cx),
            Some(_) => (),
            // The old package does not report what it did with the prompt.
            None => self.ask_at = Some(cx.out.now().plus(SILENCE_MS)),
        }
    }

    fn state_answered(&mut self, state: &ResponseData, cx: &mut Cx) {
        if state.is_streaming || state.is_compacting || !cx.approvals.is_empty() {
            self.phase = Phase::AgentEnded { asked: None };
            self.ask_at = Some(cx.out.now().plus(POLL_INTERVAL_MS));
        } else {
            self.finish(cx);
        }
    }

    fn agent_started(&mut self, cx: &mut Cx) {
        self.author.discard_failed(&mut cx.out);
        self.phase = Phase::Working;
        self.ask_at = None;
        // The first request may have come before there was anything to stop.
        if self.interrupt.is_some() {
            command::send("abort", command::abort, &mut cx.out);
        }
    }

    fn settled(&mut self, aborted: bool, cx: &mut Cx) {
        // This end belongs to work from before the prompt.
        if matches!(self.phase, Phase::Prompted) {
            return;
        }
        if aborted {
            self.stop = Some(Stop::Aborted);
        }
        self.finish(cx);
    }

    /// Checks whether Pi is idle, after its agent and any announced continuation have ended.
    fn confirm_end(&mut self, cx: &mut Cx) {
        if !matches!(self.phase, Phase::AgentEnded { asked: None }) {
            return;
        }
        if self.may_settle {
            self.ask_at = Some(cx.out.now().plus(SETTLE_MS));
        } else {
            self.ask(cx);
        }
    }

    /// Stops the check whether Pi is idle, because Pi has announced a continuation.
    fn expect_more(&mut self) {
        if let Phase::AgentEnded { asked } = &mut self.phase {
            *asked = None;
            self.ask_at = None;
        }
    }

    fn ask(&mut self, cx: &mut Cx) {
        self.ask_at = None;
        self.phase = Phase::AgentEnded {
            asked: Some(command::send("state", command::get_state, &mut cx.out)),
        };
    }

    fn message_started(&mut self, message: &Message, cx: &mut Cx) {
        match message.role.as_str() {
            "assistant" => self.author.start_message(&mut cx.out),
            "user" => self.user_said(&message.content.text(), cx),
            "custom" if message.display => {
                cx.out.notice(Level::Info, message.content.text());
            }
            _ => (),
        }
    }

    fn user_said(&mut self, text: &str, cx: &mut Cx) {
        let is_prompt =
            self.prompt.is_some() && !std::mem::replace(&mut self.has_echoed_prompt, true);
        // Pi may have changed the text.
        let is_seen = cx.steering.mark_seen(|it| it.text == text, &mut cx.out)
            || (!is_prompt && cx.steering.mark_seen(|_| true, &mut cx.out));
        if !is_seen && self.prompt.is_none() {
            cx.out.notice(Level::Info, format!("Pi continues: {text}"));
        }
    }

    fn message_ended(&mut self, message: Message, cx: &mut Cx) {
        match message.role.as_str() {
            "assistant" => self.stop = Some(self.author.end_message(message, &mut cx.out)),
            "toolResult" => {
                let Message { tool_call_id, content, details, is_error, duration_ms, .. } = message;
                let calls = &mut self.author.calls;
                let is_it = |id: &str| Some(id) == tool_call_id.as_deref();
                let Some(call) = calls.iter_mut().find(|it| is_it(&it.provider_id)) else { return };
                let said = ToolOutput { content, details, structured_content: None };
                let is_interrupted = self.interrupt.is_some();
                call.end(Ended { said, is_error, duration_ms, is_interrupted }, &mut cx.out);
            }
            "bashExecution" => {
                let Message { command, output, .. } = message;
                let (command, output) = (command.unwrap_or_default(), output.unwrap_or_default());
                cx.out.notice(Level::Info, format!("Pi was told to run {command}\n{output}"));
            }
            _ => (),
        }
    }

    fn tool_ended(&mut self, execution: Execution, cx: &mut Cx) {
        let Execution { tool_call_id, tool_name, result, is_error, duration_ms, .. } = execution;
        let call = self.author.call(&tool_call_id, &tool_name, &mut cx.out);
        cx.approvals.withdraw(|it, _| *it == call.id, &mut cx.out);
        let said = result.unwrap_or_default();
        let is_interrupted = self.interrupt.is_some();
        call.end(Ended { said, is_error, duration_ms, is_interrupted }, &mut cx.out);
    }

    fn retry(&mut self, retry: &RetryStart, cx: &mut Cx) {
        self.author.discard_failed(&mut cx.out);
        self.expect_more();
        let RetryStart { attempt, max_attempts, .. } = *retry;
        let why = failure::words(&retry.error_message);
        let seconds = retry.delay_ms.whole() as f64 / 1000.0;
        let text = format!(
            "The model service failed ({why}). Pi tries again in {seconds} s (attempt {attempt} of \
             {max_attempts})."
        );
        cx.out.notice(Level::Info, text);
    }

    fn compact(&mut self, reason: &str, cx: &mut Cx) {
        self.expect_more();
        let why = match reason {
            "overflow" => "The conversation no longer fits into the model's context. ",
            _ => "",
        };
        cx.out.notice(Level::Info, format!("{why}Pi is shortening the conversation."));
    }

    fn compacted(&mut self, end: CompactionEnd, cx: &mut Cx) {
        match (end.error_message, end.aborted) {
            (Some(error), _) => {
                let why = failure::shortened(&error);
                // The error may be that of one attempt, or a refusal to retry.
                let text = format!("Pi could not shorten the conversation: {why}.");
                cx.out.notice(Level::Error, text);
            }
            (None, true) => cx.out.notice(Level::Info, "Pi did not shorten the conversation."),
            (None, false) => cx.out.notice(Level::Info, "Pi has shortened the conversation."),
        }
        if end.will_retry {
            self.expect_more();
        } else {
            self.confirm_end(cx);
        }
    }

    /// Ends the run according to why the model stopped: Pi is idle, or its time is over.
    fn finish(&mut self, cx: &mut Cx) {
        // The new package also reports a stop as an error.
        let is_stopped = self.interrupt.is_some() || self.stop == Some(Stop::Aborted);
        self.author.keep_failed(if is_stopped { "cancelled" } else { "error" }, &mut cx.out);
        if self.interrupt.is_some() {
            cx.out.continuation(false, "user_requested", "UserCancel");
            return self.end(RunStatus::Cancelled, None, cx);
        }
        match self.stop.take() {
            Some(Stop::Error(error)) => {
                cx.out.continuation(false, "error", "ErrorPolicy");
                self.end(RunStatus::Failed, Some(failure::reported(&error)), cx);
            }
            Some(Stop::Aborted) => {
                cx.out.continuation(false, "user_requested", "Agent");
                self.end(RunStatus::Cancelled, None, cx);
            }
            Some(Stop::Length) => {
                cx.out.continuation(false, "token_limit", "OutputLimit");
                self.end(RunStatus::Completed, None, cx);
            }
            Some(Stop::Done | Stop::Tools | Stop::Other) => {
                cx.out.continuation(false, "completed", "Agent");
                self.end(RunStatus::Completed, None, cx);
            }
            None => {
                cx.out.notice(Level::Info, "Pi accepted the message and did not answer.");
                cx.out.continuation(false, "completed", "Agent");
                self.end(RunStatus::Completed, None, cx);
            }
        }
    }

    fn end(&mut self, status: RunStatus, error: Option<transcript::ErrorInfo>, cx: &mut Cx) {
        // Pi would add these messages to the next prompt. Only ending the program prevents that.
        if cx.steering.has_handed_over() {
            cx.out.push(ProgramEffect::Quit);
        }
        // Pi would wait forever for the answers.
        questions::cancel_all(cx);
        cx.steering.give_back(|_| true, &mut cx.out);
        // The driver adds up the usage and cost of the steps.
        cx.end_run(status, error, None, None);
    }

    fn schedule(&mut self, cx: &mut Cx) {
        let next = self.interrupt.into_iter().chain(self.ask_at).min();
        if cx.is_running() && next != cx.deadline {
            cx.deadline = None;
            if let Some(at) = next {
                cx.wake_at(at);
            }
        }
    }
}
