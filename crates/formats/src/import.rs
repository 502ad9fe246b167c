//! Foreign conversations as events for a new session.
//!
//! Any input can be read: invalid items are kept as `unrecognized`, missing ids are generated, and a call
//! that was still running when it was exported counts as interrupted. Everything that is opened is closed.
//! The module of each format says what that format cannot express.
//!
//! The caller adds summaries of arguments.

mod format;
mod ids;
mod values;

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use transcript::{
    ApprovalOptions, Attachment, CallId, CancelReason, Decision, ErrorCode, ErrorInfo, Event,
    Executor, Level, Message, MessageId, MessageRole, Millis, PartId, PartKind, Phase, Record,
    ResponseId, RunMessage, RunStatus, Scope, Sender, SentForm, Seq, SessionId, SteerState,
    Transcript, Trigger, Usage, Validation,
};

pub use transcript::Entry;

pub use self::format::{Document, FORMATS, Format};
pub(crate) use self::format::{Holds, List};
use self::ids::number_of_step;
pub(crate) use self::ids::{run_of_status, run_of_step, step_id};
use self::values::rejected;
pub(crate) use self::values::{arguments_text, as_text, error_info, items, result_of};
use crate::incoming::File;
use crate::{call, sent};

/// Maximum number of steps without a message that an import adds in a row, because a file may claim
/// any number of steps.
const SILENT_STEPS_MAX: usize = 100;

/// Values that the import of a conversation needs besides the file.
pub struct Setting<'a> {
    /// Name of the agent, if the file does not contain one.
    pub agent: &'a str,
    /// Time of the import, which entries have until the file contains a time.
    pub now: Millis,
    /// Function that returns the attachment for a file of a message; `None` if the file is lost.
    pub attach: &'a dyn Fn(&File) -> Option<Attachment>,
}

/// Builds the log of an imported conversation, entry by entry.
pub(crate) struct LogBuilder<'a> {
    setting: &'a Setting<'a>,
    entries: Vec<Entry>,
    /// Transcript of the entries added so far.
    transcript: Transcript,
    now: Millis,
    run: Option<ResponseId>,
    used_ids: HashSet<String>,
    /// Ids of the open run's parts.
    part_ids: HashSet<PartId>,
    n_parts: u32,
    step: Option<u32>,
}

/// Properties of an imported run that are known at its beginning.
#[derive(Debug, Default)]
pub(crate) struct Beginning<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
}

/// Properties of an imported run that are known at its end.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) status: RunStatus,
    /// Why the run was cancelled; `None` if the file does not contain it.
    pub(crate) reason: Option<CancelReason>,
    pub(crate) error: Option<ErrorInfo>,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost: Option<f64>,
    pub(crate) duration_ms: Option<u64>,
    /// Why the model stopped in the last step; `None` if the file does not contain it.
    pub(crate) finish_reason: Option<String>,
}

impl Ending {
    pub(crate) fn of(status: RunStatus) -> Self {
        Self {
            status,
            reason: None,
            error: None,
            usage: None,
            cost: None,
            duration_ms: None,
            finish_reason: None,
        }
    }
}

/// Outcome of an imported tool call: its output or its error.
pub(crate) enum CallResult {
    Output(Value),
    Failed(ErrorInfo),
}

/// Details of a tool call's result besides its value.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    pub(crate) summary: Option<String>,
    pub(crate) duration_ms: Option<u64>,
    /// Result of a tool call that failed, such as the exit code of a command.
    pub(crate) of_failure: Option<Value>,
}

impl<'a> LogBuilder<'a> {
    pub(crate) fn new(setting: &'a Setting<'a>) -> Self {
        Self {
            setting,
            entries: Vec::new(),
            transcript: Transcript::whole(),
            now: setting.now,
            run: None,
            used_ids: HashSet::new(),
            part_ids: HashSet::new(),
            n_parts: 0,
            step: None,
        }
    }

    /// Ends the open run and returns all entries of the log.
    pub(crate) fn into_entries(mut self) -> Vec<Entry> {
        self.end(Ending::of(RunStatus::Completed));
        self.entries
    }

    /// Sets the time of the following entries, from a timestamp as text or in milliseconds since
    /// the Unix epoch. Other values change nothing.
    pub(crate) fn at(&mut self, moment: &Value) {
        let moment = match moment {
            Value::String(text) => Millis::parse(text),
            Value::Number(ms) => ms.as_i64().map(Millis),
            _ => None,
        };
        self.now = moment.unwrap_or(self.now);
    }

