//! Sessions that are imported completely or not at all: Callboard's own logs, and conversations in
//! foreign formats.
//!
//! An import has no side effects: open runs are closed, queued messages are held, and
//! session-scoped permissions are not imported.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use backends::arguments_summary;
use formats::import::{Entry, Format, Setting};
use formats::incoming::File;
use store::{AppendError, Store};
use transcript::{Attachment, Event, Level, Millis, Record, Seq, SessionId, quiesce};

use super::data_url;
use super::untrusted::strip_all;
use crate::agents::AgentCatalog;
use crate::clock;
use session::Refused;

/// A complete session that an import creates.
#[derive(Debug)]
pub struct Whole {
    pub session: SessionId,
    pub records: Arc<[Record]>,
    pub turns: usize,
    /// Whether the session id is derived from the content. Then an existing session with this id
    /// has the same content.
    pub is_named_by_content: bool,
}

/// Values of the import request that override those of the imported file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub id: Option<SessionId>,
    pub agent: Option<String>,
    pub title: Option<String>,
}

/// Reason why a session was not imported.
#[derive(Debug, thiserror::Error)]
pub enum NotImported {
    /// The file is invalid. The text describes the error and its position in the file.
    #[error("{0}")]
    Bad(String),
    #[error("{0}")]
    Refused(Refused),
}

impl From<AppendError> for NotImported {
    fn from(error: AppendError) -> Self {
        Self::Refused(Refused::Storage(error.to_string()))
    }
}

impl From<store::Error> for NotImported {
    fn from(error: store::Error) -> Self {
        Self::Refused(Refused::Storage(error.to_string()))
    }
}

/// Reads a complete session from an exported log.
pub fn from_log(
    agents: &AgentCatalog,
    text: &str,
    overrides: Overrides,
) -> Result<Whole, NotImported> {
    let Overrides { id, agent, title } = overrides;
    let mut records = read_log(text, id.as_ref())?;
    let Some(first) = records.first() else {
        return Err(NotImported::Bad("the file has no record".to_owned()));
    };
    let session = first.session_id.clone();
    if agent.is_some() || title.is_some() {
        if let Some(agent) = &agent {
            check_agent(agents, agent)?;
        }
        let event = Event::SessionUpdated {
            agent,
            workspace: None,
            workspace_confirmed: false,
            title,
            archived: None,
        };
        add(&mut records, event);
    }
    Ok(quiesced(session, records, false))
}

/// Reads a complete session from a conversation in a foreign format, and stores its files.
pub async fn from_document(
    store: &Store,
    agents: &AgentCatalog,
    format: &Format,
    text: &str,
    overrides: Overrides,
) -> Result<Whole, NotImported> {
    let document = format.parse(text).map_err(|why| NotImported::Bad(why.to_string()))?;
    let agent = overrides.agent.or_else(|| agents.default_id().map(str::to_owned));
    let agent = agent.ok_or_else(|| NotImported::Bad("no agent is configured".to_owned()))?;
    check_agent(agents, &agent)?;
    let is_named_by_content = overrides.id.is_none();
    let session = overrides.id.unwrap_or_else(|| named_by_content(format, text));
    let title = overrides.title.or_else(|| document.title.clone());
    let imported = ImportedSession { session: session.clone(), agent, title };
    let records = import_records(store, &imported, |setting| document.entries(setting)).await?;
    Ok(quiesced(session, records, is_named_by_content))
}

fn named_by_content(format: &Format, text: &str) -> SessionId {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    SessionId::new(format!("{}-{}", format.word, &hash[..16]))
}

fn check_agent(agents: &AgentCatalog, name: &str) -> Result<(), NotImported> {
    match agents.knows(name) {
        true => Ok(()),
        false => {
            let (name, known) = (name.to_owned(), agents.names().join(", "));
            Err(NotImported::Refused(Refused::NoAgent { name, known }))
        }
    }
}

fn quiesced(session: SessionId, mut records: Vec<Record>, is_named_by_content: bool) -> Whole {
    strip_all(&mut records);
    let begins_run = |it: &&Record| matches!(it.event, Event::RunStart { .. });
    let turns = records.iter().filter(begins_run).count();
    let rest = quiesce(&records);
    if !rest.is_empty() {
        records.extend(rest);
        let text = "This was imported with an unfinished run or waiting messages. The run was ended, \
                    the messages are held, and nothing starts until you send a message.";
        add(&mut records, Event::Notice { level: Level::Info, text: text.to_owned() });
    }
    Whole { session, records: records.into(), turns, is_named_by_content }
}

/// Adds an event to imported records, with the time and the session of the last record.
fn add(records: &mut Vec<Record>, event: Event) {
    let Some(Record { seq, at, session_id, .. }) = records.last() else { return };
    let record = Record::new(seq.next(), *at, session_id.clone(), None, event);
    records.push(record);
}

