//! `callboard export`: prints a session as a file.
//!
//! The command asks the server that holds the data folder, or reads the folder itself if no server runs.

use std::io::Write;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use runtime::draw_pool::DrawPool;
use runtime::export::{Format, write};
use transcript::{Seq, SessionId};

use crate::args::ServeArgs;
use crate::config::Config;
use crate::serve::{DataAccess, ServerFile};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Id of the session, as in the address of its page.
    pub(crate) session: String,
    #[arg(long, default_value = Format::Jsonl.word(), value_parser = export_format())]
    pub(crate) format: Format,
    /// Print the session as it was at this record number.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) at: Option<u64>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

pub(crate) async fn run(args: ExportArgs, config: Config) -> anyhow::Result<()> {
    let ExportArgs { session, format, at, .. } = args;
    let Some(session) = SessionId::parse(&session) else {
        bail!("{session:?} is not a session id")
    };
    match DataAccess::open(&config, "callboard export")? {
        // The lock is held until everything is printed, so that the folder does not change meanwhile.
        DataAccess::Folder(store) => {
            check_number(at, store.head(&session).await?)?;
            let permit = DrawPool::default().permit().await;
            print(&session, write(&store, &permit, &session, format, at.map(Seq)).await?)
        }
        DataAccess::Server(server) => {
            if at.is_some() {
                check_number(at, head_at_server(&server, &session).await?)?;
            }
            let text = from_server(&server, &session, format, at).await?;
            print(&session, text)
        }
    }
}

fn export_format() -> impl TypedValueParser<Value = Format> {
    let words = Format::ALL.map(|it| PossibleValue::new(it.word()).help(it.description()));
    PossibleValuesParser::new(words).try_map(|word| {
        Format::ALL.into_iter().find(|it| it.word() == word).ok_or("there is no such format")
    })
}

/// Returns an error if the session's log has no record with the number `at` yet.
fn check_number(at: Option<u64>, head: Option<Seq>) -> anyhow::Result<()> {
    match (at, head) {
        (Some(at), Some(Seq(head))) if at > head => {
            bail!("there is no record {at}: the log of this session ends at {head}")
        }
        _ => Ok(()),
    }
}

fn print(session: &SessionId, text: Option<String>) -> anyhow::Result<()> {
    let Some(text) = text else { bail!("there is no session {session}") };
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

async fn from_server(
    server: &ServerFile,
    session: &SessionId,
    format: Format,
    at: Option<u64>,
) -> anyhow::Result<Option<String>> {
    let at = at.map_or_else(String::new, |at| format!("&at={at}"));
    ask(server, &format!("/api/sessions/{session}/export?format={}{at}", format.word())).await
}

async fn head_at_server(server: &ServerFile, session: &SessionId) -> anyhow::Result<Option<Seq>> {
    let Some(text) = ask(server, &format!("/api/sessions/{session}")).await? else {
        return Ok(None);
    };
    let session: serde_json::Value = serde_json::from_str(&text)?;
    Ok(session["head"].as_u64().map(Seq))
}

/// Sends a GET request to the server and returns the response body; `None` if the server does not
/// find the session.
async fn ask(server: &ServerFile, path: &str) -> anyhow::Result<Option<String>> {
    let ServerFile { address, token } = server;
    let answer =
        tools::http_client().get(format!("{address}{path}")).bearer_auth(token).send().await;
    let answer = answer.with_context(|| format!("asking the server at {address}"))?;
    if answer.status() == reqwest::StatusCode::NOT_FOUND {
        return Ok(None);
    }
    Ok(Some(answer.error_for_status()?.text().await?))
}
