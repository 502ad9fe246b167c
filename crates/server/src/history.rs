//! What an agent or its session's task must know of what was said before, made from the log.

use serde_json::Value;
use store::{MessageKind, MessageRow, ReadRange, Store, Window};
use transcript::{Queue, Record, Seq, SessionId, Summary, Transcript};

const PAGE: usize = 50;

/// From the last message that was said on: for agents that look no further back. Costs what those
/// messages cost, however long the session.
pub(crate) async fn since_last_message(
    store: &Store,
    session: &SessionId,
) -> Result<Vec<Value>, store::Error> {
    let session = session.clone();
    let read = store.off_thread(move |store| {
        let rows = rows_since_last_message(store, &session)?;
        let records = store.records_of(&session, &rows)?;
        let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
        let mut transcript = Transcript::whole();
        transcript.extend(&records);
        Ok(formats::openai::history(&transcript))
    });
    read.await
}

fn rows_since_last_message(
    store: &Store,
    session: &SessionId,
) -> Result<Vec<MessageRow>, store::Error> {
    let mut rows: Vec<MessageRow> = Vec::new();
    loop {
        let before = rows.first().map(|row| row.first);
        let mut page = store.messages(session, Window { before, limit: PAGE })?;
        let is_last = page.len() < PAGE;
        page.retain(|row| !row.superseded);
        let said = page.iter().rposition(|row| row.kind == MessageKind::Said);
        page.drain(..said.unwrap_or(0));
        page.append(&mut rows);
        rows = page;
        if said.is_some() || is_last {
            return Ok(rows);
        }
    }
}

/// The queue is what the records since its oldest message make of it.
pub(crate) fn queue(
    store: &Store,
    session: &SessionId,
    summary: &Summary,
) -> Result<Queue, store::Error> {
    let mut queue = Queue { held: summary.queue_held.then(String::new), ..Queue::default() };
    let Some(first) = store.queue_start(session)? else { return Ok(queue) };
    let mut after = Seq(first.0 - 1);
    loop {
        let range = ReadRange { after, up_to: None, limit: 1000, deltas: false };
        let page = store.read(session, range)?;
        let Some(last) = page.records.last() else { return Ok(queue) };
        after = last.seq;
        for stored in &page.records {
            queue.apply(&stored.record());
        }
    }
}
