//! A page of a session: everything that is shown of it, all of one moment.

use rusqlite::Connection;
use transcript::{Queue, Seq, SessionId, Summary};

use crate::message::{self, MessageRow, Window};
use crate::read::{self, Stored};
use crate::{Error, Store, session};

#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    pub summary: Summary,
    pub head: Seq,
    /// Oldest first, superseded ones included.
    pub rows: Vec<MessageRow>,
    /// Of those messages.
    pub records: Vec<Stored>,
    /// Of all messages of the session.
    pub count: u64,
    pub queue: Queue,
}

impl Store {
    /// `None` if there is no such session. Costs what its messages cost, however long the session.
    pub fn conversation(
        &self,
        id: &SessionId,
        window: Window,
    ) -> Result<Option<Conversation>, Error> {
        Ok(self.conversations(id, [window])?.map(|[it]| it))
    }

    /// Several windows of one moment.
    pub fn conversations<const N: usize>(
        &self,
        id: &SessionId,
        windows: [Window; N],
    ) -> Result<Option<[Conversation; N]>, Error> {
        self.in_session(id, |db, key| {
            let read = windows.map(|window| conversation(db, id, key, window));
            let read: Vec<Conversation> = read.into_iter().collect::<Result<_, _>>()?;
            Ok(read.try_into().ok())
        })
    }

    /// What waits in a session. Empty if there is no such session.
    pub fn queue(&self, id: &SessionId) -> Result<Queue, Error> {
        self.in_session(id, |db, key| queue(db, id, key))
    }
}

fn conversation(
    db: &Connection,
    id: &SessionId,
    key: i64,
    window: Window,
) -> Result<Conversation, Error> {
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

/// What the records about it, since it was last empty, make of it.
fn queue(db: &Connection, id: &SessionId, key: i64) -> Result<Queue, Error> {
    let mut queue = Queue::default();
    let Some(first) = session::queue_start(db, key)? else { return Ok(queue) };
    for stored in read::about_queue(db, id, key, first)? {
        queue.apply(&stored.record());
    }
    Ok(queue)
}
