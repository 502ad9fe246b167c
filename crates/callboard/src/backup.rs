//! `callboard backup`: copies the database, through the running server or directly from the data folder.
//!
//! To restore a backup, put the file into an empty folder as `callboard.db` and start with that folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::args::ServeArgs;
use crate::config::Config;
use crate::serve::{DataAccess, ServerFile};

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Path of the backup file; it must not exist yet.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

pub(crate) async fn run(file: &Path, config: Config) -> anyhow::Result<()> {
    let bytes = match DataAccess::open(&config, "callboard backup")? {
        DataAccess::Folder(store) => store.backup(file).await?,
        DataAccess::Server(server) => by_server(&server, file).await?,
    };
    #[expect(clippy::print_stdout, reason = "the answer to the command")]
    {
        println!("wrote {} ({bytes} bytes)", file.display());
    }
    Ok(())
}

async fn by_server(server: &ServerFile, file: &Path) -> anyhow::Result<u64> {
    let ServerFile { address, token } = server;
    let request = tools::http_client().post(format!("{address}/api/backup")).bearer_auth(token);
    let answer = request.json(&json!({ "file": file })).send().await;
    let answer = answer.with_context(|| format!("asking the server at {address}"))?;
    let is_done = answer.status().is_success();
    let body: Value = answer.json().await.context("reading the server's answer")?;
    if !is_done {
        bail!("{}", body["error"]["message"].as_str().unwrap_or("the server refused"));
    }
    Ok(body["bytes"].as_u64().unwrap_or(0))
}
