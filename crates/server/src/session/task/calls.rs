//! Tool calls of the session's agent: whether they may run, who has to agree, and their one result.

use std::time::{Duration, Instant};

use backends::Verdict as ForProgram;
use backends::{Input, ToolOutcome};
use formats::openai::with_output;
use serde_json::Value;
use tokio::sync::oneshot;
use tools::policy::{Asker, Verdict};
use tools::{ToolEvent, ToolUpdate, without_advice, write_target};
use transcript::{
    AppliedGrant, ApprovalOptions, Call, CallId, CallState, Decision, ErrorCode, ErrorInfo, Event,
    Executor, Millis, ResponseId, Scope, Truncated, Validation,
};

use super::commands::refuse;
use super::grants::Judged;
use super::{AfterCommit, Task};
use crate::clock;
use crate::session::command::{Answered, Approval, Refused, Reply};
use crate::session::run::{AskedBy, WaitingCall};

const MINUTE: Duration = Duration::from_secs(60);
/// How long a client may take to run a tool, unless approvals have a limit.
const CLIENT_TIMEOUT_MS: u64 = 300_000;
/// Who decided where no person did.
pub(super) const US: &str = "callboard";

/// What a person is asked about a call.
pub(super) struct Question {
    pub(super) call_id: CallId,
    pub(super) tool_name: String,
    pub(super) arguments: String,
    pub(super) asked_by: AskedBy,
    pub(super) form: Option<Value>,
    /// Why, as the agent's program says.
    pub(super) reason: Option<String>,
    /// When it stands in the log already.
    pub(super) asked_at: Option<Millis>,
}

/// A call that an agent wants and nobody has decided about.
struct Wanted {
    call_id: CallId,
    tool_name: String,
    arguments: String,
    /// It was said that a person has to agree.
    must_ask: bool,
    /// Before a restart.
    asked_at: Option<Millis>,
}

impl Task {
    /// Whoever has sent the message runs the tools that came with it. Our own go first: what a client
    /// brings changes nothing about them.
    pub(super) fn settle_executor(&self, event: &mut Event) {
        let Event::ToolCallStart { tool_name, executor: executor @ Executor::Server, .. } = event
        else {
            return;
        };
        let is_ours = self.may_use(tool_name) && self.shared.tools.has(tool_name);
        let mut theirs = self.summary.newest_client_tools().iter();
        if !is_ours && theirs.any(|it| it.name == *tool_name) {
            *executor = Executor::Client;
        }
    }

    /// Whether a person must agree is decided when the arguments are known, by the policy of that
    /// moment.
    pub(super) fn settle_validation(&self, event: &mut Event) {
        let Event::ToolArgumentsDone { call_id, arguments, incomplete, validation, .. } = event
        else {
            return;
        };
        let Some(run) = &self.run else { return };
        let Some(call) = run.answer.call(call_id) else { return };
        if call.executor == Executor::Server && !*incomplete {
            *validation = match self.judge(&call.name, arguments).verdict {
                Verdict::Ask => Validation::Pending,
                Verdict::Allow | Verdict::Deny => Validation::NotRequired,
            };
        }
    }

    /// Nobody is asked about a call that cannot run, and it does not ([`Self::want_call`]).
    pub(super) fn judge(&self, tool: &str, arguments: &str) -> Judged {
        let Some(call) = self.proposed(tool, arguments, Asker::Us) else {
            return Verdict::Ask.into();
        };
        if !self.may_use(tool) || self.shared.tools.why_impossible(tool, arguments).is_some() {
            return Verdict::Allow.into();
        }
        self.judge_proposed(&call)
    }

    /// A model may name tools that it was not told of.
    fn may_use(&self, tool: &str) -> bool {
        self.shared.agents.tool_choice(&self.summary.agent).is_none_or(|it| it.takes(tool))
    }

