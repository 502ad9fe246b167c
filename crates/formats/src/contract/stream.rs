//! A session as the contract's events: what runs do while they do it.
//!
//! A client that folds them by the rules of the contract, and corrects itself from the history at the end of
//! each run, has the messages of `format=contract`.

use std::collections::HashMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use transcript::{
    Call, Evaluation, Event, Millis, Record, ResponseId, RunMessage, RunStatus, Seq, SessionId,
    Step,
};

use super::from_transcript::{error_message, n_steps, step_calls, step_text, stop};
use crate::call;
use crate::follow::{Follow, RunChange};

/// An event of a run, in the event stream of `format=contract`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Envelope {
    /// Sequence number of the record that the event comes from: the `id` of the server-sent event.
    #[serde(skip)]
    pub seq: Seq,
    /// Type of the event, such as `agent.tool.started`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the run.
    pub execution_id: ResponseId,
    /// Time of the record that the event comes from.
    pub timestamp: Millis,
    /// Fields of the event, depending on its type.
    pub payload: Value,
}

/// Converts the records of a session to events of `format=contract`. A reader that starts in the
/// middle passes in the records of open runs from their beginning, and sends only the later events.
#[derive(Debug, Default)]
pub struct Stream {
    /// State of each run; `None` for runs that have ended.
    runs: HashMap<ResponseId, Option<Follow>>,
}

impl Stream {
    /// Applies a record and returns the events that it causes.
    pub fn apply(&mut self, record: &Record) -> Vec<Envelope> {
        let Some(run) = record.response_id.clone().filter(|_| !record.event.is_session_event())
        else {
            return Vec::new();
        };
        let follow = self.runs.entry(run.clone()).or_insert_with(|| Some(Follow::new(run.clone())));
        let Some(following) = follow else { return Vec::new() };
        let mut events = Vec::new();
        let mut has_ended = false;
        for change in following.apply(record) {
            has_ended |= matches!(change, RunChange::Ended(_));
            encode_change(change, &mut events);
        }
        if has_ended {
            *follow = None;
        }
        if let Event::Continuation { should_continue, stop_reason, resolved_by, evaluations } =
            &record.event
        {
            events.push(continuation(*should_continue, stop_reason, resolved_by, evaluations));
        }
        let envelope = |(kind, payload)| Envelope {
            seq: record.seq,
            kind,
            session_id: record.session_id.clone(),
            execution_id: run.clone(),
            timestamp: record.at,
            payload: Value::Object(payload),
        };
        events.into_iter().map(envelope).collect()
    }
}

type Payload = (&'static str, Map<String, Value>);

fn encode_change(change: RunChange<'_>, events: &mut Vec<Payload>) {
    match change {
        RunChange::Begun(_) => events.push(status("processing", None)),
        RunChange::ArgumentsDone(call) => events.push(tool_started(call)),
        // The edited arguments replace the proposed ones under the same id.
        RunChange::ApprovalResolved(call) if is_edited(call) => events.push(tool_started(call)),
        RunChange::CallEnded(call) => events.push(tool_completed(call)),
        RunChange::StepEnded { number, step, answer } => {
            events.push(step_completed(answer, number, step));
        }
        RunChange::Ended(answer) => {
            if answer.steps.iter().all(|step| step.parent.is_some()) && n_steps(answer) == 1 {
                let started_at = answer.started_at;
                let step = Step { index: 0, parent: None, started_at, finished: None };
                events.push(step_completed(answer, 1, &step));
            }
            let stop = stop(answer).filter(|stop| answer.continuation() != Some(stop));
            events.extend(stop.map(|it| {
                continuation(it.should_continue, &it.stop_reason, &it.resolved_by, &it.evaluations)
            }));
            events.push(ended(answer));
        }
        RunChange::StepBegun { .. }
        | RunChange::TextBegun(_)
        | RunChange::TextGrown(..)
        | RunChange::TextEnded(_)
        | RunChange::ThinkingBegun(_)
        | RunChange::ThinkingGrown(..)
        | RunChange::ThinkingEnded(_)
        | RunChange::CallBegun(_)
        | RunChange::ArgumentsGrown(..)
        | RunChange::ApprovalRequested(_)
        | RunChange::ApprovalResolved(_)
        | RunChange::Aside(..) => (),
    }
}

fn is_edited(call: &Call) -> bool {
    call::accepted(call).is_some_and(|it| it.arguments.is_some())
}

fn tool_started(call: &Call) -> Payload {
    let mut payload = Map::new();
    payload.insert("tool_call_id".to_owned(), json!(call.id));
    payload.insert("tool_name".to_owned(), json!(call.label()));
    // The text, where it is no JSON.
    let args = Some(call::input(call)).filter(|it| !it.is_null());
    payload.insert("args".to_owned(), args.unwrap_or_else(|| json!({})));
    payload.insert("args_summary".to_owned(), json!(call::input_summary(call)));
    ("agent.tool.started", payload)
}

fn tool_completed(call: &Call) -> Payload {
    let outcome = call.outcome.as_ref();
    let mut payload = without_nulls(json!({
        "tool_call_id": call.id,
        "tool_name": call.label(),
        "success": outcome.is_some_and(|it| it.ok),
        "tool_error": call::error_text(call),
        "result_summary": call::summary(call),
        "duration_ms": outcome.and_then(|it| it.duration_ms),
    }));
    if outcome.is_some_and(|it| it.ok) {
        payload.insert("tool_result".to_owned(), call::output(call));
    }
    ("agent.tool.completed", payload)
}

fn step_completed(answer: &RunMessage, number: usize, step: &Step) -> Payload {
    let finished = step.finished.as_ref();
    let payload = json!({
        "step_number": number,
        "content": step_text(answer, number),
        "has_tool_calls": step_calls(answer, number).next().is_some(),
        "finish_reason": finished.map(|it| &it.reason),
        "usage": finished.and_then(|it| it.usage),
        "duration_ms": finished.map(|it| it.at.since(step.started_at)),
    });
    ("agent.step.completed", without_nulls(payload))
}

fn continuation(
    should_continue: bool,
    stop_reason: &str,
    resolved_by: &str,
    evaluations: &[Evaluation],
) -> Payload {
    let payload = json!({
        "should_continue": should_continue,
        "stop_reason": stop_reason,
        "resolved_by": resolved_by,
        "evaluations": evaluations,
    });
    ("agent.continuation", without_nulls(payload))
}

fn ended(answer: &RunMessage) -> Payload {
    let word = match answer.finish.as_ref().map(|it| it.status) {
        Some(RunStatus::Completed) | None => "completed",
        Some(RunStatus::Failed) => "failed",
        Some(RunStatus::Cancelled) => "cancelled",
    };
    status(word, error_message(answer))
}

fn status(word: &str, error_message: Option<String>) -> Payload {
    let payload = json!({ "status": word, "error_message": error_message });
    ("agent.status", without_nulls(payload))
}

fn without_nulls(payload: Value) -> Map<String, Value> {
    let fields = payload.as_object().cloned().unwrap_or_default();
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}
