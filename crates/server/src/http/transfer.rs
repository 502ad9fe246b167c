//! Sessions out of the server and into it again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use backends::import::{Kind, SideFile, detect};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use store::{AppendError, Store};
use transcript::{Event, Record, Seq, SessionId, Summary};

use super::App;
use super::answer::Created;
use super::error::{HttpError, RequestCode};
use super::extract::{FileBody, Named, Params};
use super::sessions::{SessionObject, session_object};
use crate::export::{self, Format};
use crate::import::{self, Conversation, Plan};
use crate::live::ListChange;
use crate::session::{Command, Refused};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExportParams {
    #[serde(default)]
    format: Format,
    /// The session as it was at this number of its log.
    at: Option<u64>,
}

/// A file that stands alone has its style in it, and reaches nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

pub(super) async fn export(
    State(app): State<App>,
    Named(id): Named,
    Params(ExportParams { format, at }): Params<ExportParams>,
) -> Result<Response, HttpError> {
    let session = id.clone();
    let write = move |store: &Store| export::write(store, &session, format, at.map(Seq));
    let text = app.store().off_thread(write).await?;
    let text = text.ok_or_else(|| HttpError::no_session(id.as_str()))?;
    let kind = match format {
        Format::Html => "text/html; charset=utf-8",
        Format::Md => "text/markdown; charset=utf-8",
        Format::Json => "application/json",
        Format::Jsonl => "application/jsonl",
    };
    let name = format!("attachment; filename=\"callboard-{id}.{}\"", format.word());
    let headers =
        [(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, &*name), (CONTENT_SECURITY_POLICY, POLICY)];
    Ok((headers, text).into_response())
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ImportParams {
    #[serde(default)]
    format: ImportFormat,
    /// What the session is to be called here. If left out: what it was called there, or the program's
    /// name and its conversation's.
    id: Option<String>,
    /// Of a program's conversation, also a last turn that has not ended: nothing more will come of it.
    #[serde(default, rename = "final")]
    is_final: bool,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ImportFormat {
    /// A session's log, as an export gave it.
    #[default]
    Jsonl,
    /// Whichever of these it looks like.
    Auto,
    /// What the program keeps of a conversation.
    Claude,
    Codex,
    Pi,
}

impl ImportFormat {
    /// None for a log of ours.
    fn program(&self, text: &str) -> Result<Option<Kind>, HttpError> {
        Ok(match self {
            Self::Jsonl => None,
            Self::Auto => {
                let head =
                    text.match_indices('\n').nth(TELLING_LINES).map_or(text, |it| &text[..it.0]);
                let is_ours =
                    || head.lines().next().is_some_and(|it| Record::from_json(it).is_ok());
                let kind = detect("", head);
                if kind.is_none() && !is_ours() {
                    return Err(HttpError::invalid(
                        "the file is no conversation of Claude Code, Codex or Pi, and no log of a session",
                    ));
                }
                kind
            }
            Self::Claude => Some(Kind::Claude),
            Self::Codex => Some(Kind::Codex),
            Self::Pi => Some(Kind::Pi),
        })
    }
}

/// One of a file's first lines says who wrote it.
const TELLING_LINES: usize = 100;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportedObject {
    #[serde(flatten)]
    session: SessionObject,
    added_turns: usize,
    /// The conversation goes on in this session, which knows more than the file: nothing was added.
    goes_on_here: bool,
}

/// A session's log, or a program's conversation, of which only what is new is added.
pub(super) async fn import(
    State(app): State<App>,
    Params(ImportParams { format, id, is_final }): Params<ImportParams>,
    FileBody(body): FileBody,
) -> Result<Created<ImportedObject>, HttpError> {
    let text = std::str::from_utf8(&body)
        .map_err(|error| HttpError::invalid(format!("the file is not text: {error}")))?;
    let name = id.as_deref().map(parse_name).transpose()?;
    let Envelope { transcript, side_files } = Envelope::read(text);
    let Some(kind) = format.program(&transcript)? else {
        return import_log(&app, text, name).await;
    };
    let conversation = Conversation { kind, text: transcript, side_files, is_final };
    import_conversation(&app, Arc::new(conversation), name).await.map(Created)
}

async fn import_conversation(
    app: &App,
    conversation: Arc<Conversation>,
    name: Option<SessionId>,
) -> Result<ImportedObject, HttpError> {
    let (session, added_turns, goes_on_here) = loop {
        let (shared, conversation) = (Arc::clone(&app.shared), Arc::clone(&conversation));
        let name = name.clone();
        let plan = move |store: &Store| import::plan(store, &shared.agents, &conversation, name);
        let plan = app.store().off_thread(plan).await?.ok_or_else(|| {
            HttpError::invalid("the file is no such conversation, or nothing has ended in it yet")
        })?;
        let addition = match plan {
            Plan::Nothing { session } => break (session, 0, false),
            Plan::GoesOnHere { session } => break (session, 0, true),
            Plan::Add(addition) => addition.with_pictures_kept(app.store()).await?,
        };
        let (session, turns) = (addition.session.clone(), addition.turns);
        if addition.head == Seq(0) {
            make_session(app, &session, addition.records).await?;
            break (session, turns, false);
        }
        match app.sessions.ask(&session, |reply| Command::Add { addition, reply }).await {
            Ok(()) => break (session, turns, false),
            // Something has happened in the session since, and is in its log now.
            Err(Refused::Busy) => (),
            Err(refused) => return Err(refused.into()),
        }
    };
    let session = session_object(app, session)?;
    Ok(ImportedObject { session, added_turns, goes_on_here })
}

/// A transcript, with the files beside it where there are any.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Envelope {
    transcript: String,
    #[serde(default, deserialize_with = "side_files")]
    side_files: Vec<SideFile>,
}

impl Envelope {
    fn read(text: &str) -> Self {
        serde_json::from_str(text)
            .unwrap_or_else(|_| Self { transcript: text.to_owned(), side_files: Vec::new() })
    }
}

fn side_files<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SideFile>, D::Error> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
        text: String,
    }
    let files = Vec::<Named>::deserialize(from)?.into_iter();
    Ok(files.map(|Named { name, text }| SideFile { name, text }).collect())
}

