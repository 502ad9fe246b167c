//! Grants: decisions that hold for more than one call, and how they are revoked.

use std::collections::BTreeMap;

use transcript::{
    AppliedGrant, Call, CallId, CallState, ErrorCode, ErrorInfo, Event, Executor, Millis,
    Resolution, Scope,
};

use crate::lanes::{CommandWait, UndoGrant};
use crate::{AnswerType, Effect, Judged, Lookup, Refused, ReplyTo, Ruling, Session, Undone};

impl Judged {
    /// Returns the grant that allows this tool call, which a person would have to approve
    /// otherwise. `None` if no grant does. `granted` has the grants of the session.
    fn matching_grant(&self, granted: &BTreeMap<String, Millis>) -> Option<AppliedGrant> {
        let covers = self.matching.clone().filter(|_| self.ruling == Ruling::Ask)?;
        let scope = match granted.contains_key(&covers) {
            true => Scope::Session,
            false if self.is_granted_always => Scope::Always,
            false => return None,
        };
        Some(AppliedGrant { scope, covers })
    }
}

impl UndoGrant {
    /// Returns the approval of a tool call as one to undo. Refused if its decision stored no grant.
    /// `may_stop` says whether the agent can still be told that the call does not run.
    fn of(call: Call, by: String, may_stop: bool) -> Result<Self, Refused> {
        let resolved = call.approval.and_then(|it| it.resolved);
        let Some(Resolution { scope: Some(scope), covers: Some(covers), .. }) = resolved else {
            return Err(Refused::NothingToUndo);
        };
        // A program that was told to go ahead cannot be called back.
        let is_queued = call.state == CallState::Queued && call.executor == Executor::Server;
        Ok(Self { call_id: call.id, is_queued: is_queued && may_stop, scope, covers, by })
    }
}

impl Session {
    /// Returns the grant that allows a judged tool call. `None` if no grant does.
    pub(crate) fn matching_grant(&self, judged: &Judged) -> Option<AppliedGrant> {
        judged.matching_grant(&self.journal.summary.granted)
    }

    /// Logs the grant that allowed a tool call without an approval. Does nothing if `granted` is
    /// `None`.
    pub(crate) fn note_grant(&mut self, call_id: &CallId, granted: Option<AppliedGrant>) {
        if let Some(AppliedGrant { scope, covers }) = granted {
            self.push_here(Event::ToolGranted { call_id: call_id.clone(), scope, covers });
        }
    }

    /// Returns the tool call with this id if it belongs to the open run, whose decisions may not be
    /// in the store yet. The outer `None` means another run, the inner one that the open run has no
    /// such call.
    pub(crate) fn call_of_open_run(&self, call_id: &CallId) -> Option<Option<Call>> {
        let run = self.phase.run()?;
        let is_of_run = call_id.run().is_none_or(|it| it == run.id);
        is_of_run.then(|| run.message.call(call_id).cloned())
    }

    /// Undoes the approval of a tool call: revokes the grant that the decision stored, and ends the
    /// call if it has not started.
    pub(crate) fn undo(&mut self, call_id: CallId, by: String, reply: ReplyTo<Undone>) {
        match self.call_of_open_run(&call_id) {
            Some(call) => self.undo_call(&call_id, call, by, reply),
            None => {
                let lookup = Lookup::Call(call_id.clone());
                self.find(lookup, CommandWait::Undo { call_id, by, reply });
            }
        }
    }

    pub(crate) fn undo_call(
        &mut self,
        call_id: &CallId,
        call: Option<Call>,
        by: String,
        reply: ReplyTo<Undone>,
    ) {
        // An agent that is just being resumed cannot be called back.
        let may_stop = !self.phase.is_starting();
        let call = call.ok_or_else(|| Refused::NoCall(call_id.to_string()));
        let undo = match call.and_then(|it| UndoGrant::of(it, by, may_stop)) {
            Ok(undo) => undo,
            Err(why) => return self.refuse(reply, why),
        };
        if undo.scope == Scope::Always {
            let lookup = Lookup::Grant(undo.covers.clone());
            return self.find(lookup, CommandWait::UndoGrant { undo, reply });
        }
        let is_granted = self.journal.summary.granted.contains_key(&undo.covers);
        let is_granted = is_granted && undo.scope == Scope::Session;
        self.undo_grant(undo, is_granted, reply);
    }

    pub(crate) fn undo_grant(&mut self, undo: UndoGrant, is_granted: bool, reply: ReplyTo<Undone>) {
        let UndoGrant { call_id, is_queued: stopped, scope, covers, by } = undo;
        if !is_granted {
            return self.refuse(reply, Refused::NothingToUndo);
        }
        self.revoke(scope, covers, by, reply, Undone { stopped });
        if stopped {
            self.refuse_call(call_id, revoked());
        }
    }

    pub(crate) fn revoke_session_grant(
        &mut self,
        id: String,
        covers: String,
        by: String,
        reply: ReplyTo<()>,
    ) {
        if self.journal.summary.granted.contains_key(&covers) {
            self.revoke(Scope::Session, covers, by, reply, ());
        } else {
            self.refuse(reply, Refused::NoGrant(id));
        }
    }

    /// Logs that a grant is revoked, and replies with `value` once it is removed.
    fn revoke<T: AnswerType>(
        &mut self,
        scope: Scope,
        covers: String,
        by: String,
        reply: ReplyTo<T>,
        value: T,
    ) {
        self.push(None, Event::GrantRevoked { scope, covers: covers.clone(), by });
        match scope {
            Scope::Always => {
                let (to, answer) = (reply.id(), value.into_answer());
                self.after_append(Effect::RemoveGrant { covers, to, answer });
            }
            Scope::Once | Scope::Session => self.reply(reply, value),
        }
    }
}

fn revoked() -> ErrorInfo {
    let message =
        "The user revoked the permission before this call started. Ask before trying again.";
    ErrorInfo::new(ErrorCode::ToolDenied, message)
}
