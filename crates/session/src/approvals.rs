//! Approvals: what a person is asked about a call, and what follows from the decision.

use backends::{ModelInput, ProgramInput, Verdict};
use serde_json::{Map, Value};
use transcript::{
    AppliedGrant, ApprovalOptions, CallId, Decision, ErrorCode, ErrorInfo, Event, Millis, Scope,
};

use crate::calls::{denied, not_allowed};
use crate::lanes::{AgentWait, CommandWait, Owed, Question, SameCalls};
use crate::pending_calls::PendingApproval;
use crate::{
    Answered, Approval, Asker, Effect, Judged, Lookup, ProposedCall, Refused, ReplyTo, Ruling,
    Session,
};

/// Name that the log gives as the decider if no person decided about a tool call.
const CALLBOARD: &str = "callboard";

impl Session {
    /// Requests the judgement of a tool call that the program asks about before it runs the call
    /// itself.
    pub(crate) fn judge_question(
        &mut self,
        call_id: CallId,
        can_edit: bool,
        form: Option<Value>,
        reason: Option<String>,
        is_judged: bool,
    ) {
        let Some(run) = self.phase.run() else { return };
        let Some(call) = run.message.call(&call_id) else {
            self.now_do(Effect::Warn("a program asks about a call that it never reported"));
            return self.answer_program(call_id, Verdict::Denied { feedback: None });
        };
        let arguments = run.arguments_of(call);
        let asker = Asker::Program { is_judged, can_edit, has_form: form.is_some() };
        if let Some(call) = self.propose(&call_id, arguments, asker) {
            let question = Question { form, reason };
            self.judge(call, |call| AgentWait::Question(call, question));
        }
    }

    pub(crate) fn answer_question(
        &mut self,
        call: ProposedCall,
        question: Question,
        judged: Judged,
    ) {
        let granted = self.matching_grant(&judged);
        match judged.ruling {
            Ruling::Ask if granted.is_none() => self.ask_person(call, question, judged, None),
            Ruling::Allow | Ruling::Ask => {
                self.note_grant(&call.call_id, granted);
                let verdict = Verdict::Allowed { arguments: None, scope: Scope::Once };
                self.answer_program(call.call_id, verdict);
            }
            Ruling::Deny | Ruling::Impossible { .. } => {
                let feedback = Some(not_allowed().message);
                self.answer_program(call.call_id, Verdict::Denied { feedback });
            }
        }
    }

    /// Queues the decision about a tool call for the program that asked, after earlier pending
    /// inputs.
    fn answer_program(&mut self, call_id: CallId, verdict: Verdict) {
        self.tell_program(ProgramInput::Decided { call_id, verdict });
    }

    /// Asks a person to approve a tool call. `asked_at` is the time of the request if the log has
    /// it already; otherwise the request is logged.
    pub(crate) fn ask_person(
        &mut self,
        call: ProposedCall,
        question: Question,
        judged: Judged,
        asked_at: Option<Millis>,
    ) {
        let ProposedCall { call_id, arguments, asker, .. } = call;
        let Judged { covers, target, .. } = judged;
        let limit = self.settings.limits.approval_timeout_ms;
        let asked = asked_at.unwrap_or(self.now);
        let Some(run) = self.phase.run_mut() else { return };
        let pending = PendingApproval {
            arguments,
            asker,
            covers: covers.clone(),
            until: limit.map(|it| asked.plus(it)),
        };
        run.pending.add_approval(call_id.clone(), pending);
        if asker == Asker::Callboard {
            self.agent_lane.owed.push_back(Owed::Model(ModelInput::ToolWaits(call_id.clone())));
        }
        if asked_at.is_none() {
            let scopes = match covers {
                Some(_) => vec![Scope::Once, Scope::Session, Scope::Always],
                None => vec![Scope::Once],
            };
            let can_edit = !matches!(asker, Asker::Program { can_edit: false, .. });
            let Question { form, reason } = question;
            let options = ApprovalOptions { scopes, can_edit, form, covers, reason, target };
            self.push_here(Event::ToolApprovalRequested { call_id, options });
        }
    }

    /// Takes a person's decision about a tool call. If the call is accepted, it is judged again
    /// with the approved arguments before it runs.
    pub(crate) fn approve(&mut self, approval: Approval, reply: ReplyTo<()>) {
        let Some(pending) = self.pending_approval(&approval.call_id).cloned() else {
            return self.refuse_undecidable(approval.call_id, reply);
        };
        let Answered::Accepted { arguments: edited, .. } = &approval.answer else {
            return self.reject(approval, reply);
        };
        if let Err(why) = check_edit(pending.asker, edited.as_deref()) {
            return self.refuse(reply, Refused::BadArguments(why));
        }
        let arguments = edited.clone().unwrap_or_else(|| pending.arguments.clone());
        let asked = pending.arguments;
        if let Some(call) = self.propose(&approval.call_id, arguments, pending.asker) {
            self.judge_for_command(call, |call| CommandWait::Approve {
                approval,
                call,
                asked,
                reply,
            });
        }
    }

