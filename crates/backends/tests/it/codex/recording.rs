//! Recordings of Codex: its lines (`<`) and the recorder's (`>`) in their order, and the exit
//! (`!`). A replay does the same as the recorder with the inputs of our driver.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use backends::codex::{Settings, backend};
use backends::{Exit, Launch, ProgramInput, ResumeId, RunInput, Verdict};
use serde_json::{Value, json};
use transcript::Scope;

use super::open_thread::EARLIER;
use super::stage::Stage;

#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) is_exec: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Line {
    Output(String),
    Wrote(Value),
    Ended(Exit),
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/codex")
}

pub(crate) fn recordings() -> Vec<Recording> {
    let files = std::fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path());
    let mut logs: Vec<PathBuf> =
        files.filter(|it| it.extension().is_some_and(|it| it == "log")).collect();
    logs.sort();
    assert_eq!(logs.len(), 55);
    logs.iter().map(Recording::read).collect()
}

impl Recording {
    fn read(path: &PathBuf) -> Self {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| match line.split_at(2) {
            ("< ", line) => Line::Output(line.to_owned()),
            // The recorder also sent lines that are not JSON.
            ("> ", wrote) => Line::Wrote(serde_json::from_str(wrote).unwrap_or_default()),
            ("! ", ended) => Line::Ended(exit(ended)),
            _ => panic!("not a line of a recording: {line}"),
        });
        Self { is_exec: name.starts_with("exec"), lines: lines.collect(), name }
    }

    pub(crate) fn stage(&self) -> Stage {
        // The recorder used this mode.
        let permission_mode = "on-request".to_owned();
        let settings =
            Settings { permission_mode, app_server: !self.is_exec, ..Settings::default() };
        Stage::new(backend(Arc::new(settings), &self.launch()))
    }

    fn launch(&self) -> Launch {
        let resume = self.wrote("thread/resume").next();
        let resume =
            resume.map(|it| ResumeId::parse(it["params"]["threadId"].as_str().unwrap()).unwrap());
        let is_exec_resume = self.name.starts_with("exec-resume");
        Launch {
            workspace: "/workspace".to_owned(),
            resume: resume.or_else(|| ResumeId::parse(EARLIER).filter(|_| is_exec_resume)),
            ..Launch::default()
        }
    }

    /// Returns the recorder's first prompt.
    fn prompt(&self) -> String {
        let turn = self.wrote("turn/start").next();
        let prompt = turn.map(|it| it["params"]["input"][0]["text"].as_str().unwrap().to_owned());
        prompt.unwrap_or_else(|| "go".to_owned())
    }

    fn wrote<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().filter_map(move |it| match it {
            Line::Wrote(message) if message["method"] == method => Some(message),
            _ => None,
        })
    }

    /// Replays the whole recording.
    pub(crate) fn replay(&self) -> Replay {
        let mut replay = Replay::new(self);
        self.lines.iter().for_each(|it| replay.step(it));
        replay
    }
}

fn exit(text: &str) -> Exit {
    let exit: Value = serde_json::from_str(text).unwrap();
    Exit {
        code: exit["code"].as_i64().map(|it| it as i32),
        stderr: exit["stderr"].as_str().unwrap().to_owned(),
    }
}

/// A replay in progress.
pub(crate) struct Replay {
    pub(crate) stage: Stage,
    /// Our request ids by the recorder's.
    ids: HashMap<u64, u64>,
    /// Our requests that have no counterpart in the recording yet.
    requests: Vec<(String, u64)>,
    has_started_turn: bool,
    is_stopping: bool,
    thread: Value,
    /// Our responses to Codex's requests, each with the recorder's.
    pub(crate) answers: Vec<(Value, Value)>,
}

impl Replay {
    pub(crate) fn new(recording: &Recording) -> Self {
        let mut stage = recording.stage();
        stage.start(&recording.prompt());
        Self {
            stage,
            ids: HashMap::new(),
            requests: Vec::new(),
            has_started_turn: false,
            is_stopping: false,
            thread: Value::Null,
            answers: Vec::new(),
        }
    }

    pub(crate) fn step(&mut self, line: &Line) {
        match line {
            Line::Output(line) => {
                if let Some(line) = self.renumbered(line) {
                    self.stage.line(&line);
                }
            }
            Line::Wrote(message) => self.wrote(message),
            Line::Ended(exit) => self.stage.give(ProgramInput::Exited(exit.clone())),
        }
    }

    /// Returns a recorded line with our request id. Responses to requests that only the recorder
    /// sent are left out.
    fn renumbered(&mut self, line: &str) -> Option<String> {
        let mut message: Value = serde_json::from_str(line).unwrap_or_default();
        if message.get("method").is_some() || message.get("id").is_none() {
            return Some(line.to_owned());
        }
        let id = self.ids.get(&message["id"].as_u64()?)?;
        message["id"] = json!(id);
        if self.thread.is_null() {
            self.thread = message["result"]["thread"]["id"].clone();
        }
        Some(message.to_string())
    }

    fn wrote(&mut self, message: &Value) {
        let is_foreign = self.has_started_turn
            && (message["method"] == "thread/start"
                || message["params"]["threadId"].as_str().is_some_and(|it| self.thread != it));
        let method = message["method"].as_str();
        match method.filter(|_| !is_foreign) {
            Some("turn/start") if self.has_started_turn => {
                // No message is sent to a run that is being stopped.
                if self.is_stopping && self.stage.is_running() {
                    self.stage.wake();
                }
                let text = message["params"]["input"][0]["text"].as_str().unwrap();
                if self.stage.is_running() {
                    self.stage.steer("m1", text);
                    return self.match_request(message, "turn/steer");
                }
                self.stage.start(text);
            }
            Some("turn/start") => self.has_started_turn = true,
            Some("turn/steer") => {
                let params = &message["params"];
                let id = params["clientUserMessageId"].as_str().unwrap();
                self.stage.steer(id, params["input"][0]["text"].as_str().unwrap());
            }
            Some("turn/interrupt") => {
                self.is_stopping = true;
                self.stage.give(RunInput::Interrupt);
            }
            Some(_) => (),
            None if method.is_none() && !message.is_null() => self.answered(message),
            None => return,
        }
        if let Some(method) = method {
            self.match_request(message, method);
        }
    }

    /// Answers a request of Codex as the recorder did.
    fn answered(&mut self, message: &Value) {
        let result = &message["result"];
        let word = result["decision"].as_str().or(result["action"].as_str()).unwrap();
        let allowed = |scope| Verdict::Allowed { arguments: None, scope };
        self.stage.written.clear();
        match word {
            "accept" => self.stage.decide(allowed(Scope::Once)),
            "acceptForSession" => self.stage.decide(allowed(Scope::Session)),
            "decline" => self.stage.decide(Verdict::Denied { feedback: None }),
            _ => self.stage.give(RunInput::Interrupt),
        }
        let ours = self.stage.written.first().map(|it| serde_json::from_str(it).unwrap());
        self.answers.push((ours.unwrap_or_default(), message.clone()));
    }

    fn match_request(&mut self, message: &Value, method: &str) {
        for line in self.stage.written.drain(..) {
            let ours: Value = serde_json::from_str(&line).unwrap_or_default();
            if let (Some(method), Some(id)) = (ours["method"].as_str(), ours["id"].as_u64()) {
                self.requests.push((method.to_owned(), id));
            }
        }
        let ours = self.requests.iter().position(|(it, _)| it == method);
        if let (Some(idx), Some(theirs)) = (ours, message["id"].as_u64()) {
            self.ids.insert(theirs, self.requests.remove(idx).1);
        }
    }
}
