//! Decisions for more than once: which calls they cover, and how they are taken back.

use store::Grant;
use tools::policy::{Asker, Place, Proposed, Verdict, grant_id};
use transcript::{
    AppliedGrant, Call, CallId, CallState, Event, Executor, Record, Resolution, ResponseId,
    RunMessage, Scope,
};

use super::calls::taken_back;
use super::commands::refuse;
use super::{AfterCommit, Task};
use crate::clock;
use crate::session::command::{Refused, Reply, Undone};
use crate::session::run::Awaited;

/// The policy's verdict on a call, and the grant that allows it without an approval.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) granted: Option<AppliedGrant>,
}

impl From<Verdict> for Judged {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, granted: None }
    }
}

impl Task {
    /// A call of the run that is active.
    pub(super) fn proposed<'a>(
        &'a self,
        tool: &'a str,
        arguments: &str,
        asker: Asker,
    ) -> Option<Proposed<'a>> {
        let workspace = &self.run.as_ref()?.workspace;
        let agent = &self.summary.agent;
        let search_path = self.shared.agents.search_path(agent);
        let place = Place { agent, workspace, search_path };
        Some(Proposed::new(tool, arguments, place, asker))
    }

    pub(super) fn judge_proposed(&self, call: &Proposed<'_>) -> Judged {
        let verdict = self.shared.approvals.judge(call);
        match self.grant_for(call).filter(|_| verdict == Verdict::Ask) {
            Some(granted) => Judged { verdict: Verdict::Allow, granted: Some(granted) },
            None => verdict.into(),
        }
    }

    fn grant_for(&self, call: &Proposed<'_>) -> Option<AppliedGrant> {
        let covers = self.shared.approvals.covers(call)?;
        let scopes = [Scope::Session, Scope::Always];
        let scope = scopes.into_iter().find(|it| self.is_granted(*it, &covers))?;
        Some(AppliedGrant { scope, covers })
    }

    fn is_granted(&self, scope: Scope, covers: &str) -> bool {
        match scope {
            Scope::Once => false,
            Scope::Session => self.summary.granted.contains_key(covers),
            // A grant that cannot be read is none.
            Scope::Always => self.shared.store.is_granted(covers).unwrap_or(false),
        }
    }

    /// The log says because of which grant nobody was asked.
    pub(super) fn note_grant(&mut self, call_id: &CallId, granted: Option<AppliedGrant>) {
        let run = self.run.as_ref().map(|it| it.id.clone());
        if let Some(AppliedGrant { scope, covers }) = granted {
            let call_id = call_id.clone();
            self.push(run.as_ref(), Event::ToolGranted { call_id, scope, covers });
        }
    }

    /// Takes back what a decision allowed for more than once, and ends the call if it has not started.
    pub(super) fn undo(&mut self, call_id: &CallId, by: String, reply: Reply<Undone>) {
        let call = match self.call_in_log(call_id) {
            Ok(Some(call)) => call,
            Ok(None) => return refuse(reply, Refused::NoCall(call_id.to_string())),
            Err(refused) => return refuse(reply, refused),
        };
        let resolved = call.approval.as_ref().and_then(|it| it.resolved.as_ref());
        let Some(Resolution { scope: Some(scope), covers: Some(covers), .. }) = resolved else {
            return refuse(reply, Refused::NothingToUndo);
        };
        if !self.is_granted(*scope, covers) {
            return refuse(reply, Refused::NothingToUndo);
        }
        // A program that was told to go ahead cannot be called back.
        let stopped = call.state == CallState::Queued && call.executor == Executor::Server;
        if stopped {
            self.refuse_call(call_id.clone(), taken_back());
        }
        self.revoke(*scope, covers.clone(), by, move |removed| {
            let _ = reply.send(removed.map(|()| Undone { stopped }));
        });
    }

    pub(super) fn revoke_session_grant(&mut self, id: &str, by: String, reply: Reply<()>) {
        match self.summary.granted.keys().find(|it| grant_id(it) == id).cloned() {
            Some(covers) => {
                self.revoke(Scope::Session, covers, by, move |removed| {
                    let _ = reply.send(removed);
                });
            }
            None => refuse(reply, Refused::NoGrant(id.to_owned())),
        }
    }

    /// Calls `then` when the grant is gone, or could not be removed.
    fn revoke(
        &mut self,
        scope: Scope,
        covers: String,
        by: String,
        then: impl FnOnce(Result<(), Refused>) + Send + 'static,
    ) {
        self.push(None, Event::GrantRevoked { scope, covers: covers.clone(), by });
        self.after_commit.push(match scope {
            Scope::Always => AfterCommit::RevokeGrant(covers, Box::new(then)),
            Scope::Once | Scope::Session => AfterCommit::Reply(Box::new(then)),
        });
    }

    /// A call of any run of the session.
    pub(super) fn call_in_log(&self, call_id: &CallId) -> Result<Option<Call>, Refused> {
        let id = call_id.as_str().rsplit_once('.').map_or(call_id.as_str(), |(run, _)| run);
        let id = ResponseId::new(id);
        // Decisions of this round are not in the log yet.
        if let Some(run) = self.run.as_ref().filter(|run| run.id == id) {
            return Ok(run.answer.call(call_id).cloned());
        }
        let records = self.shared.store.records_of_run(&self.id, &id);
        let records = records.map_err(|error| Refused::Storage(error.to_string()))?;
        let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
        Ok(RunMessage::replay(&id, &records).call(call_id).cloned())
    }

    /// The call itself was allowed in the log already; only what comes later would be asked again.
    pub(super) async fn store_grant(&mut self, covers: String) {
        let grant = Grant { id: clock::new_grant_id(), covers, at: clock::now() };
        if let Err(error) = self.shared.store.add_grant(grant).await {
            tracing::error!(session = %self.id, %error, "a grant could not be stored");
        }
    }

    pub(super) async fn remove_grant(&mut self, covers: String, then: Awaited) {
        let removed = self.shared.store.remove_grant_of(&covers).await;
        if let Err(error) = &removed {
            tracing::error!(session = %self.id, %error, "a grant could not be revoked");
        }
        then(removed.map(drop).map_err(|error| Refused::Storage(error.to_string())));
    }
}