    /// The agent wants this call to run. After a restart it may have been decided about already.
    pub(super) fn want_call(&mut self, call_id: CallId, tool_name: String, arguments: String) {
        let Some(call) = self.run.as_ref().and_then(|run| run.answer.call(&call_id)) else {
            return;
        };
        if call.executor == Executor::Client {
            return self.wait_for_client(call_id);
        }
        let approval = call.approval.as_ref();
        match approval.and_then(|it| it.resolved.as_ref()) {
            _ if !self.may_use(&tool_name) => {
                let message =
                    format!("There is no tool '{tool_name}' for you. Use those you were given.");
                self.refuse_call(call_id, ErrorInfo::new(ErrorCode::ToolNotFound, message));
            }
            Some(resolution) if resolution.decision == Decision::Accepted => {
                let arguments = resolution.arguments.clone().unwrap_or(arguments);
                self.start_call(call_id, tool_name, arguments);
            }
            Some(_) => self.refuse_call(call_id, denied(None)),
            None => {
                let must_ask = call.validation == Some(Validation::Pending);
                let asked_at = approval.map(|it| it.requested_at);
                self.want_undecided(Wanted { call_id, tool_name, arguments, must_ask, asked_at });
            }
        }
    }

    /// What is known of a tool may have changed since the arguments came: it is judged as it is now.
    fn want_undecided(&mut self, wanted: Wanted) {
        let Wanted { call_id, tool_name, arguments, must_ask, asked_at } = wanted;
        if let Some(error) = self.shared.tools.why_impossible(&tool_name, &arguments) {
            return self.refuse_call(call_id, error);
        }
        let Judged { verdict, granted } = self.judge(&tool_name, &arguments);
        match verdict {
            Verdict::Deny => self.refuse_call(call_id, not_allowed()),
            Verdict::Allow if !must_ask => {
                self.note_grant(&call_id, granted);
                self.start_call(call_id, tool_name, arguments);
            }
            Verdict::Allow | Verdict::Ask => self.ask_about(Question {
                call_id,
                tool_name,
                arguments,
                asked_by: AskedBy::Us,
                form: None,
                reason: None,
                asked_at,
            }),
        }
    }

    /// The client was told of the call and runs it. It may be gone for good, so that there is always a
    /// limit: as long as a person may take to decide, if that is limited.
    fn wait_for_client(&mut self, call_id: CallId) {
        let Some(run) = &mut self.run else { return };
        let id = run.id.clone();
        let since = run.answer.call(&call_id).and_then(|it| it.running_since);
        let limit = self.shared.approvals.timeout_ms.unwrap_or(CLIENT_TIMEOUT_MS);
        let until = since.unwrap_or_else(clock::now).plus(limit);
        run.at_client.insert(call_id.clone(), until);
        run.say_that_it_waits(call_id.clone());
        if since.is_none() {
            self.push(Some(&id), Event::ToolRunning { call_id });
        }
    }

    /// The first result counts.
    pub(super) fn give_result(&mut self, call_id: CallId, outcome: ToolOutcome, reply: Reply<()>) {
        let awaited = self
            .run
            .as_mut()
            .and_then(|run| run.at_client.remove(&call_id).map(|_| run.id.clone()));
        match awaited {
            Some(id) => {
                self.end_call(&id, call_id, outcome);
                self.reply(reply, ());
            }
            None => refuse(reply, Refused::NotAwaited(call_id.to_string())),
        }
    }

    pub(super) fn ask_about(&mut self, question: Question) {
        let Question { call_id, tool_name, arguments, asked_by, form, reason, asked_at } = question;
        let covers = self.covers(&tool_name, &arguments, asked_by);
        let Some(run) = &mut self.run else { return };
        let id = run.id.clone();
        let scopes = match covers {
            Some(_) => vec![Scope::Once, Scope::Session, Scope::Always],
            None => vec![Scope::Once],
        };
        let approvals = &self.shared.approvals;
        let target = write_target(&tool_name, &arguments, &run.workspace, &approvals.private);
        let asked = asked_at.unwrap_or_else(clock::now);
        let until = approvals.timeout_ms.map(|it| asked.plus(it));
        let waiting = WaitingCall { tool_name, arguments, until, asked_by };
        run.waiting.insert(call_id.clone(), waiting);
        if asked_by == AskedBy::Us {
            run.say_that_it_waits(call_id.clone());
        }
        if asked_at.is_none() {
            let can_edit = !matches!(asked_by, AskedBy::Program { can_edit: false, .. });
            let options = ApprovalOptions { scopes, can_edit, form, covers, reason, target };
            self.push(Some(&id), Event::ToolApprovalRequested { call_id, options });
        }
    }

