//! The AI SDK's own endpoints: `useChat` works here as it is.
//!
//! The chat's id is the session's, and the log is the truth: of what a client sends, only the end is
//! new. A response is a run as far as it goes without the client. A client that goes away has stopped
//! nothing, and can come back.

mod guest;
mod vocabulary;

use std::collections::HashSet;

use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, NoContent, Response};
use backends::ToolOutcome;
use formats::incoming::{Decided, Given, Said};
use formats::ui::{Profile, Request, Trigger};
use schemars::JsonSchema;
use serde::Deserialize;
use transcript::{
    CallId, ClientId, ClientTool, MessageId, ResponseId, RewindReason, Scope, SendMode, Seq,
    SessionId,
};

use self::guest::{ChatBody, NamedChat, attach, welcome};
use self::vocabulary::{Spoken, Ui, UiV4};
use super::App;
use super::error::{HttpError, RequestCode};
use super::extract::Params;
use super::openapi::{Gives, Operation, Takes};
use super::telling::{RunPlace, Telling, before};
use crate::session::{Answered, Approval, Command, MessageState, NewMessage, Refused};
use crate::tools::{failed, tool_error};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ChatParams {
    /// What the client understands: the AI SDK's major version. The header `x-callboard-profile` says
    /// the same; some versions lose the query when they resume.
    profile: Option<ProfileNumber>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
pub(super) enum ProfileNumber {
    #[serde(rename = "5")]
    Five,
    #[default]
    #[serde(rename = "6")]
    Six,
    #[serde(rename = "7")]
    Seven,
}

impl From<ProfileNumber> for Profile {
    fn from(number: ProfileNumber) -> Self {
        match number {
            ProfileNumber::Five => Self::V5,
            ProfileNumber::Six => Self::V6,
            ProfileNumber::Seven => Self::V7,
        }
    }
}

const PROFILE_HEADER: &str = "x-callboard-profile";

/// What the client understands, as far as anybody has said so.
pub(super) struct ClientProfile(Profile);

impl<S: Send + Sync> FromRequestParts<S> for ClientProfile {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let Params(ChatParams { profile }) = Params::from_request_parts(parts, state).await?;
        let header = match parts.headers.get(PROFILE_HEADER).map(HeaderValue::as_bytes) {
            None => None,
            Some(b"5") => Some(ProfileNumber::Five),
            Some(b"6") => Some(ProfileNumber::Six),
            Some(b"7") => Some(ProfileNumber::Seven),
            Some(_) => {
                return Err(HttpError::invalid(format!("`{PROFILE_HEADER}` is 5, 6 or 7")));
            }
        };
        Ok(Self(profile.or(header).unwrap_or_default().into()))
    }
}

impl Takes for ClientProfile {
    fn describe(operation: &mut Operation<'_>) {
        Params::<ChatParams>::describe(operation);
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeV4Params {
    chat_id: String,
}

/// A refusal in plain words: these clients show the body as it is.
pub(super) struct ChatError(HttpError);

impl<E: Into<HttpError>> From<E> for ChatError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for ChatError {
    fn into_response(self) -> Response {
        let HttpError { code, message, .. } = self.0;
        (code.status(), [(CONTENT_TYPE, "text/plain; charset=utf-8")], message).into_response()
    }
}

impl<T: Gives> Gives for Result<T, ChatError> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        // The door speaks JSON.
        operation.refuses_as(&["text/plain", "application/json"]);
    }
}

pub(super) async fn send(
    State(app): State<App>,
    profile: Result<ClientProfile, HttpError>,
    body: Result<ChatBody, HttpError>,
) -> Result<Response, ChatError> {
    let (ClientProfile(profile), body) = (profile?, body?);
    let request = formats::ui::request(&body.json)?;
    let (session, is_new) = welcome(&app, &body, &request, formats::ui::import).await?;
    answer(app, session, is_new, request, Ui(profile)).await
}

pub(super) async fn send_v4(
    State(app): State<App>,
    body: Result<ChatBody, HttpError>,
) -> Result<Response, ChatError> {
    let body = body?;
    let mut request = formats::ui_v4::request(&body.json)?;
    let (session, is_new) = welcome(&app, &body, &request, formats::ui_v4::import).await?;
    if let Given::Said(Said { id: Some(id), .. }) = &request.given
        && find_message(&app, &session, id)?.is_some()
    {
        // The client has no other word for it.
        request.trigger = Trigger::Regenerate;
        request.message_id = Some(id.clone());
    }
    answer(app, session, is_new, request, UiV4).await
}

