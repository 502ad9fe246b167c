//! Endpoints for the AI SDK, which `useChat` supports unchanged. The chat's id is the session's id.

use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::response::{IntoResponse, NoContent, Response};
use formats::incoming::IncomingMessage;
use formats::ui::{Profile, Request, Trigger};
use formats::{ui, ui_v4};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use store::MessageKind;
use transcript::{ClientId, MessageId, ResponseId, RewindReason, SentForm, Seq, SessionId};

use crate::api::read::ProfileNumber;
use crate::compat::{
    CompatBody, CompatState, Conversation, Import, IncomingConversation, LastUserMessage, Protocol,
    Submission, find_or_create_session, nothing_to_do, path_parameters, streamed,
};
use crate::error::{HttpError, RequestCode};
use crate::extract::Params;
use crate::openapi::{DescribeInput, Operation};
use crate::refusal::PlainError;
use runtime::import;
use session::Command;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ChatParams {
    /// Major version of the client's AI SDK. It may also be sent in the header `x-callboard-profile`, because
    /// some versions of the SDK drop the query when they resume.
    profile: Option<ProfileNumber>,
}

const PROFILE_HEADER: &str = "x-callboard-profile";

/// Extractor of the AI SDK's version that the client names in the query or a header, or the default
/// version.
pub(crate) struct ClientProfile(Profile);

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

impl DescribeInput for ClientProfile {
    fn describe(operation: &mut Operation<'_>) {
        Params::<ChatParams>::describe(operation);
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumeV4Params {
    chat_id: String,
}

/// Body of a chat request of the AI SDK.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a description")]
pub(crate) struct ChatInput {
    /// Id of the chat, which is the session's id.
    id: Option<String>,
    /// Messages of the complete chat. Earlier messages are read only if the session is new.
    messages: Option<Vec<Map<String, Value>>>,
    /// The new message, sent alone instead of the complete chat in `messages`.
    message: Option<Map<String, Value>>,
    trigger: Option<String>,
    message_id: Option<String>,
    /// Id of the agent for a new chat.
    agent: Option<String>,
    /// Tools that the client runs itself, by name, each with `description` and `parameters`.
    tools: Option<Map<String, Value>>,
}

/// Extractor of the session id in the path of a chat request; `None` if the id is not valid.
pub(crate) struct ChatPath(Option<SessionId>);

impl<S: Send + Sync> FromRequestParts<S> for ChatPath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let session = path_parameters(parts, state).await?.remove("session");
        Ok(Self(session.and_then(|it| SessionId::parse(&it))))
    }
}

impl DescribeInput for ChatPath {
    fn describe(operation: &mut Operation<'_>) {
        operation.refuses(&[RequestCode::InvalidRequest]);
    }
}

impl Protocol for Profile {
    type Encoder = ui::Stream;

    async fn encoder(&self, run: ResponseId) -> Result<ui::Stream, HttpError> {
        Ok(ui::Stream::new(run, *self))
    }
}

/// Protocol of version 4 of the AI SDK.
struct V4;

impl Protocol for V4 {
    type Encoder = ui_v4::Stream;

    async fn encoder(&self, run: ResponseId) -> Result<ui_v4::Stream, HttpError> {
        Ok(ui_v4::Stream::new(run))
    }
}

pub(crate) async fn send(
    State(server): State<CompatState>,
    profile: Result<ClientProfile, HttpError>,
    body: Result<CompatBody<ChatInput>, HttpError>,
) -> Result<Response, PlainError> {
    let (ClientProfile(profile), body) = (profile?, body?);
    let request = ui::request(&body.json)?;
    let (chat, is_new) = find_or_create_chat(&server, &body, &request, ui::import).await?;
    answer(chat, is_new, request, profile).await
}

pub(crate) async fn send_v4(
    State(server): State<CompatState>,
    body: Result<CompatBody<ChatInput>, HttpError>,
) -> Result<Response, PlainError> {
    let body = body?;
    let mut request = ui_v4::request(&body.json)?;
    let (chat, is_new) = find_or_create_chat(&server, &body, &request, ui_v4::import).await?;
    // In version 4, this is the only way to request another answer.
    if let Some(message) = &request.message
        && !is_new
        && is_sent_again(&chat, message, &body.json).await?
    {
        request.trigger = Trigger::Regenerate;
        request.message_id = message.id.clone();
    }
    answer(chat, is_new, request, V4).await
}

