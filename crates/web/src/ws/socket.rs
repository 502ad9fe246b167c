//! `GET /ws`: a WebSocket for commands and records.
//!
//! The server sends nothing before the first command. A connection may have many subscriptions, each of which
//! is a task that waits while the connection is slow. A connection that accepts no data for ten seconds is
//! closed. Its client reconnects and catches up from the log.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::{FutureExt, SinkExt};
use store::Store;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use transcript::{ClientId, MessageId, RewindReason, SendMode, Seq, SessionId};

use crate::api::approvals::USER;
use crate::api::queue;
use crate::api::sessions::{LIST_LIMIT, SendInput, SessionObject};
use crate::auth::keys::Revocation;
use crate::error::{HttpError, RequestCode};
use crate::extract::{BODY_MAX, parse_object};
use crate::listener::StopSignal;
use crate::openapi::{DescribeInput, Operation};
use crate::pages::{LISTED, ListPart, PageState};
use crate::ws::frames::{ClientFrame, Notice, ServerFrame, ViewKind};
use crate::ws::html_subscription::{HtmlSubscription, draw_list};
use crate::ws::record_subscription::{Outbox, send_records};
use runtime::Sessions;
use runtime::live::hub::{Hub, ListChange};
use runtime::live::record_stream::RecordStream;
use runtime::live::views::Views;
use runtime::metrics::Metrics;
use session::{AnswerType, Command, QueuedChange, Receipt, ReplyTo};

/// Initial size in bytes of the read buffer of a WebSocket connection. It is small because commands
/// are short, and grows for a long frame.
const READ_BUFFER: usize = 1024;
/// Size in bytes of the write buffer of a WebSocket connection, which is allocated when data is
/// written.
const WRITE_BUFFER: usize = 4 * 1024;
/// Size in bytes of a WebSocket frame above which the connection is closed. A frame between
/// [`BODY_MAX`] and this gets an error.
const MAX_FRAME: usize = 2 * BODY_MAX;
/// Maximum number of batches of frames that may wait between the subscriptions and the WebSocket
/// connection.
const OUTBOX: usize = 8;
/// WebSocket close code and reason that tell a page to sign in again.
const SIGNED_OUT: (u16, &str) = (4401, "signed out");
/// Time after which a WebSocket connection that accepts no data is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for sending the last frames of a WebSocket connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The parts of the server that WebSocket connections use.
#[derive(Clone)]
pub(crate) struct SocketState {
    pub(crate) store: Store,
    pub(crate) hub: Arc<Hub>,
    pub(crate) sessions: Sessions,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) views: Views,
    pub(crate) pages: PageState,
    pub(crate) stop: StopSignal,
}

