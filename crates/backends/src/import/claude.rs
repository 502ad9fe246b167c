//! Claude Code's `projects/<folder>/<conversation>.jsonl`.
//!
//! A line is a block of the model, the result of a call, or a message in the user's name, almost as on
//! stdout. The file does not mark the end of a turn: the next message shows it, or a note that the turn was
//! interrupted, or an error of the service. After an answer without calls a turn may be complete or may still
//! continue. Sub-agents are in files of their own, and are merged by the time of their lines.

mod side_files;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use transcript::{Attachment, Event, Millis, RewindReason};

use self::side_files::SideFiles;
use super::branch::Branch;
use super::pictures::text_and_pictures;
use super::replay::{ConversationInfo, Prompt};
use super::{
    ConversationFile, Imported, ProgramKind, Replay, Tail, lines, moment, owned, silent, words,
};
use crate::claude::{Claude, Settings};
use crate::{Launch, ProgramBackend};

const INTERRUPTED: &str = "[Request interrupted by user";

pub(super) fn read(kept: &ConversationFile<'_>, tail: Tail) -> Option<Imported> {
    let mut reader = Reader::new(kept);
    for line in lines(kept.text) {
        match line {
            Ok(line) => reader.handle_line(&line),
            Err(line) => reader.replay.unrecognized(line),
        }
    }
    reader.finish(tail)
}

struct Reader<'a> {
    replay: Replay,
    branch: Branch,
    conversation: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    side_files: SideFiles<'a>,
    /// Times at which the tool calls were made, by the model service's ids.
    calls: HashMap<String, Millis>,
    /// Ids of the sub-agents that run in the background.
    agents: BTreeSet<String>,
    /// Whether the last entry so far is an answer of the model without tool calls.
    is_resting: bool,
}

impl<'a> Reader<'a> {
    fn new(kept: &ConversationFile<'a>) -> Self {
        Self {
            replay: Replay::new(ProgramKind::Claude, kept.agent, backend()),
            branch: Branch::default(),
            conversation: None,
            cwd: None,
            version: None,
            side_files: SideFiles::new(kept.side_files),
            calls: HashMap::new(),
            agents: BTreeSet::new(),
            is_resting: false,
        }
    }

    fn handle_line(&mut self, line: &Value) {
        let at = moment(&line["timestamp"]).unwrap_or(self.replay.last_at());
        for (field, name) in [
            (&mut self.conversation, "sessionId"),
            (&mut self.cwd, "cwd"),
            (&mut self.version, "version"),
        ] {
            *field = field.take().or_else(|| owned(&line[name]));
        }
        let parent = line["parentUuid"].as_str().or(line["logicalParentUuid"].as_str());
        // Without an id the predecessor is unknown: a summary may have replaced it.
        if let (Some(id), Some(_)) = (line["uuid"].as_str(), parent) {
            self.branch.add(id, parent);
        }
        self.handle_side_lines(at);
        let inside = self.side_files.call_around(line);
        match line["type"].as_str() {
            Some("assistant") => self.handle_assistant(at, line, inside.as_deref()),
            Some("user") => self.handle_user(at, line, inside.as_deref()),
            Some("system") => self.handle_system(at, line),
            Some(kind) if silent::OF_CLAUDE.contains(&kind) => (),
            Some("custom-title") => {
                let title = owned(&line["customTitle"]);
                self.replay.rename(at, title);
            }
            Some("attachment") => self.handle_attachment(at, line),
            _ => self.replay.unrecognized(&line.to_string()),
        }
    }

    /// Handles an attachment of Claude Code. A message that was typed while the model was active is
    /// added to the open turn.
    fn handle_attachment(&mut self, at: Millis, line: &Value) {
        let attachment = &line["attachment"];
        let mode = attachment["commandMode"].as_str().unwrap_or("prompt");
        let (text, pictures) = text_and_pictures(&attachment["prompt"]);
        if attachment["type"] == "queued_command" && mode == "prompt" && self.replay.is_open() {
            let id = owned(&line["uuid"]).unwrap_or_else(|| format!("at-{}", at.0));
            self.is_resting = false;
            self.replay.steer(at, Prompt { id, text, pictures, model: None });
        }
    }