    fn pending_approval(&self, call_id: &CallId) -> Option<&PendingApproval> {
        self.phase.run()?.pending.approval(call_id)
    }

    fn reject(&mut self, approval: Approval, reply: ReplyTo<()>) {
        let Approval { call_id, feedback, by, .. } = approval;
        let pending = self.resolve(
            &call_id,
            Resolved { feedback: feedback.clone(), ..Resolved::new(Decision::Rejected, by) },
        );
        self.reply(reply, ());
        match pending.map(|it| it.asker) {
            Some(Asker::Program { .. }) => {
                self.answer_program(call_id, Verdict::Denied { feedback });
            }
            Some(Asker::Callboard) => self.refuse_call(call_id, denied(feedback.as_deref())),
            None => (),
        }
    }

    /// Accepts a tool call after it was judged, unless another decision came first or the call
    /// cannot run.
    pub(crate) fn accept_judged(
        &mut self,
        approval: Approval,
        call: ProposedCall,
        asked: &str,
        reply: ReplyTo<()>,
        judged: &Judged,
    ) {
        let Some(pending) = self.pending_approval(&approval.call_id) else {
            return self.refuse_undecidable(approval.call_id, reply);
        };
        if pending.arguments != asked {
            // The program has asked again, with other arguments.
            return self.approve(approval, reply);
        }
        let Answered::Accepted { scope, .. } = approval.answer else { return };
        if let Ruling::Impossible { why, .. } = &judged.ruling {
            return self.refuse(reply, Refused::BadArguments(why.clone()));
        }
        let covers = judged.covers.clone().filter(|_| scope != Scope::Once);
        if covers.is_none() && scope != Scope::Once {
            return self.refuse(reply, Refused::OnlyOnce);
        }
        if let (Scope::Always, Some(covers)) = (scope, covers.clone()) {
            let id = self.ids.next(self.now);
            self.after_append(Effect::StoreGrant { id, covers });
        }
        let by = approval.by.clone();
        self.accept(approval, call, covers.clone());
        self.reply(reply, ());
        if let Some((covers, run)) = covers.zip(self.phase.run()) {
            let is_same = |it: &&PendingApproval| it.covers.as_ref() == Some(&covers);
            let same = run.pending.approvals().filter(|(_, it)| is_same(it));
            let rest = same.map(|(call_id, _)| call_id.clone()).collect();
            let granted = AppliedGrant { scope, covers };
            self.accept_the_same(SameCalls { granted, by, rest });
        }
    }

    fn accept(&mut self, approval: Approval, call: ProposedCall, covers: Option<String>) {
        let Approval { call_id, answer, feedback, by } = approval;
        let Answered::Accepted { scope, arguments: edited } = answer else { return };
        let resolved = Resolved {
            scope: Some(scope),
            arguments: edited.clone(),
            feedback,
            covers,
            ..Resolved::new(Decision::Accepted, by)
        };
        let Some(pending) = self.resolve(&call_id, resolved) else { return };
        match pending.asker {
            // A permission that the program remembers itself could not be revoked.
            Asker::Program { .. } => {
                let verdict = Verdict::Allowed { arguments: edited, scope: Scope::Once };
                self.answer_program(call_id, verdict);
            }
            Asker::Callboard => self.start_call(call),
        }
    }

    /// Requests the judgement of the next pending tool call that a decision for more than one call
    /// may cover. It is judged again because its paths may lead elsewhere since the approval was
    /// requested.
    fn accept_the_same(&mut self, mut same: SameCalls) {
        while let Some(call_id) = same.rest.pop() {
            let pending = self.pending_approval(&call_id).cloned();
            let call = pending.and_then(|it| self.propose(&call_id, it.arguments, it.asker));
            if let Some(call) = call {
                return self.judge_for_command(call, |call| CommandWait::AcceptSame { call, same });
            }
        }
    }

