//! Requests for a decision about a call, and the answers to them.

use serde_json::{Map, Value};
use transcript::{ErrorCode, ErrorInfo};

use super::stdin;
use crate::Verdict;

/// A request of Claude Code that waits for a decision about a tool call.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) provider_call_id: String,
    /// Arguments with which Claude Code would run the tool call.
    pub(super) input: Value,
    /// Whether the request is a form, whose answers are added to the tool call's arguments.
    pub(super) has_form: bool,
}

/// Number of answered requests that are remembered. Claude Code repeats a request soon, or not at
/// all.
pub(super) const ANSWERED: usize = 64;

impl Request {
    /// Returns the line that answers Claude Code's request, and an error if the tool call must not
    /// run.
    pub(super) fn answer(&self, verdict: Verdict) -> (String, Option<ErrorInfo>) {
        match self.allowed_input(verdict) {
            Ok(input) => (stdin::allow(&self.id, &input), None),
            Err(refusal) => (stdin::deny(&self.id, &refusal.message), Some(refusal)),
        }
    }

    fn answered(&self, answers: Map<String, Value>) -> Value {
        let mut input = self.input.as_object().cloned().unwrap_or_default();
        input.extend(answers);
        Value::Object(input)
    }

    fn allowed_input(&self, verdict: Verdict) -> Result<Value, ErrorInfo> {
        let denied = |why: &str| Err(ErrorInfo::new(ErrorCode::ToolDenied, why));
        match verdict {
            Verdict::Allowed { arguments: None, .. } => Ok(self.input.clone()),
            Verdict::Allowed { arguments: Some(edited), .. } => match serde_json::from_str(&edited)
            {
                Ok(Value::Object(answers)) if self.has_form => Ok(self.answered(answers)),
                Ok(edited @ Value::Object(_)) => Ok(edited),
                // Arguments that a person edited must not run unedited.
                _ => denied("The arguments were edited into something that is no JSON object."),
            },
            Verdict::Denied { feedback: Some(feedback) } => denied(&feedback),
            Verdict::Denied { feedback: None } => denied("The user refused this call."),
            Verdict::TimedOut => {
                let why = "Nobody decided about this call in time; it did not run.";
                Err(ErrorInfo::new(ErrorCode::ApprovalTimeout, why))
            }
        }
    }
}
