//! The AI SDK's own endpoints: `useChat` works here as it is. The chat's id is the session's.

mod vocabulary;

use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::response::{IntoResponse, NoContent, Response};
use formats::incoming::IncomingMessage;
use formats::ui::{Profile, Request, Trigger};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use store::MessageKind;
use transcript::{ClientId, MessageId, RewindReason, SentForm, Seq, SessionId};

use self::vocabulary::{Ui, UiV4};
use super::App;
use super::error::{HttpError, RequestCode};
use super::extract::Params;
use super::guest::{
    Arrival, Brought, Import, LastSaid, PlainError, Saying, Spoken, decide_on_the_way, go_on,
    last_said, nothing_to_tell, open_run, path, say, tell_run, welcome,
};
use super::openapi::{Operation, Takes};
use crate::import;
use session::Command;

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

/// How the body looks.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a description")]
pub(super) struct ChatInput {
    /// The chat's, which is the session's.
    id: Option<String>,
    /// The whole chat; all but the last is read only where the session is new.
    messages: Option<Vec<Map<String, Value>>>,
    /// The last message alone.
    message: Option<Map<String, Value>>,
    trigger: Option<String>,
    message_id: Option<String>,
    /// Who answers a new chat.
    agent: Option<String>,
    /// Tools that the client runs itself: by name, each with `description` and `parameters`.
    tools: Option<Map<String, Value>>,
}

/// The session that a path names, if there can be such a one.
pub(super) struct NamedChat(Option<SessionId>);

impl<S: Send + Sync> FromRequestParts<S> for NamedChat {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let session = path(parts, state).await?.remove("session");
        Ok(Self(session.and_then(|it| SessionId::parse(&it))))
    }
}

impl Takes for NamedChat {
    fn describe(operation: &mut Operation<'_>) {
        operation.refuses(&[RequestCode::InvalidRequest]);
    }
}

pub(super) async fn send(
    State(app): State<App>,
    profile: Result<ClientProfile, HttpError>,
    body: Result<Brought<ChatInput>, HttpError>,
) -> Result<Response, PlainError> {
    let (ClientProfile(profile), body) = (profile?, body?);
    let request = formats::ui::request(&body.json)?;
    let (session, is_new) = enter(&app, &body, &request, formats::ui::import).await?;
    answer(app, session, is_new, request, Ui(profile)).await
}

pub(super) async fn send_v4(
    State(app): State<App>,
    body: Result<Brought<ChatInput>, HttpError>,
) -> Result<Response, PlainError> {
    let body = body?;
    let mut request = formats::ui_v4::request(&body.json)?;
    let (session, is_new) = enter(&app, &body, &request, formats::ui_v4::import).await?;
    // The client has no other word for it.
    if let Some(said) = &request.said
        && !is_new
        && is_said_again(&app, &session, said, &body.json).await?
    {
        request.trigger = Trigger::Regenerate;
        request.message_id = said.id.clone();
    }
    answer(app, session, is_new, request, UiV4).await
}

/// Whether the client wants another answer to a message that it has sent before. As long as nobody tells it
/// otherwise it sends no ids: then the message is the last one, there is none after it, and the client has
/// brought what came before it. One who sends only what is new may say the same words again.
async fn is_said_again(
    app: &App,
    session: &SessionId,
    said: &IncomingMessage,
    body: &Value,
) -> Result<bool, HttpError> {
    if let Some(id) = &said.id {
        return Ok(find_message(app, session, id).await?.is_some());
    }
    if open_run(app, session).await?.is_some() || !body["message"].is_null() {
        return Ok(false);
    }
    let Some(last) = last_said(app, session).await? else { return Ok(false) };
    Ok(said.text == last.text
        && is_brought(app, session, earlier_messages(body), last.first).await?
        && has_same_files(app, said, &last).await?)
}

/// Whether these messages may be those that the session has before a number.
async fn is_brought(
    app: &App,
    session: &SessionId,
    messages: &[Value],
    before: Seq,
) -> Result<bool, HttpError> {
    let n_said = app.store().count_before(session, MessageKind::Said, before).await?;
    let n_answers = app.store().count_before(session, MessageKind::Answer, before).await?;
    let is_answer = |it: &Value| it["role"] == "assistant";
    let is_said = |it: &&Value| it["role"] == "user" || it["role"] == "system";
    let has_answers = messages.iter().any(is_answer);
    Ok(messages.iter().filter(is_said).count() as u64 == n_said && (has_answers || n_answers == 0))
}

async fn has_same_files(
    app: &App,
    said: &IncomingMessage,
    last: &LastSaid,
) -> Result<bool, HttpError> {
    let links = |sent: Option<&SentForm>| -> Vec<String> {
        let links = sent.into_iter().flat_map(SentForm::links);
        links.map(|it| it.url.to_owned()).collect()
    };
    let mut blobs = Vec::new();
    for file in &said.files {
        blobs.push(import::attach(app.store(), file).await?.blob);
    }
    let is_same = last.attachments.iter().map(|it| &it.blob).eq(&blobs);
    Ok(is_same && links(said.sent.as_ref()) == links(last.sent.as_ref()))
}

