//! Judgement of a call by the policy, the stored grants and the files that it would overwrite.

use std::sync::Arc;

use session::{Asker, Judged, ProposedCall, Ruling};
use tools::policy::{self, Request, Verdict};
use tools::{ParsedCall, PreparedCall, without_advice, write_target};
use transcript::{ErrorCode, ErrorInfo};

use super::Driver;
use crate::sessions::Services;

impl Driver {
    pub(super) async fn judge(&mut self, call: ProposedCall) -> Judged {
        let (services, agent) = (Arc::clone(&self.services), self.session.summary().agent.clone());
        let known = self.prepared.get(&call.call_id, &call.arguments);
        let is_new = known.is_none() && call.asker == Asker::Callboard;
        // Rules resolve symbolic links, which may block on the disk.
        let work = move || {
            let judged = match call.asker {
                Asker::Callboard => {
                    let prepared = known.unwrap_or_else(|| Arc::new(prepare(&services, &call)));
                    (judge_own(&services, &agent, &prepared), Some(prepared))
                }
                Asker::Program { is_judged, has_form, .. } => {
                    (judge_program(&services, &agent, &call, is_judged, has_form), None)
                }
            };
            (call, judged)
        };
        let done = tokio::task::spawn_blocking(work).await;
        let (call, (mut judged, prepared)) =
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        if let Some(prepared) = prepared.filter(|_| is_new) {
            self.prepared.add(call, prepared);
        }
        if let Some(covers) = judged.matching.clone() {
            // A grant that cannot be read does not count.
            let granted = self.services.store.is_granted(&covers).await;
            judged.is_granted_always = granted.unwrap_or(false);
        }
        judged
    }
}

fn prepare(services: &Services, call: &ProposedCall) -> PreparedCall {
    services.tools.prepare(&call.tool_name, &call.arguments, &call.workspace)
}

/// Judges a tool call that Callboard runs by the policy, ignoring stored grants.
fn judge_own(services: &Services, agent: &str, call: &PreparedCall) -> Judged {
    if let Some(ruling) = why_impossible(services, agent, call) {
        let (matching, covers, target) = (None, None, None);
        return Judged { ruling, matching, is_granted_always: false, covers, target };
    }
    let request = request(services, agent, call.parsed(), policy::Asker::Callboard);
    let ruling = ruling(services.policy.judge(&request));
    let covers = services.policy.covers(&request);
    let is_asked = ruling == Ruling::Ask;
    let matching = covers.clone().filter(|_| is_asked);
    let target = is_asked.then(|| write_target(call.parsed(), &services.policy.private)).flatten();
    Judged { ruling, matching, is_granted_always: false, covers, target }
}

/// Judges a tool call that the agent's program runs by the policy, ignoring stored grants.
fn judge_program(
    services: &Services,
    agent: &str,
    call: &ProposedCall,
    is_judged: bool,
    has_form: bool,
) -> Judged {
    let parsed = &ParsedCall::new(&call.tool_name, &call.arguments, &call.workspace);
    let private = &services.policy.private;
    // Only a person can fill in a form, and the answer does not apply to other forms.
    if has_form {
        let (ruling, target) = (Ruling::Ask, write_target(parsed, private));
        return Judged { ruling, matching: None, is_granted_always: false, covers: None, target };
    }
    let request = |is_judged| {
        let asker = policy::Asker::Program { is_judged };
        request(services, agent, parsed, asker)
    };
    let asked = request(is_judged);
    let ruling = ruling(services.policy.judge(&asked));
    let is_asked = ruling == Ruling::Ask;
    let matching = is_asked.then(|| services.policy.covers(&asked)).flatten();
    let covers = services.policy.covers(&request(false));
    let target = is_asked.then(|| write_target(parsed, private)).flatten();
    Judged { ruling, matching, is_granted_always: false, covers, target }
}

fn request<'a>(
    services: &'a Services,
    agent: &'a str,
    call: &'a ParsedCall,
    asker: policy::Asker,
) -> Request<'a> {
    Request { call, agent, search_path: services.agents.search_path(agent), asker }
}

fn ruling(verdict: Verdict) -> Ruling {
    match verdict {
        Verdict::Allow => Ruling::Allow,
        Verdict::Ask => Ruling::Ask,
        Verdict::Deny => Ruling::Deny,
    }
}

/// Returns the ruling for a tool call that cannot run even if a person approves it. `None` if it
/// can run.
fn why_impossible(services: &Services, agent: &str, call: &PreparedCall) -> Option<Ruling> {
    let tool = call.parsed().tool();
    // A model may name tools that it was not offered.
    let may_use = services.agents.tool_choice(agent).is_none_or(|it| it.takes(tool));
    let error = if may_use {
        services.tools.why_impossible(call)?
    } else {
        let message = format!("You have no tool '{tool}'. Use only the tools that you were given.");
        ErrorInfo::new(ErrorCode::ToolNotFound, message)
    };
    let why = without_advice(&error.message).to_owned();
    Some(Ruling::Impossible { error, why })
}
