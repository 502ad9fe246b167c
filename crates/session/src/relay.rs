//! Calls of Callboard's own tools by the session's program, which come over HTTP.
//!
//! The program also reports such a call on its stdout, before or after the request. The two are matched, so that
//! what the tool does belongs to the call that people see.

use std::collections::{HashMap, HashSet};

use backends::ToolOutcome;
use serde_json::Value;
use transcript::{
    Call, CallId, Decision, ErrorCode, ErrorInfo, Event, Executor, Millis, Validation,
    arguments_summary,
};

use crate::calls::{interrupted, not_allowed};
use crate::lanes::{AgentWait, Question, Work};
use crate::machine::not_run;
use crate::run::Run;
use crate::{
    AnswerType, Asker, Effect, Judged, ProposedCall, RelayedCall, ReplyId, ReplyTo, Ruling, Session,
};

/// Time limit for a program's report of a tool call that it has requested, in milliseconds.
const REPORT_TIMEOUT_MS: u64 = 2000;

/// Relayed tool calls of a session: calls of Callboard's own tools that its program requests over
/// HTTP.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// Requested tool calls that are not matched with a report of the program yet.
    requested: Vec<Requested>,
    /// Callers that wait for the outcome of a relayed tool call, by the call's id. `None` for a
    /// caller that has given up.
    callers: HashMap<CallId, Option<ReplyTo<ToolOutcome>>>,
    /// Ids of the tool calls to which a request has been assigned, so that no other request matches
    /// them.
    matched: HashSet<CallId>,
    /// Outcomes of relayed tool calls whose end the program itself will report.
    outcomes: HashMap<CallId, ToolOutcome>,
}

/// A tool call that the program has requested, and that is not matched with a report yet.
#[derive(Debug)]
struct Requested {
    call: RelayedCall,
    reply: ReplyTo<ToolOutcome>,
    /// Time at which the tool call begins even if the program has not reported it.
    until: Millis,
}

impl Relay {
    /// Returns the time at which the next relayed tool call begins without a report of the program.
    /// `None` if no call waits for a report.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.requested.iter().map(|it| it.until).min()
    }

    /// Returns whether a caller waits for the outcome of the tool call.
    fn is_awaited(&self, call_id: &CallId) -> bool {
        self.callers.get(call_id).is_some_and(Option::is_some)
    }

    /// Removes a relayed tool call and returns its caller. The inner `None` means that the caller
    /// has given up, the outer one that the call was not relayed.
    pub(crate) fn end(&mut self, call_id: &CallId) -> Option<Option<ReplyTo<ToolOutcome>>> {
        self.callers.remove(call_id)
    }

    /// Keeps the outcome of a relayed tool call whose end the program will report.
    pub(crate) fn remember(&mut self, call_id: CallId, outcome: ToolOutcome) {
        self.outcomes.insert(call_id, outcome);
    }

    /// Replaces the result in a program's `tool_result` event by the result that Callboard's tool
    /// returned, because the program reports it in a form of its own.
    pub(crate) fn restore_result(&mut self, event: &mut Event) {
        let Event::ToolResult { call_id, ok, result, error, .. } = event else { return };
        let ours = self.outcomes.remove(call_id).filter(|it| it.ok == *ok);
        let Some(outcome) = ours else { return };
        *result = (!outcome.result.is_null()).then_some(outcome.result);
        *error = outcome.error;
    }

    /// Removes the first requested tool call that the program has reported or that has waited for
    /// a report long enough. Returns it with the id of the reported call, if there is one.
    fn take_ready(
        &mut self,
        now: Millis,
        run: Option<&Run>,
    ) -> Option<(Requested, Option<CallId>)> {
        for idx in 0..self.requested.len() {
            let is_overdue = self.requested[idx].until <= now;
            let mut found = self.find_match(idx, run);
            if is_overdue && found.is_none() {
                // The program may have reported it under another id.
                self.requested[idx].call.provider_call_id = None;
                found = self.find_match(idx, run);
            }
            if found.is_some() || is_overdue {
                return Some((self.requested.remove(idx), found));
            }
        }
        None
    }

    /// Returns the id of the reported tool call that a request is about: the call with the
    /// requested id, or else the oldest call with the same tool and arguments. `None` if there is
    /// none.
    fn find_match(&self, idx: usize, run: Option<&Run>) -> Option<CallId> {
        let (run, call) = (run?, &self.requested[idx].call);
        let is_same = |it: &&Call| match &call.provider_call_id {
            Some(id) => it.provider_call_id.as_ref() == Some(id),
            None => it.arguments_done && are_same_arguments(&run.arguments_of(it), &call.arguments),
        };
        let is_open = |it: &&Call| {
            it.is_open() && it.executor == Executor::Agent && !self.matched.contains(&it.id)
        };
        let mut calls = run.message.calls().filter(|it| it.name == call.tool_name);
        calls.find(|it| is_open(it) && is_same(it)).map(|it| it.id.clone())
    }

    /// Forgets a caller that has disconnected. Returns the tool call of which it awaited the
    /// outcome.
    fn drop_caller(&mut self, caller: ReplyId) -> Option<CallId> {
        self.requested.retain(|it| it.reply.id() != caller);
        let is_it = |it: &ReplyTo<ToolOutcome>| it.id() == caller;
        let given_up = self.callers.iter_mut().find(|(_, it)| it.as_ref().is_some_and(is_it));
        given_up.map(|(call_id, waiting)| {
            *waiting = None;
            call_id.clone()
        })
    }

    /// Removes all relayed tool calls and returns the callers that wait for them.
    fn take_callers(&mut self) -> Vec<ReplyTo<ToolOutcome>> {
        let Self { requested, callers, .. } = std::mem::take(self);
        requested.into_iter().map(|it| it.reply).chain(callers.into_values().flatten()).collect()
    }
}

