//! The reads of a store: each runs as one transaction on a blocking thread.

use std::sync::Arc;

use tokio::sync::Semaphore;
use transcript::{ClientId, MessageId, Millis, Queue, ResponseId, Seq, SessionId, Summary};

use crate::log::conversation::{self, Conversation, StoredRun};
use crate::log::{message, read, session};
use crate::readers::Readers;
use crate::sql::Db;
use crate::{Error, Listed, MessageKind, MessageRow, Page, ReadRange, Store, Stored, Window};

impl Store {
    /// Returns the sequence number of a session's last record; `None` if there is no such session.
    pub async fn head(&self, session: &SessionId) -> Result<Option<Seq>, Error> {
        self.read_session(session, |db, _, key| session::head(db, key).map(Some)).await
    }

    /// Reads a range of a session's log. The page is empty if there is no such session.
    pub async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Page, Error> {
        let session = session.clone();
        self.read_db(move |db| read::read(db, &session, range)).await
    }

    /// Returns the summary and the head of a session; `None` if there is no such session.
    pub async fn summary(&self, session: &SessionId) -> Result<Option<(Summary, Seq)>, Error> {
        self.read_session(session, |db, _, key| session::summary_and_head(db, key).map(Some)).await
    }

    /// Returns the summaries and heads of several sessions, in the order of `ids`. Sessions that do
    /// not exist are left out.
    pub async fn summaries(&self, ids: Vec<SessionId>) -> Result<Vec<Listed>, Error> {
        self.read_db(move |db| session::summaries(db, ids)).await
    }

    /// Returns up to `limit` sessions, the last changed first: archived ones, others, or both if
    /// `archived` is `None`. `before` is the `updated_at` and the id of the last session on the
    /// previous page.
    pub async fn sessions(
        &self,
        archived: Option<bool>,
        limit: usize,
        before: Option<(Millis, SessionId)>,
    ) -> Result<Vec<Listed>, Error> {
        self.read_db(move |db| session::list(db, archived, limit, before.as_ref())).await
    }

    /// Returns the last changed session of an agent, other than `except` and archived ones; `None`
    /// if there is none.
    pub async fn latest_session_of(
        &self,
        agent: &str,
        except: &SessionId,
    ) -> Result<Option<SessionId>, Error> {
        let agent = agent.to_owned();
        let except = except.clone();
        self.read_db(move |db| session::latest_of(db, &agent, &except)).await
    }

    /// Returns the sessions with an open run, an unanswered message, a queue, or an open exchange
    /// with another agent. Damaged sessions are left out.
    pub async fn needing_attention(&self) -> Result<Vec<Listed>, Error> {
        self.read_db(session::needing_attention).await
    }

    /// Returns the messages in a window of a session, oldest first, including superseded ones.
    pub async fn messages(
        &self,
        session: &SessionId,
        window: Window,
    ) -> Result<Vec<MessageRow>, Error> {
        self.read_session(session, move |db, _, key| message::window(db, key, window)).await
    }

    /// Returns the window with the oldest `limit` messages that begin after a sequence number.
    pub async fn window_after(
        &self,
        session: &SessionId,
        after: Seq,
        limit: usize,
    ) -> Result<Window, Error> {
        let find = move |db: &Db, _: &_, key| message::window_after(db, key, after, limit);
        self.read_session(session, find).await
    }

    /// Returns the window with the oldest `limit` messages from the given message on. `None` if
    /// there is no such message.
    pub async fn window_from(
        &self,
        session: &SessionId,
        id: &str,
        limit: usize,
    ) -> Result<Option<Window>, Error> {
        let id = id.to_owned();
        self.read_session(session, move |db, _, key| message::window_from(db, key, &id, limit))
            .await
    }

    /// Returns a message by its id, with its place in the log; `None` if there is no such message.
    pub async fn message_row(
        &self,
        session: &SessionId,
        id: &str,
    ) -> Result<Option<MessageRow>, Error> {
        let id = id.to_owned();
        self.read_session(session, move |db, _, key| message::by_id(db, key, &id)).await
    }

    /// Returns the last message of a kind that is not superseded; `None` if there is none.
    pub async fn last_of(
        &self,
        session: &SessionId,
        kind: MessageKind,
    ) -> Result<Option<MessageRow>, Error> {
        self.read_session(session, move |db, _, key| message::last_of(db, key, kind)).await
    }

    /// Returns the number of messages of a kind that begin before a sequence number and are not
    /// superseded.
    pub async fn count_before(
        &self,
        session: &SessionId,
        kind: MessageKind,
        before: Seq,
    ) -> Result<u64, Error> {
        let count = move |db: &Db, _: &_, key| message::count_before(db, key, kind, before);
        self.read_session(session, count).await
    }

    /// Returns the records of exactly these messages, in order, without deltas that later records
    /// cover.
    pub async fn records_of(
        &self,
        session: &SessionId,
        rows: &[MessageRow],
    ) -> Result<Vec<Stored>, Error> {
        let rows = rows.to_vec();
        self.read_session(session, move |db, id, key| message::records(db, id, key, &rows)).await
    }

    /// Returns the records of one message of a session. Empty if there is no such message.
    pub async fn records_of_message(
        &self,
        session: &SessionId,
        kind: MessageKind,
        id: &str,
    ) -> Result<Vec<Stored>, Error> {
        let message = id.to_owned();
        self.read_session(session, move |db, id, key| {
            let row = message::of_kind(db, key, kind, &message)?;
            message::records(db, id, key, row.as_slice())
        })
        .await
    }

