//! `POST /v1/chat/completions`: every request contains the complete conversation, and the response is one
//! answer, streamed or whole.
//!
//! A request creates an archived session, unless it names a session or contains the results that a run waits
//! for. Then the session continues, and only the last messages are new.

use std::collections::{BTreeMap, HashSet};

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use formats::incoming::Decided;
use formats::openai::{self, Options, OtherCalls, Request};
use schemars::{JsonSchema, json_schema};
use serde_json::{Map, Value};
use transcript::{CallId, SessionId};

use super::models::{DEFAULT, agent_of};
use super::protocol::{OpenAi, respond_whole};
use crate::compat::{
    CompatState, Conversation, NewConversation, RunResponse, Submission, create_session,
    session_exists, session_of,
};
use crate::error::{HttpError, RequestCode};
use crate::extract::Input;
use crate::openapi::{DescribeInput, DescribeOutput, Operation};
use crate::refusal::{OpenAiErrorBody, V1Error};
use runtime::clock;
use session::Command;

const SESSION_HEADER: HeaderName = HeaderName::from_static("x-callboard-session");
const TOOLS_HEADER: HeaderName = HeaderName::from_static("x-callboard-tools");

/// Request header with the number of earlier attempts, which OpenAI's clients send.
const RETRY_HEADER: HeaderName = HeaderName::from_static("x-stainless-retry-count");
const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Options of a completion request that are sent in headers, because OpenAI's protocol has no
/// fields for them.
pub(crate) struct HeaderOptions {
    session: Option<SessionId>,
    other_calls: OtherCalls,
    attempt: Attempt,
}

/// Indication whether a completion request may have been sent before.
enum Attempt {
    First,
    Again,
    /// The completion request has this idempotency key.
    Named(String),
}

impl<S: Send + Sync> FromRequestParts<S> for HeaderOptions {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        let named = |name: &HeaderName| parts.headers.get(name).map(HeaderValue::to_str);
        let refuse = |name: &HeaderName, what: &str| {
            Err(HttpError::invalid(format!("the header `{name}` is {what}")).about(name.as_str()))
        };
        let session = match named(&SESSION_HEADER) {
            None => None,
            Some(id) => match id.ok().and_then(SessionId::parse) {
                Some(id) => Some(id),
                None => return refuse(&SESSION_HEADER, SessionId::FORM),
            },
        };
        let other_calls = match named(&TOOLS_HEADER) {
            None | Some(Ok("reasoning")) => OtherCalls::Reasoning,
            Some(Ok("hidden")) => OtherCalls::Hidden,
            Some(_) => return refuse(&TOOLS_HEADER, "\"reasoning\" or \"hidden\""),
        };
        let attempt = match (named(&KEY_HEADER), named(&RETRY_HEADER)) {
            (Some(Ok(key)), _) if !key.is_empty() => Attempt::Named(key.to_owned()),
            (_, Some(Ok(count))) if count != "0" => Attempt::Again,
            _ => Attempt::First,
        };
        Ok(Self { session, other_calls, attempt })
    }
}

impl DescribeInput for HeaderOptions {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_header::<SessionId>(SESSION_HEADER.as_str());
        let choice = json_schema!({ "type": "string", "enum": ["reasoning", "hidden"] });
        operation.takes_header_of(TOOLS_HEADER.as_str(), choice);
    }
}

/// Body of a chat completion request of the OpenAI-compatible API. Other parameters are ignored.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct CompletionInput {
    /// Id of the agent that answers, or `default`.
    model: String,
    messages: Vec<Map<String, Value>>,
    stream: Option<bool>,
    stream_options: Option<Map<String, Value>>,
    /// Functions that the client offers to the agent and runs itself.
    tools: Option<Vec<Map<String, Value>>>,
}

/// JSON body of a completion request, which the crate `formats` parses.
pub(crate) struct CompletionBody(Value);

impl<S: Send + Sync> axum::extract::FromRequest<S> for CompletionBody {
    type Rejection = HttpError;

