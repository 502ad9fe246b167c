//! What the program wants to know before a call runs, and what it is told.

use serde_json::{Map, Value};
use transcript::{CallId, ErrorCode, ErrorInfo};

use super::stdin;
use crate::Verdict;
use crate::program::Recent;

/// Those that wait for a decision.
#[derive(Debug)]
pub(super) struct Questions {
    open: Vec<Question>,
    /// The program's ids of those that have had their answer, or need none.
    answered: Recent,
}

#[derive(Debug)]
pub(super) struct Question {
    pub(super) request_id: String,
    pub(super) call_id: CallId,
    pub(super) provider_call_id: String,
    /// What the call would run with.
    pub(super) input: Value,
    /// It takes answers, which go into the input.
    pub(super) has_form: bool,
}

/// Who asks again asks soon.
const ANSWERED: usize = 64;

impl Default for Questions {
    fn default() -> Self {
        Self { open: Vec::new(), answered: Recent::keeping(ANSWERED) }
    }
}

impl Questions {
    /// False if the same was asked before: then the answer goes to whoever asked last.
    pub(super) fn add(&mut self, question: Question) -> bool {
        match self.open.iter_mut().find(|it| it.call_id == question.call_id) {
            Some(known) => {
                *known = question;
                false
            }
            None => {
                self.open.push(question);
                true
            }
        }
    }

    pub(super) fn take(&mut self, is_it: impl Fn(&Question) -> bool) -> Option<Question> {
        let at = self.open.iter().position(is_it)?;
        let question = self.open.remove(at);
        self.answered.insert(&question.request_id);
        Some(question)
    }

    pub(super) fn was_answered(&self, request_id: &str) -> bool {
        self.answered.contains(request_id)
    }
}

impl Question {
    /// The line that answers it, and the reason if the call must not run.
    pub(super) fn answer(&self, verdict: Verdict) -> (String, Option<ErrorInfo>) {
        match self.allowed_input(verdict) {
            Ok(input) => (stdin::allow(&self.request_id, &input), None),
            Err(refusal) => (stdin::deny(&self.request_id, &refusal.message), Some(refusal)),
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
                // What somebody changed for a reason must not run as it was.
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