    pub(crate) fn input_message(
        &mut self,
        id: Option<&str>,
        role: MessageRole,
        text: &str,
        files: &[File],
    ) {
        self.input_message_in_parts(id, role, text, sent::parts_of(text, files), None);
    }

    /// Adds a user or system message from parts in the form of the AI SDK.
    pub(crate) fn input_message_in_parts(
        &mut self,
        id: Option<&str>,
        role: MessageRole,
        text: &str,
        parts: Vec<Value>,
        metadata: Option<&Value>,
    ) {
        self.end(Ending::of(RunStatus::Completed));
        let message_id = MessageId::new(self.free_id(id, "m"));
        let (from, metadata) = self.own_metadata(metadata);
        let (files, mut sent) = sent::keep(text, parts, metadata);
        let attached: Vec<Option<Attachment>> =
            files.iter().map(|file| (self.setting.attach)(file)).collect();
        let n_lost = attached.iter().filter(|it| it.is_none()).count();
        if let Some(sent) = &mut sent {
            sent::leave_out_lost(&mut sent.parts, attached.iter().map(Option::is_some));
        }
        self.push(Event::UserMessage {
            message_id,
            client_id: None,
            role,
            text: text.to_owned(),
            attachments: attached.into_iter().flatten().collect(),
            from,
            sent: sent.and_then(SentForm::or_none),
        });
        if n_lost > 0 {
            let text = format!("Files that did not come along: {n_lost}");
            self.push(Event::Notice { level: Level::Info, text });
        }
    }

    /// Returns the sender and the other fields of a message's metadata, without the time that the
    /// record has anyway.
    fn own_metadata(&self, metadata: Option<&Value>) -> (Option<Sender>, Option<Value>) {
        let Some(Value::Object(fields)) = metadata else {
            return (None, metadata.filter(|it| !it.is_null()).cloned());
        };
        let from = fields.get("from").and_then(|it| serde_json::from_value(it.clone()).ok());
        let time = json!(self.now);
        let is_ours = |name: &str, value: &Value| match name {
            "from" => from.is_some(),
            "createdAt" => *value == time,
            _ => false,
        };
        let own = fields.iter().filter(|(name, value)| !is_ours(name, value));
        let own: Map<String, Value> = own.map(|(name, it)| (name.clone(), it.clone())).collect();
        (from, (!own.is_empty()).then_some(Value::Object(own)))
    }

    /// Starts a run. An open run ends as completed.
    pub(crate) fn begin(&mut self, beginning: &Beginning<'_>) {
        self.end(Ending::of(RunStatus::Completed));
        let run = ResponseId::new(self.free_id(beginning.id, "r"));
        (self.run, self.n_parts, self.step) = (Some(run), 0, None);
        self.part_ids.clear();
        let agent = beginning.agent.unwrap_or(self.setting.agent).to_owned();
        let model = beginning.model.map(str::to_owned);
        self.push(Event::RunStart { agent, model, trigger: Trigger::User, exchange_id: None });
    }

    /// Returns whether the open run has this id.
    pub(crate) fn is_in(&self, run: &str) -> bool {
        self.run.as_ref().is_some_and(|it| it.as_str() == run)
    }

    /// Returns whether a message is a step of the open run. Other programs do not name messages
    /// after their run; then the run continues while its last step has tool calls or no text.
    pub(crate) fn continues_run(&self, message_id: Option<&str>) -> bool {
        match message_id.and_then(run_of_step) {
            Some(run) => self.is_in(run),
            None => self.run.is_some() && (self.has_calls() || self.is_silent()),
        }
    }

    /// Begins the step of a message: in the open run if the message belongs to it, otherwise in a
    /// new run. Steps that have no message are added before it.
    pub(crate) fn step_of(&mut self, message_id: Option<&str>) {
        if !self.continues_run(message_id) {
            let id = message_id.map(|id| run_of_step(id).unwrap_or(id));
            self.begin(&Beginning { id, ..Beginning::default() });
        }
        // Empty steps have no message.
        let number = message_id.and_then(number_of_step).unwrap_or_default();
        let n_steps = self.answer().map_or(0, |it| it.steps.len());
        for _ in n_steps + 1..number.min(n_steps + SILENT_STEPS_MAX) {
            self.step();
        }
        self.step();
    }

