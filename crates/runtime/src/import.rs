//! Imports files as sessions: Callboard's own logs, conversations in foreign formats (`whole.rs`)
//! and conversations that programs keep on disk.
//!
//! The id of the session consists of the program's name and the conversation's id. Only complete turns
//! are imported. They are identified by their ids, so turns that are already present are not added
//! again. If the conversation was continued in Callboard, nothing is added, because the log has more
//! than the file.

mod blocking;
mod data_url;
mod format;
mod untrusted;
mod whole;

use std::collections::HashSet;

use backends::ProgramKind;
use backends::import::{ConversationFile, Imported, SideFile, Tail, read};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use session::Addition;
use store::{AppendError, ReadRange, Store};
use transcript::{Attachment, Event, Record, ResponseId, Seq, SessionId};

pub use self::blocking::{OBJECTS_MAX, has_too_many_objects, run_blocking};
pub use self::format::{ImportFormat, Kind};
use self::untrusted::strip_all;
pub use self::whole::{
    NotImported, Overrides, Whole, attach, files_of, from_document, from_log, with_summary,
};
use crate::agents::AgentCatalog;
use crate::clock;
use crate::draw_pool::in_place;

const PAGE: usize = 1000;

/// A conversation file of a program, with its side files.
#[derive(Debug)]
pub struct Conversation {
    pub kind: ProgramKind,
    pub text: String,
    pub side_files: Vec<SideFile>,
    /// Whether the conversation file is complete, so that an unfinished turn counts as interrupted.
    /// Otherwise such a turn is left out.
    pub is_final: bool,
}

impl Conversation {
    /// Reads the turns of the conversation. `agent` is the agent that continues it. `None` if the
    /// text does not identify its conversation.
    pub fn read(&self, agent: &str) -> Option<Imported> {
        let Self { kind, text, side_files, is_final } = self;
        let tail = if *is_final { Tail::Close } else { Tail::LeaveOut };
        read(&ConversationFile { kind: *kind, text, side_files, agent }, tail)
    }
}

/// Result of comparing a program's conversation with its session: the action that the import
/// requires.
#[derive(Debug)]
pub enum Plan {
    /// Turns are added to the session. The session is created first if the head in the addition is
    /// zero.
    Add(NewTurns),
    /// Nothing is added, because the session contains all turns already.
    Nothing { session: SessionId },
    /// Nothing is added, because the session was started or continued in Callboard.
    ContinuedHere { session: SessionId },
}

#[derive(Debug)]
/// Turns of a program's conversation that its session does not have yet.
pub struct NewTurns {
    pub session: SessionId,
    pub turns: usize,
    pub addition: Addition,
}

/// Determines how to import a program's conversation. Returns `None` if the text does not identify
/// its conversation, or contains no message yet.
pub async fn plan(
    store: &Store,
    agents: &AgentCatalog,
    conversation: &Conversation,
    name: Option<SessionId>,
) -> Result<Option<Plan>, store::Error> {
    let kind = conversation.kind;
    let agent = agents.of_kind(kind).unwrap_or(kind.word());
    let Some(imported) = in_place(|| conversation.read(agent)) else { return Ok(None) };
    let session = match name {
        Some(name) => Some(name),
        None => linked_session(store, &imported.conversation)
            .await?
            .or_else(|| session_of(kind, &imported.conversation)),
    };
    let Some(session) = session.filter(|_| !imported.turns.is_empty()) else { return Ok(None) };
    let (known, head) = runs(store, &session).await?;
    let ids = imported.turns.iter().map(|it| &it.id).chain(&imported.left_out);
    let ids: HashSet<&ResponseId> = ids.collect();
    if known.iter().any(|it| !ids.contains(it)) {
        return Ok(Some(Plan::ContinuedHere { session }));
    }
    Ok(Some(addition(session, head, agent, imported, &known)))
}

