//! Codex's items: texts, calls, and notices.
//!
//! `codex exec` has the same items in snake case, which are converted before they come here.

use serde_json::{Value, json};
use transcript::{ErrorCode, ErrorInfo, Level, Phase};

use super::author::{Author, Outcome, Section};
use super::{command, patch};
use crate::emitter::Emitter;

pub(super) const TEXT: Section = ("text", 0);

impl Author {
    pub(super) fn item_started(&mut self, item: &Value, out: &mut Emitter) {
        let id = item["id"].as_str().unwrap_or_default();
        self.begin_item(id);
        match item["type"].as_str().unwrap_or_default() {
            "agentMessage" | "plan" => self.start_text(id, phase(item)),
            "reasoning" => self.start_text(id, None),
            _ => self.start_call(id, item, out),
        }
    }

    pub(super) fn item_completed(&mut self, item: &Value, raw: &str, out: &mut Emitter) {
        let id = item["id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or_default() {
            "agentMessage" | "plan" => {
                let text = item["text"].as_str().map(str::to_owned);
                self.finish_text(id, false, phase(item), text, out);
            }
            "reasoning" => self.finish_text(id, true, None, thoughts(item), out),
            // Codex echoes our own message.
            "userMessage" => (),
            "hookPrompt" => {
                let fragments = item["fragments"].as_array().map(Vec::as_slice).unwrap_or_default();
                let texts: Vec<&str> =
                    fragments.iter().filter_map(|it| it["text"].as_str()).collect();
                self.notice_once(id, format!("A hook told the model: {}", texts.join("\n")), out);
            }
            "subAgentActivity" if item["kind"] != "started" => {
                let word = |name: &str| item[name].as_str().unwrap_or_default();
                let text = format!("Codex's agent {}: {}", word("agentPath"), word("kind"));
                self.notice_once(id, text, out);
            }
            "contextCompaction" => {
                if self.end_item(id) {
                    self.compacted("item", out);
                }
            }
            "enteredReviewMode" | "exitedReviewMode" | "error" => {
                let text = item["review"].as_str().or(item["message"].as_str());
                self.notice_once(id, text.unwrap_or_default(), out);
            }
            _ => match call(item, &self.workspace) {
                Some((name, arguments)) => self.finish(id, item, (&name, &arguments), out),
                None => out.unrecognized(raw),
            },
        }
    }

    /// Emits a notice about a compaction, once. Older versions of Codex report it in a
    /// notification, newer ones in an item or in both. `by` is the kind of report.
    pub(super) fn compacted(&mut self, by: &'static str, out: &mut Emitter) {
        let is_echo = self.compaction_reported_by.take_if(|it| *it != by).is_some();
        if !is_echo {
            self.compaction_reported_by = Some(by);
            out.notice(Level::Info, "Codex has shortened the conversation to make room.");
        }
    }

    /// Emits a notice for an item of Codex, unless the item has ended before.
    fn notice_once(&mut self, id: &str, text: impl Into<String>, out: &mut Emitter) {
        if self.end_item(id) {
            out.notice(Level::Info, text);
        }
    }

    /// Emits a finished tool call that Codex reports outside its items, such as an update of the
    /// plan.
    pub(super) fn whole_call(&mut self, name: &str, arguments: &Value, out: &mut Emitter) {
        let item = out.unused_name();
        if self.call(&item, name, out).is_some() {
            self.set_arguments(&item, arguments, out);
            let outcome = Outcome { ok: true, result: None, error: None, duration_ms: Some(0) };
            self.finish_call(&item, outcome, out);
        }
    }

    fn start_call(&mut self, id: &str, item: &Value, out: &mut Emitter) {
        let Some((name, arguments)) = call(item, &self.workspace) else { return };
        if self.open_call(id).is_some() || self.call(id, &name, out).is_none() {
            return;
        }
        // A search is announced before its query is known.
        if arguments["query"] != "" {
            self.set_arguments(id, &arguments, out);
        }
        // Codex asks about some calls after it has announced them; such a call does not run yet.
        if !self.awaits_decision {
            self.running(id, out);
        }
    }

    fn finish(
        &mut self,
        id: &str,
        item: &Value,
        (name, arguments): (&str, &Value),
        out: &mut Emitter,
    ) {
        if self.call(id, name, out).is_none() {
            return;
        }
        self.set_arguments(id, arguments, out);
        if let Some(whole) = item["aggregatedOutput"].as_str() {
            self.set_output(id, whole, out);
        }
        let outcome = outcome(item);
        if outcome.ok {
            self.running(id, out);
        }
        self.finish_call(id, outcome, out);
    }
}

