//! Converts the items of Codex's files to the form of the running program.

use serde_json::{Map, Value, json};

use crate::import::words;

/// Converts a completed item of Codex's file to the form of the running program: `CommandExecution`
/// becomes `commandExecution`, also in field names. `None` for an item without a type.
pub(super) fn live_item(item: &Value) -> Option<Value> {
    let kind = first_letter(item["type"].as_str()?, |it| it.to_ascii_lowercase());
    let mut told = in_camel_case(item);
    match kind.as_str() {
        "agentMessage" | "plan" if item["text"].is_null() => {
            told["text"] = json!(words(&item["content"]));
        }
        "reasoning" => {
            told["summary"] = item["summary_text"].clone();
            told["content"] = item["raw_content"].clone();
        }
        "commandExecution" => {
            told["command"] = json!(command_line(&item["command"]));
            told["cwd"] = json!(path(&item["cwd"]));
            if item["aggregated_output"] == "" {
                told["aggregatedOutput"] = Value::Null;
            }
        }
        "fileChange" => told["changes"] = changes(&item["changes"]),
        // These values are not Codex's, and stay unchanged.
        "mcpToolCall" | "dynamicToolCall" => {
            for name in ["arguments", "result"] {
                told[name] = item[name].clone();
            }
        }
        _ => (),
    }
    if item["error"]["message"].as_str().is_some_and(|it| it.starts_with("user rejected")) {
        told["status"] = json!("declined");
    }
    told["type"] = json!(kind);
    let duration = &item["duration"];
    if let Some(seconds) = duration["secs"].as_u64() {
        let millis = duration["nanos"].as_u64().unwrap_or(0) / 1_000_000;
        told["durationMs"] = json!(seconds.saturating_mul(1000).saturating_add(millis));
    }
    Some(told)
}

/// Converts a tool call of the model to an item of the running Codex. `None` if the call is not
/// shown as a call of its own.
pub(super) fn called_item(call: &Value, cwd: Option<&str>) -> Option<Value> {
    let name = call["name"].as_str().unwrap_or_default();
    let arguments = call["arguments"].as_str().unwrap_or_default();
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let shell = |command: String, folder: &Value| {
        let folder = folder.as_str().or(cwd);
        Some(json!({ "type": "commandExecution", "command": command, "cwd": folder }))
    };
    match (call["type"].as_str()?, name) {
        ("local_shell_call", _) => {
            let action = &call["action"];
            shell(command_line(&action["command"]), &action["working_directory"])
        }
        ("function_call", "exec_command") => {
            shell(arguments["cmd"].as_str()?.to_owned(), &arguments["workdir"])
        }
        ("function_call", "shell" | "container.exec" | "shell_command") => {
            shell(command_line(&arguments["command"]), &arguments["workdir"])
        }
        // This call continues a command, whose item has the whole output.
        ("function_call", "write_stdin") => None,
        ("function_call", _) => {
            let name = match call["namespace"].as_str() {
                Some(server) => format!("{server}__{name}"),
                None => name.to_owned(),
            };
            let tool = name.strip_prefix("mcp__").unwrap_or(&name);
            Some(json!({ "type": "dynamicToolCall", "tool": tool, "arguments": arguments }))
        }
        ("custom_tool_call", "apply_patch") => {
            let arguments = json!({ "patch": call["input"] });
            Some(json!({ "type": "dynamicToolCall", "tool": name, "arguments": arguments }))
        }
        // A script that makes calls, which have items of their own.
        _ => None,
    }
}

/// The output of a tool call in Codex's file that has no item.
pub(super) struct Output {
    text: String,
    exit_code: Option<i64>,
    status: &'static str,
}

impl Output {
    /// Parses the output of a tool call. `None` if the call was interrupted, or its tool does not
    /// exist.
    pub(super) fn read(output: &str) -> Option<Self> {
        if output.ends_with("aborted by user") || output.starts_with("unsupported call") {
            return None;
        }
        let json: Value = serde_json::from_str(output).unwrap_or_default();
        let (text, exit_code) = match json["output"].as_str() {
            Some(text) => (text, json["metadata"]["exit_code"].as_i64()),
            None => match output.split_once("Output:\n") {
                Some((head, text)) => (text, exit_code(head)),
                None => (output, None),
            },
        };
        let head = output.lines().next().unwrap_or_default().to_ascii_lowercase();
        let is_rejected = exit_code.is_none() && head.contains("reject");
        let status = match exit_code {
            _ if is_rejected => "declined",
            None | Some(0) => "completed",
            Some(_) => "failed",
        };
        Some(Self { text: text.to_owned(), exit_code, status })
    }

    pub(super) fn put_into(self, item: &mut Value) {
        item["status"] = json!(self.status);
        if item["type"] == "commandExecution" {
            let has_printed = self.status != "declined" && !self.text.is_empty();
            item["aggregatedOutput"] = json!(has_printed.then_some(self.text));
            item["exitCode"] = json!(self.exit_code);
        } else {
            item["contentItems"] = json!([{ "type": "inputText", "text": self.text }]);
            item["success"] = json!(self.status == "completed");
        }
    }
}

fn exit_code(head: &str) -> Option<i64> {
    let code = |line: &str| {
        let code = line
            .strip_prefix("Process exited with code ")
            .or_else(|| line.strip_prefix("Exit code: "))?;
        code.trim().parse().ok()
    };
    head.lines().find_map(code)
}

/// Returns a command as a person would type it, which is the form in which Codex reports it.
fn command_line(command: &Value) -> String {
    match command {
        Value::String(command) => command.clone(),
        Value::Array(words) => {
            let words = words.iter().filter_map(Value::as_str);
            words.map(quoted).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./:=@%+,".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn path(cwd: &Value) -> Option<&str> {
    cwd.as_str().map(|it| it.strip_prefix("file://").unwrap_or(it))
}

fn changes(changes: &Value) -> Value {
    let files = changes.as_object().into_iter().flatten();
    let file = |(path, change): (&String, &Value)| {
        let diff = change["unified_diff"].as_str().or(change["content"].as_str());
        let mut kind = json!({ "type": change["type"] });
        if change["type"] == "update" {
            kind["move_path"] = change["move_path"].clone();
        }
        json!({ "path": path, "kind": kind, "diff": diff.unwrap_or_default() })
    };
    files.map(file).collect()
}

pub(super) fn texts(sections: &Value) -> Vec<Value> {
    let sections = sections.as_array().into_iter().flatten();
    sections.filter(|it| it["text"].is_string()).map(|it| it["text"].clone()).collect()
}

pub(super) fn fields(of: &Value, names: &[&str]) -> Value {
    let fields = names.iter().map(|it| ((*it).to_owned(), of[*it].clone()));
    Value::Object(fields.collect())
}

/// Converts field names at all depths from snake case to camel case, and the error name in
/// `codex_error_info`.
pub(super) fn in_camel_case(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, it)| {
                let it = match name.as_str() {
                    "codex_error_info" if it.is_string() => {
                        json!(camel_case(it.as_str().unwrap_or_default()))
                    }
                    _ => in_camel_case(it),
                };
                (camel_case(name), it)
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(in_camel_case).collect(),
        other => other.clone(),
    }
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &first_letter(word, |it| it.to_ascii_uppercase()))
}

fn first_letter(word: &str, change: impl Fn(char) -> char) -> String {
    let mut letters = word.chars();
    letters.next().map(change).into_iter().chain(letters).collect()
}
