//! Codex's `sessions/<date>/rollout-<time>-<thread>.jsonl`.
//!
//! The file holds the messages to and from the model service (`response_item`), and events (`event_msg`).
//! Most content is there twice: an item is shown when it completes, and a message of the service only if it
//! has no item, as in files of older versions. The beginning and end of a turn are events of their own.

mod items;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};
use transcript::Millis;

use self::items::{Output, called_item, fields, in_camel_case, live_item, texts};

use super::pictures::text_and_pictures;
use super::replay::{ConversationInfo, Prompt};
use super::{
    ConversationFile, Imported, ProgramKind, Replay, Tail, lines, moment, owned, silent, words,
};
use crate::codex::{self, Settings};
use crate::{Launch, ProgramBackend};

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

struct Reader {
    replay: Replay,
    thread: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    model: Option<String>,
    turn: Option<String>,
    /// Codex's ids of turns that have ended: later lines about them do not belong to the open turn.
    ended_turns: HashSet<String>,
    /// Tool calls that have no completed item yet, by their ids, converted to items.
    called: HashMap<String, Value>,
    /// Whether the file has items. Then people's messages are read from these.
    has_items: bool,
    /// Whether the file marks the beginnings and ends of turns.
    has_turns: bool,
    /// Whether the last entry so far is an answer of the model without tool calls.
    is_resting: bool,
    n_lines: u64,
}

impl Reader {
    fn new(kept: &ConversationFile<'_>) -> Self {
        Self {
            replay: Replay::new(ProgramKind::Codex, kept.agent, backend(None)),
            thread: None,
            cwd: None,
            version: None,
            model: None,
            turn: None,
            ended_turns: HashSet::new(),
            called: HashMap::new(),
            has_items: false,
            has_turns: false,
            is_resting: false,
            n_lines: 0,
        }
    }

    fn handle_line(&mut self, line: &Value) {
        self.n_lines += 1;
        let at = moment(&line["timestamp"]).unwrap_or(self.replay.last_at());
        let payload = &line["payload"];
        match line["type"].as_str() {
            Some("session_meta") => self.handle_meta(payload),
            Some("turn_context") => self.model = owned(&payload["model"]).or(self.model.take()),
            Some("event_msg") => self.handle_event(at, payload),
            Some("response_item") => self.handle_response_item(at, payload),
            Some("compacted") => {
                self.replay.notice(at, "Codex has shortened the conversation to make room.");
            }
            Some(kind) if silent::OF_CODEX.contains(&kind) => (),
            _ => self.replay.unrecognized(&line.to_string()),
        }
    }

    /// Handles the conversation's metadata. Only the first metadata count, because a copied
    /// conversation also has those of its original.
    fn handle_meta(&mut self, meta: &Value) {
        if self.thread.is_none() {
            self.close_turn();
            self.thread = owned(&meta["id"]);
            self.cwd = owned(&meta["cwd"]);
            self.version = owned(&meta["cli_version"]);
            self.replay.replace_backend(backend(self.cwd.as_deref()));
        }
    }

    fn handle_event(&mut self, at: Millis, event: &Value) {
        match event["type"].as_str() {
            Some("task_started") => {
                self.has_turns = true;
                self.close_turn();
                self.turn = owned(&event["turn_id"]);
            }
            Some("item_completed") if self.has_ended(event) => (),
            Some("item_completed") => {
                self.has_items = true;
                self.turn = self.turn.take().or_else(|| owned(&event["turn_id"]));
                self.handle_item(at, event);
            }
            Some("user_message") if !self.has_items => {
                let id = format!("{}-{}", self.thread.as_deref().unwrap_or_default(), self.n_lines);
                let mut content = vec![json!({ "type": "text", "text": event["message"] })];
                let pictures = event["images"].as_array().into_iter().flatten();
                content.extend(pictures.map(|it| json!({ "type": "image", "image_url": it })));
                self.said(at, id, &content.into());
            }
            Some("token_count") if event["info"].is_object() => {
                let info = &event["info"];
                let (total, last) = (&info["total_token_usage"], &info["last_token_usage"]);
                let usage = json!({ "total": in_camel_case(total), "last": in_camel_case(last) });
                self.feed_line(at, "thread/tokenUsage/updated", json!({ "tokenUsage": usage }));
            }
            Some("task_complete") => {
                let error = in_camel_case(&event["error"]);
                let status = if error.is_null() { "completed" } else { "failed" };
                self.end_turn(at, &json!({ "status": status, "error": error }));
            }
            Some("turn_aborted") => self.end_turn(at, &json!({ "status": "interrupted" })),
            Some("error") => {
                let error = in_camel_case(&fields(event, &["message", "codex_error_info"]));
                self.feed_line(at, "error", json!({ "error": error, "willRetry": false }));
            }
            Some("warning") => {
                self.replay.notice(at, event["message"].as_str().unwrap_or_default());
            }
            Some(kind) if silent::OF_CODEXS_EVENTS.contains(&kind) => (),
            _ => self.replay.unrecognized(&event.to_string()),
        }
    }