/// Returns the tool name and the arguments of a Codex item; `None` if the item is not a tool call.
/// The folder of a command is included only if it is not the workspace.
pub(super) fn call(item: &Value, workspace: &str) -> Option<(String, Value)> {
    let text = |field: &str| item[field].as_str().unwrap_or_default();
    let (name, arguments) = match item["type"].as_str()? {
        "commandExecution" => {
            let mut arguments = json!({ "command": command::script(text("command")) });
            if let Some(cwd) = item["cwd"].as_str().filter(|it| *it != workspace) {
                arguments["cwd"] = json!(cwd);
            }
            ("shell".to_owned(), arguments)
        }
        "fileChange" => ("apply_patch".to_owned(), patch_arguments(&item["changes"])),
        "mcpToolCall" => (format!("{}__{}", text("server"), text("tool")), given(item)),
        "dynamicToolCall" => (text("tool").to_owned(), given(item)),
        "collabAgentToolCall" => {
            let mut arguments = fields(item, &["prompt", "model"]);
            // Empty until Codex knows the model.
            let given = arguments.as_object_mut();
            given.into_iter().for_each(|it| it.retain(|_, value| value != ""));
            (snake_case(text("tool")), arguments)
        }
        "subAgentActivity" if item["kind"] == "started" => {
            ("spawn_agent".to_owned(), fields(item, &["agentPath", "model"]))
        }
        "webSearch" => ("web_search".to_owned(), json!({ "query": text("query") })),
        "imageView" => ("view_image".to_owned(), json!({ "path": text("path") })),
        "imageGeneration" => ("image_generation".to_owned(), fields(item, &["revisedPrompt"])),
        "sleep" => ("sleep".to_owned(), fields(item, &["durationMs"])),
        "todoList" => ("update_plan".to_owned(), json!({ "plan": todo_list(&item["items"]) })),
        _ => return None,
    };
    Some((name, arguments))
}

/// Returns an object with those of the named fields that are present and not null.
pub(super) fn fields(of: &Value, names: &[&str]) -> Value {
    let given = names.iter().filter(|it| !of[**it].is_null());
    Value::Object(given.map(|it| ((*it).to_owned(), of[*it].clone())).collect())
}

fn given(item: &Value) -> Value {
    if item["arguments"].is_null() { json!({}) } else { item["arguments"].clone() }
}

/// Returns the arguments that show a patch. If it changes one file, the path comes first, where
/// summaries show it. `codex exec` reports only the names of the changed files.
fn patch_arguments(changes: &Value) -> Value {
    let files = changes.as_array().map(Vec::as_slice).unwrap_or_default();
    let has_patch = files.iter().any(|it| it["diff"].is_string());
    let (name, what) = match has_patch {
        true => ("patch", json!(patch::unified(files))),
        false => ("changes", changes.clone()),
    };
    match files {
        [one] => json!({ "path": one["path"], name: what }),
        _ => json!({ name: what }),
    }
}

/// Converts the plan of `codex exec` to the arguments of the `update_plan` tool.
fn todo_list(items: &Value) -> Vec<Value> {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    let status = |it: &Value| if it["completed"] == true { "completed" } else { "pending" };
    items.iter().map(|it| json!({ "step": it["text"], "status": status(it) })).collect()
}

fn outcome(item: &Value) -> Outcome {
    let status = item["status"].as_str().unwrap_or("completed");
    let has_error = !item["error"].is_null();
    let ok = status != "failed" && status != "declined" && item["success"] != false && !has_error;
    Outcome {
        ok,
        result: result(item),
        error: (!ok).then(|| what_failed(item, status)),
        duration_ms: item["durationMs"].as_u64(),
    }
}

/// Returns the result of a tool call item. A generated picture is given by its path, not by its
/// bytes.
fn result(item: &Value) -> Option<Value> {
    let result = match item["type"].as_str()? {
        "commandExecution" if item["exitCode"].is_null() => Value::Null,
        "commandExecution" => json!({ "exitCode": item["exitCode"] }),
        // The refused changes are in the arguments.
        "fileChange" if item["status"] == "declined" => Value::Null,
        "fileChange" => json!({ "changes": item["changes"] }),
        "mcpToolCall" => item["result"].clone(),
        "dynamicToolCall" => item["contentItems"].clone(),
        "collabAgentToolCall" => item["agentsStates"].clone(),
        "webSearch" => item["action"].clone(),
        "imageGeneration" => item["savedPath"].clone(),
        _ => Value::Null,
    };
    (!result.is_null()).then_some(result)
}

fn what_failed(item: &Value, status: &str) -> ErrorInfo {
    if status == "declined" {
        return ErrorInfo::new(ErrorCode::ToolDenied, "It was not allowed; nothing ran.");
    }
    if let Some(said) = item["error"]["message"].as_str() {
        return ErrorInfo::new(ErrorCode::ToolError, said);
    }
    match (item["type"].as_str(), item["exitCode"].as_i64()) {
        (Some("commandExecution"), Some(-1)) => stopped(),
        (Some("commandExecution"), Some(code)) => ErrorInfo::new(
            ErrorCode::ToolError,
            format!("The command ended with exit code {code}."),
        ),
        (Some("fileChange"), _) => {
            ErrorInfo::new(ErrorCode::ToolError, "The patch could not be applied.")
        }
        _ => ErrorInfo::new(ErrorCode::ToolFailed, "Codex did not say why it failed."),
    }
}

/// Returns the error of a shell command that was stopped.
pub(super) fn stopped() -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolInterrupted, "The command was stopped.")
}

fn phase(item: &Value) -> Option<Phase> {
    match item["phase"].as_str()? {
        "commentary" => Some(Phase::Commentary),
        "final_answer" => Some(Phase::Final),
        _ => None,
    }
}

/// Returns the text of a finished reasoning item: the summaries, then the full text if the model
/// gives it.
fn thoughts(item: &Value) -> Option<String> {
    let sections = ["summary", "content"].iter().filter_map(|it| item[it].as_array()).flatten();
    let text = |it: &'_ Value| it.as_str().or(it["text"].as_str()).map(str::to_owned);
    let sections: Vec<String> = sections.filter_map(text).filter(|it| !it.is_empty()).collect();
    let is_whole = item["summary"].is_array() || item["content"].is_array();
    is_whole.then(|| sections.join("\n\n"))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
