//! Front ends of others: what each of them may do, whatever its words.
//!
//! The conversation's id is the session's, and the log is the truth: of what a client sends, only the
//! end is new. A response is a run as far as it goes without the client. A client that goes away has
//! stopped nothing, and can come back.

mod arrival;
mod files;
mod telling;

use std::collections::HashSet;

use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use backends::ToolOutcome;
use formats::incoming::{BadRequest, Decided, IncomingMessage, Known};
use store::MessageKind;
use tools::{failed, tool_error};
use transcript::{
    Attachment, CallId, ClientId, ClientTool, Event, MessageId, ResponseId, Scope, SendMode,
    SentForm, Seq, SessionId,
};

use super::App;
use super::error::{HttpError, RequestCode};
use super::openapi::{Gives, Operation};
use session::{Answered, Approval, Command, MessageState, NewMessage, Refused};

pub(super) use arrival::{Arrival, Beginning, Brought, Import, begin, is_known, path, welcome};
pub(super) use telling::{RunPlace, Spoken, Telling, Vocabulary, Voice, before, events, growing};

/// A refusal in plain words: clients show the body as it is.
pub(super) struct PlainError(HttpError);

impl<E: Into<HttpError>> From<E> for PlainError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for PlainError {
    fn into_response(self) -> Response {
        let HttpError { code, message, .. } = self.0;
        (code.status(), [(CONTENT_TYPE, "text/plain; charset=utf-8")], message).into_response()
    }
}

impl<T: Gives> Gives for Result<T, PlainError> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        operation.refuses_as(&["text/plain"]);
    }
}