    /// Feeds the backend all lines of sub-agents up to this time.
    fn handle_side_lines(&mut self, until: Millis) {
        while let Some((at, call, line)) = self.side_files.next(until) {
            match line["type"].as_str() {
                Some("assistant") => self.handle_assistant(at, &line, Some(&call)),
                Some("user") => self.handle_user(at, &line, Some(&call)),
                // Other lines are for the program's own use, or repetitions.
                _ => (),
            }
        }
    }

    fn handle_assistant(&mut self, at: Millis, line: &Value, inside: Option<&str>) {
        let message = &line["message"];
        let is_error = line["isApiErrorMessage"] == true;
        // Messages that the program writes in the model's name, such as after a crash, are not shown.
        if message["model"] == "<synthetic>" && !is_error {
            return;
        }
        if inside.is_none() {
            self.begin_by_itself(at, line);
        }
        self.replay.feed_line(
            at,
            &json!({
                "type": "assistant", "message": message, "parent_tool_use_id": inside,
                "is_api_error_message": is_error, "error": line["error"],
            }),
        );
        if is_error && inside.is_none() {
            return self.failed(at, line);
        }
        let delta = json!({ "stop_reason": message["stop_reason"] });
        let event = json!({ "type": "message_delta", "delta": delta, "usage": message["usage"] });
        self.replay.feed_line(
            at,
            &json!({ "type": "stream_event", "event": event, "parent_tool_use_id": inside }),
        );
        self.note_calls(at, message);
        if inside.is_none() {
            // Older versions do not record the reason for which the model stopped.
            let is_over = match message["stop_reason"].as_str() {
                None => line["isAbortedMidStream"] != true,
                Some(reason) => reason != "tool_use",
            };
            let says = |it: &Value| it["type"] == "text";
            let has_visible_text =
                message["content"].as_array().is_some_and(|it| it.iter().any(says));
            self.is_resting = is_over && has_visible_text;
        }
    }

    fn failed(&mut self, at: Millis, line: &Value) {
        let why = words(&line["message"]["content"]);
        let is_too_long = why.starts_with("Prompt is too long");
        let reason = if is_too_long { "prompt_too_long" } else { "api_error" };
        self.end_turn(
            at,
            &json!({
                "type": "result", "subtype": "success", "is_error": true, "result": why,
                "terminal_reason": reason, "api_error_status": line["apiErrorStatus"],
            }),
        );
    }

    fn note_calls(&mut self, at: Millis, message: &Value) {
        let blocks = message["content"].as_array().into_iter().flatten();
        for block in blocks.filter(|it| it["type"] == "tool_use") {
            let Some(id) = owned(&block["id"]) else { continue };
            if let Some(task) = owned(&block["input"]["prompt"]) {
                self.side_files.task_given(task, id.clone());
            }
            self.calls.insert(id, at);
        }
    }

    fn handle_user(&mut self, at: Millis, line: &Value, inside: Option<&str>) {
        let content = &line["message"]["content"];
        let has_results = content
            .as_array()
            .is_some_and(|blocks| blocks.iter().any(|it| it["type"] == "tool_result"));
        if has_results {
            return self.handle_results(at, line, inside);
        }
        let (text, pictures) = text_and_pictures(content);
        let is_for_model = line["isMeta"] == true || line["isCompactSummary"] == true;
        match text.as_str() {
            _ if inside.is_some() => (),
            it if it.starts_with(INTERRUPTED) => self.interrupted(at, content),
            it if it.starts_with("<task-notification>") => self.agent_ended(at, line, it),
            it if it.starts_with("<local-command-stdout>") => {
                self.handle_command_output(at, content)
            }
            it if it.starts_with("<bash-") => self.replay.notice(at, strip_tags(it)),
            it if is_for_model && line["turnCompanion"] == true && !it.starts_with('<') => {
                self.is_resting = false;
                let content = json!([{ "type": "text", "text": it }]);
                self.replay.feed_line(at, &user(&content));
            }
            _ if is_for_model => (),
            it => self.said(at, line, command(it).unwrap_or_else(|| it.to_owned()), pictures),
        }
    }