    /// Accepts a pending tool call after it was judged, if an earlier decision for more than one
    /// call still covers it. Continues with the next such call.
    pub(crate) fn accept_same_judged(
        &mut self,
        call: ProposedCall,
        same: SameCalls,
        judged: &Judged,
    ) {
        let pending = self.pending_approval(&call.call_id);
        let is_same = pending.is_some_and(|it| it.arguments == call.arguments)
            && judged.covers.as_ref() == Some(&same.granted.covers)
            && !matches!(judged.ruling, Ruling::Impossible { .. } | Ruling::Deny);
        if is_same {
            self.note_grant(&call.call_id, Some(same.granted.clone()));
            let answer = Answered::Accepted { scope: Scope::Once, arguments: None };
            let (call_id, by) = (call.call_id.clone(), same.by.clone());
            self.accept(Approval { call_id, answer, feedback: None, by }, call, None);
        }
        self.accept_the_same(same);
    }

    /// Logs that nobody decided about a tool call in time, and gives the agent that outcome.
    pub(crate) fn time_out_approval(&mut self, call_id: CallId) {
        let resolved = Resolved::new(Decision::TimedOut, CALLBOARD.to_owned());
        match self.resolve(&call_id, resolved).map(|it| it.asker) {
            Some(Asker::Program { .. }) => self.answer_program(call_id, Verdict::TimedOut),
            Some(Asker::Callboard) => {
                let limit_ms = self.settings.limits.approval_timeout_ms.unwrap_or_default();
                let seconds = limit_ms / 1000;
                let message = format!(
                    "Nobody decided about this call within {seconds} seconds, so it did not run. \
                     Continue without it."
                );
                let error = ErrorInfo::new(ErrorCode::ApprovalTimeout, message);
                self.refuse_call(call_id, error);
            }
            None => (),
        }
    }

    /// Logs that a tool call does not need a decision any more.
    pub(crate) fn withdraw(&mut self, call_id: &CallId) {
        self.resolve(call_id, Resolved::new(Decision::Withdrawn, CALLBOARD.to_owned()));
    }

    /// Logs the decision about a tool call and returns the pending approval that it resolves.
    /// `None` if no approval is pending, because an earlier decision counts.
    fn resolve(&mut self, call_id: &CallId, resolved: Resolved) -> Option<PendingApproval> {
        let pending = self.phase.run_mut()?.pending.take_approval(call_id)?;
        let Resolved { decision, scope, arguments, feedback, covers, by } = resolved;
        let call_id = call_id.clone();
        self.push_here(Event::ToolApprovalResolved {
            call_id,
            decision,
            scope,
            arguments,
            feedback,
            covers,
            by,
        });
        Some(pending)
    }

    /// Refuses a decision about a tool call that does not wait for one. The reason comes from the
    /// open run or from the log.
    fn refuse_undecidable(&mut self, call_id: CallId, reply: ReplyTo<()>) {
        let then = CommandWait::NotWaiting { call_id: call_id.clone(), caller: reply.id() };
        match self.call_of_open_run(&call_id) {
            Some(call) => {
                let why = why_undecidable(&call_id, call.as_ref());
                self.refuse(reply, why);
            }
            None => self.find(Lookup::Call(call_id), then),
        }
    }
}

/// Content of the record of a decision about a tool call.
struct Resolved {
    decision: Decision,
    scope: Option<Scope>,
    arguments: Option<String>,
    feedback: Option<String>,
    covers: Option<String>,
    by: String,
}

impl Resolved {
    fn new(decision: Decision, by: String) -> Self {
        Self { decision, scope: None, arguments: None, feedback: None, covers: None, by }
    }
}

/// Returns the reason to refuse a decision about a tool call: it was decided about already, or it
/// never waited for a decision.
pub(crate) fn why_undecidable(call_id: &CallId, call: Option<&transcript::Call>) -> Refused {
    match call.and_then(|it| it.approval.as_ref()?.resolved.as_ref()) {
        Some(resolution) => Refused::Decided { by: resolution.by.clone(), at: resolution.at },
        None => Refused::NoCall(call_id.to_string()),
    }
}

/// Checks edited arguments for a tool call that the program runs. Arguments of Callboard's own
/// tools are checked when the call is judged.
fn check_edit(asker: Asker, edited: Option<&str>) -> Result<(), String> {
    match (asker, edited) {
        (Asker::Callboard, _) | (Asker::Program { .. }, None) => Ok(()),
        (Asker::Program { can_edit: false, has_form: false, .. }, Some(_)) => {
            Err("the program takes only a yes or a no".to_owned())
        }
        (Asker::Program { .. }, Some(edited)) => {
            let parsed = serde_json::from_str::<Map<String, Value>>(edited);
            parsed.map(drop).map_err(|error| format!("they are no JSON object: {error}"))
        }
    }
}