    async fn from_request(request: axum::extract::Request, state: &S) -> Result<Self, HttpError> {
        let Input(fields) = Input::<Map<String, Value>>::from_request(request, state).await?;
        Ok(Self(Value::Object(fields)))
    }
}

impl DescribeInput for CompletionBody {
    fn describe(operation: &mut Operation<'_>) {
        Input::<CompletionInput>::describe(operation);
    }
}

/// Response to a completion request with an answer, streamed or whole.
pub(crate) struct Completed(Response);

impl IntoResponse for Completed {
    fn into_response(self) -> Response {
        self.0
    }
}

impl DescribeOutput for Completed {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_json::<Completion>(StatusCode::OK);
        let events = json_schema!({ "type": "string" });
        operation.gives(StatusCode::OK, Some(("text/event-stream", events)));
        operation.gives_json::<OpenAiErrorBody>(StatusCode::BAD_GATEWAY);
    }
}

/// Body of a completion response that is not streamed.
#[derive(JsonSchema)]
#[schemars(rename = "ChatCompletion")]
#[expect(dead_code, reason = "a description")]
struct Completion {
    id: String,
    object: String,
    created: u64,
    model: String,
    choices: Vec<Choice>,
    usage: BTreeMap<String, Value>,
}

#[derive(JsonSchema)]
#[schemars(rename = "ChatCompletionChoice")]
#[expect(dead_code, reason = "a description")]
struct Choice {
    index: u32,
    message: Map<String, Value>,
    /// Reason why the answer ended: `stop`, `length`, `tool_calls` or `content_filter`.
    finish_reason: String,
}

