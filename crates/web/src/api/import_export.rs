//! Export and import of sessions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use backends::import::SideFile;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use store::Store;
use transcript::{Record, Seq, SessionId};

use crate::answer::Created;
use crate::api::sessions::{SessionObject, SessionObjects};
use crate::error::{HttpError, RequestCode};
use crate::extract::{FileBody, Params, SessionPath, new_session_id};
use runtime::Sessions;
use runtime::agents::AgentCatalog;
use runtime::draw_pool::DrawPool;
use runtime::export::{self, Format};
use runtime::import::{
    self, Conversation, ImportFormat, Kind, NewTurns, NotImported, OBJECTS_MAX, Overrides, Plan,
    Whole, from_document, from_log,
};
use session::{Command, Refused};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ExportParams {
    #[serde(default)]
    format: Format,
    /// Export the session as it was at this record number.
    at: Option<u64>,
}

/// Content security policy of an exported page: its style is inline, and it loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

pub(crate) async fn export(
    State(draws): State<DrawPool>,
    State(store): State<Store>,
    SessionPath(id): SessionPath,
    Params(ExportParams { format, at }): Params<ExportParams>,
) -> Result<Response, HttpError> {
    let permit = draws.permit().await;
    let text = export::write(&store, &permit, &id, format, at.map(Seq)).await?;
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
pub(crate) struct ImportParams {
    #[serde(default)]
    format: ImportFormat,
    /// Id of the new session. Default: the original id for logs, the program's name and its conversation's
    /// id for conversations of programs, and a hash of the content for other formats.
    id: Option<String>,
    /// Id of the agent that continues the imported session. Default: the default agent.
    /// Conversations of programs continue with their program.
    agent: Option<String>,
    /// Title of the imported session. Not for conversations of programs.
    title: Option<String>,
    /// Whether to import an unfinished last turn too, as interrupted. Only for conversations of
    /// programs.
    #[serde(default, rename = "final")]
    is_final: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportedObject {
    #[serde(flatten)]
    session: SessionObject,
    added_turns: usize,
    /// Whether no turns were added because the conversation was continued in this session, which
    /// has more than the file.
    goes_on_here: bool,
}

/// The parts of the server that imports use.
#[derive(Clone)]
pub(crate) struct Importer {
    pub(crate) store: Store,
    pub(crate) sessions: Sessions,
    pub(crate) agents: AgentCatalog,
    pub(crate) objects: SessionObjects,
}

/// Imports a conversation file as a session. If a program's conversation was imported before, only
/// its new turns are added.
pub(crate) async fn import(
    State(importer): State<Importer>,
    Params(params): Params<ImportParams>,
    FileBody(body): FileBody,
) -> Result<Created<ImportedObject>, HttpError> {
    let imported = import::run_blocking(async move {
        let text = std::str::from_utf8(&body)
            .map_err(|_| HttpError::invalid("this is not a conversation file: it is not text"))?;
        importer.import_text(params, text).await
    });
    let stopping = || HttpError::new(RequestCode::Stopping, "the import was stopped; try again");
    imported.await.unwrap_or_else(|| Err(stopping())).map(Created)
}

impl Importer {
    async fn import_text(
        &self,
        params: ImportParams,
        text: &str,
    ) -> Result<ImportedObject, HttpError> {
        let ImportParams { format, id, agent, title, is_final } = params;
        let id = id.as_deref().map(new_session_id).transpose()?;
        let title = title.filter(|it| !it.trim().is_empty());
        let Envelope { transcript, side_files } = Envelope::read(text);
        refuse_too_many(&transcript)?;
        let kind = format.kind(&transcript).ok_or_else(|| {
            HttpError::invalid(
                "the file is no conversation of Claude Code, Codex or Pi, and no export of a session; if it \
                 is something else, name its format",
            )
        })?;
        let overrides = Overrides { id, agent, title };
        let agents = &self.agents;
        match kind {
            Kind::Log => self.import_whole(from_log(agents, text, overrides)?).await,
            Kind::Document(format) => {
                let whole = from_document(&self.store, agents, format, text, overrides).await?;
                self.import_whole(whole).await
            }
            Kind::Program(_) if overrides.agent.is_some() || overrides.title.is_some() => {
                let message = "a program's conversation continues with that program and gets its title \
                               from the messages: omit `agent` and `title`";
                Err(HttpError::invalid(message))
            }
            Kind::Program(kind) => {
                let conversation = Conversation { kind, text: transcript, side_files, is_final };
                self.import_conversation(&conversation, overrides.id).await
            }
        }
    }

    async fn import_whole(&self, whole: Whole) -> Result<ImportedObject, HttpError> {
        let Whole { session, records, turns, is_named_by_content } = whole;
        let added_turns = match make_session(&self.sessions, &session, records).await {
            Ok(()) => turns,
            Err(error) if error.code == RequestCode::SessionExists && is_named_by_content => 0,
            Err(error) => return Err(error),
        };
        let session = self.objects.read(session).await?;
        Ok(ImportedObject { session, added_turns, goes_on_here: false })
    }

    async fn import_conversation(
        &self,
        conversation: &Conversation,
        name: Option<SessionId>,
    ) -> Result<ImportedObject, HttpError> {
        let (session, added_turns, goes_on_here) = loop {
            let plan = import::plan(&self.store, &self.agents, conversation, name.clone()).await?;
            let plan = plan.ok_or_else(|| {
                HttpError::invalid(
                    "the file is not a conversation of this program, or has no completed turn yet",
                )
            })?;
            let new = match plan {
                Plan::Nothing { session } => break (session, 0, false),
                Plan::ContinuedHere { session } => break (session, 0, true),
                Plan::Add(new) => new.with_stored_pictures(&self.store).await?,
            };
            let NewTurns { session, turns, addition } = new;
            if addition.head == Seq(0) {
                make_session(&self.sessions, &session, addition.records).await?;
                break (session, turns, false);
            }
            match self.sessions.ask(&session, |reply| Command::Add { addition, reply }).await {
                Ok(()) => break (session, turns, false),
                // The session has changed in the meantime: plan the import again.
                Err(Refused::Busy) => (),
                Err(refused) => return Err(refused.into()),
            }
        };
        let session = self.objects.read(session).await?;
        Ok(ImportedObject { session, added_turns, goes_on_here })
    }
}

fn refuse_too_many(text: &str) -> Result<(), HttpError> {
    if !import::has_too_many_objects(text) {
        return Ok(());
    }
    let message = format!(
        "the file has more than {OBJECTS_MAX} JSON objects, which is the limit; split it into several \
         conversations"
    );
    Err(HttpError::new(RequestCode::TooLarge, message))
}

/// A conversation file to import, with its side files if there are any.
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
    struct Fields {
        name: String,
        text: String,
    }
    let files = Vec::<Fields>::deserialize(from)?.into_iter();
    Ok(files.map(|Fields { name, text }| SideFile { name, text }).collect())
}

pub(crate) async fn make_session(
    sessions: &Sessions,
    id: &SessionId,
    records: Arc<[Record]>,
) -> Result<(), HttpError> {
    sessions.import(id, records).await.map_err(|refused| match refused {
        Refused::Exists => {
            let message = format!("session {id} exists already; choose another id with ?id=");
            HttpError::new(RequestCode::SessionExists, message)
        }
        refused => refused.into(),
    })
}

impl From<NotImported> for HttpError {
    fn from(why: NotImported) -> Self {
        match why {
            NotImported::Bad(message) => Self::invalid(message),
            NotImported::Refused(refused) => refused.into(),
        }
    }
}
