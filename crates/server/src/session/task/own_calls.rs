//! The session's program calls a tool of ours: which of its calls that is, and whether it may run.

use backends::{ToolOutcome, arguments_summary};
use tokio::time::Instant;
use tools::policy::Verdict;
use tools::{failed, interrupted, tool_error};
use transcript::{CallId, Decision, Event, Executor, Validation};

use super::Task;
use super::calls::{Question, not_allowed};
use super::grants::Judged;
use crate::session::command::Reply;
use crate::session::own_calls::{OwnCall, OwnNews, Untied};
use crate::session::run::AskedBy;

impl Task {
    /// Begins what the program has told of, and what it will not tell of any more.
    pub(super) fn tie_own_calls(&mut self) {
        for mut untied in std::mem::take(&mut self.own_calls.untied) {
            let is_overdue = untied.until <= Instant::now();
            if is_overdue && self.meant(&untied.call).is_none() {
                // The program may have told of it under another id.
                untied.call.provider_call_id = None;
            }
            match self.meant(&untied.call) {
                Some(call_id) => self.begin_own_call(call_id, untied.call, untied.reply),
                None if !is_overdue => self.own_calls.untied.push(untied),
                None => self.begin_untold(untied),
            }
        }
    }

    pub(super) fn hear_own(&mut self, news: OwnNews) {
        match news {
            // Looked at before the next wait.
            OwnNews::Overdue => (),
            OwnNews::GivenUp(call_id) => {
                self.withdraw(&call_id);
                if let Some(run) = &mut self.run
                    && !run.stop_tool(&call_id)
                {
                    run.refuse(call_id, interrupted());
                }
            }
        }
    }

    fn meant(&self, call: &OwnCall) -> Option<CallId> {
        let run = self.run.as_ref()?;
        self.own_calls.meant(call, &run.answer, |it| {
            let whole = run.proposed.get(&it.id).cloned();
            whole.or_else(|| it.arguments.whole()).unwrap_or_default()
        })
    }

    /// A call that the program says nothing of, as one may that comes from a script of its own, gets a
    /// block of ours.
    fn begin_untold(&mut self, untied: Untied) {
        let Untied { call, reply, .. } = untied;
        let Some(run) = &self.run else {
            let message = "The conversation waits for no answer now, so nothing can be done in it. Call \
                           this while you answer a message.";
            let _ = reply.send(Ok(failed(tool_error(message))));
            return;
        };
        let n_calls = run.answer.calls().count();
        let call_id = CallId::new(format!("{}.own{n_calls}", run.id));
        let arguments = call.arguments.to_string();
        self.emit(Event::ToolCallStart {
            call_id: call_id.clone(),
            provider_call_id: None,
            tool_name: call.tool_name.clone(),
            arguments: Some(arguments.clone()),
            parent_call_id: None,
            executor: Executor::Server,
        });
        self.emit(Event::ToolArgumentsDone {
            call_id: call_id.clone(),
            summary: arguments_summary(&arguments),
            arguments,
            incomplete: false,
            validation: Validation::NotRequired,
            provider_data: None,
        });
        self.begin_own_call(call_id, call, reply);
    }

    /// The policy decides as for any agent, unless the program has asked already.
    fn begin_own_call(&mut self, call_id: CallId, call: OwnCall, reply: Reply<ToolOutcome>) {
        let (tool_name, arguments) = (call.tool_name, call.arguments.to_string());
        let told = self.run.as_ref().and_then(|it| it.answer.call(&call_id));
        let resolved = told.and_then(|it| it.approval.as_ref()?.resolved.as_ref());
        let is_allowed = resolved.is_some_and(|it| it.decision == Decision::Accepted);
        self.own_calls.begin(call_id.clone(), reply);
        let Judged { verdict, granted } = self.judge(&tool_name, &arguments);
        match verdict {
            _ if is_allowed => self.start_call(call_id, tool_name, arguments),
            Verdict::Allow => {
                self.note_grant(&call_id, granted);
                self.start_call(call_id, tool_name, arguments);
            }
            Verdict::Deny => self.refuse_call(call_id, not_allowed()),
            Verdict::Ask => {
                self.ask_about(Question {
                    call_id,
                    tool_name,
                    arguments,
                    asked_by: AskedBy::Us,
                    form: None,
                    reason: None,
                    asked_at: None,
                });
            }
        }
    }
}
