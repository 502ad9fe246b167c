//! Extractors for handlers, which return [`HttpError`] and describe themselves for OpenAPI.

use std::time::Duration;

use axum::Extension;
use axum::body::{BodyDataStream, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use axum::http::request::Parts;
use futures_util::StreamExt;
use schemars::{JsonSchema, json_schema};
use serde::de::DeserializeOwned;
use transcript::{CallId, MessageId, ResponseId, SessionId};

use crate::error::{HttpError, RequestCode};
use crate::openapi::{DescribeInput, Operation};

/// Maximum size in bytes of a request body and of a WebSocket frame.
pub(crate) const BODY_MAX: usize = 8 * 1024 * 1024;
/// Maximum size in bytes of a file to import.
const FILE_MAX: usize = 256 * 1024 * 1024;
/// Time limit for receiving the body of an HTTP request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of bytes of an oversized request body that are discarded before the connection is
/// closed.
const DISCARDED_MAX: usize = 4 * FILE_MAX;
/// Maximum pause of a client while an oversized request body is discarded.
const DISCARD_PAUSE: Duration = Duration::from_millis(500);

/// Extractor of a JSON request body.
pub(crate) struct Input<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Input<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        let body = read_body(request, Limit { what: "body", bytes: BODY_MAX }).await?;
        let value = parse_object(&body);
        value.map(Self).map_err(|why| HttpError::invalid(format!("the body cannot be read: {why}")))
    }
}

/// Parses a JSON object that a client sent. serde alone would also accept a list of the fields'
/// values.
pub(crate) fn parse_object<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    match json.trim_ascii_start().first() {
        None => Err("it is empty, and should be a JSON object".to_owned()),
        Some(b'{') => {
            let text = std::str::from_utf8(json).map_err(|error| error.to_string())?;
            let text = backends::replace_lone_surrogates(text);
            serde_json::from_str(&text).map_err(|error| error.to_string())
        }
        Some(_) => Err("it should be a JSON object".to_owned()),
    }
}

/// Extractor of a request body that is a file to attach to a message.
pub(crate) struct RawBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        read_body(request, Limit { what: "file", bytes: BODY_MAX }).await.map(Self)
    }
}

/// Extractor of a request body that is a file to import, which may be larger than other bodies.
pub(crate) struct FileBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for FileBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        read_body(request, Limit { what: "file", bytes: FILE_MAX }).await.map(Self)
    }
}

/// Extractor of the `password` field of a submitted form; empty if it is missing.
pub(crate) struct Password(pub(crate) String);

impl<S: Send + Sync> FromRequest<S> for Password {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        let body = read_body(request, Limit { what: "body", bytes: BODY_MAX }).await?;
        let mut fields = form_urlencoded::parse(&body);
        let password = fields.find(|(name, _)| name == "password");
        Ok(Self(password.map(|(_, value)| value.into_owned()).unwrap_or_default()))
    }
}

/// Maximum size of a request body in bytes, and the name of the body in error messages.
#[derive(Clone, Copy)]
struct Limit {
    what: &'static str,
    bytes: usize,
}

impl Limit {
    fn exceeded(self) -> HttpError {
        let Self { what, bytes } = self;
        let message = format!("the {what} is larger than {} MiB, which is the limit", bytes >> 20);
        HttpError::new(RequestCode::TooLarge, message)
    }
}

async fn read_body(request: Request, limit: Limit) -> Result<Bytes, HttpError> {
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let announced = announced.and_then(|it| it.parse().ok());
    let is_too_large = announced.is_some_and(|it: u64| it > limit.bytes as u64);
    // A client that waits for `100 Continue` has not sent the body.
    let waits = request.headers().contains_key(EXPECT);
    let mut pieces = request.into_body().into_data_stream();
    let read = match is_too_large {
        true => Err(limit.exceeded()),
        false => tokio::time::timeout(BODY_TIMEOUT, collect(&mut pieces, limit))
            .await
            .unwrap_or_else(|_| {
                let message = format!("the body was not received within {BODY_TIMEOUT:?}");
                Err(HttpError::new(RequestCode::TooSlow, message))
            }),
    };
    if read.as_ref().is_err_and(|it| it.code == RequestCode::TooLarge) && !(is_too_large && waits) {
        discard(&mut pieces).await;
    }
    read
}

async fn collect(pieces: &mut BodyDataStream, limit: Limit) -> Result<Bytes, HttpError> {
    let mut kept = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece =
            piece.map_err(|error| HttpError::invalid(format!("the body broke off: {error}")))?;
        if kept.len() + piece.len() > limit.bytes {
            return Err(limit.exceeded());
        }
        kept.extend_from_slice(&piece);
    }
    Ok(kept.into())
}

/// Discards the rest of an oversized request body, within limits of size and time: most clients
/// read the response only after they have sent everything.
async fn discard(pieces: &mut BodyDataStream) {
    let read = async {
        let mut size = 0;
        while let Ok(Some(Ok(piece))) = tokio::time::timeout(DISCARD_PAUSE, pieces.next()).await {
            size += piece.len();
            if size > DISCARDED_MAX {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(BODY_TIMEOUT, read).await;
}

/// Extractor of the query parameters of a request.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|it| HttpError::invalid(it.body_text()))
    }
}

/// Extractor of the only variable segment of a request's path.
pub(crate) struct Segment(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let segment = Path::from_request_parts(parts, state).await;
        segment.map(|Path(it)| Self(it)).map_err(|it| HttpError::invalid(it.body_text()))
    }
}

