//! Tool calls of the agent: who runs them, whether they may run, and their one outcome.

use backends::{ModelInput, ToolOutcome};
use transcript::{
    Call, CallId, CallState, Decision, ErrorCode, ErrorInfo, Event, Executor, ResponseId,
    Truncated, Validation,
};

use crate::lanes::{AgentWait, Owed, Question, WantedCall};
use crate::machine::not_run;
use crate::{Asker, Effect, Judged, ProposedCall, Refused, ReplyTo, Ruling, Session, ToolEvent};

impl Session {
    /// Returns the party that runs a tool. The sender of a message runs the tools that came with
    /// it, unless Callboard offers the agent a tool of the same name.
    pub(crate) fn executor_of(&self, tool: &str, executor: Executor) -> Executor {
        let is_ours = self.phase.run().is_some_and(|it| it.offered.contains(tool));
        let mut theirs = self.journal.summary.newest_client_tools().iter();
        if executor == Executor::Server && !is_ours && theirs.any(|it| it.name == *tool) {
            return Executor::Client;
        }
        executor
    }

    /// Returns a tool call of the open run with these arguments, to be judged. `None` if the open
    /// run has no such call.
    pub(crate) fn propose(
        &self,
        call_id: &CallId,
        arguments: String,
        asker: Asker,
    ) -> Option<ProposedCall> {
        let run = self.phase.run()?;
        let call = run.message.call(call_id)?;
        Some(ProposedCall {
            call_id: call_id.clone(),
            tool_name: call.name.clone(),
            arguments,
            asker,
            workspace: run.workspace.clone(),
        })
    }

    /// Requests the judgement of a tool call whose arguments are complete. `event` has the
    /// arguments and is logged after the judgement.
    pub(crate) fn validate(&mut self, call_id: &CallId, arguments: String, event: Event) {
        if let Some(call) = self.propose(call_id, arguments, Asker::Callboard) {
            self.judge(call, |_| AgentWait::Validation(event));
        }
    }

    /// Returns whether a person has to approve a judged tool call: the policy requires it, and no
    /// grant covers the call.
    pub(crate) fn needs_person(&self, judged: &Judged) -> bool {
        judged.ruling == Ruling::Ask && self.matching_grant(judged).is_none()
    }

    /// Handles the request of a model agent to run a tool call. After a restart of the server, a
    /// person may have decided about the call already.
    pub(crate) fn want_call(&mut self, call_id: CallId, tool_name: String, arguments: String) {
        let Some(run) = self.phase.run() else { return };
        let Some(call) = run.message.call(&call_id) else { return };
        if call.executor == Executor::Client {
            return self.wait_for_client(call_id);
        }
        let approval = call.approval.as_ref();
        let resolved = approval.and_then(|it| it.resolved.as_ref());
        let is_approved = resolved.is_some_and(|it| it.decision == Decision::Accepted);
        if resolved.is_some() && !is_approved {
            return self.refuse_call(call_id, denied(None));
        }
        let wanted = WantedCall {
            is_approved,
            must_ask: call.validation == Some(Validation::Pending),
            asked_at: approval.map(|it| it.requested_at),
        };
        let edited = resolved.and_then(|it| it.arguments.clone());
        let proposed = ProposedCall {
            call_id,
            tool_name,
            arguments: edited.unwrap_or(arguments),
            asker: Asker::Callboard,
            workspace: run.workspace.clone(),
        };
        // The tool, the policy and the grants may have changed since the arguments were complete.
        self.judge(proposed, |call| AgentWait::Call(call, wanted));
    }