/// Returns whether reported and requested arguments of a tool call are equal. An empty reported
/// text counts as an empty object.
fn are_same_arguments(reported: &str, requested: &Value) -> bool {
    let reported = if reported.trim().is_empty() { "{}" } else { reported };
    serde_json::from_str::<Value>(reported).is_ok_and(|it| it == *requested)
}

impl Session {
    pub(crate) fn relay_call(&mut self, call: RelayedCall, reply: ReplyTo<ToolOutcome>) {
        let until = self.now.plus(REPORT_TIMEOUT_MS);
        self.relay.requested.push(Requested { call, reply, until });
    }

    /// Begins the first relayed tool call that matches a report of the program or has waited for
    /// one long enough. Returns whether there was such a call.
    pub(crate) fn begin_relayed_call(&mut self) -> bool {
        let Some((Requested { call, reply, .. }, found)) =
            self.relay.take_ready(self.now, self.phase.run())
        else {
            return false;
        };
        match found {
            Some(call_id) => self.judge_relayed(call_id, call, reply),
            None => self.begin_unreported(call, reply),
        }
        true
    }

    /// Begins a relayed tool call that the program does not report, such as a call from a script
    /// that the program runs. It is logged as a tool call of its own.
    fn begin_unreported(&mut self, call: RelayedCall, reply: ReplyTo<ToolOutcome>) {
        let Some(run) = self.phase.run() else {
            let message = "No run is open in this session, so its tools cannot be called. Call this \
                           tool while you answer a message.";
            return self.reply(reply, not_run(ErrorInfo::new(ErrorCode::ToolError, message)));
        };
        let n_calls = run.message.calls().count();
        let call_id = CallId::new(format!("{}.own{n_calls}", run.id));
        let arguments = call.arguments.to_string();
        let start = Event::ToolCallStart {
            call_id: call_id.clone(),
            provider_call_id: None,
            tool_name: call.tool_name.clone(),
            arguments: Some(arguments.clone()),
            parent_call_id: None,
            executor: Executor::Server,
        };
        let done = Event::ToolArgumentsDone {
            call_id: call_id.clone(),
            summary: arguments_summary(&arguments),
            arguments,
            incomplete: false,
            validation: Validation::NotRequired,
            provider_data: None,
        };
        self.push_here(start);
        let work = &mut self.agent_lane.work;
        work.push_back(Work::Log(done));
        work.push_back(Work::Relay { call_id, call, reply });
    }

    /// Requests the judgement of a relayed tool call.
    pub(crate) fn judge_relayed(
        &mut self,
        call_id: CallId,
        call: RelayedCall,
        reply: ReplyTo<ToolOutcome>,
    ) {
        let Some(run) = self.phase.run() else {
            return self.reply(reply, not_run(interrupted()));
        };
        let proposed = ProposedCall {
            call_id: call_id.clone(),
            tool_name: call.tool_name,
            arguments: call.arguments.to_string(),
            asker: Asker::Callboard,
            workspace: run.workspace.clone(),
        };
        self.relay.matched.insert(call_id.clone());
        self.relay.callers.insert(call_id, Some(reply));
        self.judge(proposed, AgentWait::Relay);
    }

    /// Runs, refuses or asks about a relayed tool call as the policy says. A call that a person has
    /// approved for the program already runs without another approval.
    pub(crate) fn decide_relayed(&mut self, call: ProposedCall, judged: Judged) {
        let reported = self.phase.run().and_then(|it| it.message.call(&call.call_id));
        let resolved = reported.and_then(|it| it.approval.as_ref()?.resolved.as_ref());
        let is_approved = resolved.is_some_and(|it| it.decision == Decision::Accepted);
        // The call may have been given up meanwhile.
        if !self.relay.is_awaited(&call.call_id) {
            return;
        }
        let granted = self.matching_grant(&judged);
        match judged.ruling {
            _ if is_approved => self.start_call(call),
            // Running it gives the program the error.
            Ruling::Allow | Ruling::Impossible { .. } => self.start_call(call),
            Ruling::Deny => self.refuse_call(call.call_id, not_allowed()),
            Ruling::Ask if granted.is_some() => {
                self.note_grant(&call.call_id, granted);
                self.start_call(call);
            }
            Ruling::Ask => {
                let question = Question { form: None, reason: None };
                self.ask_person(call, question, judged, None);
            }
        }
    }

    /// Gives up the pending commands and the relayed tool call of a caller that has disconnected.
    pub(crate) fn drop_caller(&mut self, caller: ReplyId) {
        self.command_lane.held.retain(|it| it.caller() != caller);
        if let Some(call_id) = self.relay.drop_caller(caller) {
            self.withdraw(&call_id);
            self.stop_call(call_id);
        }
    }

    /// Ends all relayed tool calls because the run has ended. The callers get their replies before
    /// the program is ended, so that it can exit by itself.
    pub(crate) fn stop_relay(&mut self) {
        let judged = self.agent_lane.take_relayed();
        for caller in self.relay.take_callers().into_iter().chain(judged) {
            let answer = Ok(not_run(interrupted()).into_answer());
            self.now_do(Effect::Reply { to: caller.id(), answer });
        }
    }
}
