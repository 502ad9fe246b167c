//! `callboard backup`: a copy of everything, made by the running server or from the folder itself.
//!
//! To restore: put the file into an empty folder as `callboard.db` and start with that folder.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use store::{OpenError, Options, Store};

use crate::clock;
use crate::config::Config;
use crate::serve::read_server_file;

pub(crate) async fn run(file: &Path, config: Config) -> anyhow::Result<()> {
    let options =
        Options { sync: config.sync, holder: "callboard backup".to_owned(), since: clock::now() };
    let bytes = match Store::open(&config.data, options) {
        Ok(store) => store.backup(file).await?,
        Err(OpenError::Held { by, .. }) if by.address.is_some() => {
            let server = read_server_file(&config.data);
            let server = server.with_context(|| format!("finding the token of {by}"))?;
            by_server(&server.address, &server.token, file).await?
        }
        Err(error) => return Err(error.into()),
    };
    #[expect(clippy::print_stdout, reason = "the answer to the command")]
    {
        println!("wrote {} ({bytes} bytes)", file.display());
    }
    Ok(())
}

async fn by_server(address: &str, token: &str, file: &Path) -> anyhow::Result<u64> {
    let request = reqwest::Client::new().post(format!("{address}/api/backup")).bearer_auth(token);
    let answer = request.json(&json!({ "file": file })).send().await;
    let answer = answer.with_context(|| format!("asking the server at {address}"))?;
    let is_done = answer.status().is_success();
    let body: Value = answer.json().await.context("reading the server's answer")?;
    if !is_done {
        bail!("{}", body["error"]["message"].as_str().unwrap_or("the server refused"));
    }
    Ok(body["bytes"].as_u64().unwrap_or(0))
}
