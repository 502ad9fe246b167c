//! What an agent must know of what was said before, made from the log.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use formats::openai::{self, Files, Reader};
use serde_json::Value;
use store::Store;
use transcript::{Attachment, Record, SessionId, Transcript};

use crate::draw_pool::in_place;

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
    let is_short = matches!(look_back, LookBack::LastMessage { .. });
    let records = store.history(session, is_short).await?;
    let transcript = in_place(|| {
        let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
        let mut transcript = Transcript::whole();
        transcript.extend(&records);
        transcript
    });
    let (without_files, needed) = in_place(|| messages_without_files(&transcript, &look_back));
    if needed.is_empty() {
        return Ok(without_files);
    }
    let mut files = HashMap::new();
    for hash in needed {
        // A file that cannot be read is no reason to fail the run.
        let bytes = store.blob(&hash).await.ok().flatten();
        files.extend(bytes.map(|bytes| (hash, bytes)));
    }
    let read = |file: &Attachment| files.get(&file.blob).cloned();
    Ok(in_place(|| messages(&transcript, &look_back, &read)))
}

/// The messages without the contents of files, and the hashes of the files that they need.
fn messages_without_files(
    transcript: &Transcript,
    look_back: &LookBack,
) -> (Vec<Value>, BTreeSet<String>) {
    let needed = RefCell::new(BTreeSet::new());
    let note = |file: &Attachment| {
        needed.borrow_mut().insert(file.blob.clone());
        None
    };
    let messages = messages(transcript, look_back, &note);
    (messages, needed.into_inner())
}

type ReadFile<'a> = &'a dyn Fn(&Attachment) -> Option<Vec<u8>>;

fn messages(transcript: &Transcript, look_back: &LookBack, read: ReadFile<'_>) -> Vec<Value> {
    let conversation = |files| {
        openai::conversation(transcript, &Reader { agent: "", model: None, system: None, files })
    };
    match look_back {
        LookBack::LastMessage { with_files: true } => {
            conversation(Files::GoAlong { sees: true, read })
        }
        LookBack::LastMessage { with_files: false } => conversation(Files::LeftOut),
        LookBack::Anew => openai::told_anew(&conversation(Files::GoAlong { sees: true, read })),
        LookBack::Everything { agent, model, system, sees } => {
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