/// What is under way, from its beginning.
pub(super) async fn resume(
    State(app): State<App>,
    profile: Result<ClientProfile, HttpError>,
    NamedChat(session): NamedChat,
) -> Result<Response, ChatError> {
    let ClientProfile(profile) = profile?;
    let Some(session) = session else { return Ok(NoContent.into_response()) };
    let told = again(app, session, Ui(profile)).await?;
    Ok(told.unwrap_or_else(|| NoContent.into_response()))
}

/// The client cannot read a response without a body.
pub(super) async fn resume_v4(
    State(app): State<App>,
    params: Result<Params<ResumeV4Params>, HttpError>,
) -> Result<Response, ChatError> {
    let Params(ResumeV4Params { chat_id }) = params?;
    let session = SessionId::parse(&chat_id);
    let told = match session {
        Some(session) => again(app, session, UiV4).await?,
        None => None,
    };
    Ok(told.unwrap_or_else(|| UiV4.response("".into())))
}

async fn again<V: Spoken>(
    app: App,
    session: SessionId,
    vocabulary: V,
) -> Result<Option<Response>, HttpError> {
    let open_run = app.store().summary(&session)?.and_then(|(summary, _)| summary.open_run);
    let Some(run) = open_run else { return Ok(None) };
    tell_run(app, session, &run, vocabulary).await.map(Some)
}

async fn tell_run<V: Spoken>(
    app: App,
    session: SessionId,
    run: &ResponseId,
    vocabulary: V,
) -> Result<Response, HttpError> {
    let place = RunPlace::find(&app, &session, run)?.ok_or_else(nothing_to_tell)?;
    let telling = Telling::again(app, session, place, vocabulary).await?;
    Ok(vocabulary.response(telling.into_body()))
}

async fn answer<V: Spoken>(
    app: App,
    session: SessionId,
    is_new: bool,
    request: Request,
    vocabulary: V,
) -> Result<Response, ChatError> {
    let Request { trigger, message_id, given, tools, .. } = request;
    let response = match (given, trigger) {
        (Given::Decided(decided), Trigger::Submit) => {
            go_on(app, session, decided, vocabulary).await?
        }
        (_, Trigger::Regenerate) if !is_new => {
            let of = match &message_id {
                Some(id) => Some(find_message(&app, &session, id)?.ok_or_else(|| no_message(id))?),
                None => None,
            };
            can_rewind(&app, &session)?;
            let reason = RewindReason::Regenerate;
            let retry = |reply| Command::Retry { of, reason, reply };
            let run = app.sessions.ask(&session, retry).await?;
            tell_run(app, session, &run, vocabulary).await?
        }
        (Given::Said(said), _) => {
            let earlier = match message_id.filter(|_| !is_new) {
                Some(id) => edited(&app, &session, &id, &said)?,
                None => None,
            };
            say(app, session, said, earlier, tools, vocabulary).await?
        }
        (Given::Decided(_) | Given::Nothing, _) => return Err(nothing_to_tell().into()),
    };
    Ok(response)
}

/// The message that is to be said in other words; none if this one is new.
fn edited(
    app: &App,
    session: &SessionId,
    id: &str,
    said: &Said,
) -> Result<Option<String>, HttpError> {
    match find_message(app, session, id)? {
        Some(earlier) => {
            can_rewind(app, session)?;
            Ok(Some(earlier))
        }
        None if said.id.as_deref() == Some(id) => Ok(None),
        None => Err(no_message(id)),
    }
}

async fn say<V: Spoken>(
    app: App,
    session: SessionId,
    said: Said,
    earlier: Option<String>,
    client_tools: Vec<ClientTool>,
    vocabulary: V,
) -> Result<Response, HttpError> {
    let Said { id, text, files } = said;
    let mut attachments = Vec::new();
    for file in &files {
        attachments.push(attach(&app, file).await?);
    }
    let client_id = id.map(ClientId::new);
    let (mode, from) = (SendMode::Queue, None);
    let message = NewMessage { text, client_id, attachments, mode, from, client_tools };
    let head = app.store().summary(&session)?.map_or(Seq(0), |(_, head)| head);
    let receipt = match earlier {
        Some(earlier) => {
            let earlier = MessageId::new(earlier);
            app.sessions.ask(&session, |reply| Command::Edit { earlier, message, reply }).await?
        }
        None => app.sessions.send(&session, message).await?,
    };
    let row = app.store().message_row(&session, receipt.message_id.as_str())?;
    let after = match (row, receipt.state) {
        (Some(row), _) => before(row.first),
        (None, MessageState::Queued | MessageState::Steering) => head,
        // Sent once more, after it was taken back or went into a run.
        (None, MessageState::Started | MessageState::HandedOver) => return Err(nothing_to_tell()),
    };
    let telling = Telling::of_answer(app, session, receipt.message_id, after, vocabulary);
    Ok(vocabulary.response(telling.into_body()))
}

