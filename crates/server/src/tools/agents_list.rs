//! `agents_list`: who else is there, and what each is for.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, ToolContext, Work, tool_error};
use crate::agents::AgentInfo;

pub(super) const TOOL: Tool = Tool {
    name: "agents_list",
    description: "Lists the agents of this server: what each is called and what it is for, whether it \
                  is ready, busy in another conversation or unavailable, and which of them you are.",
    parameters,
    may_repeat: false,
    work: Work::Blocking(run),
};

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ready,
    /// It answers in another session.
    Busy,
    /// It is not installed, or lacks its key.
    Unavailable,
}

fn parameters() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

fn run(_: &Arguments, context: &ToolContext) -> Result<Value, ErrorInfo> {
    let unreadable = |error: store::Error| tool_error(format!("The log cannot be read: {error}"));
    let me = context.sessions.agent_of(&context.session_id).map_err(unreadable)?;
    let busy = context.sessions.busy_agents(&context.session_id).map_err(unreadable)?;
    let agents = context.sessions.agents().infos();
    let agents: Vec<Value> =
        agents.into_iter().map(|it| listed(it, me.as_deref(), &busy)).collect();
    Ok(json!({ "agents": agents }))
}

fn listed(agent: AgentInfo, me: Option<&str>, busy: &HashSet<String>) -> Value {
    let AgentInfo { id, kind, description, problem, .. } = agent;
    let state = match problem {
        Some(_) => State::Unavailable,
        None if busy.contains(&id) => State::Busy,
        None => State::Ready,
    };
    let is_you = me == Some(id.as_str());
    let mut listed = json!({ "id": id, "kind": kind, "description": description, "state": state });
    if let Some(problem) = problem {
        listed["problem"] = problem.into();
    }
    if is_you {
        listed["you"] = true.into();
    }
    listed
}