pub(crate) async fn open(
    State(server): State<SocketState>,
    Extension(revocation): Extension<Revocation>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, HttpError> {
    let upgrade = upgrade.map_err(|it| {
        HttpError::invalid(format!("only WebSocket requests are accepted here: {}", it.body_text()))
    })?;
    let response = upgrade
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(MAX_FRAME)
        .max_frame_size(MAX_FRAME)
        .on_upgrade(|socket| Connection::new(server).serve(socket, revocation));
    Ok(response)
}

impl DescribeInput for WebSocketUpgrade {
    fn describe(operation: &mut Operation<'_>) {
        operation.refuses(&[RequestCode::InvalidRequest]);
        operation.exchanges_frames::<ClientFrame, ServerFrame>();
    }
}

struct Connection {
    server: SocketState,
    outbox: Outbox,
    frames: mpsc::Receiver<Vec<Utf8Bytes>>,
    /// Tasks of the connection's subscriptions. They end when this is dropped.
    watches: JoinSet<()>,
    watched: HashMap<SessionId, AbortHandle>,
    watches_list: Option<AbortHandle>,
}

impl Connection {
    fn new(server: SocketState) -> Self {
        let (outbox, frames) = mpsc::channel(OUTBOX);
        let (watches, watched) = (JoinSet::new(), HashMap::new());
        server.metrics.watchers.inc();
        Self { server, outbox, frames, watches, watched, watches_list: None }
    }

    async fn serve(mut self, mut socket: WebSocket, revocation: Revocation) {
        let mut stop = self.server.stop.clone();
        let mut revoked = std::pin::pin!(revocation.wait());
        loop {
            let answer = tokio::select! {
                () = &mut revoked => return close(SIGNED_OUT, &mut socket).await,
                message = socket.recv() => match message {
                    // A frame that arrives with the end of the sign-in is not executed.
                    Some(Ok(_)) if (&mut revoked).now_or_never().is_some() => {
                        return close(SIGNED_OUT, &mut socket).await;
                    }
                    Some(Ok(Message::Text(text))) if text.len() > BODY_MAX => {
                        refusal(HttpError::new(RequestCode::TooLarge, "a frame has at most 8 MiB"))
                    }
                    Some(Ok(Message::Text(text))) => self.answer(&text).await,
                    Some(Ok(Message::Binary(_))) => {
                        refusal(HttpError::invalid("frames are JSON text, not binary"))
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                },
                Some(frames) = self.frames.recv() => frames,
                () = stop.wait() => {
                    return self.send_rest(&mut socket).await;
                }
            };
            let sending = send_all(&mut socket, answer, &mut self.frames);
            let sent = tokio::select! {
                biased;
                () = &mut revoked => None,
                sent = tokio::time::timeout(WRITE_TIMEOUT, sending) => Some(sent),
            };
            let Some(sent) = sent else {
                return close(SIGNED_OUT, &mut socket).await;
            };
            match sent {
                Ok(Ok(())) => (),
                Ok(Err(_)) => return,
                Err(_) => {
                    self.server.metrics.watchers_cut_off.inc();
                    tracing::info!(
                        "closing a connection that accepted nothing for {WRITE_TIMEOUT:?}"
                    );
                    return;
                }
            }
            while self.watches.try_join_next().is_some() {}
        }
    }

    /// Sends the last records to the client before the server stops, including the ends of runs.
    async fn send_rest(&mut self, socket: &mut WebSocket) {
        let sending = send_all(socket, Vec::new(), &mut self.frames);
        if let Ok(Ok(())) = tokio::time::timeout(CLOSE_TIMEOUT, sending).await {
            close((close_code::AWAY, "the server is stopping"), socket).await;
        }
    }

    /// Executes a client's command and returns the frames to send immediately.
    async fn answer(&mut self, text: &str) -> Vec<Utf8Bytes> {
        let frame: ClientFrame = match parse_object(text.as_bytes()) {
            Ok(frame) => frame,
            Err(why) => {
                return refusal(HttpError::invalid(format!("the frame cannot be read: {why}")));
            }
        };
        let session = frame.session().map(str::to_owned);
        match self.execute(frame).await {
            Ok(notice) => notice.iter().map(Notice::to_frame).collect(),
            Err(error) => vec![Notice::error(session, error).to_frame()],
        }
    }

    async fn execute(&mut self, frame: ClientFrame) -> Result<Option<Notice>, HttpError> {
        match frame {
            ClientFrame::Ping {} => Ok(Some(Notice::Pong {})),
            ClientFrame::Subscribe { sessions: true, view, archived, limit, version, .. } => {
                let limit = limit.unwrap_or(LISTED).clamp(1, LIST_LIMIT);
                self.watch_list(view, ListPart { archived, limit, before: None }, version);
                Ok(Some(Notice::SubscribedToList { sessions: true }))
            }
            ClientFrame::Subscribe { session_id, after, view, deltas, .. } => {
                let session = session_id.unwrap_or_default();
                self.subscribe(&session, Seq(after), view, deltas.is_set()).await
            }
            ClientFrame::Unsubscribe { session_id } => {
                self.unsubscribe(session_id.as_deref());
                Ok(None)
            }
            ClientFrame::SendMessage { session_id, text, client_id, attachments, mode } => {
                let input = SendInput { text, client_id, attachments, mode, replaces: None };
                self.send_message(&session_id, input).await
            }
            ClientFrame::EditMessage { session_id, message_id, text, client_id, attachments } => {
                let (mode, replaces) = (SendMode::default(), Some(message_id));
                let input = SendInput { text, client_id, attachments, mode, replaces };
                self.send_message(&session_id, input).await
            }
            ClientFrame::CancelOutput { session_id, unless_asking } => {
                self.cancel(&session_id, unless_asking)
            }
            ClientFrame::ApproveTool { session_id, call_id, decision } => {
                let approval = decision.into_approval(call_id);
                self.ask(&session_id, |reply| Command::Approve { approval, reply }).await
            }
            ClientFrame::UndoApproval { session_id, call_id } => {
                let undo = |reply| Command::UndoApproval { call_id, by: USER.to_owned(), reply };
                self.ask(&session_id, undo).await
            }
            ClientFrame::RevokeGrant { session_id, grant_id } => {
                self.revoke_grant(&session_id, grant_id).await
            }
            ClientFrame::Continue { session_id } => {
                self.ask(&session_id, |reply| Command::Continue { reply }).await
            }
            ClientFrame::Retry { session_id } => {
                let (of, reason) = (None, RewindReason::Retry);
                self.ask(&session_id, |reply| Command::Retry { of, reason, reply }).await
            }
            ClientFrame::EditQueued { session_id, message_id, text } => {
                self.change_queued(&session_id, message_id, queue::words(text)?).await
            }
            ClientFrame::MoveQueued { session_id, message_id, position } => {
                self.change_queued(&session_id, message_id, QueuedChange::Position(position)).await
            }
            ClientFrame::DropQueued { session_id, message_id } => {
                self.change_queued(&session_id, message_id, QueuedChange::Dropped).await
            }
            ClientFrame::SteerQueued { session_id, message_id } => {
                self.steer_queued(&session_id, message_id).await
            }
            ClientFrame::ReleaseQueue { session_id } => {
                self.ask(&session_id, |reply| Command::ReleaseQueue { reply }).await
            }
            ClientFrame::ClearQueue { session_id } => {
                self.ask(&session_id, |reply| Command::ClearQueue { reply }).await
            }
        }
    }

    /// Subscribes the connection to the records of a session, or to patches for its page.
    /// `subscribed` is sent first. A second subscription replaces the first.
    async fn subscribe(
        &mut self,
        session: &str,
        seen: Seq,
        view: ViewKind,
        deltas: bool,
    ) -> Result<Option<Notice>, HttpError> {
        let id = parse(session)?;
        let SocketState { store, hub, metrics, views, .. } = &self.server;
        let head = store.head(&id).await?.ok_or_else(|| HttpError::no_session(session))?;
        let (session, outbox) = (id.clone(), self.outbox.clone());
        let task = match view {
            ViewKind::Html => {
                let (store, views) = (store.clone(), views.clone());
                self.watches.spawn(HtmlSubscription { store, views, session, outbox }.run(seen))
            }
            ViewKind::Records if seen > head => {
                let message = format!("the log ends at {head}: subscribe again from the start");
                return Err(HttpError::invalid(message));
            }
            ViewKind::Records => {
                let stream = RecordStream::after(store, hub, &session, seen);
                let stream = if deltas { stream } else { stream.without_covered_deltas() };
                let metrics = Arc::clone(metrics);
                self.watches.spawn(send_records(session, stream, metrics, outbox))
            }
        };
        self.watch(id.clone(), task);
        Ok(Some(Notice::Subscribed { session_id: id, head }))
    }

    fn watch(&mut self, session: SessionId, task: AbortHandle) {
        if let Some(before) = self.watched.insert(session, task) {
            before.abort();
        }
    }

    fn unsubscribe(&mut self, session: Option<&str>) {
        let task = match session {
            Some(session) => self.watched.remove(session),
            None => self.watches_list.take(),
        };
        task.inspect(AbortHandle::abort);
    }

    fn watch_list(&mut self, view: ViewKind, part: ListPart, version: Option<String>) {
        let (changes, outbox) = (self.server.hub.watch_list(), self.outbox.clone());
        let task = match view {
            ViewKind::Records => self.watches.spawn(send_list_changes(changes, outbox)),
            ViewKind::Html => {
                let (pages, hub) = (self.server.pages.clone(), Arc::clone(&self.server.hub));
                self.watches.spawn(draw_list(pages, hub, part, version, changes, outbox))
            }
        };
        if let Some(before) = self.watches_list.replace(task) {
            before.abort();
        }
    }

    async fn send_message(
        &self,
        session: &str,
        input: SendInput,
    ) -> Result<Option<Notice>, HttpError> {
        let client_id = input.client_id.clone();
        let receipt =
            input.send_to(&self.server.store, &self.server.sessions, &parse(session)?).await?;
        Ok(Some(ack(client_id, receipt)))
    }

    async fn change_queued(
        &self,
        session: &str,
        message_id: MessageId,
        change: QueuedChange,
    ) -> Result<Option<Notice>, HttpError> {
        self.ask(session, |reply| Command::ChangeQueued { message_id, change, reply }).await
    }

    async fn steer_queued(
        &self,
        session: &str,
        message_id: MessageId,
    ) -> Result<Option<Notice>, HttpError> {
        let steer = |reply| Command::SteerQueued { message_id, reply };
        let receipt = self.server.sessions.ask(&parse(session)?, steer).await?;
        Ok(Some(ack(None, receipt)))
    }

    /// Cancels the active run of a session without waiting, because frames must be handled until it
    /// has ended.
    fn cancel(&self, session: &str, unless_asking: bool) -> Result<Option<Notice>, HttpError> {
        let (id, sessions, outbox) =
            (parse(session)?, self.server.sessions.clone(), self.outbox.clone());
        tokio::spawn(async move {
            let by = "user".to_owned();
            let cancel = |reply| Command::Cancel { by, unless_asking, reply };
            let cancelled = sessions.ask(&id, cancel).await;
            if let Err(refused) = cancelled {
                let notice = Notice::error(Some(id.to_string()), refused.into());
                let _ = outbox.send(vec![notice.to_frame()]).await;
            }
        });
        Ok(None)
    }

    async fn revoke_grant(&self, session: &str, id: String) -> Result<Option<Notice>, HttpError> {
        let session = parse(session)?;
        self.server.sessions.revoke_grant(&session, id, USER.to_owned()).await?;
        Ok(None)
    }

    /// Sends a command to a session and waits for the reply. The outcome is in the session's
    /// records.
    async fn ask<T: AnswerType>(
        &self,
        session: &str,
        command: impl FnOnce(ReplyTo<T>) -> Command,
    ) -> Result<Option<Notice>, HttpError> {
        self.server.sessions.ask(&parse(session)?, command).await?;
        Ok(None)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.metrics.watchers.dec();
    }
}

/// Sends these frames and all others that wait for the connection, in one flush.
async fn send_all(
    socket: &mut WebSocket,
    first: Vec<Utf8Bytes>,
    waiting: &mut mpsc::Receiver<Vec<Utf8Bytes>>,
) -> Result<(), axum::Error> {
    let mut next = Some(first);
    while let Some(frames) = next {
        for frame in frames {
            socket.feed(Message::Text(frame)).await?;
        }
        next = waiting.try_recv().ok();
    }
    socket.flush().await
}

async fn close((code, reason): (u16, &'static str), socket: &mut WebSocket) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, socket.send(Message::Close(Some(frame)))).await;
}

/// Sends changes of the session list to a client. After missed changes it sends the newer ones; the
/// client can request the list.
async fn send_list_changes(mut changes: Receiver<Arc<ListChange>>, outbox: Outbox) {
    loop {
        let frame = match changes.recv().await {
            Ok(change) => list_notice(&change).to_frame(),
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        if outbox.send(vec![frame]).await.is_err() {
            return;
        }
    }
}

fn list_notice(change: &ListChange) -> Notice {
    match change {
        ListChange::Gone { id } => Notice::SessionDeleted { id: id.clone() },
        ListChange::Changed { id, summary, head } => {
            Notice::Session(SessionObject::new(id.clone(), summary, *head))
        }
    }
}

fn ack(client_id: Option<ClientId>, receipt: Receipt) -> Notice {
    let Receipt { message_id, state } = receipt;
    Notice::Ack { client_id, message_id, state }
}

fn parse(session: &str) -> Result<SessionId, HttpError> {
    SessionId::parse(session).ok_or_else(|| HttpError::no_session(session))
}

fn refusal(error: HttpError) -> Vec<Utf8Bytes> {
    vec![Notice::error(None, error).to_frame()]
}