/// Returns whether the client requests another answer to a message that it has sent before. If the message
/// has no id, it has to equal the last message of the session, and the client has to send the messages before
/// it. A client that sends only the new message may repeat a text.
async fn is_sent_again(
    chat: &Conversation,
    message: &IncomingMessage,
    body: &Value,
) -> Result<bool, HttpError> {
    if let Some(id) = &message.id {
        return Ok(find_message(chat, id).await?.is_some());
    }
    if chat.open_run().await?.is_some() || !body["message"].is_null() {
        return Ok(false);
    }
    let Some(last) = chat.last_user_message().await? else { return Ok(false) };
    Ok(message.text == last.text
        && has_messages_before(chat, earlier_messages(body), last.first).await?
        && has_same_files(chat, message, &last).await?)
}

/// Returns whether the messages that a client sends may be the session's messages before a record
/// number, judging by their roles.
async fn has_messages_before(
    chat: &Conversation,
    messages: &[Value],
    before: Seq,
) -> Result<bool, HttpError> {
    let store = &chat.server.store;
    let n_said = store.count_before(&chat.session, MessageKind::Said, before).await?;
    let n_answers = store.count_before(&chat.session, MessageKind::Answer, before).await?;
    let is_answer = |it: &Value| it["role"] == "assistant";
    let is_said = |it: &&Value| it["role"] == "user" || it["role"] == "system";
    let has_answers = messages.iter().any(is_answer);
    Ok(messages.iter().filter(is_said).count() as u64 == n_said && (has_answers || n_answers == 0))
}

async fn has_same_files(
    chat: &Conversation,
    message: &IncomingMessage,
    last: &LastUserMessage,
) -> Result<bool, HttpError> {
    let links = |sent: Option<&SentForm>| -> Vec<String> {
        let links = sent.into_iter().flat_map(SentForm::links);
        links.map(|it| it.url.to_owned()).collect()
    };
    let mut blobs = Vec::new();
    for file in &message.files {
        blobs.push(import::attach(&chat.server.store, file).await?.blob);
    }
    let is_same = last.attachments.iter().map(|it| &it.blob).eq(&blobs);
    Ok(is_same && links(message.sent.as_ref()) == links(last.sent.as_ref()))
}

/// Streams the active run of a chat from its beginning. The response has no content if there is no
/// active run.
pub(crate) async fn resume(
    State(server): State<CompatState>,
    profile: Result<ClientProfile, HttpError>,
    chat: Result<ChatPath, HttpError>,
) -> Result<Response, PlainError> {
    let (ClientProfile(profile), ChatPath(session)) = (profile?, chat?);
    let Some(session) = session else { return Ok(NoContent.into_response()) };
    let active = active_run(Conversation { server, session }, profile).await?;
    Ok(active.unwrap_or_else(|| NoContent.into_response()))
}

/// Streams the active run of a chat from its beginning, for version 4 of the AI SDK. Without an
/// active run, the response still has an empty body, because the client cannot read a response
/// without one.
pub(crate) async fn resume_v4(
    State(server): State<CompatState>,
    params: Result<Params<ResumeV4Params>, HttpError>,
) -> Result<Response, PlainError> {
    let Params(ResumeV4Params { chat_id }) = params?;
    let active = match SessionId::parse(&chat_id) {
        Some(session) => active_run(Conversation { server, session }, V4).await?,
        None => None,
    };
    Ok(active.unwrap_or_else(|| streamed::<ui_v4::Stream>("".into())))
}

async fn find_or_create_chat(
    server: &CompatState,
    body: &CompatBody<ChatInput>,
    request: &Request,
    import: Import,
) -> Result<(Conversation, bool), HttpError> {
    let incoming = IncomingConversation {
        session: request.chat.as_deref(),
        agent: body.agent.as_deref(),
        has_message: request.message.is_some(),
        earlier: earlier_messages(&body.json),
        import,
    };
    find_or_create_session(server, &incoming).await
}

