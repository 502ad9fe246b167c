//! Questions of a program: may this call of its own run? The policy answers, or a person.

use backends::Verdict;
use serde_json::Value;
use tools::policy::{self, Asker};
use transcript::{CallId, Decision, Event, Scope};

use super::Task;
use super::calls::{Question, US};
use super::grants::Judged;
use crate::session::run::AskedBy;

/// How a program asks.
pub(super) struct Asking {
    pub(super) can_edit: bool,
    pub(super) form: Option<Value>,
    pub(super) reason: Option<String>,
    pub(super) is_judged: bool,
}

impl Task {
    pub(super) fn ask(&mut self, call_id: CallId, asking: Asking) {
        let Asking { can_edit, form, reason, is_judged } = asking;
        let Some(run) = &mut self.run else { return };
        let Some(call) = run.answer.call(&call_id) else {
            tracing::warn!(session = %self.id, "a program asks about a call that nobody knows");
            return run.answer_program(call_id, Verdict::Denied { feedback: None });
        };
        let tool_name = call.name.clone();
        let whole = run.proposed.get(&call_id).cloned();
        let arguments = whole.or_else(|| call.arguments.whole()).unwrap_or_default();
        let judged = match &form {
            // Only a person can answer it.
            Some(_) => policy::Verdict::Ask.into(),
            None => self.judge_for_program(&tool_name, &arguments, is_judged),
        };
        let Judged { verdict, granted } = judged;
        self.note_grant(&call_id, granted);
        let Some(run) = &mut self.run else { return };
        match verdict {
            policy::Verdict::Allow => {
                let verdict = Verdict::Allowed { arguments: None, scope: Scope::Once };
                run.answer_program(call_id, verdict);
            }
            policy::Verdict::Deny => {
                let feedback = "The policy of this server does not allow this. Do without it.";
                let feedback = Some(feedback.to_owned());
                run.answer_program(call_id, Verdict::Denied { feedback });
            }
            policy::Verdict::Ask => {
                let asked_by = AskedBy::Program { can_edit, has_form: form.is_some() };
                let asked_at = None;
                self.ask_about(Question {
                    call_id,
                    tool_name,
                    arguments,
                    asked_by,
                    form,
                    reason,
                    asked_at,
                });
            }
        }
    }

    fn judge_for_program(&self, tool: &str, arguments: &str, is_judged: bool) -> Judged {
        match self.proposed(tool, arguments, Asker::Program { is_judged }) {
            Some(call) => self.judge_proposed(&call),
            None => policy::Verdict::Ask.into(),
        }
    }

    /// The program asks no longer.
    pub(super) fn withdraw(&mut self, call_id: &CallId) {
        self.resolve(call_id, |call_id| Event::ToolApprovalResolved {
            call_id,
            decision: Decision::Withdrawn,
            scope: None,
            arguments: None,
            feedback: None,
            covers: None,
            by: US.to_owned(),
        });
    }
}
