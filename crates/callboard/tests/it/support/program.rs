//! A running `callboard` with its own data folder and workspace, and its HTTP interface.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use transcript::{Record, Seq};

pub(crate) const TOKEN: &str = "token-of-the-tests";
/// Authorization header with the token.
pub(crate) const BEARER: &str = "Bearer token-of-the-tests";

/// Folders of a server, which survive a restart.
pub(crate) struct Home {
    dir: TempDir,
}

impl Home {
    /// Creates a data folder, and a workspace with a few files.
    pub(crate) fn new(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Self { dir };
        std::fs::create_dir(home.workspace()).unwrap();
        std::fs::create_dir(home.data()).unwrap();
        for (name, text) in [("a.txt", "alpha\nbeta\n"), ("b.md", "# Beta\n\nSecond file.\n")] {
            std::fs::write(home.workspace().join(name), text).unwrap();
        }
        std::fs::write(home.workspace().join("callboard.toml"), config).unwrap();
        home
    }

    pub(crate) fn instant() -> Self {
        Self::new("[demo]\npace = \"instant\"\n")
    }

    pub(crate) fn natural() -> Self {
        Self::new("")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        self.prepare(&mut command);
        command
    }

    /// Sets the workspace and the environment, without inherited settings of Callboard.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command
            .current_dir(self.workspace())
            .env("CALLBOARD_CONFIG", self.workspace().join("callboard.toml"))
            .env_remove("CALLBOARD_LOG")
            .env("CALLBOARD_TOKEN", TOKEN)
            .env("CALLBOARD_DATA", self.data())
            .env("CALLBOARD_LISTEN", "127.0.0.1:0");
    }

    /// Runs a command with this standard input until it exits.
    pub(crate) fn pipe_in(&self, args: &[&str], input: &str) -> (bool, String, String) {
        let mut command = self.command();
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }

    pub(crate) fn start(&self) -> Server {
        Server::start(self.command())
    }
}

/// A running server, which is killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) base: String,
    client: reqwest::Client,
    stderr: mpsc::Receiver<String>,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let stderr = lines_of(child.stderr.take().unwrap());
        let Some(url) = ready.strip_prefix("callboard listening on ") else {
            panic!("not ready: {ready:?} {:?}", stderr.iter().collect::<Vec<_>>());
        };
        let base = url.split("/?token=").next().unwrap().to_owned();
        Self { child, base, client: tools::http_client(), stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process, as by `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the server in an orderly way, as by Ctrl-C or a service manager, and checks its exit
    /// code. Returns the log lines that have not been read.
    pub(crate) fn stop(mut self) -> Vec<String> {
        let term = Command::new("kill").arg(self.pid().to_string()).status().unwrap();
        assert!(term.success());
        assert!(self.child.wait().unwrap().success());
        self.stderr.iter().collect()
    }

    /// Waits until the server has logged a line that contains this.
    pub(crate) fn wait_for_log(&self, words: &str) {
        assert!(self.stderr.iter().any(|line| line.contains(words)), "never logged: {words}");
    }

    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.bearer_auth(TOKEN).send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Sends a request without waiting for the response. All of it is sent when this returns.
    pub(crate) fn send_without_waiting(&self, method: Method, path: &str, body: Option<Value>) {
        let address = self.base.strip_prefix("http://").unwrap();
        let body = body.map_or(String::new(), |it| it.to_string());
        let length = body.len();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: {BEARER}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.request(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    /// Returns the media type and the body.
    pub(crate) async fn get_bytes(&self, path: &str) -> (String, Vec<u8>) {
        let request = self.client.get(format!("{}{path}", self.base)).bearer_auth(TOKEN);
        let response = request.send().await.unwrap();
        let media_type = response.headers()["content-type"].to_str().unwrap().to_owned();
        (media_type, response.bytes().await.unwrap().to_vec())
    }

    /// Returns a response whose body may still be in progress.
    pub(crate) async fn open(&self, path: &str) -> reqwest::Response {
        let request = self.client.get(format!("{}{path}", self.base)).bearer_auth(TOKEN);
        request.send().await.unwrap()
    }

    /// Returns the response to a POST, whose body may still be in progress.
    pub(crate) async fn open_post(&self, path: &str, body: Value) -> reqwest::Response {
        let request = self.client.post(format!("{}{path}", self.base)).bearer_auth(TOKEN);
        request.json(&body).send().await.unwrap()
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Value,
    ) -> reqwest::Response {
        let request = self.client.post(format!("{}{path}", self.base)).bearer_auth(TOKEN);
        let headers = headers.iter().map(|(name, value)| {
            (reqwest::header::HeaderName::from_static(name), value.parse().unwrap())
        });
        request.headers(headers.collect()).json(&body).send().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.request(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn create_session(&self) -> String {
        let (status, session) = self.post("/api/sessions", json!({ "agent": "demo" })).await;
        assert_eq!(status, StatusCode::CREATED, "{session}");
        session["id"].as_str().unwrap().to_owned()
    }

    /// Sends a message and returns its id.
    pub(crate) async fn send(&self, session: &str, text: &str) -> String {
        let path = format!("/api/sessions/{session}/messages");
        let (status, answer) = self.post(&path, json!({ "text": text })).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        answer["messageId"].as_str().unwrap().to_owned()
    }

    /// Returns every record of the log, page by page.
    pub(crate) async fn log(&self, session: &str) -> Vec<Record> {
        let mut records: Vec<Record> = Vec::new();
        loop {
            let after = records.last().map_or(Seq(0), |it| it.seq);
            let path = format!("/api/sessions/{session}/events?after={after}&deltas=1");
            let mut page = self.get(&path).await;
            let page: Vec<Record> = serde_json::from_value(page["events"].take()).unwrap();
            if page.is_empty() {
                return records;
            }
            records.extend(page);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines on a separate thread, so that a full pipe never blocks the server.
fn lines_of(pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let _ = send.send(line);
        }
    });
    lines
}

/// Runs a command until it exits.
pub(crate) fn output(command: &mut Command) -> (bool, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// Returns the resident memory of a process, in bytes.
pub(crate) fn resident_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"));
    let status = status.unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