    /// Returns whether a user message was steered into the open run: the next step or status in the
    /// `later` messages belongs to the same run.
    pub(crate) fn is_steered(&self, later: &[Value]) -> bool {
        let mut of_runs = later.iter().filter(|it| it["role"] != "user" && it["role"] != "tool");
        let next = of_runs.next().and_then(|it| it["id"].as_str());
        let run = next.and_then(|id| run_of_status(id).or_else(|| run_of_step(id)));
        run.is_some_and(|run| self.is_in(run))
    }

    pub(crate) fn is_in_run(&self) -> bool {
        self.run.is_some()
    }

    fn in_run(&mut self) {
        if self.run.is_none() {
            self.begin(&Beginning::default());
        }
    }

    pub(crate) fn step(&mut self) {
        self.in_run();
        self.end_step(None, None);
        let index = self.answer().map_or(0, |it| it.steps.len() as u32);
        self.step = Some(index);
        self.push(Event::StepStart { index, parent_call_id: None });
    }

    /// Ends the step, if one is open. Without a `reason`, it is `tool-calls` if the step has tool
    /// calls, otherwise `stop`.
    pub(crate) fn end_step(&mut self, reason: Option<&str>, usage: Option<Usage>) {
        let Some(index) = self.step.take() else { return };
        let seen = if self.has_calls() { "tool-calls" } else { "stop" };
        let finish_reason = reason.unwrap_or(seen).to_owned();
        self.push(Event::StepFinish {
            index,
            finish_reason,
            usage,
            cost: None,
            parent_call_id: None,
        });
    }

    /// Returns the parts of the open run's last step.
    fn parts(&self) -> impl Iterator<Item = &PartKind> {
        let answer = self.answer();
        let step = answer.and_then(|it| it.steps.len().checked_sub(1));
        let parts = answer.into_iter().flat_map(|it| &it.parts);
        parts.filter(move |part| part.step == step).map(|part| &part.kind)
    }

    fn has_calls(&self) -> bool {
        self.parts().any(|it| matches!(it, PartKind::Call(_)))
    }

    /// Returns whether tool calls of the open run have no result yet.
    pub(crate) fn has_open_calls(&self) -> bool {
        self.answer().into_iter().flat_map(RunMessage::calls).any(transcript::Call::is_open)
    }

    /// Returns whether the last step of the open run has nothing but thinking.
    fn is_silent(&self) -> bool {
        self.parts().all(|it| matches!(it, PartKind::Thinking(_)))
    }

    pub(crate) fn text(&mut self, text: &str, phase: Option<Phase>, discarded: bool) {
        let part_id = self.part_id();
        self.push_text(part_id, text, phase, discarded);
    }

    /// Adds fields that Callboard does not interpret to the last part of the open run.
    pub(crate) fn extras(&mut self, fields: Map<String, Value>) {
        let last = self.answer().and_then(|it| it.parts.last()?.id().map(str::to_owned));
        if let Some(part_id) = last.filter(|_| !fields.is_empty()) {
            self.push(Event::PartExtras { part_id, fields });
        }
    }

    /// Adds a text with this part id, or with a generated one if the id is missing or used in the
    /// run.
    pub(crate) fn text_as(&mut self, id: Option<&str>, text: &str) {
        let part_id = self.part_id_as(id);
        self.push_text(part_id, text, None, false);
    }

    fn push_text(&mut self, part_id: PartId, text: &str, phase: Option<Phase>, discarded: bool) {
        self.push(Event::TextStart { part_id: part_id.clone(), parent_call_id: None });
        let text = text.to_owned();
        self.push(Event::TextDone { part_id, parent_call_id: None, text, phase, discarded });
    }

    /// Adds thinking with this part id, or with a generated one if the id is missing or used in the
    /// run.
    pub(crate) fn thinking(&mut self, id: Option<&str>, text: &str, discarded: bool) {
        let part_id = self.part_id_as(id);
        self.push(Event::ThinkingStart { part_id: part_id.clone(), parent_call_id: None });
        let text = text.to_owned();
        self.push(Event::ThinkingDone { part_id, parent_call_id: None, text, discarded });
    }

    /// Adds a tool call with complete arguments, and returns its id.
    pub(crate) fn call(&mut self, id: Option<&str>, name: &str, arguments: &str) -> CallId {
        let call = self.start_call(id, name, Some(arguments));
        self.write_call(&call, arguments, "");
        call
    }

