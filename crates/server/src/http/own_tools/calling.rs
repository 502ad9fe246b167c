//! A call of a tool: answered by a stream, so that the head goes out at once and signs of life follow
//! until there is a result. Programs give up on servers that say nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, interval_at};

use super::message::{failure, notification, success};
use crate::passes::{Holder, UnderWay};
use crate::session::Sessions;
use session::RelayedCall;

const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
const INVALID_PARAMS: i32 = -32602;
/// Where a program says which call of its model this is: Claude Code, Codex, and our extension for Pi.
const CALL_ID_KEYS: [&str; 3] = ["claudecode/toolUseId", "callId", "toolCallId"];

/// A call that is being answered. Dropping it, as when the connection is lost, gives it up.
struct Calling {
    request: Value,
    outcome: BoxFuture<'static, ToolOutcome>,
    under_way: UnderWay,
    signs: Interval,
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
        under_way: holder.begin(request.to_string()),
        outcome: Box::pin(async move { sessions.call_tool(&session, call).await }),
        signs: interval_at(Instant::now() + SIGN_OF_LIFE, SIGN_OF_LIFE),
        progress_token: params["_meta"]["progressToken"].clone(),
        progress: 0,
        has_ended: false,
        request,
    };
    let events = stream::unfold(calling, |mut calling| async {
        let event = calling.next().await?;
        Some((Ok::<_, Infallible>(event), calling))
    });
    Sse::new(events).into_response()
}

fn read(sessions: &Sessions, params: &Value) -> Result<RelayedCall, String> {
    let name = params["name"].as_str().unwrap_or_default();
    if !sessions.tools().for_programs().any(|it| it.name == name) {
        return Err(format!("There is no tool {name:?}; tools/list names those there are."));
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
    async fn next(&mut self) -> Option<Event> {
        if self.has_ended {
            return None;
        }
        tokio::select! {
            biased;
            // Whoever takes a request back wants no answer.
            () = self.under_way.taken_back() => None,
            outcome = &mut self.outcome => {
                self.has_ended = true;
                Some(data(&success(&self.request, result(outcome))))
            }
            _ = self.signs.tick() => Some(self.sign_of_life()),
        }
    }

    fn sign_of_life(&mut self) -> Event {
        if self.progress_token.is_null() {
            return Event::default().comment("");
        }
        self.progress += 1;
        let params = json!({ "progressToken": self.progress_token, "progress": self.progress });
        data(&notification("notifications/progress", params))
    }
}

fn data(message: &Value) -> Event {
    Event::default().data(message.to_string())
}

/// As text alone: of a result that is structured too, some programs show the model nothing else.
fn result(outcome: ToolOutcome) -> Value {
    let text = match outcome.error {
        Some(error) => error.message,
        None => outcome.result.to_string(),
    };
    json!({ "content": [{ "type": "text", "text": text }], "isError": !outcome.ok })
}
