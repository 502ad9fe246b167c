//! `POST /v1/chat/completions`: the whole conversation comes with every request, and one answer goes
//! back, streamed or at once.
//!
//! A request is a session of its own, archived, unless it names one: then the session goes on, and of
//! what the client sends only the end is new. So it is where the request brings what a run waits for.

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
use super::vocabulary::{AtOnce, Streamed, answer_at_once};
use crate::clock;
use crate::http::App;
use crate::http::error::{HttpError, RequestCode};
use crate::http::extract::Input;
use crate::http::guest::{
    Beginning, Saying, Telling, Vocabulary, begin, decide, give_results, go_on, is_known,
    last_said, open_run, say, session_of, tell_decided, tell_run,
};
use crate::http::openapi::{Gives, Operation, Takes};
use session::Command;

const SESSION_HEADER: HeaderName = HeaderName::from_static("x-callboard-session");
const TOOLS_HEADER: HeaderName = HeaderName::from_static("x-callboard-tools");

/// OpenAI's clients count there how often they have tried already.
const RETRY_HEADER: HeaderName = HeaderName::from_static("x-stainless-retry-count");
const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// What a client says in headers, because its vocabulary has no words for it.
pub(in crate::http) struct Wishes {
    session: Option<SessionId>,
    other_calls: OtherCalls,
    attempt: Attempt,
}

/// Whether a request may have been sent before.
enum Attempt {
    First,
    Again,
    /// All requests of that name are one.
    Named(String),
}

impl<S: Send + Sync> FromRequestParts<S> for Wishes {
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

impl Takes for Wishes {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_header::<SessionId>(SESSION_HEADER.as_str());
        let choice = json_schema!({ "type": "string", "enum": ["reasoning", "hidden"] });
        operation.takes_header_of(TOOLS_HEADER.as_str(), choice);
    }
}

/// How the body looks; it is read by `formats`. All else that a model may be told is not looked at.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "a description")]
pub(in crate::http) struct CompletionInput {
    /// An agent's name, or `default`.
    model: String,
    messages: Vec<Map<String, Value>>,
    stream: Option<bool>,
    stream_options: Option<Map<String, Value>>,
    /// Functions that the client runs itself.
    tools: Option<Vec<Map<String, Value>>>,
}

/// The body as it came.
pub(in crate::http) struct CompletionBody(Value);

impl<S: Send + Sync> axum::extract::FromRequest<S> for CompletionBody {
    type Rejection = HttpError;

    async fn from_request(request: axum::extract::Request, state: &S) -> Result<Self, HttpError> {
        let Input(fields) = Input::<Map<String, Value>>::from_request(request, state).await?;
        Ok(Self(Value::Object(fields)))
    }
}

impl Takes for CompletionBody {
    fn describe(operation: &mut Operation<'_>) {
        Input::<CompletionInput>::describe(operation);
    }
}

/// An answer, streamed or at once.
pub(in crate::http) struct Completed(Response);

impl IntoResponse for Completed {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Gives for Completed {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_json::<Completion>(StatusCode::OK);
        let events = json_schema!({ "type": "string" });
        operation.gives(StatusCode::OK, Some(("text/event-stream", events)));
        operation.gives_json::<ErrorBody>(StatusCode::BAD_GATEWAY);
    }
}

/// How an answer looks that is given at once; it is written by `formats`.
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

pub(in crate::http) async fn complete(
    State(app): State<App>,
    wishes: Result<Wishes, HttpError>,
    body: Result<CompletionBody, HttpError>,
) -> Result<Completed, V1Error> {
    let (Wishes { session, other_calls, attempt }, CompletionBody(body)) = (wishes?, body?);
    let mut request = openai::request(&body)?;
    let options =
        Options { model: request.model.clone(), include_usage: request.include_usage, other_calls };
    let place = enter(&app, &request, session).await?;
    let session = place.session().clone();
    if let Some(said) = &mut request.said {
        said.id = Some(name_of(&app, &session, &attempt, &body).await?);
    }
    let mut response = match request.stream {
        true => answer(app, place, request, Streamed(options)).await?.into_response(),
        false => {
            let telling = answer(app, place, request, AtOnce(options)).await?;
            answer_at_once(&telling.into_text().await)
        }
    };
    if let Ok(id) = HeaderValue::from_str(session.as_str()) {
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    Ok(Completed(response))
}

/// A name for what is said, by which it is known when it comes again: the client did not hear that it had
/// arrived. The same words may also be said twice on purpose, so only who says to try again is believed.
async fn name_of(
    app: &App,
    session: &SessionId,
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
        sent.extend(last_said(app, session).await?.and_then(|it| it.client_id));
        sent.extend(
            app.store().queue(session).await?.messages.into_iter().filter_map(|it| it.client_id),
        );
    }
    let known = sent.iter().rev().find(|it| it.as_str().starts_with(&prefix));
    Ok(known.map_or_else(|| format!("{prefix}{}", clock::new_message_id()), ToString::to_string))
}