    /// Returns the records of a run. Empty if there is no such run.
    pub async fn records_of_run(
        &self,
        session: &SessionId,
        run: &ResponseId,
    ) -> Result<Vec<Stored>, Error> {
        self.records_of_message(session, MessageKind::Answer, run.as_str()).await
    }

    /// Returns the records of the last message of a kind that is not superseded.
    pub async fn records_of_last(
        &self,
        session: &SessionId,
        kind: MessageKind,
    ) -> Result<Vec<Stored>, Error> {
        self.read_session(session, move |db, id, key| {
            let row = message::last_of(db, key, kind)?;
            message::records(db, id, key, row.as_slice())
        })
        .await
    }

    /// Returns the records of the message that the record with the sequence number `at` belongs to:
    /// those of its run, or the record alone. Empty if there is no such record, `None` if there is
    /// no such session.
    pub async fn records_around(
        &self,
        session: &SessionId,
        at: Seq,
    ) -> Result<Option<Vec<Stored>>, Error> {
        let read = move |db: &Db, id: &SessionId, key| {
            conversation::records_around(db, id, key, at).map(Some)
        };
        self.read_session(session, read).await
    }

    /// Returns the records of all messages that are not superseded; with `from_last`, of the last
    /// message that a user or an agent sent and of those after it.
    pub async fn history(
        &self,
        session: &SessionId,
        from_last: bool,
    ) -> Result<Vec<Stored>, Error> {
        self.read_session(session, move |db, id, key| conversation::history(db, id, key, from_last))
            .await
    }

    /// Returns a run with the summary of its session; `None` if there is no such session.
    pub async fn run(
        &self,
        session: &SessionId,
        run: &ResponseId,
    ) -> Result<Option<StoredRun>, Error> {
        let run = run.clone();
        self.read_session(session, move |db, id, key| {
            conversation::run(db, id, key, &run).map(Some)
        })
        .await
    }

    /// Returns the id of the message that a client has sent with an idempotency key; `None` if
    /// there is none.
    pub async fn message_of_client_id(
        &self,
        session: &SessionId,
        client_id: &ClientId,
    ) -> Result<Option<MessageId>, Error> {
        let client_id = client_id.clone();
        let find = move |db: &Db, _: &_, key| session::message_of_client_id(db, key, &client_id);
        self.read_session(session, find).await
    }

    /// Returns the sequence number from which the log has to be replayed to get the queue: that of
    /// the first message that was queued since the queue was last empty. `None` if it is empty.
    pub async fn queue_start(&self, session: &SessionId) -> Result<Option<Seq>, Error> {
        self.read_session(session, |db, _, key| session::queue_start(db, key)).await
    }

    /// Returns a window of messages with everything that a page shows of them. `None` if there is
    /// no such session. The cost does not depend on the length of the session.
    pub async fn conversation(
        &self,
        id: &SessionId,
        window: Window,
    ) -> Result<Option<Conversation>, Error> {
        Ok(self.conversations(id, [window]).await?.map(|[it]| it))
    }

    /// Returns several windows of a session's messages, read in one transaction. `None` if there is
    /// no such session.
    pub async fn conversations<const N: usize>(
        &self,
        id: &SessionId,
        windows: [Window; N],
    ) -> Result<Option<[Conversation; N]>, Error> {
        let read = move |db: &Db, id: &_, key| conversation::windows(db, id, key, windows);
        self.read_session(id, read).await
    }

    /// Returns the queue of a session. Empty if there is no such session.
    pub async fn queue(&self, id: &SessionId) -> Result<Queue, Error> {
        self.read_session(id, conversation::queue).await
    }

    /// Runs a read about one session as one transaction. Returns the default value if there is no
    /// such session.
    pub(crate) async fn read_session<T: Default + Send + 'static>(
        &self,
        session: &SessionId,
        read: impl FnOnce(&Db, &SessionId, i64) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let session = session.clone();
        self.read_db(move |db| in_session(db, &session, read)).await
    }

    /// Runs a read as one transaction on a blocking thread. Only a few run at the same time.
    pub(crate) async fn read_db<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Db) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.on_reader_thread(|store| store.inner.readers.read(|db| read(db))).await
    }

    /// Runs blocking work on a blocking thread, with the permit of a reader.
    pub(crate) async fn on_reader_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        let store = self.clone();
        with_permit(&self.inner.reader_permits, move || work(&store)).await
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.inner.readers
    }
}

/// Runs a read about one session within an open transaction. Returns the default value if there is
/// no such session.
pub(crate) fn in_session<T: Default>(
    db: &Db,
    session: &SessionId,
    read: impl FnOnce(&Db, &SessionId, i64) -> Result<T, Error>,
) -> Result<T, Error> {
    match session::key(db, session)? {
        Some(key) => read(db, session, key),
        None => Ok(T::default()),
    }
}

/// Runs blocking work on a blocking thread, once there is a permit. The work holds the permit to
/// its end even if the caller is dropped, so that abandoned reads cannot add up.
pub(crate) async fn with_permit<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    // The semaphore is never closed; without a permit the work would be slower, not wrong.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    done.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}
