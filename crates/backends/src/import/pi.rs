//! Pi's `sessions/<folder>/<time>_<conversation>.jsonl`.
//!
//! A tree of entries, most of them whole messages as Pi reports them. The file does not mark the end of a
//! run: an answer without calls ends it, and after an error the next entry shows whether Pi has retried. A
//! message that came while the model was active is part of the run.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use transcript::{Event, Millis, RewindReason};

use super::branch::Branch;
use super::pictures::text_and_pictures;
use super::replay::{ConversationInfo, Prompt};
use super::{
    ConversationFile, Imported, ProgramKind, Replay, Tail, lines, moment, owned, silent, words,
};
use crate::pi::{Pi, Settings, failure};
use crate::{Launch, ProgramBackend};

pub(super) fn read(kept: &ConversationFile<'_>, tail: Tail) -> Option<Imported> {
    let mut reader = Reader {
        replay: Replay::new(ProgramKind::Pi, kept.agent, backend(None)),
        branch: Branch::default(),
        conversation: None,
        cwd: None,
        model: None,
        open_calls: HashSet::new(),
        failed: None,
    };
    for line in lines(kept.text) {
        match line {
            Ok(entry) => reader.handle_line(&entry),
            Err(line) => reader.replay.unrecognized(line),
        }
    }
    reader.finish(tail)
}

struct Reader {
    replay: Replay,
    branch: Branch,
    conversation: Option<String>,
    cwd: Option<String>,
    model: Option<String>,
    open_calls: HashSet<String>,
    /// Error of the model's last message, if that failed. The next entry shows whether Pi has
    /// retried.
    failed: Option<Failed>,
}

struct Failed {
    why: String,
    /// Whether a person stopped the turn, which the new Pi package reports as an error.
    was_stopped: bool,
}

impl Reader {
    fn handle_line(&mut self, entry: &Value) {
        let at = moment(&entry["timestamp"]).unwrap_or(self.replay.last_at());
        if let Some(id) = entry["id"].as_str() {
            self.branch.add(id, entry["parentId"].as_str());
        }
        match entry["type"].as_str() {
            Some("session") if self.conversation.is_none() => {
                self.close_run();
                self.conversation = owned(&entry["id"]);
                self.cwd = owned(&entry["cwd"]);
                self.replay.replace_backend(backend(self.cwd.as_deref()));
            }
            Some("model_change") => {
                let (provider, model) = (&entry["provider"], &entry["modelId"]);
                self.model = provider.as_str().zip(model.as_str()).map(|(p, m)| format!("{p}/{m}"));
            }
            Some("message") => self.handle_message(at, entry),
            Some("compaction") => self.replay.notice(at, "Pi has shortened the conversation."),
            Some("session_info") => {
                let title = owned(&entry["name"]);
                self.replay.rename(at, title);
            }
            Some("custom_message") if entry["display"] == true => {
                self.replay.notice(at, words(&entry["content"]));
            }
            Some(kind) if silent::OF_PI.contains(&kind) => (),
            _ => self.replay.unrecognized(&entry.to_string()),
        }
    }

    fn handle_message(&mut self, at: Millis, entry: &Value) {
        let message = &entry["message"];
        match message["role"].as_str() {
            Some("user") => self.said(at, entry),
            Some("assistant") => self.handle_assistant(at, entry),
            Some("toolResult") => self.handle_result(at, message),
            Some("bashExecution") => {
                let field = |name: &str| message[name].as_str().unwrap_or_default();
                let ran = format!("$ {}\n{}", field("command"), field("output"));
                self.replay.notice(at, ran.trim_end());
            }
            Some(role) if silent::OF_PIS_ROLES.contains(&role) => (),
            _ => self.replay.unrecognized(&entry.to_string()),
        }
    }

