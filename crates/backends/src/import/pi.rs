//! Pi's `sessions/<folder>/<time>_<conversation>.jsonl`.
//!
//! A tree of entries, most of them whole messages as Pi says them. It does not say where a run ends: a
//! model that wants nothing more ends it, and after an error the next entry shows whether Pi has tried
//! again. A message that comes while the model is at work went into the run.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use transcript::{Event, Millis, RewindReason};

use super::branch::Branch;
use super::pictures::spoken;
use super::retelling::{About, Said};
use super::{Imported, Kept, ProgramKind, Retelling, Tail, lines, moment, owned, silent, words};
use crate::pi::{Pi, Settings, failure};
use crate::{Backend, Launch};

pub(super) fn read(kept: &Kept<'_>, tail: Tail) -> Option<Imported> {
    let mut reader = Reader {
        told: Retelling::new(ProgramKind::Pi, kept.agent, backend(None)),
        branch: Branch::default(),
        conversation: None,
        cwd: None,
        model: None,
        open_calls: HashSet::new(),
        failed: None,
    };
    for line in lines(kept.text) {
        match line {
            Ok(entry) => reader.hear(&entry),
            Err(line) => reader.told.unrecognized(line),
        }
    }
    reader.finish(tail)
}

struct Reader {
    told: Retelling,
    branch: Branch,
    conversation: Option<String>,
    cwd: Option<String>,
    model: Option<String>,
    open_calls: HashSet<String>,
    /// The model's last message failed. What follows says whether it was tried again.
    failed: Option<Failed>,
}

struct Failed {
    why: String,
    /// Somebody wanted it to stop, and the new package calls that an error.
    was_stopped: bool,
}

impl Reader {
    fn hear(&mut self, entry: &Value) {
        let at = moment(&entry["timestamp"]).unwrap_or(self.told.last_at());
        if let Some(id) = entry["id"].as_str() {
            self.branch.add(id, entry["parentId"].as_str());
        }
        match entry["type"].as_str() {
            Some("session") if self.conversation.is_none() => {
                self.close_run();
                self.conversation = owned(&entry["id"]);
                self.cwd = owned(&entry["cwd"]);
                self.told.replace_backend(backend(self.cwd.as_deref()));
            }
            Some("model_change") => {
                let (provider, model) = (&entry["provider"], &entry["modelId"]);
                self.model = provider.as_str().zip(model.as_str()).map(|(p, m)| format!("{p}/{m}"));
            }
            Some("message") => self.hear_message(at, entry),
            Some("compaction") => self.told.notice(at, "Pi has shortened the conversation."),
            Some("session_info") => {
                let title = owned(&entry["name"]);
                self.told.rename(at, title);
            }
            Some("custom_message") if entry["display"] == true => {
                self.told.notice(at, words(&entry["content"]));
            }
            Some(kind) if silent::OF_PI.contains(&kind) => (),
            _ => self.told.unrecognized(&entry.to_string()),
        }
    }

    fn hear_message(&mut self, at: Millis, entry: &Value) {
        let message = &entry["message"];
        match message["role"].as_str() {
            Some("user") => self.said(at, entry),
            Some("assistant") => self.hear_assistant(at, entry),
            Some("toolResult") => self.hear_result(at, message),
            Some("bashExecution") => {
                let field = |name: &str| message[name].as_str().unwrap_or_default();
                let ran = format!("$ {}\n{}", field("command"), field("output"));
                self.told.notice(at, ran.trim_end());
            }
            Some(role) if silent::OF_PIS_ROLES.contains(&role) => (),
            _ => self.told.unrecognized(&entry.to_string()),
        }
    }

    fn hear_result(&mut self, at: Millis, message: &Value) {
        let is_error = message["isError"] == true;
        if is_error && words(&message["content"]).ends_with("Command aborted") {
            self.told.interrupt(at);
        }
        let result = json!({ "content": message["content"], "details": message["details"] });
        let mut ended = json!({
            "type": "tool_execution_end", "toolCallId": message["toolCallId"],
            "toolName": message["toolName"], "result": result, "isError": is_error,
        });
        if message["durationMs"].is_number() {
            ended["durationMs"] = message["durationMs"].clone();
        }
        self.open_calls.remove(message["toolCallId"].as_str().unwrap_or_default());
        self.tell(at, &ended);
    }

