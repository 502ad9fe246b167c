//! `agents_message`: sends a message to another agent, and waits for the reply or gets it later.

use std::sync::Arc;
use std::time::Duration;

use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::{ErrorInfo, ExchangeMode};

use super::{Arguments, Tool, Work};
use crate::{PeerMessage, PeerReply, SessionChoice, ToolContext, ToolSettings, outcome};

pub(super) const TOOL: Tool = Tool {
    name: "agents_message",
    description: "Sends a message to another agent, which answers in a session of its own. It does \
                  not know your conversation, so include everything it needs. Use agents_list to \
                  find agents. In the mode 'sync' the result is its answer; in the mode 'async' you \
                  continue immediately, and the answer arrives later as a message.",
    parameters,
    may_repeat: false,
    work: Work::WaitingForOthers(run),
};

/// Maximum time in seconds that an agent can wait for the reply to its message: one day.
const MAX_SECONDS: u64 = 24 * 60 * 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Message {
    agent: String,
    text: String,
    session: Option<String>,
    #[serde(default)]
    mode: ExchangeMode,
    timeout_seconds: Option<u64>,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string", "description": "The agent's id."},
            "text": {"type": "string", "minLength": 1},
            "session": {
                "type": "string",
                "description": "The agent's session: 'new', 'latest', 'latest-or-new', or an id. To \
                                continue an earlier exchange, give the session of its result. \
                                Default: a new session, unless configured otherwise.",
            },
            "mode": {
                "type": "string",
                "enum": ["sync", "async"],
                "description": "Default: 'sync'.",
            },
            "timeoutSeconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_SECONDS,
                "description": "Time limit for the answer, in the mode 'sync'.",
            },
        },
        "required": ["agent", "text"],
        "additionalProperties": false,
    })
}

fn run(
    arguments: Arguments,
    context: ToolContext,
    _: Arc<ToolSettings>,
) -> BoxFuture<'static, ToolOutcome> {
    Box::pin(async move { outcome(send(&arguments, &context).await) })
}

async fn send(arguments: &Arguments, context: &ToolContext) -> Result<Value, ErrorInfo> {
    let Message { agent, text, session, mode, timeout_seconds } = arguments.parse()?;
    let parse = |word: &str| {
        let choice = SessionChoice::parse(word);
        choice.ok_or_else(|| {
            arguments.invalid("'session' must be 'new', 'latest', 'latest-or-new' or an id")
        })
    };
    let choice = session.as_deref().map(parse).transpose()?;
    if mode == ExchangeMode::Async && timeout_seconds.is_some() {
        return Err(arguments.invalid("'timeoutSeconds' applies only to the mode 'sync'"));
    }
    let message = PeerMessage {
        session: context.session_id.clone(),
        run: context.response_id.clone(),
        call_id: context.call_id.clone(),
        agent: agent.clone(),
        choice,
        text,
        mode,
        timeout: timeout_seconds.map(Duration::from_secs),
    };
    let sent = context.peers.message(message, &context.stopped).await?;
    let PeerReply { exchange_id, session, answer } = sent;
    let mut result = json!({ "agent": agent, "session": session, "exchangeId": exchange_id });
    match answer {
        Some(answer) => result["answer"] = answer.into(),
        None => result["status"] = "sent; the answer will come as a message".into(),
    }
    Ok(result)
}
