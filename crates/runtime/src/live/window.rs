//! Reads a range of a session's messages as a transcript.

use store::{Conversation, ReadRange, Store, Stored, Window};
use transcript::{Record, Seq, SessionId, Transcript};

use crate::draw_pool::in_place;

/// A window of a session's messages as a transcript.
#[derive(Clone)]
pub struct Opened {
    pub transcript: Transcript,
    /// Sequence number of the first record of the first message, if there are messages before that
    /// message.
    pub earlier: Option<Seq>,
    /// Sequence number of the first record of the last message, if there are messages after that
    /// message.
    pub later: Option<Seq>,
}

const PAGE: usize = 1000;

/// Reads a window of a session's messages with shortened bodies. `None` if there is no such
/// session.
pub async fn read(
    store: &Store,
    session: &SessionId,
    window: Window,
) -> Result<Option<Opened>, store::Error> {
    let found = store.conversation(session, window).await?;
    Ok(found.map(|it| in_place(|| open(it, Transcript::default()))))
}

/// Reads two windows of a session's messages at the same state of the log, with shortened bodies.
pub async fn read_both(
    store: &Store,
    session: &SessionId,
    windows: [Window; 2],
) -> Result<Option<[Opened; 2]>, store::Error> {
    let found = store.conversations(session, windows).await?;
    Ok(found.map(|both| in_place(|| both.map(|it| open(it, Transcript::default())))))
}

/// Reads a window of a session's messages with complete bodies. `None` if there is no such session.
pub async fn read_whole(
    store: &Store,
    session: &SessionId,
    window: Window,
) -> Result<Option<Opened>, store::Error> {
    let found = store.conversation(session, window).await?;
    Ok(found.map(|it| in_place(|| open(it, Transcript::whole()))))
}

/// Reads a window of a session's messages as they were at the record `at`, with complete bodies.
/// `None` if there is no such session.
pub async fn read_whole_at(
    store: &Store,
    session: &SessionId,
    at: Seq,
    window: Window,
) -> Result<Option<Opened>, store::Error> {
    let all = read_all(store, session, Some(at), Transcript::whole()).await?;
    Ok(all.map(|it| in_place(|| cut(it, window))))
}

/// Cuts a window of messages out of a transcript that contains the whole session.
pub fn cut(mut transcript: Transcript, Window { before, limit }: Window) -> Opened {
    let n = transcript.messages.len();
    transcript.messages.retain(|it| before.is_none_or(|before| it.first < before));
    let (n_left, n_earlier) =
        (transcript.messages.len(), transcript.messages.len().saturating_sub(limit));
    if n_earlier > 0 {
        transcript.drop_earlier(n_earlier);
    }
    let messages = &transcript.messages;
    let earlier = messages.first().filter(|_| n_earlier > 0).map(|it| it.first);
    let later = messages.last().filter(|_| n_left < n).map(|it| it.first);
    Opened { transcript, earlier, later }
}

fn open(conversation: Conversation, mut transcript: Transcript) -> Opened {
    let Conversation { summary, head, rows, records, count, queue } = conversation;
    let records: Vec<Record> = records.iter().map(Stored::record).collect();
    transcript.extend(&records);
    (transcript.queue, transcript.summary, transcript.head) = (queue, summary, head);
    transcript.supersede(rows.iter().filter(|row| row.superseded).map(|row| row.id.as_str()));
    let earlier = rows.first().filter(|first| first.number > 1).map(|first| first.first);
    if earlier.is_some() {
        transcript.drop_earlier(0);
    }
    let later = rows.last().filter(|last| last.number < count).map(|last| last.first);
    Opened { transcript, earlier, later }
}

/// Reads the whole transcript of a session as it was at the record `at`, or as it is now. `None` if
/// there is no such session.
pub async fn read_all(
    store: &Store,
    session: &SessionId,
    at: Option<Seq>,
    mut transcript: Transcript,
) -> Result<Option<Transcript>, store::Error> {
    let mut after = Seq(0);
    loop {
        let range = ReadRange { after, up_to: at, limit: PAGE, deltas: false };
        let page = store.read(session, range).await?;
        if page.head == Seq(0) {
            return Ok(None);
        }
        let Some(last) = page.records.last() else { break };
        after = last.seq;
        in_place(|| {
            for stored in &page.records {
                transcript.apply(&stored.record());
            }
        });
    }
    Ok(Some(transcript))
}