/// Parses the id that a client chose for a new session.
pub(crate) fn new_session_id(id: &str) -> Result<SessionId, HttpError> {
    let refused = || HttpError::invalid(format!("a session id is {}", SessionId::FORM));
    SessionId::parse(id).ok_or_else(refused)
}

/// Extractor of the session id in the path of a request. Invalid ids are refused.
pub(crate) struct SessionPath(pub(crate) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for SessionPath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let Segment(id) = Segment::from_request_parts(parts, state).await?;
        SessionId::parse(&id).map(Self).ok_or_else(|| HttpError::no_session(&id))
    }
}

/// Extractor of the ids of a session and a tool call in the path of a request.
pub(crate) struct CallPath {
    pub(crate) session: SessionId,
    pub(crate) call: CallId,
}

impl<S: Send + Sync> FromRequestParts<S> for CallPath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let names = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((session, call)) = names.map_err(|it| HttpError::invalid(it.body_text()))?;
        let named = SessionId::parse(&session).ok_or_else(|| HttpError::no_session(&session))?;
        Ok(Self { session: named, call: CallId::new(call) })
    }
}

/// Extractor of the ids of a session and a message in the path of a request.
pub(crate) struct MessagePath {
    pub(crate) session: SessionId,
    pub(crate) message: MessageId,
}

impl<S: Send + Sync> FromRequestParts<S> for MessagePath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let names = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((session, message)) = names.map_err(|it| HttpError::invalid(it.body_text()))?;
        let named = SessionId::parse(&session).ok_or_else(|| HttpError::no_session(&session))?;
        Ok(Self { session: named, message: MessageId::new(message) })
    }
}

/// Extractor of the ids of a session and a grant in the path of a request.
pub(crate) struct GrantPath {
    pub(crate) session: SessionId,
    pub(crate) grant: String,
}

impl<S: Send + Sync> FromRequestParts<S> for GrantPath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let CallPath { session, call } = CallPath::from_request_parts(parts, state).await?;
        Ok(Self { session, grant: call.to_string() })
    }
}

/// Extractor of the ids of a session and an answer in the path of a request.
pub(crate) struct AnswerPath {
    pub(crate) session: SessionId,
    pub(crate) run: ResponseId,
}

impl<S: Send + Sync> FromRequestParts<S> for AnswerPath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let CallPath { session, call } = CallPath::from_request_parts(parts, state).await?;
        Ok(Self { session, run: ResponseId::new(call.as_str()) })
    }
}

impl<T: JsonSchema> DescribeInput for Input<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_json::<T>();
        operation.refuses(BODY_REFUSALS);
    }
}

impl DescribeInput for RawBody {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_body("application/octet-stream", json_schema!({}));
        operation.refuses(BODY_REFUSALS);
    }
}

impl DescribeInput for FileBody {
    fn describe(operation: &mut Operation<'_>) {
        RawBody::describe(operation);
    }
}

impl DescribeInput for Password {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({
            "type": "object",
            "properties": { "password": { "type": "string" } },
            "required": ["password"],
        });
        operation.takes_body("application/x-www-form-urlencoded", schema);
        operation.refuses(BODY_REFUSALS);
    }
}

const BODY_REFUSALS: &[RequestCode] =
    &[RequestCode::InvalidRequest, RequestCode::TooLarge, RequestCode::TooSlow];

impl<T: JsonSchema> DescribeInput for Params<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_query::<T>();
        operation.refuses(&[RequestCode::InvalidRequest]);
    }
}

impl DescribeInput for Segment {
    fn describe(operation: &mut Operation<'_>) {
        operation.refuses(&[RequestCode::InvalidRequest, RequestCode::NotFound]);
    }
}

impl DescribeInput for SessionPath {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_segment::<SessionId>("session");
        operation.refuses(&[RequestCode::InvalidRequest, RequestCode::SessionNotFound]);
    }
}

impl DescribeInput for CallPath {
    fn describe(operation: &mut Operation<'_>) {
        SessionPath::describe(operation);
        operation.refuses(&[RequestCode::CallNotFound]);
    }
}

impl DescribeInput for MessagePath {
    fn describe(operation: &mut Operation<'_>) {
        SessionPath::describe(operation);
        operation.refuses(&[RequestCode::MessageNotFound]);
    }
}

impl DescribeInput for GrantPath {
    fn describe(operation: &mut Operation<'_>) {
        SessionPath::describe(operation);
        operation.refuses(&[RequestCode::NotFound]);
    }
}

impl DescribeInput for AnswerPath {
    fn describe(operation: &mut Operation<'_>) {
        SessionPath::describe(operation);
        operation.refuses(&[RequestCode::MessageNotFound]);
    }
}

/// Describes the error of handlers that use the state: they may fail to read the store.
impl<S> DescribeInput for State<S> {
    fn describe(operation: &mut Operation<'_>) {
        operation.refuses(&[RequestCode::InternalError]);
    }
}

impl<T: DescribeInput, E> DescribeInput for Result<T, E> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
    }
}

impl<T> DescribeInput for Extension<T> {
    fn describe(_: &mut Operation<'_>) {}
}

impl DescribeInput for HeaderMap {
    fn describe(_: &mut Operation<'_>) {}
}