/// Reads the records of an exported log. Their sequence numbers must be 1, 2, 3, ... without a gap.
fn read_log(text: &str, name: Option<&SessionId>) -> Result<Vec<Record>, NotImported> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut records: Vec<Record> = Vec::new();
    for (at, line) in lines {
        let broken = |why: String| NotImported::Bad(format!("line {}: {why}", at + 1));
        let mut record = Record::from_json(line).map_err(|it| broken(it.to_string()))?;
        if record.seq.0 != records.len() as u64 + 1 {
            return Err(broken(format!("record {} does not follow {}", record.seq, records.len())));
        }
        if SessionId::parse(record.session_id.as_str()).is_none() {
            return Err(broken(format!("{:?} is not a session id", record.session_id.as_str())));
        }
        if records.is_empty() && !matches!(record.event, Event::SessionCreated { .. }) {
            return Err(broken("a log begins with session_created".to_owned()));
        }
        if let Some(name) = name {
            record.session_id = name.clone();
        } else if records.first().is_some_and(|first| first.session_id != record.session_id) {
            return Err(broken("the record belongs to another session".to_owned()));
        }
        records.push(record);
    }
    Ok(records)
}

/// Id, agent and title of the session that an import of a foreign conversation creates.
pub(super) struct ImportedSession {
    pub session: SessionId,
    pub agent: String,
    pub title: Option<String>,
}

/// Returns the records of a session for a foreign conversation, and stores the files of its
/// messages.
pub(super) async fn import_records(
    store: &Store,
    imported: &ImportedSession,
    read: impl Fn(&Setting<'_>) -> Vec<Entry>,
) -> Result<Vec<Record>, NotImported> {
    let ImportedSession { session, agent, title } = imported;
    let now = clock::now();
    let mut kept = HashMap::new();
    for file in files_of(&read, now) {
        match attach(store, &file).await {
            Ok(attachment) => drop(kept.insert(file.url, attachment)),
            // A message is kept even if its file cannot be stored.
            Err(NotImported::Bad(_)) => (),
            Err(refused @ NotImported::Refused(_)) => return Err(refused),
        }
    }
    let attach = |file: &File| kept.get(&file.url).cloned();
    let entries = read(&Setting { agent, now, attach: &attach });
    let at = entries.first().map_or(now, |it| it.at);
    let event = Event::SessionCreated {
        agent: agent.clone(),
        workspace: None,
        workspace_confirmed: false,
        title: title.clone(),
    };
    let created = Entry { at, response_id: None, event };
    let entries = [created].into_iter().chain(entries);
    let records = entries.zip(1..).map(|(entry, seq)| {
        let Entry { at, response_id, event } = with_summary(entry);
        Record::new(Seq(seq), at, session.clone(), response_id, event)
    });
    Ok(records.collect())
}

/// Returns the files to which the messages of an imported conversation refer. Reads the
/// conversation once, without attachments.
pub fn files_of(read: impl Fn(&Setting<'_>) -> Vec<Entry>, now: Millis) -> Vec<File> {
    let found: RefCell<Vec<File>> = RefCell::default();
    let collect = |file: &File| -> Option<Attachment> {
        found.borrow_mut().push(file.clone());
        None
    };
    read(&Setting { agent: "", now, attach: &collect });
    found.into_inner()
}

/// Adds a summary to the arguments of an imported tool call, if they have none.
pub fn with_summary(mut entry: Entry) -> Entry {
    if let Event::ToolArgumentsDone { arguments, summary, .. } = &mut entry.event
        && summary.trim().is_empty()
        && !arguments.is_empty()
    {
        *summary = arguments_summary(arguments);
    }
    entry
}

const BLOBS: &str = "/api/blobs/";

/// Stores a file of a message as a blob, unless its URL refers to a blob that is stored already.
pub async fn attach(store: &Store, file: &File) -> Result<Attachment, NotImported> {
    let File { media_type, url, .. } = file;
    let (blob, size) = match (data_url::read(url), url.split_once(BLOBS)) {
        (Some(bytes), _) => {
            let bytes = bytes.map_err(|why| {
                NotImported::Bad(format!("a file's `url` is not valid Base64: {why}"))
            })?;
            let size = bytes.len() as u64;
            (store.put_blob(bytes, clock::now()).await?, size)
        }
        (None, Some((_, hash))) => {
            let (blob, wanted) = (hash.to_owned(), hash.to_owned());
            let found = store.blob(&wanted).await?;
            let missing = || NotImported::Bad(format!("there is no file {hash:?}"));
            (blob, found.ok_or_else(missing)?.len() as u64)
        }
        (None, None) => {
            let why = "send a file with a `url` that begins with \"data:\", or upload it to /api/blobs \
                       first; Callboard does not fetch files";
            return Err(NotImported::Bad(why.to_owned()));
        }
    };
    let name = file.name_here().to_owned();
    Ok(Attachment { blob, name, media_type: media_type.clone(), size })
}
