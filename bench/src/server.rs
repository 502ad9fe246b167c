//! A `callboard` of the benchmark's own, with a fresh data folder, ended with the value.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const TOKEN: &str = "token-of-the-benchmark";

pub struct Server {
    child: Child,
    pub base: String,
    /// From the start of the process to its ready line.
    pub started_in: Duration,
    http: reqwest::Client,
    _folder: TempDir,
}

impl Server {
    /// The release binary beside this benchmark, which must be built first.
    pub fn start(config: &str) -> anyhow::Result<Self> {
        Self::start_in(tempfile::tempdir()?, config)
    }

    /// With what is in `data` in that folder.
    pub fn start_in(folder: TempDir, config: &str) -> anyhow::Result<Self> {
        std::fs::write(folder.path().join("callboard.toml"), config)?;
        let binary = binary()?;
        let began = Instant::now();
        let mut child = Command::new(&binary)
            .current_dir(folder.path())
            .env("CALLBOARD_TOKEN", TOKEN)
            .args(["--listen", "127.0.0.1:0", "--data", "data"])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}: run cargo build --release", binary.display()))?;
        let mut ready = String::new();
        let stdout = child.stdout.take().context("no standard output")?;
        BufReader::new(stdout).read_line(&mut ready)?;
        let started_in = began.elapsed();
        let url = ready.trim().strip_prefix("callboard listening on ").context("not ready")?;
        let base = url.split("/?token=").next().unwrap_or_default().to_owned();
        Ok(Self { child, base, started_in, http: reqwest::Client::new(), _folder: folder })
    }

    pub fn address(&self) -> &str {
        self.base.strip_prefix("http://").unwrap_or(&self.base)
    }

    pub async fn create_session(&self) -> anyhow::Result<String> {
        let session = self.post("/api/sessions", &json!({ "agent": "demo" })).await?;
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

    /// The size of the answer in bytes.
    pub async fn get(&self, path: &str) -> anyhow::Result<usize> {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(TOKEN);
        let response = request.send().await?;
        ensure!(response.status().is_success(), "{path}: {}", response.status());
        Ok(response.bytes().await?.len())
    }

    /// Resident memory in bytes.
    pub fn memory(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|it| it.starts_with("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kilobytes * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn binary() -> anyhow::Result<PathBuf> {
    let me = std::env::current_exe()?;
    Ok(me.parent().context("no folder")?.join("callboard"))
}