    /// Handles a person's message, which ends the previous turn and begins a run.
    fn said(&mut self, at: Millis, line: &Value, text: String, pictures: Vec<Attachment>) {
        self.close_turn();
        let id = owned(&line["uuid"]).unwrap_or_else(|| format!("at-{}", at.0));
        if let Some(before_message_id) = self.branch.say(&id) {
            let reason = RewindReason::Edit;
            self.replay.note(at, Event::HistoryRewound { before_message_id, reason });
        }
        self.replay.start(at, Prompt { id, text, pictures, model: None });
        self.feed_init(at);
    }

    fn handle_results(&mut self, at: Millis, line: &Value, inside: Option<&str>) {
        // Written when a conversation is resumed after the program ended during the call.
        let denial = &line["toolDenialKind"];
        if denial == "interrupted" {
            return;
        }
        if inside.is_none() {
            self.is_resting = false;
        }
        let blocks = line["message"]["content"].as_array().into_iter().flatten();
        let ids: Vec<&str> = blocks.filter_map(|it| it["tool_use_id"].as_str()).collect();
        for id in ids.iter().filter(|_| denial.is_null()) {
            let since = self.calls.get(*id).copied().unwrap_or(at);
            let running = json!({ "type": "system", "subtype": "task_started", "tool_use_id": id });
            self.replay.feed_line(since, &running);
        }
        let meta = |id: &&str| {
            json!({
                "id": id, "non_execution_kind": denial,
                "permission_decision": line["permissionDecision"],
            })
        };
        let mut told = json!({
            "type": "user", "message": line["message"], "parent_tool_use_id": inside,
            "tool_use_result": self.side_files.whole_result(line),
        });
        if !denial.is_null() {
            let metas = ids.iter().map(meta).map(without_nulls);
            told["tool_result_meta"] = metas.collect();
        }
        self.replay.feed_line(at, &told);
        let result = &line["toolUseResult"];
        if let Some(agent) = result["agentId"].as_str().filter(|_| result["isAsync"] == true) {
            self.agents.insert(agent.to_owned());
            self.feed_agents(at);
        }
    }

    fn interrupted(&mut self, at: Millis, content: &Value) {
        self.replay.feed_line(at, &user(content));
        self.end_turn(
            at,
            &json!({
                "type": "result", "subtype": "error_during_execution", "is_error": true,
                "terminal_reason": "aborted_streaming",
            }),
        );
    }

    /// Handles the report to the model that a background agent has ended. It begins a run unless
    /// one is open.
    fn agent_ended(&mut self, at: Millis, line: &Value, text: &str) {
        let call = between(text, "<tool-use-id>", "</tool-use-id>").unwrap_or_default();
        let ended =
            json!({ "type": "system", "subtype": "task_notification", "tool_use_id": call });
        self.replay.feed_line(at, &ended);
        if std::mem::take(&mut self.is_resting) {
            self.replay.feed_line(at, &succeeded());
        }
        self.agents.remove(between(text, "<task-id>", "</task-id>").unwrap_or_default());
        self.feed_agents(at);
        self.begin_by_itself(at, line);
        self.feed_init(at);
    }

    /// Handles the output of one of Claude Code's own commands, which is the whole answer of its
    /// turn.
    fn handle_command_output(&mut self, at: Millis, content: &Value) {
        if self.replay.is_open() {
            let mut echo = user(content);
            echo["isReplay"] = json!(true);
            self.replay.feed_line(at, &echo);
            self.end_turn(at, &succeeded());
        }
    }