    fn said(&mut self, at: Millis, entry: &Value) {
        if self.failed.is_some() {
            self.end_run();
        }
        let id = entry["id"].as_str().unwrap_or_default();
        let (text, pictures) = spoken(&entry["message"]["content"]);
        let said = Said {
            id: format!("{}-{id}", self.conversation.as_deref().unwrap_or_default()),
            text,
            pictures,
            model: self.model.clone(),
        };
        // A call without a result has died with the program.
        let is_at_work = self.told.is_open() && self.open_calls.is_empty();
        if is_at_work && self.branch.follows_newest(id) {
            return self.told.steer(at, said);
        }
        self.close_run();
        if let Some(before) = self.branch.say(id) {
            let conversation = self.conversation.as_deref().unwrap_or_default();
            let before_message_id = format!("{conversation}-{before}");
            let reason = RewindReason::Edit;
            self.told.note(at, Event::HistoryRewound { before_message_id, reason });
        }
        self.told.start(at, said);
        self.answer(at);
        self.tell(at, &json!({ "type": "agent_start" }));
    }

    fn hear_assistant(&mut self, at: Millis, entry: &Value) {
        let message = &entry["message"];
        self.tried_again(at);
        if !self.told.is_open() {
            self.told.offer(at, entry["id"].as_str().unwrap_or_default());
            self.answer(at);
            self.tell(at, &json!({ "type": "agent_start" }));
        }
        let began_at = message["timestamp"].as_i64().map_or(at, |it| Millis(it).min(at));
        let begun = json!({ "role": "assistant", "content": [] });
        self.tell(began_at, &json!({ "type": "message_start", "message": begun }));
        self.tell(at, &json!({ "type": "message_end", "message": message }));
        match message["stopReason"].as_str() {
            Some("toolUse") => self.run_calls(at, message),
            Some("error") => {
                let why = owned(&message["errorMessage"]).unwrap_or_default();
                let was_stopped = why.to_ascii_lowercase().contains("operation was aborted");
                self.failed = Some(Failed { why, was_stopped });
            }
            _ => self.end_run(),
        }
    }

    fn run_calls(&mut self, at: Millis, message: &Value) {
        let blocks = message["content"].as_array().into_iter().flatten();
        for call in blocks.filter(|it| it["type"] == "toolCall") {
            self.open_calls.extend(owned(&call["id"]));
            self.tell(
                at,
                &json!({
                    "type": "tool_execution_start", "toolCallId": call["id"],
                    "toolName": call["name"], "args": call["arguments"],
                }),
            );
        }
    }

    /// Of the answer that failed, nothing counts.
    fn tried_again(&mut self, at: Millis) {
        if let Some(Failed { why, .. }) = self.failed.take() {
            self.tell(at, &json!({ "type": "agent_start" }));
            let why = failure::words(&why);
            self.told.notice(at, format!("The model service failed ({why}). Pi tried again."));
        }
    }

    fn end_run(&mut self) {
        let at = self.told.last_at();
        self.open_calls.clear();
        let was_stopped = self.failed.take().is_some_and(|it| it.was_stopped);
        self.tell(at, &json!({ "type": "agent_end", "willRetry": false }));
        self.tell(at, &json!({ "type": "agent_settled", "aborted": was_stopped }));
    }

    /// The file does not say that the run has ended.
    fn close_run(&mut self) {
        self.open_calls.clear();
        if self.told.is_open() {
            self.told.break_off(self.told.last_at(), backend(self.cwd.as_deref()));
        }
    }

    fn tell(&mut self, at: Millis, line: &Value) {
        self.told.tell(at, line);
        self.answer(at);
    }

    /// Pi is asked for its state: which conversation it has.
    fn answer(&mut self, at: Millis) {
        for command in self.told.take_written() {
            if command["type"] == "get_state" {
                let data = json!({ "sessionId": self.conversation, "isStreaming": true });
                let state = json!({
                    "type": "response", "command": "get_state", "id": command["id"],
                    "success": true, "data": data,
                });
                self.told.tell(at, &state);
            }
        }
    }

    fn finish(mut self, tail: Tail) -> Option<Imported> {
        if self.failed.is_some() && tail != Tail::Open {
            self.end_run();
        }
        if tail == Tail::Close {
            self.close_run();
        }
        let (conversation, cwd) = (self.conversation?, self.cwd);
        Some(self.told.finish(tail, About { conversation, cwd, version: None }))
    }
}

fn backend(workspace: Option<&str>) -> Box<dyn Backend> {
    // Nobody is asked: what has run was allowed to.
    let permission_mode = Some("auto".to_owned());
    let settings = Settings { permission_mode, ..Settings::default() };
    let workspace = workspace.unwrap_or_default().to_owned();
    let launch = Launch { workspace, ..Launch::default() };
    Box::new(Pi::new(Arc::new(settings), &launch))
}