    fn handle_item(&mut self, at: Millis, event: &Value) {
        let item = &event["item"];
        let id = item["id"].as_str().unwrap_or_default();
        if item["type"] == "UserMessage" {
            return self.said(at, id.to_owned(), &item["content"]);
        }
        let Some(item) = live_item(item) else {
            return self.replay.unrecognized(&event.to_string());
        };
        self.called.remove(id);
        self.complete(at, &item);
    }

    fn handle_response_item(&mut self, at: Millis, item: &Value) {
        match item["type"].as_str() {
            Some("message") if item["role"] == "assistant" => self.handle_words(
                at,
                item,
                json!({
                    "type": "agentMessage", "text": words(&item["content"]), "phase": item["phase"],
                }),
            ),
            Some("reasoning") => self.handle_words(
                at,
                item,
                json!({
                    "type": "reasoning",
                    "summary": texts(&item["summary"]), "content": texts(&item["content"]),
                }),
            ),
            Some("function_call" | "custom_tool_call" | "local_shell_call") => {
                self.handle_call(at, item);
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                self.handle_output(at, item);
            }
            // In files with items these calls have an item.
            Some("web_search_call" | "image_generation_call") if self.has_items => (),
            Some("web_search_call") => self.handle_words(
                at,
                item,
                json!({
                    "type": "webSearch", "query": item["action"]["query"], "action": item["action"],
                    "status": item["status"],
                }),
            ),
            Some("image_generation_call") => self.handle_words(
                at,
                item,
                json!({
                    "type": "imageGeneration", "revisedPrompt": item["revised_prompt"],
                    "status": item["status"],
                }),
            ),
            // Messages of people have events of their own. Other messages are only for the model.
            Some("message") => (),
            Some(kind) if silent::OF_CODEXS_ITEMS.contains(&kind) => (),
            _ => self.replay.unrecognized(&item.to_string()),
        }
    }

    /// Replays an item for the model service as a completed item, such as a text or thinking. The
    /// backend ignores it if it has had an item with this id.
    fn handle_words(&mut self, at: Millis, item: &Value, mut told: Value) {
        let id = owned(&item["id"]).unwrap_or_else(|| format!("line-{}", self.n_lines));
        told["id"] = json!(id);
        self.complete(at, &told);
    }

    fn handle_call(&mut self, at: Millis, call: &Value) {
        let id = call["call_id"].as_str().unwrap_or_default();
        let Some(mut item) = called_item(call, self.cwd.as_deref()) else { return };
        item["id"] = json!(id);
        item["status"] = json!("inProgress");
        self.is_resting = false;
        self.begin_by_itself(at);
        // Other calls are shown when they have an output, as the tool may not exist.
        if item["type"] == "commandExecution" {
            // A person may have to approve the command first.
            let status = json!({ "type": "active", "activeFlags": ["waitingOnApproval"] });
            self.feed_line(at, "thread/status/changed", json!({ "status": status }));
            self.feed_line(at, "item/started", json!({ "item": item }));
        }
        self.called.insert(id.to_owned(), item);
    }

