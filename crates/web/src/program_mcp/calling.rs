//! Tool calls. The response is a stream: the headers are sent immediately, and keep-alive events follow until
//! there is a result, because programs time out if a server sends nothing.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use backends::ToolOutcome;
use formats::sse;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::Interval;

use super::message::{failure, notification, success};
use crate::streaming;
use runtime::Sessions;
use runtime::passes::{Holder, PendingRequest};
use session::RelayedCall;

const INVALID_PARAMS: i32 = -32602;
/// Names of the fields in which Claude Code, Codex and our extension for Pi send the id of the
/// model's tool call.
const CALL_ID_KEYS: [&str; 3] = ["claudecode/toolUseId", "callId", "toolCallId"];

/// A running tool call of a program. Dropping it cancels the tool call, for example when the
/// connection is lost.
struct Calling {
    request: Value,
    outcome: BoxFuture<'static, ToolOutcome>,
    pending: PendingRequest,
    keep_alive: Interval,
    progress_token: Value,
    progress: u64,
    has_ended: bool,
}

pub(super) fn start(
    sessions: Sessions,
    holder: &Arc<Holder>,
    request: Value,
    params: &Value,
) -> Response {
    let call = match read(&sessions, params) {
        Ok(call) => call,
        Err(why) => return Json(failure(&request, INVALID_PARAMS, &why)).into_response(),
    };
    let session = holder.session.clone();
    let calling = Calling {
        pending: holder.begin(request.to_string()),
        outcome: Box::pin(async move { sessions.call_tool(&session, call).await }),
        keep_alive: streaming::keep_alive(),
        progress_token: params["_meta"]["progressToken"].clone(),
        progress: 0,
        has_ended: false,
        request,
    };
    let events = stream::unfold(calling, |mut calling| async {
        let event = calling.next().await?;
        Some((event, calling))
    });
    streaming::response(sse::MEDIA_TYPE, streaming::body(events))
}

fn read(sessions: &Sessions, params: &Value) -> Result<RelayedCall, String> {
    let name = params["name"].as_str().unwrap_or_default();
    if !sessions.program_tools().any(|it| it.name == name) {
        return Err(format!("There is no tool {name:?}; tools/list returns the available tools."));
    }
    let arguments = match &params["arguments"] {
        Value::Null => json!({}),
        given => given.clone(),
    };
    let provider_call_id = CALL_ID_KEYS.iter().find_map(|it| params["_meta"][it].as_str());
    let provider_call_id = provider_call_id.map(str::to_owned);
    Ok(RelayedCall { tool_name: name.to_owned(), arguments, provider_call_id })
}

impl Calling {
    async fn next(&mut self) -> Option<String> {
        if self.has_ended {
            return None;
        }
        tokio::select! {
            biased;
            // A cancelled request gets no response.
            () = self.pending.cancelled() => None,
            outcome = &mut self.outcome => {
                self.has_ended = true;
                Some(sse::event(success(&self.request, result(outcome))))
            }
            _ = self.keep_alive.tick() => Some(self.keep_alive_event()),
        }
    }

    fn keep_alive_event(&mut self) -> String {
        if self.progress_token.is_null() {
            return sse::comment("");
        }
        self.progress += 1;
        let params = json!({ "progressToken": self.progress_token, "progress": self.progress });
        sse::event(notification("notifications/progress", params))
    }
}

/// Converts the outcome of a tool call to an MCP result with text only, because some programs would
/// pass only structured content to the model.
fn result(outcome: ToolOutcome) -> Value {
    let text = match outcome.error {
        Some(error) => error.message,
        None => outcome.result.to_string(),
    };
    json!({ "content": [{ "type": "text", "text": text }], "isError": !outcome.ok })
}
