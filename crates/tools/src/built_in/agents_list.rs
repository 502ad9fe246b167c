//! `agents_list`: lists the agents of the server, their purpose and their state.

use std::sync::Arc;

use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, Work};
use crate::{Peer, ToolContext, ToolSettings, outcome};

pub(super) const TOOL: Tool = Tool {
    name: "agents_list",
    description: "Lists the agents of this server: the id and purpose of each, whether it is ready, \
                  busy in another conversation or unavailable, and which of them you are.",
    parameters,
    may_repeat: false,
    work: Work::Waiting(run),
};

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ready,
    /// The agent has an active run in another session.
    Busy,
    /// The agent cannot be used, for example because its program is not installed or its key is
    /// missing.
    Unavailable,
}

fn parameters() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

fn run(
    _: Arguments,
    context: ToolContext,
    _: Arc<ToolSettings>,
) -> BoxFuture<'static, ToolOutcome> {
    Box::pin(async move { outcome(list(&context).await) })
}

async fn list(context: &ToolContext) -> Result<Value, ErrorInfo> {
    let peers = context.peers.list(&context.session_id).await?;
    let agents: Vec<Value> = peers.into_iter().map(listed).collect();
    Ok(json!({ "agents": agents }))
}

fn listed(peer: Peer) -> Value {
    let Peer { id, kind, description, problem, is_busy, is_caller } = peer;
    let state = match problem {
        Some(_) => State::Unavailable,
        None if is_busy => State::Busy,
        None => State::Ready,
    };
    let mut listed = json!({ "id": id, "kind": kind, "description": description, "state": state });
    if let Some(problem) = problem {
        listed["problem"] = problem.into();
    }
    if is_caller {
        listed["you"] = true.into();
    }
    listed
}