/// The client has decided about calls, or run them. Whoever was faster, the run has gone on.
async fn go_on<V: Spoken>(
    app: App,
    session: SessionId,
    decided: Vec<Decided>,
    vocabulary: V,
) -> Result<Response, HttpError> {
    let mut calls = HashSet::new();
    for decided in decided {
        let (call, command) = carry_out(&app, &session, decided).await;
        match command {
            Ok(()) | Err(Refused::Decided { .. }) => drop(calls.insert(call)),
            // Calls of the same message that the server has run.
            Err(Refused::NotAwaited(_) | Refused::NoCall(_)) => (),
            Err(refused) => return Err(refused.into()),
        }
    }
    let run = calls.iter().next().and_then(run_of).ok_or_else(nothing_to_tell)?;
    let place = RunPlace::find(&app, &session, &run)?.ok_or_else(nothing_to_tell)?;
    let telling = Telling::from_decision(app, session, place, &calls, vocabulary).await?;
    Ok(vocabulary.response(telling.into_body()))
}

async fn carry_out(
    app: &App,
    session: &SessionId,
    decided: Decided,
) -> (CallId, Result<(), Refused>) {
    let (call, outcome) = match decided {
        Decided::Approval { call, approved, reason, arguments } => {
            let call_id = CallId::new(call);
            let arguments = arguments.map(|it| it.to_string());
            let answer = match approved {
                true => Answered::Accepted { scope: Scope::Once, arguments },
                false => Answered::Rejected,
            };
            let by = "user".to_owned();
            let approval = Approval { call_id: call_id.clone(), answer, feedback: reason, by };
            let approve = |reply| Command::Approve { approval, reply };
            return (call_id, app.sessions.ask(session, approve).await);
        }
        Decided::Output { call, output } => {
            (call, ToolOutcome { ok: true, result: output, error: None })
        }
        Decided::Error { call, error } => (call, failed(tool_error(error))),
    };
    let call_id = CallId::new(call);
    let given = call_id.clone();
    let give = |reply| Command::GiveResult { call_id, outcome, reply };
    (given, app.sessions.ask(session, give).await)
}

/// Calls are called after their run.
fn run_of(call: &CallId) -> Option<ResponseId> {
    call.as_str().rsplit_once('.').map(|(run, _)| ResponseId::new(run))
}

/// By the client's name for it, or by ours.
fn find_message(app: &App, session: &SessionId, id: &str) -> Result<Option<String>, HttpError> {
    let of_client = app.store().message_of_client_id(session, &ClientId::new(id))?;
    if let Some(message) = of_client {
        return Ok(Some(message.to_string()));
    }
    Ok(app.store().message_row(session, id)?.map(|row| row.id))
}

/// A program has its own memory of the conversation, which nobody can cut.
fn can_rewind(app: &App, session: &SessionId) -> Result<(), HttpError> {
    let agent = app.sessions.agent_of(session)?.unwrap_or_default();
    match app.shared.agents.program_name(&agent) {
        None => Ok(()),
        Some(program) => {
            let message = format!(
                "{program} cannot go back in its conversation; say it again in a new message"
            );
            Err(HttpError::new(RequestCode::NotSupported, message))
        }
    }
}

fn no_message(id: &str) -> HttpError {
    let message = format!("the session has no message {id:?}");
    HttpError::new(RequestCode::MessageNotFound, message)
}

fn nothing_to_tell() -> HttpError {
    HttpError::new(RequestCode::NothingToDo, "there is nothing to answer or to go on with")
}

impl From<formats::incoming::BadRequest> for HttpError {
    fn from(why: formats::incoming::BadRequest) -> Self {
        let error = Self::invalid(why.to_string());
        match why.param {
            Some(param) => error.about(param),
            None => error,
        }
    }
}