pub(crate) async fn complete(
    State(server): State<CompatState>,
    options: Result<HeaderOptions, HttpError>,
    body: Result<CompletionBody, HttpError>,
) -> Result<Completed, V1Error> {
    let HeaderOptions { session, other_calls, attempt } = options?;
    let CompletionBody(body) = body?;
    let mut request = openai::request(&body)?;
    let options =
        Options { model: request.model.clone(), include_usage: request.include_usage, other_calls };
    let target = find_target(&server, &request, session).await?;
    let conversation = target.conversation().clone();
    if let Some(message) = &mut request.message {
        message.id = Some(client_id_of(&conversation, &attempt, &body).await?);
    }
    let is_streamed = request.stream;
    let response = answer(target, request, OpenAi(options)).await?;
    let mut response =
        if is_streamed { response.into_response() } else { respond_whole(response).await };
    if let Ok(id) = HeaderValue::from_str(conversation.session.as_str()) {
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    Ok(Completed(response))
}

/// Returns an idempotency key for the message of a completion request, so that a retry of the
/// client does not send it twice. A text may also be repeated on purpose, so only requests that are
/// marked as retries reuse a key.
async fn client_id_of(
    conversation: &Conversation,
    attempt: &Attempt,
    body: &Value,
) -> Result<String, HttpError> {
    if let Attempt::Named(key) = attempt {
        return Ok(format!("v1-{key}"));
    }
    let hash = blake3::hash(body["messages"].to_string().as_bytes()).to_hex();
    let prefix = format!("v1-{}-", &hash[..16]);
    let mut sent = Vec::new();
    if let Attempt::Again = attempt {
        let Conversation { server, session } = conversation;
        sent.extend(conversation.last_user_message().await?.and_then(|it| it.client_id));
        sent.extend(
            server.store.queue(session).await?.messages.into_iter().filter_map(|it| it.client_id),
        );
    }
    let known = sent.iter().rev().find(|it| it.as_str().starts_with(&prefix));
    Ok(known.map_or_else(|| format!("{prefix}{}", clock::new_message_id()), ToString::to_string))
}

/// Session or run that a completion request addresses.
enum RequestTarget {
    New(Conversation),
    Known(Conversation),
    /// The run of these tool calls, which has received their results.
    Run(Conversation, HashSet<CallId>),
}

impl RequestTarget {
    fn conversation(&self) -> &Conversation {
        match self {
            Self::New(it) | Self::Known(it) | Self::Run(it, _) => it,
        }
    }
}

async fn find_target(
    server: &CompatState,
    request: &Request,
    named: Option<SessionId>,
) -> Result<RequestTarget, HttpError> {
    let agent = agent_of(&server.agents, &request.model)?;
    let archived = named.is_none();
    if archived && let Some(target) = find_waiting_run(server, request, agent).await? {
        return Ok(target);
    }
    let session = named.unwrap_or_else(clock::new_session_id);
    let conversation = Conversation { server: server.clone(), session };
    let session = &conversation.session;
    let chosen = Some(agent).filter(|_| request.model != DEFAULT);
    if !archived && session_exists(server, session, chosen).await.map_err(|it| it.about("model"))? {
        return Ok(RequestTarget::Known(conversation));
    }
    let tools: &[_] = if request.message.is_none() { &request.tools } else { &[] };
    let earlier = request.before.as_array().map(Vec::as_slice).unwrap_or_default();
    let import = openai::import;
    let new = NewConversation { session, agent, earlier, import, archived, tools };
    let is_new = create_session(server, &new).await?;
    Ok(if is_new { RequestTarget::New(conversation) } else { RequestTarget::Known(conversation) })
}

/// Submits the tool results in a completion request to the run that waits for them, and returns
/// that run, which continues. If the request also has a new message, the run is cancelled, and
/// `None` is returned so that a new session is created.
async fn find_waiting_run(
    server: &CompatState,
    request: &Request,
    agent: &str,
) -> Result<Option<RequestTarget>, HttpError> {
    let Some(Decided::Output { call, .. }) = request.results.first() else { return Ok(None) };
    let Some(session) = session_of(&server.store, &CallId::new(call)).await? else {
        return Ok(None);
    };
    if server.sessions.agent_of(&session).await?.is_none_or(|it| it != agent) {
        return Ok(None);
    }
    let conversation = Conversation { server: server.clone(), session };
    if request.message.is_some() {
        let cancel = |reply| Command::Cancel { by: "user".to_owned(), unless_asking: false, reply };
        conversation.ask(cancel).await?;
        return Ok(None);
    }
    let taken = conversation.give_results(request.results.clone()).await?;
    Ok(taken.map(|calls| RequestTarget::Run(conversation, calls)))
}

async fn answer(
    target: RequestTarget,
    request: Request,
    protocol: OpenAi,
) -> Result<RunResponse<OpenAi>, HttpError> {
    let Request { message, results, known, tools, .. } = request;
    match (target, message) {
        (RequestTarget::New(conversation), Some(message)) => {
            let submission = Submission { message, replaces: None, tools };
            conversation.submit(submission, protocol).await
        }
        // The imported messages of the new session contain the results.
        (RequestTarget::New(conversation), None) => {
            let run = conversation.ask(|reply| Command::Continue { reply }).await?;
            conversation.stream_run(&run, protocol).await
        }
        (RequestTarget::Known(conversation), Some(message)) => {
            conversation.decide(results).await?;
            check_answers(&conversation).await?;
            let submission = Submission { message, replaces: None, tools };
            conversation.submit(submission, protocol).await
        }
        (RequestTarget::Known(conversation), None) => {
            conversation.resume(results, &known, protocol).await
        }
        (RequestTarget::Run(conversation, calls), _) => {
            conversation.resume_run_of(&calls, &known, protocol).await
        }
    }
}

/// Returns an error if the session's active run waits for the client, because a new message would
/// wait for that run.
async fn check_answers(conversation: &Conversation) -> Result<(), HttpError> {
    let Some(run) = conversation.open_run().await? else { return Ok(()) };
    let protocol = OpenAi(Options::default());
    let response = conversation.clone().stream_run(&run, protocol).await?;
    if !response.has_ended() || conversation.open_run().await? != Some(run) {
        return Ok(());
    }
    let message = "the agent waits for the results of its calls; send them as messages of the role \
                   `tool`, or stop its run";
    Err(HttpError::new(RequestCode::AgentBusy, message).about("messages"))
}