    pub(crate) fn decide_call(&mut self, call: ProposedCall, wanted: &WantedCall, judged: Judged) {
        let granted = self.matching_grant(&judged);
        match judged.ruling {
            Ruling::Impossible { error, .. } => self.refuse_call(call.call_id, error),
            _ if wanted.is_approved => self.start_call(call),
            Ruling::Deny => self.refuse_call(call.call_id, not_allowed()),
            Ruling::Allow if !wanted.must_ask => self.start_call(call),
            Ruling::Ask if granted.is_some() && !wanted.must_ask => {
                self.note_grant(&call.call_id, granted);
                self.start_call(call);
            }
            Ruling::Allow | Ruling::Ask => {
                let question = Question { form: None, reason: None };
                self.ask_person(call, question, judged, wanted.asked_at);
            }
        }
    }

    /// Waits for the client to run a tool call and give its result. The wait is always limited,
    /// because the client may be gone: by the time limit of approvals, or else by a default.
    fn wait_for_client(&mut self, call_id: CallId) {
        let limit = self.client_timeout_ms();
        let now = self.now;
        let Some(run) = self.phase.run_mut() else { return };
        let since = run.message.call(&call_id).and_then(|it| it.running_since);
        run.pending.add_client_call(call_id.clone(), since.unwrap_or(now).plus(limit));
        self.agent_lane.owed.push_back(Owed::Model(ModelInput::ToolWaits(call_id.clone())));
        if since.is_none() {
            self.push_here(Event::ToolRunning { call_id });
        }
    }

    /// Takes the result of a tool call that a client has run. Only the first result counts.
    pub(crate) fn give_result(&mut self, call_id: CallId, outcome: ToolOutcome, to: ReplyTo<()>) {
        if !self.take_client_call(&call_id) {
            return self.refuse(to, Refused::NotAwaited(call_id.to_string()));
        }
        self.end_call(call_id, outcome);
        self.reply(to, ());
    }

    pub(crate) fn take_client_call(&mut self, call_id: &CallId) -> bool {
        self.phase.run_mut().is_some_and(|it| it.pending.take_client_call(call_id))
    }

    pub(crate) fn start_call(&mut self, call: ProposedCall) {
        let ProposedCall { call_id, arguments, .. } = call;
        let Some(run) = self.phase.run().map(|it| it.id.clone()) else { return };
        let limit = self.settings.limits.calls_per_minute;
        if !self.rate_limit.try_acquire(self.now, limit) {
            let message = format!(
                "Rate limit reached: {limit} tool calls per minute. Wait, or continue without this \
                 call."
            );
            return self.refuse_call(call_id, ErrorInfo::new(ErrorCode::RateLimitTools, message));
        }
        // A program may have said so already.
        if !self.is_running(&call_id) {
            self.push_here(Event::ToolRunning { call_id: call_id.clone() });
        }
        if let Some(run) = self.phase.run_mut() {
            run.running.insert(call_id.clone());
        }
        self.after_append(Effect::RunTool { run, call_id, arguments });
    }

    fn is_running(&self, call_id: &CallId) -> bool {
        let call = self.phase.run().and_then(|run| run.message.call(call_id));
        call.is_some_and(|it| it.state == CallState::Running)
    }

    /// Stops a tool call because its caller does not wait for the result any more.
    pub(crate) fn stop_call(&mut self, call_id: CallId) {
        let is_it =
            |it: &Effect| matches!(it, Effect::RunTool { call_id: id, .. } if *id == call_id);
        let runs = self.phase.run().is_some_and(|it| it.running.contains(&call_id));
        if runs && !self.has_effect(is_it) {
            return self.now_do(Effect::StopTool(call_id));
        }
        self.cancel_effects(is_it);
        if let Some(run) = self.phase.run_mut() {
            run.running.remove(&call_id);
            self.refuse_call(call_id, interrupted());
        }
    }

    /// Queues an error as the outcome of a tool call that does not run, after earlier pending
    /// inputs of the agent.
    pub(crate) fn refuse_call(&mut self, call_id: CallId, error: ErrorInfo) {
        if self.phase.run().is_some() {
            self.agent_lane.owed.push_back(Owed::Refused(call_id, not_run(error)));
            self.advance();
        }
    }