    fn handle_result(&mut self, at: Millis, message: &Value) {
        let is_error = message["isError"] == true;
        if is_error && words(&message["content"]).ends_with("Command aborted") {
            self.replay.interrupt(at);
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
        self.feed_line(at, &ended);
    }

    fn said(&mut self, at: Millis, entry: &Value) {
        if self.failed.is_some() {
            self.end_run();
        }
        let id = entry["id"].as_str().unwrap_or_default();
        let (text, pictures) = text_and_pictures(&entry["message"]["content"]);
        let said = Prompt {
            id: format!("{}-{id}", self.conversation.as_deref().unwrap_or_default()),
            text,
            pictures,
            model: self.model.clone(),
        };
        // A call without a result was cut off by the end of the program.
        let is_at_work = self.replay.is_open() && self.open_calls.is_empty();
        if is_at_work && self.branch.follows_newest(id) {
            return self.replay.steer(at, said);
        }
        self.close_run();
        if let Some(before) = self.branch.say(id) {
            let conversation = self.conversation.as_deref().unwrap_or_default();
            let before_message_id = format!("{conversation}-{before}");
            let reason = RewindReason::Edit;
            self.replay.note(at, Event::HistoryRewound { before_message_id, reason });
        }
        self.replay.start(at, said);
        self.answer(at);
        self.feed_line(at, &json!({ "type": "agent_start" }));
    }

    fn handle_assistant(&mut self, at: Millis, entry: &Value) {
        let message = &entry["message"];
        self.tried_again(at);
        if !self.replay.is_open() {
            self.replay.offer(at, entry["id"].as_str().unwrap_or_default());
            self.answer(at);
            self.feed_line(at, &json!({ "type": "agent_start" }));
        }
        let began_at = message["timestamp"].as_i64().map_or(at, |it| Millis(it).min(at));
        let begun = json!({ "role": "assistant", "content": [] });
        self.feed_line(began_at, &json!({ "type": "message_start", "message": begun }));
        self.feed_line(at, &json!({ "type": "message_end", "message": message }));
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
            self.feed_line(
                at,
                &json!({
                    "type": "tool_execution_start", "toolCallId": call["id"],
                    "toolName": call["name"], "args": call["arguments"],
                }),
            );
        }
    }

    /// Discards the model's failed message, if there is one, because Pi has retried.
    fn tried_again(&mut self, at: Millis) {
        if let Some(Failed { why, .. }) = self.failed.take() {
            self.feed_line(at, &json!({ "type": "agent_start" }));
            let why = failure::words(&why);
            self.replay.notice(at, format!("The model service failed ({why}). Pi tried again."));
        }
    }

    fn end_run(&mut self) {
        let at = self.replay.last_at();
        self.open_calls.clear();
        let was_stopped = self.failed.take().is_some_and(|it| it.was_stopped);
        self.feed_line(at, &json!({ "type": "agent_end", "willRetry": false }));
        self.feed_line(at, &json!({ "type": "agent_settled", "aborted": was_stopped }));
    }

    /// Closes a run whose end is not in the file as broken off.
    fn close_run(&mut self) {
        self.open_calls.clear();
        if self.replay.is_open() {
            self.replay.break_off(self.replay.last_at(), backend(self.cwd.as_deref()));
        }
    }

    fn feed_line(&mut self, at: Millis, line: &Value) {
        self.replay.feed_line(at, line);
        self.answer(at);
    }

    /// Answers the backend's requests for Pi's state with the id of the conversation.
    fn answer(&mut self, at: Millis) {
        for command in self.replay.take_written() {
            if command["type"] == "get_state" {
                let data = json!({ "sessionId": self.conversation, "isStreaming": true });
                let state = json!({
                    "type": "response", "command": "get_state", "id": command["id"],
                    "success": true, "data": data,
                });
                self.replay.feed_line(at, &state);
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
        Some(self.replay.finish(tail, ConversationInfo { conversation, cwd, version: None }))
    }
}

fn backend(workspace: Option<&str>) -> Box<dyn ProgramBackend> {
    // No approvals are asked for, because every call that ran was allowed.
    let permission_mode = Some("auto".to_owned());
    let settings = Settings { permission_mode, ..Settings::default() };
    let workspace = workspace.unwrap_or_default().to_owned();
    let launch = Launch { workspace, ..Launch::default() };
    Box::new(Pi::new(Arc::new(settings), &launch))
}
