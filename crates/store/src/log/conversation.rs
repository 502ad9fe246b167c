//! Combined reads: everything that a page shows, read at the same moment.

use std::collections::VecDeque;

use transcript::{Queue, ResponseId, Seq, SessionId, Summary};

use crate::Error;
use crate::log::message::{self, MessageKind, MessageRow, Window};
use crate::log::read::{self, ReadRange, Stored};
use crate::log::session;
use crate::sql::Db;

/// Number of message rows that `history` reads at a time.
const HISTORY_PAGE: usize = 50;

/// A window of a session's messages with everything that a page shows of them, read in one
/// transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Summary of the session.
    pub summary: Summary,
    /// Sequence number of the session's last record.
    pub head: Seq,
    /// Messages in the window, oldest first, including superseded ones.
    pub rows: Vec<MessageRow>,
    /// Records of the messages in the window.
    pub records: Vec<Stored>,
    /// Number of all messages of the session.
    pub count: u64,
    /// Queued messages of the session.
    pub queue: Queue,
}

/// A run and the data of its session that the run's page shows, read in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// Summary of the session.
    pub summary: Summary,
    /// Sequence number of the session's last record.
    pub head: Seq,
    /// Records of the run; empty if there is no such run.
    pub records: Vec<Stored>,
}

pub(crate) fn run(db: &Db, id: &SessionId, key: i64, run: &ResponseId) -> Result<StoredRun, Error> {
    let (summary, head) = session::summary_and_head(db, key)?;
    let row = message::of_kind(db, key, MessageKind::Answer, run.as_str())?;
    Ok(StoredRun { summary, head, records: message::records(db, id, key, row.as_slice())? })
}

pub(crate) fn records_around(
    db: &Db,
    id: &SessionId,
    key: i64,
    at: Seq,
) -> Result<Vec<Stored>, Error> {
    let after = Seq(at.0.saturating_sub(1));
    let range = ReadRange { after, up_to: None, limit: 1, deltas: true };
    let mut records = read::read(db, id, range)?.records;
    records.retain(|it| it.seq == at);
    let run = records.first().map(Stored::record).filter(|it| !it.event.is_session_event());
    let Some(run) = run.and_then(|it| it.response_id) else { return Ok(records) };
    let row = message::of_kind(db, key, MessageKind::Answer, run.as_str())?;
    message::records(db, id, key, row.as_slice())
}

pub(crate) fn history(
    db: &Db,
    id: &SessionId,
    key: i64,
    from_last: bool,
) -> Result<Vec<Stored>, Error> {
    let mut rows = VecDeque::new();
    let mut before = None;
    loop {
        let page = message::window(db, key, Window { before, limit: HISTORY_PAGE })?;
        let is_last = page.len() < HISTORY_PAGE;
        before = page.first().map(|row| row.first);
        for row in page.into_iter().rev().filter(|row| !row.superseded) {
            let is_start = from_last && row.kind == MessageKind::Said;
            rows.push_front(row);
            if is_start {
                return message::records(db, id, key, rows.make_contiguous());
            }
        }
        if is_last {
            return message::records(db, id, key, rows.make_contiguous());
        }
    }
}

pub(crate) fn windows<const N: usize>(
    db: &Db,
    id: &SessionId,
    key: i64,
    windows: [Window; N],
) -> Result<Option<[Conversation; N]>, Error> {
    let read = windows.map(|window| conversation(db, id, key, window));
    let read: Vec<Conversation> = read.into_iter().collect::<Result<_, _>>()?;
    Ok(read.try_into().ok())
}

fn conversation(db: &Db, id: &SessionId, key: i64, window: Window) -> Result<Conversation, Error> {
    let summary = session::summary(db, key)?;
    let rows = message::window(db, key, window)?;
    Ok(Conversation {
        head: session::head(db, key)?,
        records: message::records(db, id, key, &rows)?,
        count: message::count(db, key)?,
        queue: queue(db, id, key)?,
        rows,
        summary,
    })
}

/// Returns the queue of a session, by replaying the records about it since it was last empty.
pub(crate) fn queue(db: &Db, id: &SessionId, key: i64) -> Result<Queue, Error> {
    let mut queue = Queue::default();
    let Some(first) = session::queue_start(db, key)? else { return Ok(queue) };
    for stored in read::about_queue(db, id, key, first)? {
        queue.apply(&stored.record());
    }
    Ok(queue)
}
