//! A run as AG-UI events, each one `data:` frame.
//!
//! For the client, a run that waits for decisions ends with an interrupt; the rest is a new run of the same
//! thread. [`Stream::is_over`] returns whether one has ended; the next begins with
//! [`Stream::replay_unknown`].

use serde_json::{Value, json};
use transcript::{Call, ResponseId, RunMessage, RunStatus};

use super::{Parents, answer_messages, interrupt_id, result_id, result_text, snapshots};
use crate::follow::{Follow, RunChange};
use crate::known::Known;
use crate::run_stream::{Format, RunStream};
use crate::{sse, ui};

/// A run as a stream of AG-UI events.
pub type Stream = RunStream<EventFormat>;

/// State of the AG-UI stream of a run.
#[derive(Debug)]
pub struct EventFormat {
    response: ResponseId,
    thread: String,
    run: String,
    state: ClientRun,
    /// Events to send directly after the start of the run.
    opening: Vec<Value>,
    open_step: Option<usize>,
    parents: Parents,
    /// Data of a client that reconnects; `None` for other clients, and once it has the snapshot.
    rejoining: Option<Rejoining>,
}

/// A client that reconnects to a run and gets a snapshot of the messages.
#[derive(Debug)]
struct Rejoining {
    /// Ids of the messages that the client has.
    known: Vec<String>,
    /// The session's messages before the run, in the form of AG-UI.
    earlier: Vec<Value>,
}

/// State of the run as the client sees it. A run that waits for the client is over for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientRun {
    NotStarted,
    Open,
    Over,
}

impl Stream {
    /// Creates the stream of a run, with the client's ids of the conversation and of the run.
    pub fn new(response: ResponseId, thread: &str, run: &str) -> Self {
        let format = EventFormat {
            response: response.clone(),
            thread: thread.to_owned(),
            run: run.to_owned(),
            state: ClientRun::NotStarted,
            opening: Vec::new(),
            open_step: None,
            parents: Parents::default(),
            rejoining: None,
        };
        Self::of(response, format)
    }

    /// Sets the events to send directly after the start of the run.
    pub fn open_with(&mut self, events: Vec<Value>) {
        self.format.opening = events;
    }

    /// Prepares the stream for a client that reconnects and has the messages with the `known` ids.
    /// The next records are sent as a snapshot, after the `earlier` messages, and open parts
    /// continue.
    pub fn rejoin(&mut self, known: Vec<String>, earlier: Vec<Value>) {
        self.format.rejoining = Some(Rejoining { known, earlier });
    }
}

impl Format for EventFormat {
    type Item = Value;

    fn failure(why: &str) -> String {
        sse::event(json!({ "type": "RUN_ERROR", "message": why }))
    }

    /// Encodes events as server-sent events without an end mark. AG-UI clients split only at empty
    /// lines, and fail at `[DONE]`.
    fn write(events: &[Value], _is_last: bool) -> String {
        events.iter().map(sse::event).collect()
    }

    fn add(&mut self, change: &RunChange<'_>, events: &mut Vec<Value>) {
        if self.state == ClientRun::Over {
            return;
        }
        let new_events = self.events(change);
        let is_end = matches!(change, RunChange::Ended(_));
        if !new_events.is_empty() || matches!(change, RunChange::Begun(_)) {
            self.open(events);
        }
        events.extend(new_events);
        if is_end {
            self.state = ClientRun::Over;
        }
    }

    /// Ends the client's run, with an interrupt for each approval. Tools that the client runs need
    /// no event: the client sees that they have no result.
    fn pause(&mut self, calls: &[&Call], _: &Follow, events: &mut Vec<Value>) {
        if self.state == ClientRun::Over {
            return;
        }
        self.open(events);
        events.extend(self.finish_step());
        let mut finished = self.finished();
        let asked = calls.iter().filter(|call| call.waits_for_approval());
        let interrupts: Vec<Value> = asked.map(|call| interrupt(call)).collect();
        if !interrupts.is_empty() {
            finished["outcome"] = json!({ "type": "interrupt", "interrupts": interrupts });
        }
        events.push(finished);
        self.state = ClientRun::Over;
    }

    fn is_over(&self) -> bool {
        self.state == ClientRun::Over
    }

    fn skip(&mut self, change: &RunChange<'_>, _: &mut Vec<Value>) {
        self.events(change);
    }

    fn begin_next_response(&mut self, _: &Follow, _: &Known) {
        self.open_step = None;
    }

    fn rejoin(&mut self, follow: &Follow, mut encoded: Vec<Value>) -> Vec<Value> {
        let Some(Rejoining { known, earlier: mut messages }) = self.rejoining.take() else {
            return encoded;
        };
        messages.extend(follow.answer().map(answer_messages).unwrap_or_default());
        let mut events = vec![self.started()];
        events.extend(snapshots(&known, messages));
        if self.is_over() {
            events.extend(encoded.pop());
        } else {
            self.state = ClientRun::Open;
            events.extend(self.open_step.map(step_started));
            for change in follow.open_parts() {
                events.extend(self.events(&change));
            }
        }
        events
    }
}