    /// What an answer for more than once would hold for. An answer to a form is about that form alone.
    fn covers(&self, tool: &str, arguments: &str, asked_by: AskedBy) -> Option<String> {
        let asker = match asked_by {
            AskedBy::Us => Asker::Us,
            AskedBy::Program { has_form: true, .. } => return None,
            AskedBy::Program { has_form: false, .. } => Asker::Program { is_judged: false },
        };
        self.shared.approvals.covers(&self.proposed(tool, arguments, asker)?)
    }

    pub(super) fn start_call(&mut self, call_id: CallId, tool_name: String, arguments: String) {
        let Some(run) = &self.run else { return };
        let id = run.id.clone();
        let limit = self.shared.tools.settings().per_minute;
        if limit > 0 && !self.try_acquire_call(limit) {
            let message = format!(
                "This session has called {limit} tools within a minute, which is as many as it may. \
                 Wait, or go on without."
            );
            return self.refuse_call(call_id, ErrorInfo::new(ErrorCode::RateLimitTools, message));
        }
        // A program may have said so already.
        if !self.is_running(&call_id) {
            self.push(Some(&id), Event::ToolRunning { call_id: call_id.clone() });
        }
        self.after_commit.push(AfterCommit::RunTool { call_id, tool_name, arguments });
    }

    fn is_running(&self, call_id: &CallId) -> bool {
        let call = self.run.as_ref().and_then(|run| run.answer.call(call_id));
        call.is_some_and(|it| it.state == CallState::Running)
    }

    /// Counts a call against the rate limit of the last minute. Returns false, and counts nothing, if the limit
    /// is reached.
    fn try_acquire_call(&mut self, limit: usize) -> bool {
        while self.recent_calls.front().is_some_and(|it| it.elapsed() >= MINUTE) {
            self.recent_calls.pop_front();
        }
        let is_within = self.recent_calls.len() < limit;
        if is_within {
            self.recent_calls.push_back(Instant::now());
        }
        is_within
    }

    pub(super) fn refuse_call(&mut self, call_id: CallId, error: ErrorInfo) {
        if let Some(run) = &mut self.run {
            run.refuse(call_id, error);
        }
    }

    pub(super) fn hear_tool(&mut self, update: ToolUpdate) {
        let ToolUpdate { call_id, event } = update;
        let Some(run) = &mut self.run else { return };
        let id = run.id.clone();
        match event {
            ToolEvent::Output { stream, offset, delta } => {
                let event = Event::ToolOutputDelta { call_id, stream, offset, delta };
                self.push(Some(&id), event);
            }
            ToolEvent::Retry { attempt, max_attempts, error } => {
                let event = Event::ToolRetry { call_id, attempt, max_attempts, error };
                self.push(Some(&id), event);
            }
            ToolEvent::Emit { event, written } => {
                self.push(Some(&id), *event);
                let reply = |outcome: Result<(), Refused>| {
                    let _ = outcome.map(|()| written.send(()));
                };
                self.after_commit.push(AfterCommit::Reply(Box::new(reply)));
            }
            ToolEvent::Done(outcome) => {
                run.tool_ended(&call_id);
                self.end_call(&id, call_id, outcome);
            }
        }
    }

    /// The one way for the result of a tool that the server ran, or refused to run. Where a program
    /// called it, the program gets it, and says so itself if the call is one that it told of.
    fn end_call(&mut self, id: &ResponseId, call_id: CallId, outcome: ToolOutcome) {
        let own = self.own_calls.end(&call_id);
        let is_own = own.is_some();
        if let Some(reply) = own.flatten() {
            self.reply(reply, outcome.clone());
        }
        let call = self.run.as_ref().and_then(|run| run.answer.call(&call_id));
        match call.map(|it| it.executor) {
            Some(Executor::Agent) => self.own_calls.remember(call_id, outcome),
            Some(_) => self.tell_result(id, call_id, outcome, is_own),
            None => (),
        }
    }