async fn import_log(
    app: &App,
    text: &str,
    name: Option<SessionId>,
) -> Result<Created<ImportedObject>, HttpError> {
    let records = read_log(text, name.as_ref())?;
    let Some(first) = records.first() else {
        return Err(HttpError::invalid("the file has no record"));
    };
    let id = first.session_id.clone();
    let begins_run = |it: &&Record| matches!(it.event, Event::RunStart { .. });
    let added_turns = records.iter().filter(begins_run).count();
    make_session(app, &id, records.into()).await?;
    let session = session_object(app, id)?;
    Ok(Created(ImportedObject { session, added_turns, goes_on_here: false }))
}

pub(super) async fn make_session(
    app: &App,
    id: &SessionId,
    records: Arc<[Record]>,
) -> Result<(), HttpError> {
    let written = app.store().append(id, Seq(0), Arc::clone(&records)).await;
    written.map_err(|error| match error {
        AppendError::Conflict { .. } => {
            let message =
                format!("there is a session {id} already; give it another name with ?id=");
            HttpError::new(RequestCode::SessionExists, message)
        }
        error => error.into(),
    })?;
    let mut summary = Summary::default();
    for record in &*records {
        summary.apply(record);
    }
    let head = Seq(records.len() as u64);
    let change = ListChange::Changed { id: id.clone(), summary: Box::new(summary), head };
    app.shared.hub.publish_list_change(change);
    Ok(())
}

fn parse_name(name: &str) -> Result<SessionId, HttpError> {
    let refused = || HttpError::invalid("a session id is 1 to 128 letters, digits, '-' or '_'");
    SessionId::parse(name).ok_or_else(refused)
}

/// Numbers must be 1, 2, 3, ...: a log with a gap is not a log.
fn read_log(text: &str, name: Option<&SessionId>) -> Result<Vec<Record>, HttpError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut records: Vec<Record> = Vec::new();
    for (at, line) in lines {
        let broken = |why: String| HttpError::invalid(format!("line {}: {why}", at + 1));
        let mut record = Record::from_json(line).map_err(|it| broken(it.to_string()))?;
        if record.seq.0 != records.len() as u64 + 1 {
            return Err(broken(format!("record {} does not follow {}", record.seq, records.len())));
        }
        if SessionId::parse(record.session_id.as_str()).is_none() {
            return Err(broken(format!("{:?} is no session id", record.session_id.as_str())));
        }
        if let Some(name) = name {
            record.session_id = name.clone();
        } else if records.first().is_some_and(|first| first.session_id != record.session_id) {
            return Err(broken("the record is of another session".to_owned()));
        }
        records.push(record);
    }
    Ok(records)
}
