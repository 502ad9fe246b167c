//! `POST /v1/chat/completions`: every request contains the whole conversation, and the response is one
//! answer, streamed or in one piece.
//!
//! A request creates an archived session, unless it names one: then that session continues, and only the end
//! of the messages is new. The same applies if the request contains the results that a run waits for.

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

use super::V1Error;
use super::error::ErrorBody;
use super::models::{DEFAULT, agent_of};
use super::protocol::{OpenAi, respond_whole};
use crate::App;
use crate::compat::{
    Conversation, NewConversation, RunResponse, Submission, create_session, session_exists,
    session_of,
};
use crate::error::{HttpError, RequestCode};
use crate::extract::Input;
use crate::openapi::{DescribeInput, DescribeOutput, Operation};
use runtime::clock;
use session::Command;

const SESSION_HEADER: HeaderName = HeaderName::from_static("x-callboard-session");
const TOOLS_HEADER: HeaderName = HeaderName::from_static("x-callboard-tools");

/// Number of earlier attempts, as OpenAI's clients send it.
const RETRY_HEADER: HeaderName = HeaderName::from_static("x-stainless-retry-count");
const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Options that clients give in headers, because the protocol has no fields for them.
pub(crate) struct HeaderOptions {
    session: Option<SessionId>,
    other_calls: OtherCalls,
    attempt: Attempt,
}

/// Whether a request may have been sent before.
enum Attempt {
    First,
    Again,
    /// All requests with this idempotency key are one.
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
                None => return refuse(&SESSION_HEADER, "1 to 128 letters, digits, '-' or '_'"),
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

/// Body of a completion request. All other parameters of models are ignored.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct CompletionInput {
    /// An agent's name, or `default`.
    model: String,
    messages: Vec<Map<String, Value>>,
    stream: Option<bool>,
    stream_options: Option<Map<String, Value>>,
    /// Functions that the client runs itself.
    tools: Option<Vec<Map<String, Value>>>,
}

/// The body as JSON, which `formats` reads.
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

/// An answer, streamed or in one piece.
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
        operation.gives_json::<ErrorBody>(StatusCode::BAD_GATEWAY);
    }
}

/// An answer in one piece.
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
    /// `stop`, `length`, `tool_calls` or `content_filter`.
    finish_reason: String,
}

pub(crate) async fn complete(
    State(app): State<App>,
    options: Result<HeaderOptions, HttpError>,
    body: Result<CompletionBody, HttpError>,
) -> Result<Completed, V1Error> {
    let HeaderOptions { session, other_calls, attempt } = options?;
    let CompletionBody(body) = body?;
    let mut request = openai::request(&body)?;
    let options =
        Options { model: request.model.clone(), include_usage: request.include_usage, other_calls };
    let place = enter(&app, &request, session).await?;
    let conversation = place.conversation().clone();
    if let Some(said) = &mut request.said {
        said.id = Some(client_id_of(&conversation, &attempt, &body).await?);
    }
    let is_streamed = request.stream;
    let response = answer(place, request, OpenAi(options)).await?;
    let mut response =
        if is_streamed { response.into_response() } else { respond_whole(response).await };
    if let Ok(id) = HeaderValue::from_str(conversation.session.as_str()) {
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    Ok(Completed(response))
}

/// Returns an id for the message, by which a repeated request is recognized whose client has not received the
/// response. A text may also be repeated on purpose, so only requests that are marked as retries count.
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
        let Conversation { app, session } = conversation;
        sent.extend(conversation.last_user_message().await?.and_then(|it| it.client_id));
        sent.extend(
            app.store().queue(session).await?.messages.into_iter().filter_map(|it| it.client_id),
        );
    }
    let known = sent.iter().rev().find(|it| it.as_str().starts_with(&prefix));
    Ok(known.map_or_else(|| format!("{prefix}{}", clock::new_message_id()), ToString::to_string))
}

/// The conversation that a request belongs to.
enum Place {
    New(Conversation),
    Known(Conversation),
    /// The run of these calls, which has received their results.
    Run(Conversation, HashSet<CallId>),
}

