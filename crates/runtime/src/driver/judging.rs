//! Judgement of a call: the policy, the stored grants, and what the call would overwrite.

use std::sync::Arc;

use session::{Asker, Judged, ProposedCall, Ruling};
use tools::policy::{self, Place, Proposed, Verdict};
use tools::{without_advice, write_target};
use transcript::{ErrorCode, ErrorInfo};

use super::Driver;
use crate::sessions::Services;

impl Driver {
    pub(super) async fn judge(&mut self, call: ProposedCall) -> Judged {
        let (services, agent) = (Arc::clone(&self.services), self.session.summary().agent.clone());
        // Rules look at where links lead, which may wait for a disk.
        let judged = tokio::task::spawn_blocking(move || judge(&services, &agent, &call)).await;
        let mut judged =
            judged.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        if let Some(covers) = judged.matching.clone() {
            // A grant that cannot be read is none.
            let granted = self.services.store.is_granted(&covers).await;
            judged.is_granted_always = granted.unwrap_or(false);
        }
        judged
    }
}

/// Judges a call without regard to grants.
fn judge(services: &Services, agent: &str, call: &ProposedCall) -> Judged {
    if let Some(ruling) = why_impossible(services, agent, call) {
        return Judged {
            ruling,
            matching: None,
            is_granted_always: false,
            covers: None,
            target: None,
        };
    }
    let approvals = &services.policy;
    let search_path = services.agents.search_path(agent);
    let place = Place { agent, workspace: &call.workspace, search_path };
    let propose = |asker| Proposed::new(&call.tool_name, &call.arguments, place, asker);
    let (asked, decided, has_form) = match call.asker {
        Asker::Callboard => (policy::Asker::Us, policy::Asker::Us, false),
        Asker::Program { is_judged, has_form, .. } => (
            policy::Asker::Program { is_judged },
            policy::Asker::Program { is_judged: false },
            has_form,
        ),
    };
    let proposed = propose(asked);
    // Only a person can fill in a form, and an answer is about that form alone.
    let verdict = if has_form { Verdict::Ask } else { approvals.judge(&proposed) };
    let ruling = match verdict {
        Verdict::Allow => Ruling::Allow,
        Verdict::Ask => Ruling::Ask,
        Verdict::Deny => Ruling::Deny,
    };
    let is_asked = ruling == Ruling::Ask;
    let matching = (is_asked && !has_form).then(|| approvals.covers(&proposed)).flatten();
    let covers = (!has_form).then(|| approvals.covers(&propose(decided))).flatten();
    let target = is_asked.then(|| {
        write_target(&call.tool_name, &call.arguments, &call.workspace, &approvals.private)
    });
    Judged { ruling, matching, is_granted_always: false, covers, target: target.flatten() }
}

/// Returns why one of our own tools could not run even if the call were approved.
fn why_impossible(services: &Services, agent: &str, call: &ProposedCall) -> Option<Ruling> {
    let tool = &call.tool_name;
    if call.asker != Asker::Callboard {
        return None;
    }
    // A model may name tools that it was not offered.
    let may_use = services.agents.tool_choice(agent).is_none_or(|it| it.takes(tool));
    let error = if may_use {
        services.tools.why_impossible(tool, &call.arguments)?
    } else {
        let message = format!("There is no tool '{tool}' for you. Use those you were given.");
        ErrorInfo::new(ErrorCode::ToolNotFound, message)
    };
    let why = without_advice(&error.message).to_owned();
    Some(Ruling::Impossible { error, why })
}
