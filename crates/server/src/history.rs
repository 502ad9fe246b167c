//! What an agent must know of what was said before, made from the log.

use formats::openai::{self, Files, Reader};
use serde_json::Value;
use store::{MessageKind, MessageRow, Store, Window};
use transcript::{Attachment, Record, SessionId, Transcript};

const PAGE: usize = 50;

/// How far back an agent looks.
pub(crate) enum LookBack {
    /// From the last message that was said on. Costs what those messages cost, however long the
    /// session.
    LastMessage {
        with_files: bool,
    },
    /// Everything, told to one who was not there.
    Anew,
    Everything {
        agent: String,
        model: Option<String>,
        system: Option<String>,
        sees: bool,
    },
}

/// What the agent is told of the conversation, as the log has it now.
pub(crate) async fn read(
    store: &Store,
    session: &SessionId,
    look_back: LookBack,
) -> Result<Vec<Value>, store::Error> {
    let session = session.clone();
    let read = store.off_thread(move |store| {
        let is_short = matches!(look_back, LookBack::LastMessage { .. });
        let rows = rows(store, &session, !is_short)?;
        let records = store.records_of(&session, &rows)?;
        let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
        let mut transcript = Transcript::whole();
        transcript.extend(&records);
        let read = |file: &Attachment| store.blob(&file.blob).ok().flatten();
        let with_files = Files::GoAlong { sees: true, read: &read };
        let as_said = |files| {
            openai::conversation(
                &transcript,
                &Reader { agent: "", model: None, system: None, files },
            )
        };
        Ok(match look_back {
            LookBack::LastMessage { with_files: true } => as_said(with_files),
            LookBack::LastMessage { with_files: false } => as_said(Files::LeftOut),
            LookBack::Anew => openai::told_anew(&as_said(with_files)),
            LookBack::Everything { agent, model, system, sees } => {
                let reader = Reader {
                    agent: &agent,
                    model: model.as_deref(),
                    system: system.as_deref(),
                    files: Files::GoAlong { sees, read: &read },
                };
                openai::history(&transcript, &reader)
            }
        })
    });
    read.await
}

/// Of messages that count: all, or those since something was said last.
fn rows(
    store: &Store,
    session: &SessionId,
    everything: bool,
) -> Result<Vec<MessageRow>, store::Error> {
    let mut rows: Vec<MessageRow> = Vec::new();
    let mut before = None;
    loop {
        let mut page = store.messages(session, Window { before, limit: PAGE })?;
        let is_last = page.len() < PAGE;
        before = page.first().map(|row| row.first);
        page.retain(|row| !row.superseded);
        let is_start = |row: &MessageRow| !everything && row.kind == MessageKind::Said;
        let said = page.iter().rposition(is_start);
        page.drain(..said.unwrap_or(0));
        page.append(&mut rows);
        rows = page;
        if said.is_some() || is_last {
            return Ok(rows);
        }
    }
}
