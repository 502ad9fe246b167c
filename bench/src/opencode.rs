//! opencode, a chat server for agents of others, with our scripted model as its provider.

use std::io::{BufRead, BufReader};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model::{Model, SCRIPTED};
use crate::process::Process;
use crate::{Tap, peer};

pub struct Opencode {
    pub process: Process,
    base: String,
    http: reqwest::Client,
    _folder: TempDir,
}

impl Opencode {
    /// It checks for updates on the internet: run this with loopback only.
    pub fn start(model: &Model) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir_in(".")?;
        std::fs::write(folder.path().join("opencode.json"), config(model).to_string())?;
        let home = folder.path().canonicalize()?;
        let mut command = Command::new(peer::program("opencode"));
        command.args(["serve", "--hostname", "127.0.0.1", "--port", "0"]).current_dir(&home);
        command.env("HOME", &home);
        for name in ["CONFIG", "DATA", "CACHE", "STATE"] {
            command.env(format!("XDG_{name}_HOME"), home.join(name));
        }
        let (process, stdout) = Process::start(command)?;
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let url =
            lines.find_map(|line| Some(line.split_once("listening on ")?.1.trim().to_owned()));
        let base = url.context("opencode did not start")?;
        Ok(Self { process, base, http: tools::http_client(), _folder: folder })
    }

    pub async fn create_session(&self) -> anyhow::Result<String> {
        let response = self.post("/session", &json!({})).await?;
        let session: Value = response.json().await?;
        Ok(session["id"].as_str().context("no id")?.to_owned())
    }

    pub async fn send(&self, session: &str, text: &str) -> anyhow::Result<()> {
        let model = json!({ "providerID": "bench", "modelID": SCRIPTED });
        let body = json!({ "model": model, "parts": [{ "type": "text", "text": text }] });
        self.post(&format!("/session/{session}/prompt_async"), &body).await?;
        Ok(())
    }

    /// The stream of new events of all sessions.
    pub async fn tap(&self) -> anyhow::Result<Tap> {
        let address = self.base.strip_prefix("http://").unwrap_or(&self.base);
        let mut tap = Tap::get(address, "/event").await?;
        tap.wait_for("server.connected").await?;
        Ok(tap)
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<reqwest::Response> {
        let response = self.http.post(format!("{}{path}", self.base)).json(body).send().await?;
        ensure!(response.status().is_success(), "{path}: {}", response.text().await?);
        Ok(response)
    }
}

fn config(model: &Model) -> Value {
    json!({
        "autoupdate": false, "share": "disabled",
        "model": format!("bench/{SCRIPTED}"), "small_model": "bench/small",
        "provider": { "bench": {
            "npm": "@ai-sdk/openai-compatible", "name": "bench",
            "options": { "baseURL": model.base_url, "apiKey": "none" },
            "models": { SCRIPTED: { "name": SCRIPTED }, "small": { "name": "small" } },
        } },
    })
}
