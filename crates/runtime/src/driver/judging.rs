//! Judgement of a call by the policy, the stored grants and the files that it would overwrite.

use std::sync::Arc;

use session::{Asker, Judged, ProposedCall, Ruling};
use tools::policy::{self, Policy, Request, Verdict};
use tools::{ParsedCall, PreparedCall, Tools, without_advice, write_target};
use transcript::{ErrorCode, ErrorInfo};

use super::Driver;
use crate::agents::Agents;

impl Driver {
    pub(super) async fn judge(&mut self, call: ProposedCall) -> Judged {
        let (parts, agent) = (Arc::clone(&self.parts), self.session.summary().agent.clone());
        let known = self.prepared.get(&call.call_id, &call.arguments);
        let is_new = known.is_none() && call.asker == Asker::Callboard;
        // Rules resolve symbolic links, which may block on the disk.
        let work = move || {
            let judge = Judge {
                agents: &parts.agents,
                tools: &parts.tools,
                policy: &parts.policy,
                agent: &agent,
            };
            let judged = match call.asker {
                Asker::Callboard => {
                    let prepared = known.unwrap_or_else(|| Arc::new(judge.prepare(&call)));
                    (judge.own_call(&prepared), Some(prepared))
                }
                Asker::Program { is_judged, has_form, .. } => {
                    (judge.program_call(&call, is_judged, has_form), None)
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
            let granted = self.parts.store.is_granted(&covers).await;
            judged.is_granted_always = granted.unwrap_or(false);
        }
        judged
    }
}

/// The parts of the server that decide about a call of an agent.
struct Judge<'a> {
    agents: &'a Agents,
    tools: &'a Tools,
    policy: &'a Policy,
    agent: &'a str,
}

impl Judge<'_> {
    fn prepare(&self, call: &ProposedCall) -> PreparedCall {
        self.tools.prepare(&call.tool_name, &call.arguments, &call.workspace)
    }

    /// Judges a tool call that Callboard runs by the policy, ignoring stored grants.
    fn own_call(&self, call: &PreparedCall) -> Judged {
        if let Some(ruling) = self.why_impossible(call) {
            let (matching, covers, target) = (None, None, None);
            return Judged { ruling, matching, is_granted_always: false, covers, target };
        }
        let request = self.request(call.parsed(), policy::Asker::Callboard);
        let ruling = ruling(self.policy.judge(&request));
        let covers = self.policy.covers(&request);
        let is_asked = ruling == Ruling::Ask;
        let matching = covers.clone().filter(|_| is_asked);
        let private = &self.policy.private;
        let target = is_asked.then(|| write_target(call.parsed(), private)).flatten();
        Judged { ruling, matching, is_granted_always: false, covers, target }
    }

    /// Judges a tool call that the agent's program runs by the policy, ignoring stored grants.
    fn program_call(&self, call: &ProposedCall, is_judged: bool, has_form: bool) -> Judged {
        let parsed = &ParsedCall::new(&call.tool_name, &call.arguments, &call.workspace);
        let private = &self.policy.private;
        // Only a person can fill in a form, and the answer does not apply to other forms.
        if has_form {
            let (ruling, target) = (Ruling::Ask, write_target(parsed, private));
            let (matching, covers) = (None, None);
            return Judged { ruling, matching, is_granted_always: false, covers, target };
        }
        let request = |is_judged| self.request(parsed, policy::Asker::Program { is_judged });
        let asked = request(is_judged);
        let ruling = ruling(self.policy.judge(&asked));
        let is_asked = ruling == Ruling::Ask;
        let matching = is_asked.then(|| self.policy.covers(&asked)).flatten();
        let covers = self.policy.covers(&request(false));
        let target = is_asked.then(|| write_target(parsed, private)).flatten();
        Judged { ruling, matching, is_granted_always: false, covers, target }
    }

    fn request<'b>(&'b self, call: &'b ParsedCall, asker: policy::Asker) -> Request<'b> {
        let (agent, search_path) = (self.agent, self.agents.search_path(self.agent));
        Request { call, agent, search_path, asker }
    }

    /// Returns the ruling for a tool call that cannot run even if a person approves it. `None` if
    /// it can run.
    fn why_impossible(&self, call: &PreparedCall) -> Option<Ruling> {
        let tool = call.parsed().tool();
        // A model may name tools that it was not offered.
        let may_use = self.agents.tool_choice(self.agent).is_none_or(|it| it.takes(tool));
        let error = if may_use {
            self.tools.why_impossible(call)?
        } else {
            let message =
                format!("You have no tool '{tool}'. Use only the tools that you were given.");
            ErrorInfo::new(ErrorCode::ToolNotFound, message)
        };
        let why = without_advice(&error.message).to_owned();
        Some(Ruling::Impossible { error, why })
    }
}

fn ruling(verdict: Verdict) -> Ruling {
    match verdict {
        Verdict::Allow => Ruling::Allow,
        Verdict::Ask => Ruling::Ask,
        Verdict::Deny => Ruling::Deny,
    }
}
