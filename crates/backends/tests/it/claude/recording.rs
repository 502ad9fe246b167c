//! A recorded session: the lines from and to the program in their order, and a player for them.
//!
//! Lines begin with `<` (stdout), `>` (stdin), `!` (a signal) or `=` (the exit). For each recorded
//! stdin line, the backend gets the input that makes it write the same line, and the two are
//! compared. The backend makes up its own ids, so the player puts them into the program's lines.

use std::collections::HashMap;
use std::path::PathBuf;

use backends::{Exit, ProgramEffect, Verdict};
use serde_json::{Value, json};
use transcript::{CallId, Scope};

use super::stage::Stage;

pub(super) struct Recording {
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Output(String),
    Input(String),
    Signal,
    Exited(Exit),
}

pub(super) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/claude")
}

pub(super) fn recordings() -> Vec<Recording> {
    let files = std::fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path());
    let mut recordings: Vec<Recording> = files
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".lines.txt")?.to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            Some(Recording { name, steps: text.lines().map(Step::read).collect() })
        })
        .collect();
    recordings.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(recordings.len() > 60, "the search has lost its way");
    recordings
}

impl Step {
    fn read(line: &str) -> Self {
        let (mark, rest) = line.split_at(2);
        match mark {
            "< " => Self::Output(rest.to_owned()),
            "> " => Self::Input(rest.to_owned()),
            "! " => Self::Signal,
            "= " => {
                let exit: Value = serde_json::from_str(rest).unwrap();
                let code = exit["code"].as_i64().map(|it| it as i32);
                Self::Exited(Exit { code, stderr: exit["stderr"].as_str().unwrap().to_owned() })
            }
            _ => panic!("no such mark: {line}"),
        }
    }
}

pub(super) struct Player {
    pub(super) stage: Stage,
    /// Pairs of a recorded id and the id that the backend used instead.
    renamed: Vec<(String, String)>,
    /// Calls that await a decision, with their arguments, by the program's request id.
    asked: HashMap<String, (CallId, Value)>,
}

impl Player {
    /// Creates a player. If the recording has no message on stdin, it was on the command line, and
    /// a run starts immediately.
    pub(super) fn new(steps: &[Step]) -> Self {
        let mut stage = Stage::new();
        let user = |it: &Step| matches!(it, Step::Input(line) if line.contains(r#""type":"user""#));
        if !steps.iter().any(user) {
            stage.start(&json!({ "role": "user", "content": "go" }));
        }
        Self { stage, renamed: Vec::new(), asked: HashMap::new() }
    }

    pub(super) fn play(&mut self, step: &Step) {
        match step {
            Step::Output(line) => self.replay_output(line),
            Step::Input(line) => self.replay_input(line),
            Step::Signal => (),
            Step::Exited(exit) => {
                self.stage.exit(exit.clone());
            }
        }
    }

    fn replay_output(&mut self, line: &str) {
        let mut line = line.to_owned();
        for (theirs, ours) in &self.renamed {
            line = line.replace(theirs, ours);
        }
        let effects = self.stage.line(&line);
        let asked = effects.iter().find_map(|it| match it {
            ProgramEffect::Ask { call_id, .. } => Some(call_id.clone()),
            _ => None,
        });
        if let Some(call_id) = asked {
            let line: Value = serde_json::from_str(&line).unwrap();
            let id = line["request_id"].as_str().unwrap().to_owned();
            self.asked.insert(id, (call_id, line["request"]["input"].clone()));
        }
    }

    fn replay_input(&mut self, line: &str) {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return };
        match line["type"].as_str().unwrap_or_default() {
            "user" => self.replay_user(&line),
            "control_request" if line["request"]["subtype"] == "interrupt" => {
                let effects = self.stage.interrupt();
                if let Some(written) = last_written(&effects) {
                    assert_eq!(written["request"], line["request"]);
                    self.rename(&line["request_id"], &written["request_id"]);
                }
            }
            "control_response" => self.replay_decision(&line["response"]),
            _ => (),
        }
    }

    fn replay_user(&mut self, line: &Value) {
        let message = chat_message(&line["message"]);
        let effects = match self.stage.run {
            Some(_) => self.stage.steer(&message),
            None => self.stage.start(&message),
        };
        let written = last_written(&effects).expect("what is said is written");
        assert_eq!(written["message"], line["message"]);
        self.rename(&line["uuid"], &written["uuid"]);
    }

    fn replay_decision(&mut self, response: &Value) {
        let id = response["request_id"].as_str().unwrap_or_default();
        let Some((call_id, input)) = self.asked.remove(id) else { return };
        let is_open =
            self.stage.run.as_ref().is_some_and(|run| run.questions().any(|it| *it == call_id));
        if !is_open {
            return;
        }
        let decision = &response["response"];
        let edited = &decision["updatedInput"];
        let verdict = match decision["behavior"].as_str() {
            Some("allow") => Verdict::Allowed {
                arguments: (*edited != input).then(|| edited.to_string()),
                scope: Scope::Once,
            },
            _ => Verdict::Denied { feedback: decision["message"].as_str().map(str::to_owned) },
        };
        let effects = self.stage.decide(&call_id, verdict);
        let written = last_written(&effects).expect("a decision is written");
        let mut expected = decision.clone();
        // The server keeps grants itself, and a denial does not end the turn.
        for ours in ["updatedPermissions", "interrupt"] {
            expected.as_object_mut().unwrap().shift_remove(ours);
        }
        assert_eq!(written["response"]["request_id"], response["request_id"]);
        assert_eq!(written["response"]["response"], expected);
    }

    fn rename(&mut self, theirs: &Value, ours: &Value) {
        if let (Some(theirs), Some(ours)) = (theirs.as_str(), ours.as_str()) {
            self.renamed.push((theirs.to_owned(), ours.to_owned()));
        }
    }
}

/// Returns the message as the server would send it, with pictures as data URLs.
fn chat_message(message: &Value) -> Value {
    let pieces = message["content"].as_array().unwrap().iter().map(|it| match &it["source"] {
        Value::Null => it.clone(),
        source => {
            let (kind, data) = (source["media_type"].as_str(), source["data"].as_str());
            let url = format!("data:{};base64,{}", kind.unwrap(), data.unwrap());
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
    });
    json!({ "role": "user", "content": pieces.collect::<Vec<_>>() })
}

fn last_written(effects: &[ProgramEffect]) -> Option<Value> {
    effects.iter().rev().find_map(|it| match it {
        ProgramEffect::Write(line) => Some(serde_json::from_str(line).unwrap()),
        _ => None,
    })
}
