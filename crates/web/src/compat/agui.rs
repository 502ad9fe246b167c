//! The AG-UI endpoint, for clients such as `HttpAgent` and CopilotKit. The thread's id is the session's id.
//!
//! Clients send the complete conversation. Only the last messages are new. If the others differ from the
//! session, the run begins with a snapshot.

mod protocol;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde_json::{Map, Value};
use store::{MessageKind, Window};
use transcript::ResponseId;

use self::protocol::{AgUi, Reason};
use crate::compat::{
    CompatBody, CompatState, Conversation, Decisions, IncomingConversation, Submission,
    find_or_create_session, nothing_to_do, run_of_calls,
};
use crate::error::HttpError;
use crate::refusal::PlainError;

/// Body of an AG-UI request.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a description")]
pub(crate) struct RunAgentInput {
    /// Id of the AG-UI thread, which is the session's id.
    thread_id: String,
    /// Id that the client gives the run, which all events contain.
    run_id: String,
    protocol_version: Option<String>,
    /// Messages of the complete conversation. Earlier messages are read only if the session is new.
    messages: Option<Vec<Map<String, Value>>>,
    /// Tools that the client runs itself, each with `name`, `description` and `parameters`.
    tools: Option<Vec<Map<String, Value>>>,
    /// Decisions about the interrupts with which the last run ended.
    resume: Option<Vec<Map<String, Value>>>,
    /// State that the client shares with the agent; ignored.
    state: Option<Value>,
    /// Context that the client provides to the agent; ignored.
    context: Option<Value>,
    /// Properties that the client forwards to the agent; ignored.
    forwarded_props: Option<Value>,
}

pub(crate) async fn run(
    State(server): State<CompatState>,
    headers: HeaderMap,
    body: Result<CompatBody<RunAgentInput>, HttpError>,
) -> Result<Response, PlainError> {
    let body = body?;
    let request = formats::agui::request(&body.json)?;
    let incoming = IncomingConversation {
        session: Some(&request.thread),
        agent: body.agent.as_deref(),
        has_message: request.message.is_some(),
        earlier: formats::agui::earlier(&body.json),
        import: formats::agui::import,
    };
    let (conversation, is_new) = find_or_create_session(&server, &incoming).await?;
    let Decisions { calls, has_decided } = conversation.decide(request.decided).await?;
    let host = headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
    let protocol = |reason| AgUi {
        conversation: conversation.clone(),
        host,
        run: request.run,
        version: request.version,
        known: request.messages,
        reason,
    };
    let response = match request.message {
        Some(message) => {
            let reason = if is_new { Reason::NewConversation } else { Reason::NewMessage };
            let submission = Submission { message, replaces: None, tools: request.tools };
            conversation.clone().submit(submission, protocol(reason)).await?
        }
        None => {
            let run = last_run(&conversation).await?.ok_or_else(nothing_to_do)?;
            // A client that has decided nothing reconnects, and receives the current state.
            if has_decided && run_of_calls(&calls).as_ref() == Some(&run) {
                let protocol = protocol(Reason::Resume);
                conversation.clone().resume_run_of(&calls, &request.known, protocol).await?
            } else {
                conversation.clone().stream_run(&run, protocol(Reason::Rejoin)).await?
            }
        }
    };
    Ok(response.into_response())
}

/// Number of a session's newest messages that are searched for the last run, which notices may
/// follow.
const LOOK_BACK: usize = 50;

async fn last_run(conversation: &Conversation) -> Result<Option<ResponseId>, HttpError> {
    let window = Window { before: None, limit: LOOK_BACK };
    let rows = conversation.server.store.messages(&conversation.session, window).await?;
    let mut runs = rows.into_iter().rev().filter(|it| it.kind == MessageKind::Answer);
    Ok(runs.find(|it| !it.superseded).map(|it| ResponseId::new(it.id)))
}