    /// Starts a tool call and returns its id: the given one, unless another call has it. Arguments
    /// that are already known are added.
    pub(crate) fn start_call(
        &mut self,
        id: Option<&str>,
        name: &str,
        arguments: Option<&str>,
    ) -> CallId {
        self.in_run();
        let is_new = |id: &&str| {
            let call_id = CallId::new(*id);
            let mut answers = self.transcript.messages.iter().filter_map(Message::run);
            answers.all(|answer| answer.call(&call_id).is_none())
        };
        let own = id.filter(|id| !id.is_empty()).filter(is_new).map(CallId::new);
        let call_id = own.unwrap_or_else(|| CallId::new(self.part_id().as_str()));
        self.push(Event::ToolCallStart {
            call_id: call_id.clone(),
            provider_call_id: id.map(str::to_owned),
            tool_name: name.trim().to_owned(),
            arguments: arguments.filter(|it| !it.is_empty()).map(str::to_owned),
            parent_call_id: None,
            executor: Executor::Agent,
        });
        call_id
    }

    pub(crate) fn write_call(&mut self, call: &CallId, arguments: &str, summary: &str) {
        self.push(Event::ToolArgumentsDone {
            call_id: call.clone(),
            arguments: arguments.to_owned(),
            summary: summary.to_owned(),
            incomplete: false,
            validation: Validation::NotRequired,
            provider_data: None,
        });
    }

    /// Adds an approval request for a tool call and the decision about it.
    pub(crate) fn decided(&mut self, call: &CallId, accepted: bool, feedback: Option<&str>) {
        let options = ApprovalOptions { scopes: vec![Scope::Once], ..ApprovalOptions::default() };
        self.push(Event::ToolApprovalRequested { call_id: call.clone(), options });
        self.push(Event::ToolApprovalResolved {
            call_id: call.clone(),
            decision: if accepted { Decision::Accepted } else { Decision::Rejected },
            scope: None,
            arguments: None,
            feedback: feedback.map(str::to_owned),
            covers: None,
            by: "import".to_owned(),
        });
    }

    /// Returns the oldest open tool call with this id or, if no id is given, with this tool name.
    pub(crate) fn open_call(&self, id: Option<&str>, name: Option<&str>) -> Option<CallId> {
        let open =
            || self.answer().into_iter().flat_map(RunMessage::calls).filter(|it| it.is_open());
        let is_same = |it: &transcript::Call, id: &str| {
            it.id.as_str() == id || it.provider_call_id.as_deref() == Some(id)
        };
        let by_id = id.and_then(|id| open().find(|it| is_same(it, id)));
        let by_name = || name.and_then(|name| open().find(|it| it.label() == name));
        by_id.or_else(|| if id.is_none() { by_name() } else { None }).map(|it| it.id.clone())
    }

    pub(crate) fn result(&mut self, call: &CallId, came: CallResult) {
        self.result_with(call, came, Remarks::default());
    }

    /// Adds the result of a tool call. A rejected call never ran, so its output counts as the
    /// reason for the rejection.
    pub(crate) fn result_with(&mut self, call: &CallId, came: CallResult, remarks: Remarks) {
        let known = self.answer().and_then(|it| it.call(call));
        let name = known.map(|it| it.name.clone()).unwrap_or_default();
        let is_rejected = self.is_rejected(call);
        let Remarks { summary, duration_ms, of_failure } = remarks;
        let (ok, result, error) = match came {
            CallResult::Output(value) if is_rejected => (false, None, Some(rejected(&value))),
            CallResult::Output(Value::Null) => (true, None, None),
            CallResult::Output(value) => (true, Some(value), None),
            CallResult::Failed(error) => (false, of_failure, Some(error)),
        };
        if duration_ms.is_some() {
            self.push(Event::ToolRunning { call_id: call.clone() });
        }
        self.push(Event::ToolResult {
            call_id: call.clone(),
            tool_name: name,
            ok,
            result,
            output: None,
            error,
            summary,
            duration_ms,
            truncated: None,
        });
    }

    /// Returns whether a person rejected the tool call.
    pub(crate) fn is_rejected(&self, call: &CallId) -> bool {
        let resolution = self.answer().and_then(|it| call::resolution(it.call(call)?));
        resolution.is_some_and(|it| it.decision == Decision::Rejected)
    }

    /// Adds a tool result that belongs to no known tool call, and a call for it.
    pub(crate) fn orphan(&mut self, id: Option<&str>, name: &str, came: CallResult) {
        let call = self.call(id, name, "");
        self.result(&call, came);
    }