    fn tell_result(
        &mut self,
        id: &ResponseId,
        call_id: CallId,
        mut outcome: ToolOutcome,
        is_own: bool,
    ) {
        let Some(call) = self.run.as_ref().and_then(|run| run.answer.call(&call_id)) else {
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
            duration_ms: call.running_since.map(|since| clock::now().since(since)),
            truncated: truncated(call),
        };
        outcome.result = with_output(outcome.result, call);
        self.push(Some(id), result);
        if !is_own {
            self.tell_agent(Input::ToolResult { call_id, outcome });
        }
    }

    pub(super) fn approve(&mut self, approval: Approval, reply: Reply<()>) {
        let Approval { call_id, answer, feedback, by } = approval;
        let Some(run) = &self.run else { return refuse(reply, self.not_waiting(&call_id)) };
        let Some(waiting) = run.waiting.get(&call_id) else {
            return refuse(reply, self.not_waiting(&call_id));
        };
        let (scope, edited) = match answer {
            Answered::Rejected => (None, None),
            Answered::Accepted { scope, arguments } => (Some(scope), arguments),
        };
        let asked_by = waiting.asked_by;
        let arguments = edited.as_ref().unwrap_or(&waiting.arguments);
        if let Err(why) = self.check_answer(waiting, edited.as_deref()) {
            return refuse(reply, Refused::BadArguments(why));
        }
        let covers = self.covers(&waiting.tool_name, arguments, asked_by);
        let covers = covers.filter(|_| matches!(scope, Some(Scope::Session | Scope::Always)));
        if covers.is_none() && scope.is_some_and(|it| it != Scope::Once) {
            return refuse(reply, Refused::OnlyOnce);
        }
        if let (Some(Scope::Always), Some(covers)) = (scope, &covers) {
            self.after_commit.push(AfterCommit::Grant(covers.clone()));
        }
        let decision = if scope.is_some() { Decision::Accepted } else { Decision::Rejected };
        let (arguments, said) = (edited.clone(), feedback.clone());
        let (granted, decided_by) = (covers.clone(), by.clone());
        let waiting = self.resolve(&call_id, |call_id| Event::ToolApprovalResolved {
            call_id,
            decision,
            scope,
            arguments,
            feedback: said,
            covers,
            by,
        });
        match (waiting, scope) {
            // A permission that the program remembers itself could not be revoked.
            (Some(WaitingCall { asked_by: AskedBy::Program { .. }, .. }), Some(_)) => {
                let verdict = ForProgram::Allowed { arguments: edited, scope: Scope::Once };
                self.tell_agent(Input::Decided { call_id, verdict });
            }
            (Some(WaitingCall { asked_by: AskedBy::Program { .. }, .. }), None) => {
                let verdict = ForProgram::Denied { feedback };
                self.tell_agent(Input::Decided { call_id, verdict });
            }
            (Some(WaitingCall { tool_name, arguments, .. }), Some(_)) => {
                self.start_call(call_id, tool_name, edited.unwrap_or(arguments));
            }
            (Some(_), None) => self.refuse_call(call_id, denied(feedback.as_deref())),
            (None, _) => (),
        }
        self.reply(reply, ());
        if let (Some(covers), Some(scope)) = (granted, scope) {
            self.allow_the_same(&AppliedGrant { scope, covers }, &decided_by);
        }
    }

    /// What was allowed for more than once also answers the questions about it that are open already.
    fn allow_the_same(&mut self, granted: &AppliedGrant, by: &str) {
        let Some(run) = &self.run else { return };
        let is_same = |it: &WaitingCall| {
            let covers = self.covers(&it.tool_name, &it.arguments, it.asked_by);
            covers.as_ref() == Some(&granted.covers)
        };
        let same = run.waiting.iter().filter(|(_, it)| is_same(it));
        let mut same: Vec<CallId> = same.map(|(call_id, _)| call_id.clone()).collect();
        same.sort_unstable();
        for call_id in same {
            self.note_grant(&call_id, Some(granted.clone()));
            let answer = Answered::Accepted { scope: Scope::Once, arguments: None };
            let approval = Approval { call_id, answer, feedback: None, by: by.to_owned() };
            let (reply, _) = oneshot::channel();
            self.approve(approval, reply);
        }
    }