impl EventFormat {
    fn open(&mut self, events: &mut Vec<Value>) {
        if self.state == ClientRun::NotStarted {
            self.state = ClientRun::Open;
            events.push(self.started());
            events.append(&mut self.opening);
        }
    }

    fn events(&mut self, change: &RunChange<'_>) -> Vec<Value> {
        match change {
            RunChange::Begun(_)
            | RunChange::ApprovalRequested(_)
            | RunChange::ApprovalResolved(_) => Vec::new(),
            RunChange::StepBegun { number } => {
                self.open_step = Some(*number);
                self.parents.start_anew();
                vec![step_started(*number)]
            }
            RunChange::StepEnded { .. } => self.finish_step().into_iter().collect(),
            RunChange::TextBegun(text) => {
                self.parents.start_text(text.id.as_str());
                let id = &text.id;
                let role = "assistant";
                vec![json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": role })]
            }
            RunChange::TextGrown(text, delta) => {
                vec![of_message("TEXT_MESSAGE_CONTENT", text.id.as_str(), Some(delta))]
            }
            RunChange::TextEnded(text) => {
                vec![of_message("TEXT_MESSAGE_END", text.id.as_str(), None)]
            }
            RunChange::ThinkingBegun(it) => {
                self.parents.start_anew();
                let mut start = of_message("REASONING_MESSAGE_START", it.id.as_str(), None);
                start["role"] = json!("reasoning");
                vec![of_message("REASONING_START", it.id.as_str(), None), start]
            }
            RunChange::ThinkingGrown(it, delta) => {
                vec![of_message("REASONING_MESSAGE_CONTENT", it.id.as_str(), Some(delta))]
            }
            RunChange::ThinkingEnded(it) => ["REASONING_MESSAGE_END", "REASONING_END"]
                .map(|kind| of_message(kind, it.id.as_str(), None))
                .into(),
            RunChange::CallBegun(call) => vec![json!({
                "type": "TOOL_CALL_START",
                "toolCallId": call.id,
                "toolCallName": call.label(),
                "parentMessageId": self.parents.of_call(call),
            })],
            RunChange::ArgumentsGrown(call, delta) => {
                vec![json!({ "type": "TOOL_CALL_ARGS", "toolCallId": call.id, "delta": delta })]
            }
            RunChange::ArgumentsDone(call) => {
                vec![json!({ "type": "TOOL_CALL_END", "toolCallId": call.id })]
            }
            RunChange::CallEnded(call) => vec![json!({
                "type": "TOOL_CALL_RESULT",
                "messageId": result_id(call),
                "toolCallId": call.id,
                "content": result_text(call),
                "role": "tool",
            })],
            RunChange::Aside(idx, kind) => {
                let data = ui::data(&self.response, *idx, kind);
                let (name, value) = (&data["type"], &data["data"]);
                vec![json!({ "type": "CUSTOM", "name": name, "value": value })]
            }
            RunChange::Ended(answer) => self.end(answer),
        }
    }

    fn finish_step(&mut self) -> Option<Value> {
        let step = self.open_step.take()?;
        Some(json!({ "type": "STEP_FINISHED", "stepName": step_name(step) }))
    }

    fn end(&mut self, answer: &RunMessage) -> Vec<Value> {
        let mut events: Vec<Value> = self.finish_step().into_iter().collect();
        let finish = answer.finish.as_ref();
        events.push(match finish.map(|it| it.status) {
            Some(RunStatus::Completed) | None => self.finished(),
            Some(RunStatus::Cancelled) => {
                let mut finished = self.finished();
                finished["result"] = json!({ "status": "cancelled" });
                finished
            }
            Some(RunStatus::Failed) => {
                let error = finish.and_then(|it| it.error.as_ref());
                let message = error.map_or("The run failed.", |it| it.message.as_str());
                let code = error.map_or("internal_error", |it| it.code.as_str());
                json!({ "type": "RUN_ERROR", "message": message, "code": code })
            }
        });
        events
    }

    fn started(&self) -> Value {
        json!({ "type": "RUN_STARTED", "threadId": self.thread, "runId": self.run })
    }

    fn finished(&self) -> Value {
        json!({ "type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run })
    }
}

fn step_started(number: usize) -> Value {
    json!({ "type": "STEP_STARTED", "stepName": step_name(number) })
}

fn step_name(number: usize) -> String {
    format!("step {number}")
}

fn of_message(kind: &str, id: &str, delta: Option<&str>) -> Value {
    let mut event = json!({ "type": kind, "messageId": id });
    if let Some(delta) = delta {
        event["delta"] = json!(delta);
    }
    event
}

fn interrupt(call: &Call) -> Value {
    let can_edit = call.approval.as_ref().and_then(|it| it.options.as_ref());
    let can_edit = can_edit.is_some_and(|it| it.can_edit);
    let mut properties =
        json!({ "approved": { "type": "boolean" }, "reason": { "type": "string" } });
    if can_edit {
        properties["editedArgs"] = json!({ "type": "object" });
    }
    json!({
        "id": interrupt_id(call),
        "reason": "tool_call",
        "message": format!("May {} run?", call.label()),
        "toolCallId": call.id,
        "responseSchema": {
            "type": "object",
            "properties": properties,
            "required": ["approved"],
        },
    })
}