impl Place {
    fn conversation(&self) -> &Conversation {
        match self {
            Self::New(it) | Self::Known(it) | Self::Run(it, _) => it,
        }
    }
}

async fn enter(app: &App, request: &Request, named: Option<SessionId>) -> Result<Place, HttpError> {
    let agent = agent_of(&app.agents, &request.model)?;
    let archived = named.is_none();
    if archived && let Some(place) = find_waiting_run(app, request, agent).await? {
        return Ok(place);
    }
    let session = named.unwrap_or_else(clock::new_session_id);
    let conversation = Conversation { app: app.clone(), session };
    let session = &conversation.session;
    let chosen = Some(agent).filter(|_| request.model != DEFAULT);
    if !archived && session_exists(app, session, chosen).await.map_err(|it| it.about("model"))? {
        return Ok(Place::Known(conversation));
    }
    let tools: &[_] = if request.said.is_none() { &request.tools } else { &[] };
    let earlier = request.before.as_array().map(Vec::as_slice).unwrap_or_default();
    let import = openai::import;
    let new = NewConversation { session, agent, earlier, import, archived, tools };
    let is_new = create_session(app, &new).await?;
    Ok(if is_new { Place::New(conversation) } else { Place::Known(conversation) })
}

/// DescribeOutput the results in a request to the run that waits for them, which then continues: the client's messages do
/// not contain the actions of its agent. If the request also has a new message, the run is cancelled, and a new
/// session begins.
async fn find_waiting_run(
    app: &App,
    request: &Request,
    agent: &str,
) -> Result<Option<Place>, HttpError> {
    let Some(Decided::Output { call, .. }) = request.results.first() else { return Ok(None) };
    let Some(session) = session_of(app, &CallId::new(call)).await? else { return Ok(None) };
    if app.sessions.agent_of(&session).await?.is_none_or(|it| it != agent) {
        return Ok(None);
    }
    let conversation = Conversation { app: app.clone(), session };
    if request.said.is_some() {
        let cancel = |reply| Command::Cancel { by: "user".to_owned(), unless_asking: false, reply };
        conversation.ask(cancel).await?;
        return Ok(None);
    }
    let taken = conversation.give_results(request.results.clone()).await?;
    Ok(taken.map(|calls| Place::Run(conversation, calls)))
}

async fn answer(
    place: Place,
    request: Request,
    protocol: OpenAi,
) -> Result<RunResponse<OpenAi>, HttpError> {
    let Request { said, results, known, tools, .. } = request;
    match (place, said) {
        (Place::New(conversation), Some(message)) => {
            let submission = Submission { message, replaces: None, tools };
            conversation.submit(submission, protocol).await
        }
        // The results are among the messages of the new session.
        (Place::New(conversation), None) => {
            let run = conversation.ask(|reply| Command::Continue { reply }).await?;
            conversation.stream_run(&run, protocol).await
        }
        (Place::Known(conversation), Some(message)) => {
            conversation.decide(results).await?;
            check_answers(&conversation).await?;
            let submission = Submission { message, replaces: None, tools };
            conversation.submit(submission, protocol).await
        }
        (Place::Known(conversation), None) => conversation.resume(results, &known, protocol).await,
        (Place::Run(conversation, calls), _) => {
            conversation.resume_run_of(&calls, &known, protocol).await
        }
    }
}

/// Refuses a message while the active run waits for the client: the message would wait for the run.
async fn check_answers(conversation: &Conversation) -> Result<(), HttpError> {
    let Some(run) = conversation.open_run().await? else { return Ok(()) };
    let protocol = OpenAi(Options::default());
    let response = conversation.clone().stream_run(&run, protocol).await?;
    if !response.has_ended() || conversation.open_run().await? != Some(run) {
        return Ok(());
    }
    let message = "the agent waits for what came of its calls; send that, as messages of the role \
                   `tool`, or stop its run";
    Err(HttpError::new(RequestCode::AgentBusy, message).about("messages"))
}