    /// Why the call cannot run with what somebody answered.
    fn check_answer(&self, waiting: &WaitingCall, edited: Option<&str>) -> Result<(), String> {
        match (waiting.asked_by, edited) {
            (AskedBy::Us, edited) => {
                let arguments = edited.unwrap_or(&waiting.arguments);
                let problem = self.shared.tools.why_impossible(&waiting.tool_name, arguments);
                problem.map_or(Ok(()), |error| Err(without_advice(&error.message).to_owned()))
            }
            (AskedBy::Program { can_edit: false, has_form: false }, Some(_)) => {
                Err("the program takes only a yes or a no".to_owned())
            }
            (AskedBy::Program { .. }, Some(edited)) => {
                let parsed = serde_json::from_str::<serde_json::Map<String, Value>>(edited);
                parsed.map(drop).map_err(|error| format!("they are no JSON object: {error}"))
            }
            (AskedBy::Program { .. }, None) => Ok(()),
        }
    }

    pub(super) fn time_out(&mut self, call_id: CallId) {
        let seconds = self.shared.approvals.timeout_ms.unwrap_or(CLIENT_TIMEOUT_MS) / 1000;
        let at_client = self.run.as_mut().and_then(|run| run.at_client.remove(&call_id));
        if at_client.is_some() {
            let message = format!(
                "The client that runs this tool gave no result within {seconds} seconds. It may be \
                 gone; go on without it."
            );
            return self.refuse_call(call_id, ErrorInfo::new(ErrorCode::ToolTimeout, message));
        }
        let waiting = self.resolve(&call_id, |call_id| Event::ToolApprovalResolved {
            call_id,
            decision: Decision::TimedOut,
            scope: None,
            arguments: None,
            feedback: None,
            covers: None,
            by: US.to_owned(),
        });
        if waiting.is_some_and(|it| it.asked_by != AskedBy::Us) {
            return self.tell_agent(Input::Decided { call_id, verdict: ForProgram::TimedOut });
        }
        let message = format!(
            "Nobody decided about this call within {seconds} seconds, so it did not run. Nobody may be \
             there; go on without it."
        );
        self.refuse_call(call_id, ErrorInfo::new(ErrorCode::ApprovalTimeout, message));
    }

    /// The first decision counts: whoever comes later finds nothing that waits.
    pub(super) fn resolve(
        &mut self,
        call_id: &CallId,
        event: impl FnOnce(CallId) -> Event,
    ) -> Option<WaitingCall> {
        let run = self.run.as_mut()?;
        let id = run.id.clone();
        let waiting = run.waiting.remove(call_id)?;
        self.push(Some(&id), event(call_id.clone()));
        Some(waiting)
    }

    /// Why nothing can be decided about a call, from the log.
    fn not_waiting(&self, call_id: &CallId) -> Refused {
        let call = match self.call_in_log(call_id) {
            Ok(call) => call,
            Err(refused) => return refused,
        };
        match call.and_then(|it| it.approval?.resolved) {
            Some(resolution) => Refused::Decided { by: resolution.by, at: resolution.at },
            None => Refused::NoCall(call_id.to_string()),
        }
    }
}

pub(super) fn not_allowed() -> ErrorInfo {
    let message = "The policy of this server does not allow this call. Do without it.";
    ErrorInfo::new(ErrorCode::ToolDenied, message)
}

pub(super) fn taken_back() -> ErrorInfo {
    let message =
        "The user took back the permission before this call started. Ask before trying again.";
    ErrorInfo::new(ErrorCode::ToolDenied, message)
}

fn denied(feedback: Option<&str>) -> ErrorInfo {
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

/// Where the model gets less than there is.
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