    fn handle_system(&mut self, at: Millis, line: &Value) {
        match line["subtype"].as_str() {
            Some("api_error") => {
                let retry = json!({
                    "type": "system", "subtype": "api_retry", "attempt": line["retryAttempt"],
                    "max_retries": line["maxRetries"], "retry_delay_ms": line["retryInMs"],
                    "error_status": line["error"]["status"],
                });
                self.replay.feed_line(at, &without_nulls(retry));
            }
            Some("compact_boundary") if self.replay.is_open() && !self.is_resting => {
                let counts = &line["compactMetadata"];
                let counts = json!({ "pre_tokens": counts["preTokens"], "post_tokens": counts["postTokens"] });
                let told = json!({
                    "type": "system", "subtype": "compact_boundary", "compact_metadata": counts,
                });
                self.replay.feed_line(at, &told);
            }
            Some("compact_boundary") => {
                self.close_turn();
                self.replay.notice(at, "Claude Code has shortened the conversation.");
            }
            Some("informational" | "local_command") => {
                let said = strip_tags(line["content"].as_str().unwrap_or_default());
                if !said.is_empty() {
                    self.replay.notice(at, said);
                }
            }
            Some(subtype) if silent::OF_CLAUDES_SYSTEM.contains(&subtype) => (),
            _ => self.replay.unrecognized(&line.to_string()),
        }
    }

    /// Begins a run without a message, if no run is open.
    fn begin_by_itself(&mut self, at: Millis, line: &Value) {
        if !self.replay.is_open() {
            let id = line["uuid"].as_str().unwrap_or_default();
            self.replay.offer(at, id);
            self.feed_init(at);
        }
    }

    fn feed_init(&mut self, at: Millis) {
        let init = json!({
            "type": "system", "subtype": "init", "session_id": self.conversation,
            "cwd": self.cwd, "claude_code_version": self.version,
        });
        self.replay.feed_line(at, &init);
    }

    fn feed_agents(&mut self, at: Millis) {
        let agent = |it: &String| json!({ "task_id": it, "task_type": "local_agent" });
        let tasks: Vec<Value> = self.agents.iter().map(agent).collect();
        let told =
            json!({ "type": "system", "subtype": "background_tasks_changed", "tasks": tasks });
        self.replay.feed_line(at, &told);
    }

    /// Ends the open turn at its last entry: as completed after an answer, else as broken off.
    fn close_turn(&mut self) {
        let at = self.replay.last_at();
        if self.is_resting {
            self.end_turn(at, &succeeded());
        }
        if self.replay.is_open() {
            self.replay.break_off(at, backend());
        }
    }

    fn end_turn(&mut self, at: Millis, result: &Value) {
        self.is_resting = false;
        if !self.agents.is_empty() {
            self.agents.clear();
            self.feed_agents(at);
        }
        self.replay.feed_line(at, result);
    }

    fn finish(mut self, tail: Tail) -> Option<Imported> {
        let is_over = self.is_resting && self.agents.is_empty();
        match tail {
            Tail::LeaveOut if is_over => self.close_turn(),
            Tail::Close => self.close_turn(),
            Tail::Open | Tail::LeaveOut => (),
        }
        let (conversation, cwd, version) = (self.conversation?, self.cwd, self.version);
        Some(self.replay.finish(tail, ConversationInfo { conversation, cwd, version }))
    }
}

fn backend() -> Box<dyn ProgramBackend> {
    Box::new(Claude::new(Arc::new(Settings::default()), &Launch::default()))
}

fn succeeded() -> Value {
    json!({ "type": "result", "subtype": "success", "is_error": false })
}

fn user(content: &Value) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": content } })
}

/// Returns Claude Code's own command as the user typed it, such as `/compact keep the names`.
/// `None` if the text is not a command.
fn command(text: &str) -> Option<String> {
    let name = between(text, "<command-name>", "</command-name>")?;
    let arguments = between(text, "<command-args>", "</command-args>").unwrap_or_default();
    Some(format!("{name} {arguments}").trim().to_owned())
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(start)?;
    Some(after.split_once(end)?.0.trim())
}

/// Removes the tags with which Claude Code marks a user's command and its output.
fn strip_tags(text: &str) -> String {
    let pieces = text.split('<').map(|it| it.split_once('>').map_or(it, |(_, after)| after));
    pieces.collect::<String>().trim().to_owned()
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, it| !it.is_null());
    }
    value
}