/// What is under way, from its beginning.
pub(super) async fn resume(
    State(app): State<App>,
    profile: Result<ClientProfile, HttpError>,
    chat: Result<NamedChat, HttpError>,
) -> Result<Response, PlainError> {
    let (ClientProfile(profile), NamedChat(session)) = (profile?, chat?);
    let Some(session) = session else { return Ok(NoContent.into_response()) };
    let told = again(app, session, Ui(profile)).await?;
    Ok(told.unwrap_or_else(|| NoContent.into_response()))
}

/// The client cannot read a response without a body.
pub(super) async fn resume_v4(
    State(app): State<App>,
    params: Result<Params<ResumeV4Params>, HttpError>,
) -> Result<Response, PlainError> {
    let Params(ResumeV4Params { chat_id }) = params?;
    let session = SessionId::parse(&chat_id);
    let told = match session {
        Some(session) => again(app, session, UiV4).await?,
        None => None,
    };
    Ok(told.unwrap_or_else(|| UiV4::response("".into())))
}

async fn enter(
    app: &App,
    body: &Brought<ChatInput>,
    request: &Request,
    import: Import,
) -> Result<(SessionId, bool), HttpError> {
    let arrival = Arrival {
        session: request.chat.as_deref(),
        agent: body.agent.as_deref(),
        says: request.said.is_some(),
        earlier: earlier_messages(&body.json),
        import,
    };
    welcome(app, &arrival).await
}

/// All but the last, which is new.
fn earlier_messages(body: &Value) -> &[Value] {
    let messages = body["messages"].as_array().filter(|_| body["message"].is_null());
    messages.and_then(|it| it.split_last()).map_or(&[], |(_, earlier)| earlier)
}

async fn again<V: Spoken>(
    app: App,
    session: SessionId,
    vocabulary: V,
) -> Result<Option<Response>, HttpError> {
    let Some(run) = open_run(&app, &session).await? else { return Ok(None) };
    Ok(Some(tell_run(app, session, &run, vocabulary).await?.into_response()))
}

async fn answer<V: Spoken>(
    app: App,
    session: SessionId,
    is_new: bool,
    request: Request,
    vocabulary: V,
) -> Result<Response, PlainError> {
    let Request { trigger, message_id, said, decided, known, tools, .. } = request;
    let telling = match (said, trigger) {
        (None, Trigger::Submit) => go_on(app, session, decided, &known, vocabulary).await?,
        (said, Trigger::Regenerate)
            if !is_new
                && !is_unheard(&app, &session, message_id.as_deref(), said.as_ref()).await? =>
        {
            let of = match message_id.or(said.and_then(|it| it.id)) {
                Some(id) => {
                    Some(find_message(&app, &session, &id).await?.ok_or_else(|| no_message(&id))?)
                }
                None => None,
            };
            check_can_rewind(&app, &session).await?;
            let reason = RewindReason::Regenerate;
            let retry = |reply| Command::Retry { of, reason, reply };
            let run = app.sessions.ask(&session, retry).await?;
            tell_run(app, session, &run, vocabulary).await?
        }
        (Some(said), _) => {
            decide_on_the_way(&app, &session, decided).await?;
            let instead_of = match message_id.filter(|_| !is_new) {
                Some(id) => edited(&app, &session, &id, &said).await?.map(MessageId::new),
                None => None,
            };
            let saying = Saying { said, instead_of, tools };
            say(app, session, saying, vocabulary).await?
        }
        (None, Trigger::Regenerate) => return Err(nothing_to_tell().into()),
    };
    Ok(telling.into_response())
}

/// Whether the chat ends with a message that never came here, so that there is no answer to it yet.
async fn is_unheard(
    app: &App,
    session: &SessionId,
    answer: Option<&str>,
    said: Option<&IncomingMessage>,
) -> Result<bool, HttpError> {
    match (answer, said) {
        (None, Some(IncomingMessage { id: Some(id), .. })) => {
            Ok(find_message(app, session, id).await?.is_none())
        }
        _ => Ok(false),
    }
}

/// The message that is to be said in other words; none if this one is new.
async fn edited(
    app: &App,
    session: &SessionId,
    id: &str,
    said: &IncomingMessage,
) -> Result<Option<String>, HttpError> {
    match find_message(app, session, id).await? {
        Some(earlier) => {
            check_can_rewind(app, session).await?;
            Ok(Some(earlier))
        }
        None if said.id.as_deref() == Some(id) => Ok(None),
        None => Err(no_message(id)),
    }
}

/// By the client's name for it, or by ours.
async fn find_message(
    app: &App,
    session: &SessionId,
    id: &str,
) -> Result<Option<String>, HttpError> {
    let of_client = app.store().message_of_client_id(session, &ClientId::new(id)).await?;
    if let Some(message) = of_client {
        return Ok(Some(message.to_string()));
    }
    Ok(app.store().message_row(session, id).await?.map(|row| row.id))
}

/// A program has its own memory of the conversation, which nobody can cut.
async fn check_can_rewind(app: &App, session: &SessionId) -> Result<(), HttpError> {
    let agent = app.sessions.agent_of(session).await?.unwrap_or_default();
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