    pub(crate) fn steered(&mut self, id: Option<&str>, text: &str, state: SteerState) {
        self.in_run();
        let is_same = |part: &transcript::Part| match &part.kind {
            PartKind::Steered(it) => Some(it.id.as_str()) == id,
            _ => false,
        };
        let known = self.answer().is_some_and(|answer| answer.parts.iter().any(is_same));
        let message_id = match id.filter(|_| known) {
            Some(id) => MessageId::new(id),
            None => MessageId::new(self.free_id(id, "m")),
        };
        let mut steer = |state| {
            let (message_id, text) = (message_id.clone(), text.to_owned());
            self.push(Event::MessageSteered { message_id, text, state });
        };
        // Only what was handed over can be given back.
        if state == SteerState::Returned && !known {
            steer(SteerState::HandedOver);
        }
        steer(state);
    }

    pub(crate) fn push(&mut self, event: Event) {
        let is_outside = matches!(event, Event::UserMessage { .. });
        let response_id = self.run.clone().filter(|_| !is_outside);
        let seq = Seq(self.entries.len() as u64 + 1);
        let session = SessionId::new("import");
        let record = Record::new(seq, self.now, session, response_id.clone(), event);
        self.transcript.apply(&record);
        self.entries.push(Entry { at: self.now, response_id, event: record.event });
    }

    pub(crate) fn unrecognized(&mut self, source: &str, raw: &str) {
        let (source, raw) = (source.to_owned(), raw.to_owned());
        self.push(Event::Unrecognized { source, raw, lines: 1 });
    }

    /// Ends the run, if one is open. Its tool calls without a result end too: denied if they were
    /// rejected, otherwise interrupted.
    pub(crate) fn end(&mut self, ending: Ending) {
        if self.run.is_none() {
            return;
        }
        let answer = self.answer().into_iter();
        let open: Vec<CallId> = answer
            .flat_map(RunMessage::calls)
            .filter(|it| it.is_open())
            .map(|it| it.id.clone())
            .collect();
        for call in open {
            let why = "The call had no result when the conversation was written down.";
            let came = match self.is_rejected(&call) {
                true => CallResult::Output(Value::Null),
                false => CallResult::Failed(ErrorInfo::new(ErrorCode::ToolInterrupted, why)),
            };
            self.result(&call, came);
        }
        self.end_step(ending.finish_reason.as_deref(), None);
        let reason = match ending.status {
            RunStatus::Completed => None,
            RunStatus::Failed => Some(CancelReason::Error),
            RunStatus::Cancelled => Some(CancelReason::Import),
        };
        if let Some(reason) = ending.reason.or(reason) {
            self.push(Event::OutputCancelled { reason, audio_truncated_at_ms: None });
        }
        let Ending { status, error, usage, cost, duration_ms, .. } = ending;
        self.push(Event::RunFinish { status, error, usage, cost, duration_ms });
        self.run = None;
    }

    fn answer(&self) -> Option<&RunMessage> {
        self.transcript.message(self.run.as_ref()?.as_str()).and_then(Message::run)
    }

    fn part_id(&mut self) -> PartId {
        self.in_run();
        let Some(run) = self.run.clone() else { return PartId::new("") };
        loop {
            self.n_parts += 1;
            let id = PartId::numbered(&run, self.n_parts - 1);
            if self.part_ids.insert(id.clone()) {
                return id;
            }
        }
    }

    fn part_id_as(&mut self, id: Option<&str>) -> PartId {
        self.in_run();
        let own = id.filter(|it| !it.is_empty()).map(PartId::new);
        let own = own.filter(|it| self.part_ids.insert(it.clone()));
        own.unwrap_or_else(|| self.part_id())
    }

    /// Returns the given id if it is present and unused, otherwise a generated one that starts with
    /// `letter`.
    fn free_id(&mut self, id: Option<&str>, letter: &str) -> String {
        let own = id.map(str::to_owned).filter(|it| !it.is_empty() && !self.used_ids.contains(it));
        let made = (1..).map(|n| format!("{letter}{n}"));
        let made = || made.into_iter().find(|it| !self.used_ids.contains(it)).unwrap_or_default();
        let id = own.unwrap_or_else(made);
        self.used_ids.insert(id.clone());
        id
    }
}

#[cfg(test)]
pub(crate) mod tests;