    /// Handles the output of a tool call that has no completed item.
    fn handle_output(&mut self, at: Millis, output: &Value) {
        let id = output["call_id"].as_str().unwrap_or_default();
        let Some(mut item) = self.called.remove(id) else { return };
        // An interrupted call ends with its turn.
        if let Some(output) = Output::read(&words(&output["output"])) {
            output.put_into(&mut item);
            self.complete(at, &item);
        }
    }

    fn complete(&mut self, at: Millis, item: &Value) {
        self.begin_by_itself(at);
        self.is_resting = item["type"] == "agentMessage";
        self.feed_line(at, "item/completed", json!({ "item": item }));
    }

    fn said(&mut self, at: Millis, id: String, content: &Value) {
        if !self.has_turns {
            self.close_turn();
        }
        let (text, pictures) = text_and_pictures(content);
        let said = Prompt { id, text, pictures, model: self.model.clone() };
        if self.replay.is_open() {
            return self.replay.steer(at, said);
        }
        self.replay.start(at, said);
        self.answer(at);
    }

    /// Begins a turn without a message if no run is open, as for a compaction that the user
    /// requested.
    fn begin_by_itself(&mut self, at: Millis) {
        if !self.replay.is_open() {
            let turn = self.turn();
            self.replay.offer(at, &turn);
            let started = json!({ "turn": { "id": turn, "status": "inProgress" } });
            self.feed_line(at, "turn/started", started);
        }
    }

    /// Answers the backend's requests as the running Codex would.
    fn answer(&mut self, at: Millis) {
        loop {
            let requests = self.replay.take_written();
            if requests.is_empty() {
                return;
            }
            for request in requests {
                let result = match request["method"].as_str() {
                    Some("initialize") => json!({}),
                    Some("thread/start") => json!({
                        "thread": { "id": self.thread, "cliVersion": self.version },
                        "cwd": self.cwd,
                    }),
                    Some("turn/start") => json!({ "turn": { "id": self.turn() } }),
                    _ => continue,
                };
                self.replay.feed_line(at, &json!({ "id": request["id"], "result": result }));
            }
        }
    }

    fn feed_line(&mut self, at: Millis, method: &str, params: Value) {
        self.replay.feed_line(at, &json!({ "method": method, "params": params }));
        self.replay.take_written();
    }

    /// Returns the id of the open turn, and makes one up for files of older Codex versions.
    fn turn(&mut self) -> String {
        self.turn.get_or_insert_with(|| format!("turn-{}", self.n_lines)).clone()
    }

    fn has_ended(&self, event: &Value) -> bool {
        event["turn_id"].as_str().is_some_and(|it| self.ended_turns.contains(it))
    }

    fn end_turn(&mut self, at: Millis, how: &Value) {
        let mut turn = how.clone();
        turn["id"] = json!(self.turn());
        self.called.clear();
        self.is_resting = false;
        self.feed_line(at, "turn/completed", json!({ "turn": turn }));
        // The file does not have the ends of the turn's commands, so the deadline passes.
        self.replay.time_out(at);
        self.ended_turns.extend(self.turn.take());
    }

    /// Closes a turn whose end is not in the file, as in all files of older Codex versions.
    fn close_turn(&mut self) {
        let at = self.replay.last_at();
        if self.is_resting && !self.has_turns {
            self.end_turn(at, &json!({ "status": "completed" }));
        }
        if self.replay.is_open() {
            self.called.clear();
            self.replay.break_off(at, backend(self.cwd.as_deref()));
        }
    }

    fn finish(mut self, tail: Tail) -> Option<Imported> {
        let is_over = self.is_resting && !self.has_turns;
        match tail {
            Tail::LeaveOut if is_over => self.close_turn(),
            Tail::Close => self.close_turn(),
            Tail::Open | Tail::LeaveOut => (),
        }
        let (conversation, cwd, version) = (self.thread?, self.cwd, self.version);
        Some(self.replay.finish(tail, ConversationInfo { conversation, cwd, version }))
    }
}

/// Creates the backend that interprets the replayed lines. The folder of a command is shown only if
/// it is not the workspace.
fn backend(workspace: Option<&str>) -> Box<dyn ProgramBackend> {
    let workspace = workspace.unwrap_or_default().to_owned();
    let launch = Launch { workspace, ..Launch::default() };
    codex::backend(Arc::new(Settings::default()), &launch)
}
