//! The history that an agent gets with a message, read from the log.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use formats::openai::{self, Files, Reader};
use serde_json::Value;
use store::Store;
use transcript::{Attachment, Record, SessionId, Transcript};

use crate::draw_pool::in_place;

/// Part and form of the conversation that an agent needs as its history.
pub(crate) enum HistoryScope {
    /// The conversation from the last user message on. The cost of reading it does not depend on
    /// the length of the session.
    LastMessage {
        with_files: bool,
    },
    /// The whole conversation as one text, for an agent that has not been part of it.
    AsOneText,
    Everything {
        agent: String,
        model: Option<String>,
        system: Option<String>,
        sees: bool,
    },
}

/// Reads the history of a conversation for an agent from the log, as chat messages.
pub(crate) async fn read(
    store: &Store,
    session: &SessionId,
    history_scope: HistoryScope,
) -> Result<Vec<Value>, store::Error> {
    let is_short = matches!(history_scope, HistoryScope::LastMessage { .. });
    let records = store.history(session, is_short).await?;
    let transcript = in_place(|| {
        let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
        let mut transcript = Transcript::whole();
        transcript.extend(&records);
        transcript
    });
    let (without_files, needed) = in_place(|| messages_without_files(&transcript, &history_scope));
    if needed.is_empty() {
        return Ok(without_files);
    }
    let mut files = HashMap::new();
    for hash in needed {
        // An unreadable file must not fail the run.
        match store.blob(&hash).await {
            Ok(Some(bytes)) => drop(files.insert(hash, bytes)),
            Ok(None) => tracing::warn!(%session, %hash, "a file of a message is missing"),
            Err(error) => tracing::warn!(%session, %hash, %error, "cannot read a file"),
        }
    }
    let read = |file: &Attachment| files.get(&file.blob).cloned();
    Ok(in_place(|| messages(&transcript, &history_scope, &read)))
}

/// Returns the chat messages without file contents, and the hashes of the files that the messages
/// need.
fn messages_without_files(
    transcript: &Transcript,
    history_scope: &HistoryScope,
) -> (Vec<Value>, BTreeSet<String>) {
    let needed = RefCell::new(BTreeSet::new());
    let note = |file: &Attachment| {
        needed.borrow_mut().insert(file.blob.clone());
        None
    };
    let messages = messages(transcript, history_scope, &note);
    (messages, needed.into_inner())
}

type ReadFile<'a> = &'a dyn Fn(&Attachment) -> Option<Vec<u8>>;

fn messages(
    transcript: &Transcript,
    history_scope: &HistoryScope,
    read: ReadFile<'_>,
) -> Vec<Value> {
    let conversation = |files| {
        openai::conversation(transcript, &Reader { agent: "", model: None, system: None, files })
    };
    match history_scope {
        HistoryScope::LastMessage { with_files: true } => {
            conversation(Files::GoAlong { sees: true, read })
        }
        HistoryScope::LastMessage { with_files: false } => conversation(Files::LeftOut),
        HistoryScope::AsOneText => {
            openai::history_in_one_message(&conversation(Files::GoAlong { sees: true, read }))
        }
        HistoryScope::Everything { agent, model, system, sees } => {
            let reader = Reader {
                agent,
                model: model.as_deref(),
                system: system.as_deref(),
                files: Files::GoAlong { sees: *sees, read },
            };
            openai::history(transcript, &reader)
        }
    }
}
