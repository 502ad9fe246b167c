//! Export of a session as a file: the page, Markdown, messages or the log.

use std::collections::HashMap;

use base64::prelude::{BASE64_STANDARD, Engine};
use render::{Export, Files, Peers, Settings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::{ReadRange, Store, Stored};
use transcript::{
    Attachment, Content, Message, Millis, Record, RunMessage, Seq, SessionId, Transcript,
};

use crate::draw_pool::{DrawPermit, in_place};
use crate::live::window;

/// Maximum size in bytes of an attachment that an exported file contains. Larger attachments are
/// only named.
const ATTACHED_MAX: u64 = 4 * 1024 * 1024;
const PAGE: usize = 1000;
/// Name of the setting under which the store keeps the page settings.
pub const PAGE_SETTINGS: &str = "page";

/// File format of an exported session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The complete page, as an HTML file.
    #[default]
    Html,
    /// The conversation as Markdown.
    Md,
    /// The messages as JSON.
    Json,
    /// The log as JSON, one record per line.
    Jsonl,
}

impl Format {
    /// Returns a short description for the command-line help.
    pub fn description(self) -> &'static str {
        match self {
            Self::Html => "The complete page",
            Self::Md => "Markdown",
            Self::Json => "Messages as JSON",
            Self::Jsonl => "The log, one record per line",
        }
    }

    /// All export formats.
    pub const ALL: [Self; 4] = [Self::Html, Self::Md, Self::Json, Self::Jsonl];

    /// Returns the name of the export format in the API and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Md => "md",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
        }
    }
}

/// Exports a session as a text in this format, as it was at the record `at` or as it is now. `None`
/// if there is no such session.
pub async fn write(
    store: &Store,
    permit: &DrawPermit,
    session: &SessionId,
    format: Format,
    at: Option<Seq>,
) -> Result<Option<String>, store::Error> {
    if format == Format::Jsonl {
        return log(store, session, at).await;
    }
    let read = window::read_all(store, session, at, Transcript::whole()).await?;
    let Some(transcript) = read else { return Ok(None) };
    let session = session.clone();
    Ok(Some(match format {
        Format::Html => {
            let settings = page_settings(store).await?;
            let files = attached(store, &transcript).await?;
            let until = moment(store, &session, at).await?;
            let peers = peers(store, &transcript, until).await?;
            let draw = move || {
                let (session, settings) = (&session, &settings);
                let files = addresses(files);
                let stylesheet = render::stylesheet();
                let export = Export { session, settings, stylesheet, files, peers };
                render::export_html(&transcript, export)
            };
            permit.draw(draw).await
        }
        Format::Md => permit.draw(move || render::export_markdown(&transcript)).await,
        Format::Json | Format::Jsonl => {
            permit.draw(move || messages_json(&session, &transcript)).await
        }
    }))
}

fn messages_json(session: &SessionId, transcript: &Transcript) -> String {
    let shown = transcript.messages.iter().filter(|message| !message.superseded);
    let messages: Vec<_> = shown.map(formats::callboard::message).collect();
    let (summary, head) = (&transcript.summary, transcript.head);
    let session = json!({
        "id": session, "agent": summary.agent, "title": summary.title(), "head": head,
        "createdAt": summary.created_at, "updatedAt": summary.updated_at,
    });
    json!({ "session": session, "messages": messages }).to_string()
}

/// Media types and contents of attachments, by the hashes of the contents.
type Attached = HashMap<String, (String, Vec<u8>)>;

/// Reads the attachments that are small enough to be in an exported file.
async fn attached(store: &Store, transcript: &Transcript) -> Result<Attached, store::Error> {
    let mut files = Attached::new();
    for message in &transcript.messages {
        let Content::User(user) = &message.content else { continue };
        for Attachment { blob, media_type, size, .. } in &user.attachments {
            if *size > ATTACHED_MAX || files.contains_key(blob) {
                continue;
            }
            let bytes = store.blob(blob).await?;
            files.extend(bytes.map(|bytes| (blob.clone(), (media_type.clone(), bytes))));
        }
    }
    Ok(files)
}

/// Returns the attachments of an exported page as `data:` URLs. Only pictures keep their media
/// type; other files are offered as downloads.
fn addresses(attached: Attached) -> Files {
    let address = |(blob, (media_type, bytes)): (String, (String, Vec<u8>))| {
        let is_picture = render::is_picture(&media_type, bytes.len() as u64);
        let kind = if is_picture { &media_type } else { "application/octet-stream" };
        (blob, format!("data:{kind};base64,{}", BASE64_STANDARD.encode(bytes)))
    };
    attached.into_iter().map(address).collect()
}

/// Returns the time of the record with this sequence number. `None` if no number is given or the
/// record does not exist.
async fn moment(
    store: &Store,
    session: &SessionId,
    at: Option<Seq>,
) -> Result<Option<Millis>, store::Error> {
    let Some(at) = at else { return Ok(None) };
    let after = Seq(at.0.saturating_sub(1));
    let range = ReadRange { after, up_to: Some(at), limit: 1, deltas: true };
    Ok(store.read(session, range).await?.records.first().map(|it| it.at))
}

/// Returns the answers of agents in other sessions up to the time `until`, including answers to
/// messages that those agents sent in turn. Records of different logs are ordered only by their
/// times.
async fn peers(
    store: &Store,
    transcript: &Transcript,
    until: Option<Millis>,
) -> Result<Peers, store::Error> {
    let mut peers = Peers::new();
    let mut pending: Vec<Message> = transcript.messages.clone();
    while let Some(message) = pending.pop() {
        for exchange in message.run().into_iter().flat_map(RunMessage::exchanges) {
            let (Some(session), Some(run)) =
                (&exchange.peer_session_id, &exchange.peer_response_id)
            else {
                continue;
            };
            let records = store.records_of_run(session, run).await?;
            let is_there = |it: &&Stored| until.is_none_or(|until| it.at <= until);
            let other = in_place(|| {
                let records = records.iter().filter(is_there).map(Stored::record);
                let mut other = Transcript::whole();
                other.extend(&records.collect::<Vec<Record>>());
                other
            });
            let Some(answer) = other.message(run.as_str()) else { continue };
            let known = peers.insert(exchange.id.clone(), (session.clone(), answer.clone()));
            if known.is_none() {
                pending.push(answer.clone());
            }
        }
    }
    Ok(peers)
}

/// Returns the stored page settings. Unreadable settings count as not set.
pub async fn page_settings(store: &Store) -> Result<Settings, store::Error> {
    let stored = store.setting(PAGE_SETTINGS).await?;
    Ok(stored.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or_default())
}

/// Returns all records of a session up to `at` as JSON, one per line. `None` if there is no such
/// session.
async fn log(
    store: &Store,
    session: &SessionId,
    at: Option<Seq>,
) -> Result<Option<String>, store::Error> {
    let (mut lines, mut after) = (String::new(), Seq(0));
    loop {
        let range = ReadRange { after, up_to: at, limit: PAGE, deltas: true };
        let page = store.read(session, range).await?;
        if page.head == Seq(0) {
            return Ok(None);
        }
        let Some(last) = page.records.last() else { return Ok(Some(lines)) };
        after = last.seq;
        in_place(|| {
            for line in page.records.iter().map(Stored::to_json) {
                lines.push_str(&line);
                lines.push('\n');
            }
        });
    }
}
