//! AG-UI: its clients (`HttpAgent`, CopilotKit) talk to any agent. The thread's id is the session's.
//!
//! They keep the conversation themselves and send all of it. Of that only the end is new; where the rest
//! is not what the session has, the run begins with a snapshot.

mod client;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde_json::{Map, Value};
use store::{MessageKind, Window};
use transcript::{ResponseId, SessionId};

use self::client::{Client, Reason};
use super::App;
use super::error::HttpError;
use super::guest::{
    Arrival, Brought, Decisions, PlainError, Saying, decide, nothing_to_tell, run_of_calls, say,
    tell_decided, tell_run, welcome,
};

/// How the body looks.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a description")]
pub(super) struct RunAgentInput {
    /// The session's id.
    thread_id: String,
    /// The client's name for the run, which comes back in its events.
    run_id: String,
    protocol_version: Option<String>,
    /// The whole conversation; all but its end is read only where the session is new.
    messages: Option<Vec<Map<String, Value>>>,
    /// Tools that the client runs itself: each with `name`, `description` and `parameters`.
    tools: Option<Vec<Map<String, Value>>>,
    /// What was decided about the interrupts of the last run.
    resume: Option<Vec<Map<String, Value>>>,
    /// Not read.
    state: Option<Value>,
    /// Not read.
    context: Option<Value>,
    /// Not read.
    forwarded_props: Option<Value>,
}

pub(super) async fn run(
    State(app): State<App>,
    headers: HeaderMap,
    body: Result<Brought<RunAgentInput>, HttpError>,
) -> Result<Response, PlainError> {
    let body = body?;
    let request = formats::agui::request(&body.json)?;
    let arrival = Arrival {
        session: Some(&request.thread),
        agent: body.agent.as_deref(),
        says: request.said.is_some(),
        earlier: formats::agui::earlier(&body.json),
        import: formats::agui::import,
    };
    let (session, is_new) = welcome(&app, &arrival).await?;
    let Decisions { calls, has_decided } = decide(&app, &session, request.decided).await?;
    let host = headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
    let client = |reason| Client {
        app: app.clone(),
        session: session.clone(),
        host,
        run: request.run,
        version: request.version,
        known: request.messages,
        reason,
    };
    let telling = match request.said {
        Some(said) => {
            let reason = if is_new { Reason::Begins } else { Reason::Says };
            let saying = Saying { said, instead_of: None, tools: request.tools };
            say(app.clone(), session.clone(), saying, client(reason)).await?
        }
        None => {
            let run = last_run(&app, &session).await?.ok_or_else(nothing_to_tell)?;
            // One that has decided nothing comes back, whatever it has: it is told how things stand.
            if has_decided && run_of_calls(&calls).as_ref() == Some(&run) {
                let client = client(Reason::GoesOn);
                tell_decided(app.clone(), session.clone(), &calls, &request.known, client).await?
            } else {
                tell_run(app.clone(), session.clone(), &run, client(Reason::ComesBack)).await?
            }
        }
    };
    Ok(telling.into_response())
}

/// Of the newest messages, how many are looked at for a run: notices may follow it.
const LOOK_BACK: usize = 50;

async fn last_run(app: &App, session: &SessionId) -> Result<Option<ResponseId>, HttpError> {
    let rows = app.store().messages(session, Window { before: None, limit: LOOK_BACK }).await?;
    let mut runs = rows.into_iter().rev().filter(|it| it.kind == MessageKind::Answer);
    Ok(runs.find(|it| !it.superseded).map(|it| ResponseId::new(it.id)))
}