/// Where a request is answered.
enum Place {
    New(SessionId),
    Known(SessionId),
    /// In the run of these calls, which has taken what came of them.
    Run(SessionId, HashSet<CallId>),
}

impl Place {
    fn session(&self) -> &SessionId {
        match self {
            Self::New(session) | Self::Known(session) | Self::Run(session, _) => session,
        }
    }
}

async fn enter(app: &App, request: &Request, named: Option<SessionId>) -> Result<Place, HttpError> {
    let agent = agent_of(&app.shared.agents, &request.model)?;
    let archived = named.is_none();
    if archived && let Some(place) = take_up(app, request, agent).await? {
        return Ok(place);
    }
    let session = named.unwrap_or_else(clock::new_session_id);
    let chosen = Some(agent).filter(|_| request.model != DEFAULT);
    if !archived && is_known(app, &session, chosen).await.map_err(|it| it.about("model"))? {
        return Ok(Place::Known(session));
    }
    let tools: &[_] = if request.said.is_none() { &request.tools } else { &[] };
    let earlier = request.before.as_array().map(Vec::as_slice).unwrap_or_default();
    let import = openai::import;
    let beginning = Beginning { session: &session, agent, earlier, import, archived, tools };
    let is_new = begin(app, &beginning).await?;
    Ok(if is_new { Place::New(session) } else { Place::Known(session) })
}

/// The run that waits for the results which a request brings goes on with them: what its agent has done
/// itself stands in no message of the client's. Who says more than that begins anew, and the run is over.
async fn take_up(app: &App, request: &Request, agent: &str) -> Result<Option<Place>, HttpError> {
    let Some(Decided::Output { call, .. }) = request.results.first() else { return Ok(None) };
    let Some(session) = session_of(app, &CallId::new(call)).await? else { return Ok(None) };
    if app.sessions.agent_of(&session).await?.is_none_or(|it| it != agent) {
        return Ok(None);
    }
    if request.said.is_some() {
        let cancel = |reply| Command::Cancel { by: "user".to_owned(), unless_asking: false, reply };
        app.sessions.ask(&session, cancel).await?;
        return Ok(None);
    }
    let taken = give_results(app, &session, request.results.clone()).await?;
    Ok(taken.map(|calls| Place::Run(session, calls)))
}

async fn answer<V: Vocabulary>(
    app: App,
    place: Place,
    request: Request,
    vocabulary: V,
) -> Result<Telling<V>, HttpError> {
    let Request { said, results, known, tools, .. } = request;
    match (place, said) {
        (Place::New(session), Some(said)) => {
            let saying = Saying { said, instead_of: None, tools };
            say(app, session, saying, vocabulary).await
        }
        // The results came with all the rest.
        (Place::New(session), None) => {
            let go_on = |reply| Command::Continue { reply };
            let run = app.sessions.ask(&session, go_on).await?;
            tell_run(app, session, &run, vocabulary).await
        }
        (Place::Known(session), Some(said)) => {
            decide(&app, &session, results).await?;
            check_answers(&app, &session).await?;
            let saying = Saying { said, instead_of: None, tools };
            say(app, session, saying, vocabulary).await
        }
        (Place::Known(session), None) => go_on(app, session, results, &known, vocabulary).await,
        (Place::Run(session, calls), _) => {
            tell_decided(app, session, &calls, &known, vocabulary).await
        }
    }
}

/// A message would wait for as long as the run does, which waits for the client.
async fn check_answers(app: &App, session: &SessionId) -> Result<(), HttpError> {
    let Some(run) = open_run(app, session).await? else { return Ok(()) };
    let told = tell_run(app.clone(), session.clone(), &run, AtOnce(Options::default())).await?;
    if !told.has_ended() || open_run(app, session).await? != Some(run) {
        return Ok(());
    }
    let message = "the agent waits for what came of its calls; send that, as messages of the role \
                   `tool`, or stop its run";
    Err(HttpError::new(RequestCode::AgentBusy, message).about("messages"))
}