    pub(crate) fn take_tool_event(&mut self, run: &ResponseId, call_id: CallId, event: ToolEvent) {
        let is_open = self.phase.run().is_some_and(|it| it.id == *run);
        match event {
            ToolEvent::Emit { written, .. } if !is_open => self.refuse(written, Refused::Stopping),
            _ if !is_open => (),
            ToolEvent::Output { stream, offset, delta } => {
                self.push_here(Event::ToolOutputDelta { call_id, stream, offset, delta });
            }
            ToolEvent::Retry { attempt, max_attempts, error } => {
                self.push_here(Event::ToolRetry { call_id, attempt, max_attempts, error });
            }
            ToolEvent::Emit { event, written } => {
                self.push_here(*event);
                self.reply(written, ());
            }
            ToolEvent::Done(outcome) => {
                if let Some(run) = self.phase.run_mut() {
                    run.running.remove(&call_id);
                }
                self.end_call(call_id, outcome);
            }
        }
    }

    /// Takes the outcome of a tool call that ran on the server or the client, or was refused. The
    /// caller of a relayed call gets it as the reply. It is logged, unless the program reports the
    /// call itself.
    pub(crate) fn end_call(&mut self, call_id: CallId, outcome: ToolOutcome) {
        let relayed = self.relay.end(&call_id);
        let is_relayed = relayed.is_some();
        if let Some(to) = relayed.flatten() {
            self.reply(to, outcome.clone());
        }
        let call = self.phase.run().and_then(|run| run.message.call(&call_id));
        match call.map(|it| it.executor) {
            Some(Executor::Agent) => self.relay.remember(call_id, outcome),
            Some(_) => self.log_result(call_id, outcome, is_relayed),
            None => (),
        }
    }

    fn log_result(&mut self, call_id: CallId, mut outcome: ToolOutcome, is_relayed: bool) {
        let Some(call) = self.phase.run().and_then(|run| run.message.call(&call_id)) else {
            return;
        };
        let has_result = outcome.ok || !outcome.result.is_null();
        let result = Event::ToolResult {
            call_id: call_id.clone(),
            tool_name: call.name.clone(),
            ok: outcome.ok,
            result: has_result.then(|| outcome.result.clone()),
            output: None,
            error: outcome.error.clone(),
            summary: None,
            duration_ms: call.running_since.map(|since| self.now.since(since)),
            truncated: truncated(call),
        };
        outcome.result = call.with_output(outcome.result);
        self.push_here(result);
        if !is_relayed {
            self.tell_model(ModelInput::ToolResult { call_id, outcome });
        }
    }
}

pub(crate) fn interrupted() -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolInterrupted, "The call was stopped.")
}

pub(crate) fn not_allowed() -> ErrorInfo {
    let message = "The policy of this server does not allow this call. Continue without it.";
    ErrorInfo::new(ErrorCode::ToolDenied, message)
}

pub(crate) fn denied(feedback: Option<&str>) -> ErrorInfo {
    let message = match feedback {
        Some(reason) => format!("This call was not allowed, for this reason: {reason}"),
        None => {
            "The user did not allow this call and gave no reason. Do not try the same again; do \
             something else, or ask."
                .to_owned()
        }
    };
    ErrorInfo::new(ErrorCode::ToolDenied, message)
}

/// Returns the total size of a tool call's output and the size that the model gets. `None` if the
/// model gets all of it.
fn truncated(call: &Call) -> Option<Truncated> {
    let bodies = [&call.stdout, &call.stderr];
    let omitted: u64 = bodies.iter().map(|it| it.omitted()).sum();
    let total_bytes: u64 = bodies.iter().map(|it| it.bytes()).sum();
    (omitted > 0).then(|| Truncated {
        total_bytes,
        total_lines: Some(bodies.iter().map(|it| it.lines()).sum()),
        shown_bytes: total_bytes - omitted,
    })
}
