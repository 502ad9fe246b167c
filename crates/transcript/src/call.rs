//! A tool call's life: from the first sign of it to its one result.

use serde_json::Value;

use crate::excerpt::excerpt;
use crate::result_summary::result_summary;
use crate::{
    Approval, Body, Call, CallId, CallState, Decision, Executor, Millis, Outcome, Resolution,
};

pub(crate) fn new_call(id: &CallId, number: u32, commentary: Vec<usize>, body_edge: usize) -> Call {
    Call {
        id: id.clone(),
        provider_call_id: None,
        name: String::new(),
        number,
        executor: Executor::Agent,
        // Whole while they stream, so that arguments that break off can be closed with all that came.
        arguments: Body::keeping(usize::MAX),
        arguments_done: false,
        arguments_incomplete: false,
        summary: String::new(),
        validation: None,
        provider_data: None,
        approval: None,
        granted: None,
        edited: None,
        input_value: None,
        running_since: None,
        stdout: Body::keeping(body_edge),
        stderr: Body::keeping(body_edge),
        retries: Vec::new(),
        outcome: None,
        state: CallState::StreamingInput,
        commentary,
    }
}

impl Call {
    /// Enters a state on the way; one that the call has ended in, or been refused in, stays.
    pub(crate) fn move_to(&mut self, state: CallState) {
        let ended = self.outcome.is_some()
            || matches!(self.state, CallState::Denied | CallState::Interrupted);
        if !ended {
            self.state = state;
        }
    }

    /// Programs may say so before anybody has agreed; it runs when it is said again.
    pub(crate) fn run(&mut self, at: Millis) {
        if !self.waits_for_approval() {
            self.running_since.get_or_insert(at);
            self.move_to(CallState::Running);
        }
    }

    /// For a person, whatever was said of it before.
    pub(crate) fn wait(&mut self, approval: Approval) {
        self.approval = Some(approval);
        self.running_since = None;
        self.move_to(CallState::AwaitingApproval);
    }

    /// One decision wins: the first.
    pub(crate) fn resolve_approval(&mut self, resolution: Resolution, body_edge: usize) {
        let approval = self.approval.get_or_insert_with(|| Approval {
            options: None,
            requested_at: resolution.at,
            resolved: None,
        });
        if approval.resolved.is_some() {
            return;
        }
        let decision = resolution.decision;
        if let (Decision::Accepted, Some(arguments)) = (decision, &resolution.arguments) {
            let mut edited = Body::keeping(body_edge);
            edited.push(arguments);
            self.edited = Some(edited);
            self.input_value = readable(arguments, body_edge);
        }
        approval.resolved = Some(resolution);
        self.move_to(match decision {
            Decision::Accepted => CallState::Queued,
            Decision::Rejected | Decision::TimedOut => CallState::Denied,
            Decision::Withdrawn => CallState::Interrupted,
        });
    }

    /// The first result stands, whatever comes after it.
    pub(crate) fn end(
        &mut self,
        tool_name: &str,
        mut outcome: Outcome,
        result: Option<&Value>,
        output: Option<&str>,
    ) {
        if self.outcome.is_some() {
            return;
        }
        // Older versions wrote 0 for a call that never ran.
        let has_run = self.running_since.is_some();
        outcome.duration_ms = outcome.duration_ms.filter(|it| has_run || *it > 0);
        if self.name.is_empty() {
            tool_name.clone_into(&mut self.name);
        }
        if let Some(output) = output {
            self.stdout.set(output);
            self.stderr.set("");
        }
        if outcome.summary.trim().is_empty() {
            let error = outcome.error.as_ref().filter(|_| !outcome.ok);
            outcome.summary = result_summary(result, error, &self.stdout, &self.stderr);
        }
        self.state = CallState::after(outcome.ok, outcome.error.as_ref());
        self.outcome = Some(outcome);
    }

    pub(crate) fn arguments_are(&self, value: &Value) -> bool {
        self.arguments_done
            && self.arguments.whole().and_then(|text| as_json(&text)).as_ref() == Some(value)
    }
}

/// Arguments as a value, in excerpt.
pub(crate) fn readable(arguments: &str, edge: usize) -> Option<Value> {
    excerpt(&serde_json::from_str(arguments).ok()?, edge)
}

pub(crate) fn json_body(value: &Value, edge: usize) -> Body {
    let mut body = Body::keeping(edge);
    body.push(&value.to_string());
    body
}

/// A text that is a JSON object or array, and nothing else.
pub(crate) fn as_json(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}
