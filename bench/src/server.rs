//! A `callboard` of the benchmark's own, with a fresh data folder, ended with the value.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Process, pinned};
use crate::tap::Tap;

pub(crate) const TOKEN: &str = "token-of-the-benchmark";

pub struct Server {
    pub process: Process,
    pub base: String,
    /// Time from the start of the process to its ready line.
    pub started_in: Duration,
    http: reqwest::Client,
    _folder: TempDir,
}

impl Server {
    /// Starts the release binary beside this benchmark, which must be built first.
    pub fn start(config: &str) -> anyhow::Result<Self> {
        Self::start_in(tempfile::tempdir()?, config)
    }

    /// Starts the server with the data folder `data` in that folder.
    pub fn start_in(folder: TempDir, config: &str) -> anyhow::Result<Self> {
        Self::run(folder, config, Command::new(binary()?))
    }

    /// Starts the server on core 0 only, with its data on the disk of the working folder.
    pub fn start_pinned(config: &str) -> anyhow::Result<Self> {
        Self::run(tempfile::tempdir_in(".")?, config, pinned(0, binary()?))
    }

    fn run(folder: TempDir, config: &str, mut command: Command) -> anyhow::Result<Self> {
        std::fs::write(folder.path().join("callboard.toml"), config)?;
        command.current_dir(folder.path()).env("CALLBOARD_TOKEN", TOKEN);
        command.args(["--listen", "127.0.0.1:0", "--data", "data", "--config", "callboard.toml"]);
        let began = Instant::now();
        let (process, stdout) = Process::start(command)?;
        let mut ready = String::new();
        BufReader::new(stdout).read_line(&mut ready)?;
        let started_in = began.elapsed();
        let url = ready.trim().strip_prefix("callboard listening on ").context("not ready")?;
        let base = url.split("/?token=").next().unwrap_or_default().to_owned();
        Ok(Self { process, base, started_in, http: tools::http_client(), _folder: folder })
    }

    pub fn address(&self) -> &str {
        self.base.strip_prefix("http://").unwrap_or(&self.base)
    }

    pub async fn create_session(&self, agent: &str) -> anyhow::Result<String> {
        let session = self.post("/api/sessions", &json!({ "agent": agent })).await?;
        Ok(session["id"].as_str().context("no id")?.to_owned())
    }

    pub async fn send(&self, session: &str, text: &str) -> anyhow::Result<()> {
        let path = format!("/api/sessions/{session}/messages");
        self.post(&path, &json!({ "text": text })).await?;
        Ok(())
    }

    /// The number of the session's last record.
    pub async fn head(&self, session: &str) -> anyhow::Result<u64> {
        let url = format!("{}/api/sessions/{session}", self.base);
        let session: Value = self.http.get(url).bearer_auth(TOKEN).send().await?.json().await?;
        session["head"].as_u64().context("no head")
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(TOKEN).json(body);
        let response = request.send().await?;
        ensure!(response.status().is_success(), "{path}: {}", response.text().await?);
        Ok(response.json().await?)
    }

    /// Returns the bytes of the response.
    pub async fn get(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(TOKEN);
        let response = request.send().await?;
        ensure!(response.status().is_success(), "{path}: {}", response.status());
        Ok(response.bytes().await?.to_vec())
    }

    /// Connects a subscriber of new records of these sessions.
    pub async fn tap(&self, sessions: &[String], view: View) -> anyhow::Result<Tap> {
        let mut tap = Tap::web_socket(self.address(), &format!("/ws?token={TOKEN}")).await?;
        for session in sessions {
            let after = self.head(session).await?;
            let (view, ready) = match view {
                View::Records => ("records", "caught_up"),
                View::Html => ("html", "\"patch\""),
            };
            let frame = json!({
                "type": "subscribe", "sessionId": session, "after": after, "deltas": true, "view": view,
            });
            tap.say(&frame).await?;
            tap.wait_for(ready).await?;
        }
        Ok(tap)
    }
}

/// What a subscriber gets: records or patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Records,
    Html,
}

fn binary() -> anyhow::Result<PathBuf> {
    let me = std::env::current_exe()?;
    Ok(me.parent().context("no folder")?.join("callboard"))
}