/// Returns the messages of a chat request before the last one, which is new.
fn earlier_messages(body: &Value) -> &[Value] {
    let messages = body["messages"].as_array().filter(|_| body["message"].is_null());
    messages.and_then(|it| it.split_last()).map_or(&[], |(_, earlier)| earlier)
}

async fn active_run(
    chat: Conversation,
    protocol: impl Protocol,
) -> Result<Option<Response>, HttpError> {
    let Some(run) = chat.open_run().await? else { return Ok(None) };
    Ok(Some(chat.stream_run(&run, protocol).await?.into_response()))
}

async fn answer(
    chat: Conversation,
    is_new: bool,
    request: Request,
    protocol: impl Protocol,
) -> Result<Response, PlainError> {
    let Request { trigger, message_id, message, decided, known, tools, .. } = request;
    let response = match (message, trigger) {
        (None, Trigger::Submit) => chat.resume(decided, &known, protocol).await?,
        (message, Trigger::Regenerate)
            if !is_new
                && !ends_with_new_message(&chat, message_id.as_deref(), message.as_ref())
                    .await? =>
        {
            let of = match message_id.or(message.and_then(|it| it.id)) {
                Some(id) => Some(find_message(&chat, &id).await?.ok_or_else(|| no_message(&id))?),
                None => None,
            };
            check_can_rewind(&chat).await?;
            let reason = RewindReason::Regenerate;
            let run = chat.ask(|reply| Command::Retry { of, reason, reply }).await?;
            chat.stream_run(&run, protocol).await?
        }
        (Some(message), _) => {
            chat.apply_piggybacked_decisions(decided).await?;
            let replaces = match message_id.filter(|_| !is_new) {
                Some(id) => replaced_message(&chat, &id, &message).await?.map(MessageId::new),
                None => None,
            };
            chat.submit(Submission { message, replaces, tools }, protocol).await?
        }
        (None, Trigger::Regenerate) => return Err(nothing_to_do().into()),
    };
    Ok(response.into_response())
}

/// Returns whether a chat request ends with a message that the session does not have and that
/// therefore has no answer.
async fn ends_with_new_message(
    chat: &Conversation,
    answer: Option<&str>,
    message: Option<&IncomingMessage>,
) -> Result<bool, HttpError> {
    match (answer, message) {
        (None, Some(IncomingMessage { id: Some(id), .. })) => {
            Ok(find_message(chat, id).await?.is_none())
        }
        _ => Ok(false),
    }
}

/// Returns the id of the earlier message that a client's message replaces; `None` if the message is
/// new.
async fn replaced_message(
    chat: &Conversation,
    id: &str,
    message: &IncomingMessage,
) -> Result<Option<String>, HttpError> {
    match find_message(chat, id).await? {
        Some(earlier) => {
            check_can_rewind(chat).await?;
            Ok(Some(earlier))
        }
        None if message.id.as_deref() == Some(id) => Ok(None),
        None => Err(no_message(id)),
    }
}

/// Returns the server's id of a message, found by the client's id for the message or by the
/// server's; `None` if the session has no such message.
async fn find_message(chat: &Conversation, id: &str) -> Result<Option<String>, HttpError> {
    let store = &chat.server.store;
    let of_client = store.message_of_client_id(&chat.session, &ClientId::new(id)).await?;
    if let Some(message) = of_client {
        return Ok(Some(message.to_string()));
    }
    Ok(store.message_row(&chat.session, id).await?.map(|row| row.id))
}

/// Returns an error if the chat's agent is a program agent, whose own conversation cannot be
/// rewound.
async fn check_can_rewind(chat: &Conversation) -> Result<(), HttpError> {
    let agent = chat.server.sessions.agent_of(&chat.session).await?.unwrap_or_default();
    match chat.server.agents.program_name(&agent) {
        None => Ok(()),
        Some(program) => {
            let message =
                format!("{program} cannot go back in its conversation; send a new message instead");
            Err(HttpError::new(RequestCode::NotSupported, message))
        }
    }
}

fn no_message(id: &str) -> HttpError {
    let message = format!("the session has no message {id:?}");
    HttpError::new(RequestCode::MessageNotFound, message)
}