/// Whether something was sent to an address that such clients know.
pub(super) fn is_asked(uri: &Uri) -> bool {
    let is_below = |folder: &str| {
        let rest = uri.path().strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_below("/api/chat") || is_below("/api/agui")
}

/// Something that a client says.
pub(super) struct Saying {
    pub(super) said: IncomingMessage,
    /// The message that it says in other words.
    pub(super) instead_of: Option<MessageId>,
    /// What the client can run itself.
    pub(super) tools: Vec<ClientTool>,
}

/// Says it, and tells the answer as soon as it comes.
pub(super) async fn say<V: Vocabulary>(
    app: App,
    session: SessionId,
    saying: Saying,
    vocabulary: V,
) -> Result<Telling<V>, HttpError> {
    let Saying { said: IncomingMessage { id, text, files, sent }, instead_of, tools: client_tools } =
        saying;
    let mut attachments = Vec::new();
    for file in &files {
        attachments.push(files::attach(&app, file).await?);
    }
    let client_id = id.map(ClientId::new);
    let (mode, from) = (SendMode::Queue, None);
    let message = NewMessage { text, client_id, attachments, mode, from, client_tools, sent };
    let head = app.store().head(&session).await?.unwrap_or(Seq(0));
    let receipt = match instead_of {
        Some(earlier) => {
            app.sessions.ask(&session, |reply| Command::Edit { earlier, message, reply }).await?
        }
        None => app.sessions.send(&session, message).await?,
    };
    let row = app.store().message_row(&session, receipt.message_id.as_str()).await?;
    let after = match (row, receipt.state) {
        (Some(row), _) => before(row.first),
        (None, MessageState::Queued | MessageState::Steering) => head,
        // Sent once more, after it was taken back or went into a run.
        (None, MessageState::Started | MessageState::HandedOver) => return Err(nothing_to_tell()),
    };
    Telling::of_answer(app, session, receipt.message_id, after, vocabulary).await
}

/// The client has decided about calls, or run them, and hears how their run goes on.
pub(super) async fn go_on<V: Vocabulary>(
    app: App,
    session: SessionId,
    decided: Vec<Decided>,
    known: &Known,
    vocabulary: V,
) -> Result<Telling<V>, HttpError> {
    let Decisions { calls, .. } = decide(&app, &session, decided).await?;
    tell_decided(app, session, &calls, known, vocabulary).await
}

/// What came of what a client has decided.
#[derive(Default)]
pub(super) struct Decisions {
    /// Those that are decided by now, whoever was faster.
    pub(super) calls: HashSet<CallId>,
    /// Clients also send results that they were told; that is no decision, and nothing happens.
    pub(super) has_decided: bool,
}

pub(super) async fn decide(
    app: &App,
    session: &SessionId,
    decided: Vec<Decided>,
) -> Result<Decisions, HttpError> {
    let mut decisions = Decisions::default();
    for decided in decided {
        let (call, command) = carry_out(app, session, decided).await;
        match command {
            Ok(()) | Err(Refused::Decided { .. }) => decisions.has_decided = true,
            Err(Refused::NotAwaited(_)) => (),
            Err(Refused::NoCall(_)) => continue,
            Err(refused) => return Err(refused.into()),
        }
        decisions.calls.insert(call);
    }
    Ok(decisions)
}

/// Carries out what comes along with something said, so that what is said does not wait for it. A client
/// repeats all that it has of its last answer; only a run that is under way can wait for any of it.
pub(super) async fn decide_on_the_way(
    app: &App,
    session: &SessionId,
    mut decided: Vec<Decided>,
) -> Result<(), HttpError> {
    let Some(run) = open_run(app, session).await? else { return Ok(()) };
    decided.retain(|it| run_of(&CallId::new(it.call())).as_ref() == Some(&run));
    decide(app, session, decided).await.map(drop)
}

/// Gives the run of these calls what came of them. None if it does not wait for all of them: somebody was
/// faster, or it has ended.
pub(super) async fn give_results(
    app: &App,
    session: &SessionId,
    results: Vec<Decided>,
) -> Result<Option<HashSet<CallId>>, HttpError> {
    let mut calls = HashSet::new();
    for result in results {
        match carry_out(app, session, result).await {
            (call, Ok(())) => drop(calls.insert(call)),
            (_, Err(Refused::Decided { .. } | Refused::NotAwaited(_) | Refused::NoCall(_))) => {
                return Ok(None);
            }
            (_, Err(refused)) => return Err(refused.into()),
        }
    }
    Ok(Some(calls))
}

/// What the client does not have yet of the run of these calls, and then live.
pub(super) async fn tell_decided<V: Vocabulary>(
    app: App,
    session: SessionId,
    calls: &HashSet<CallId>,
    known: &Known,
    vocabulary: V,
) -> Result<Telling<V>, HttpError> {
    let run = run_of_calls(calls).ok_or_else(nothing_to_tell)?;
    let place = RunPlace::find(&app, &session, &run).await?.ok_or_else(nothing_to_tell)?;
    Telling::of_run(app, session, place, Some(known), vocabulary).await
}

/// A client decides about calls of one run. Of those that it only repeats the last counts.
pub(super) fn run_of_calls(calls: &HashSet<CallId>) -> Option<ResponseId> {
    calls.iter().filter_map(run_of).max()
}

/// A run from its beginning, and then live.
pub(super) async fn tell_run<V: Vocabulary>(
    app: App,
    session: SessionId,
    run: &ResponseId,
    vocabulary: V,
) -> Result<Telling<V>, HttpError> {
    let place = RunPlace::find(&app, &session, run).await?.ok_or_else(nothing_to_tell)?;
    Telling::of_run(app, session, place, None, vocabulary).await
}

/// What was said last.
pub(super) struct LastSaid {
    pub(super) first: Seq,
    pub(super) text: String,
    pub(super) client_id: Option<ClientId>,
    pub(super) attachments: Vec<Attachment>,
    pub(super) sent: Option<SentForm>,
}

pub(super) async fn last_said(
    app: &App,
    session: &SessionId,
) -> Result<Option<LastSaid>, HttpError> {
    let records = app.store().records_of_last(session, MessageKind::Said).await?;
    Ok(records.iter().map(store::Stored::record).find_map(|it| match it.event {
        Event::UserMessage { text, client_id, attachments, sent, .. } => {
            Some(LastSaid { first: it.seq, text, client_id, attachments, sent })
        }
        _ => None,
    }))
}

/// What is under way.
pub(super) async fn open_run(
    app: &App,
    session: &SessionId,
) -> Result<Option<ResponseId>, HttpError> {
    Ok(app.store().summary(session).await?.and_then(|(summary, _)| summary.open_run))
}

/// The session in which the run of a call is under way.
pub(super) async fn session_of(app: &App, call: &CallId) -> Result<Option<SessionId>, HttpError> {
    let Some(run) = run_of(call) else { return Ok(None) };
    let mut active = app.store().needing_attention().await?.into_iter();
    Ok(active.find(|(_, summary, _)| summary.open_run.as_ref() == Some(&run)).map(|it| it.0))
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

pub(super) fn nothing_to_tell() -> HttpError {
    HttpError::new(RequestCode::NothingToDo, "there is nothing to answer or to go on with")
}

impl From<BadRequest> for HttpError {
    fn from(why: BadRequest) -> Self {
        let error = Self::invalid(why.to_string());
        match why.param {
            Some(param) => error.about(param),
            None => error,
        }
    }
}