fn addition(
    session: SessionId,
    head: Seq,
    agent: &str,
    imported: Imported,
    known: &HashSet<ResponseId>,
) -> Plan {
    let Imported { turns, cwd, .. } = imported;
    let mut new: Vec<_> = turns.into_iter().filter(|it| !known.contains(&it.id)).collect();
    let turns = new.len();
    let Some(first) = new.iter().flat_map(|it| &it.entries).next() else {
        return Plan::Nothing { session };
    };
    let mut records = Vec::new();
    let mut add = |at, run, event| {
        let seq = Seq(head.0 + records.len() as u64 + 1);
        records.push(Record::new(seq, at, session.clone(), run, event));
    };
    if head == Seq(0) {
        let created = Event::SessionCreated {
            agent: agent.to_owned(),
            workspace: cwd,
            workspace_confirmed: false,
            title: None,
        };
        add(first.at, None, created);
    }
    for entry in new.iter_mut().flat_map(|it| std::mem::take(&mut it.entries)) {
        add(entry.at, entry.response_id, entry.event);
    }
    strip_all(&mut records);
    let addition = Addition { head, records: records.into() };
    Plan::Add(NewTurns { session, turns, addition })
}

impl NewTurns {
    /// Stores the pictures of imported messages as blobs, and replaces their `data:` URLs by the
    /// blobs' hashes.
    pub async fn with_stored_pictures(mut self, store: &Store) -> Result<Self, AppendError> {
        let mut records = self.addition.records.to_vec();
        for record in &mut records {
            let Event::UserMessage { attachments, .. } = &mut record.event else { continue };
            for attachment in std::mem::take(attachments) {
                // A message is kept even if its picture cannot be read.
                let Some(picture) = decode_picture(&attachment.blob) else { continue };
                let size = picture.len() as u64;
                let blob = store.put_blob(picture, clock::now()).await?;
                attachments.push(Attachment { blob, size, ..attachment });
            }
        }
        self.addition.records = records.into();
        Ok(self)
    }
}

/// Decodes a picture in a Base64 `data:` URL. `None` if the URL or its Base64 is invalid.
fn decode_picture(address: &str) -> Option<Vec<u8>> {
    let (_, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    BASE64_STANDARD.decode(data).ok()
}

/// Returns the id of the session for a program's conversation. `None` if the conversation's id is
/// not valid in a session id.
fn session_of(kind: ProgramKind, conversation: &str) -> Option<SessionId> {
    SessionId::parse(&format!("{}-{conversation}", kind.word()))
}

/// Returns the id of the session that is linked to this conversation of a program. `None` if there
/// is none.
async fn linked_session(
    store: &Store,
    conversation: &str,
) -> Result<Option<SessionId>, store::Error> {
    let mut before = None;
    loop {
        let page = store.sessions(None, PAGE, before).await?;
        let Some((id, summary, _)) = page.last() else { return Ok(None) };
        before = Some((summary.updated_at, id.clone()));
        let is_linked = |(_, summary, _): &store::Listed| {
            summary.linked.as_ref().is_some_and(|it| it.cli_session_id == conversation)
        };
        if let Some((id, ..)) = page.into_iter().find(is_linked) {
            return Ok(Some(id));
        }
    }
}

/// Returns the ids of a session's runs, and the sequence number of its last record.
async fn runs(
    store: &Store,
    session: &SessionId,
) -> Result<(HashSet<ResponseId>, Seq), store::Error> {
    let (mut runs, mut after) = (HashSet::new(), Seq(0));
    loop {
        let range = ReadRange { after, up_to: None, limit: PAGE, deltas: false };
        let page = store.read(session, range).await?;
        let Some(last) = page.records.last() else { return Ok((runs, page.head)) };
        after = last.seq;
        for record in page.records.iter().map(store::Stored::record) {
            if let Event::RunStart { .. } = record.event {
                runs.extend(record.response_id);
            }
        }
    }
}
