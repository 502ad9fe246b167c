//! Messages of version 4 as events, and the rows of a database that such messages were made from.
//!
//! Not contained: steps, durations of calls, actions of sub-agents, and the reason why a run without a final text
//! ended. Without our own `toolState`, a result counts as a success: nothing is guessed from its text.

use serde_json::Value;
use transcript::{CallId, ErrorCode, ErrorInfo, MessageRole, Millis, Phase, RunStatus};

use crate::import::{
    Beginning, CallResult, Ending, Entry, Holds, List, LogBuilder, Setting, arguments_text,
    as_text, error_info, items,
};
use crate::incoming::File;
use crate::ui::foreign;
use crate::ui::import::data;

pub(crate) const MESSAGES: List = List {
    of: "messages",
    tag: "role",
    words: &["user", "assistant", "system", "data"],
    fields: &[
        ("content", &[Holds::Text]),
        ("parts", &[Holds::List]),
        ("annotations", &[Holds::List]),
        ("toolInvocations", &[Holds::List]),
        ("experimental_attachments", &[Holds::List]),
    ],
    read: import,
};

pub(crate) const ROWS: List = List {
    of: "rows",
    tag: "entity",
    words: &["USER", "AI_TOOL", "TOOL", "AI_MESSAGE", "user", "ai_tool", "tool", "ai_message"],
    fields: &[
        ("content", &[Holds::Text, Holds::Object]),
        ("toolCalls", &[Holds::List]),
        ("tool_calls", &[Holds::List]),
    ],
    read: import_rows,
};

/// Imports a list of AI SDK 4 messages as the log of a new session.
pub fn import(messages: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let mut builder = LogBuilder::new(setting);
    for message in oldest_first(items(messages)) {
        builder.at(&message["createdAt"]);
        match message["role"].as_str() {
            Some("user") => input_message(message, MessageRole::User, &mut builder),
            Some("system") => input_message(message, MessageRole::System, &mut builder),
            Some("assistant") => answer(message, &mut builder),
            _ => {
                builder.end(Ending::of(RunStatus::Completed));
                builder.unrecognized("message", &message.to_string());
            }
        }
    }
    builder.into_entries()
}

/// Returns messages with the oldest first. The list is reversed if its dates are or, without
/// dates, if it starts with an assistant message and ends with a user message.
fn oldest_first(messages: &[Value]) -> Vec<&Value> {
    let time = |it: &Value| it["createdAt"].as_str().and_then(Millis::parse);
    let is_newest_first = match messages {
        [first, .., last] => match (time(first), time(last)) {
            (None, None) => first["role"] == "assistant" && last["role"] == "user",
            (first, last) => first > last,
        },
        _ => false,
    };
    let mut messages: Vec<&Value> = messages.iter().collect();
    if is_newest_first {
        messages.reverse();
    }
    messages
}

fn input_message(message: &Value, role: MessageRole, builder: &mut LogBuilder<'_>) {
    let files = items(&message["experimental_attachments"]).iter().map(|it| File {
        media_type: as_text(it, "contentType").unwrap_or("application/octet-stream").to_owned(),
        name: as_text(it, "name").map(str::to_owned),
        url: as_text(it, "url").unwrap_or_default().to_owned(),
    });
    let files: Vec<File> = files.collect();
    let text = message["content"].as_str().unwrap_or_default();
    builder.input_message(as_text(message, "id"), role, text, &files);
}

fn answer(message: &Value, builder: &mut LogBuilder<'_>) {
    builder.begin(&Beginning { id: as_text(message, "id"), ..Beginning::default() });
    let parts = items(&message["parts"]);
    let content = message["content"].as_str().unwrap_or_default();
    if !parts.is_empty() && !is_in_parts(content, parts) {
        builder.text(content, Some(Phase::Final), false);
    }
    let mut phases = phases(parts, content).into_iter();
    for part in parts {
        match part["type"].as_str() {
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                builder.text(text, phases.next().flatten(), false);
            }
            Some("reasoning") => {
                builder.thinking(None, part["reasoning"].as_str().unwrap_or_default(), false);
            }
            Some("tool-invocation") => {
                let id = part["toolInvocation"]["toolCallId"].clone();
                let annotation = items(&message["annotations"]).iter();
                let annotation = annotation.rev().find(|it| it["toolCallId"] == id);
                call(&part["toolInvocation"], annotation.unwrap_or(&Value::Null), builder);
            }
            Some("step-start") => (),
            _ => builder.unrecognized(foreign::SOURCE, &part.to_string()),
        }
    }
    if parts.is_empty() {
        // From before there were parts.
        for invocation in items(&message["toolInvocations"]) {
            call(invocation, &Value::Null, builder);
        }
        if !content.is_empty() {
            builder.text(content, Some(Phase::Final), false);
        }
    }
    for annotation in items(&message["annotations"]) {
        if let Some(name) = annotation["type"].as_str().and_then(|it| it.strip_prefix("data-")) {
            data(annotation, name, builder);
        }
    }
    let mut own = items(&message["annotations"]).iter().filter(|it| it["messageId"].is_string());
    let broke_off = own.next_back().is_some_and(|it| it["isComplete"] == false);
    builder.end(ending(!broke_off));
}

/// Returns whether the text parts of a message contain `content`: all of them in sequence, or some
/// of them, searched from its end. Programs join the texts of steps in different ways, so
/// whitespace is not compared.
fn is_in_parts(content: &str, parts: &[Value]) -> bool {
    let without_spaces = |text: &str| text.split_whitespace().collect::<String>();
    let texts = parts.iter().filter(|it| it["type"] == "text");
    let texts: Vec<String> =
        texts.filter_map(|it| it["text"].as_str()).map(without_spaces).collect();
    let content = without_spaces(content);
    let rest = texts
        .iter()
        .rev()
        .fold(content.as_str(), |rest, it| rest.strip_suffix(it.as_str()).unwrap_or(rest));
    rest.is_empty() || texts.concat().contains(&content)
}

/// Returns the phases of the text parts of a message. The answer consists of those in `content`,
/// searched from its end. Other texts that are JSON may be the arguments of a tool call, which the
/// reducer decides.
fn phases(parts: &[Value], content: &str) -> Vec<Option<Phase>> {
    let texts = parts.iter().filter(|it| it["type"] == "text");
    let texts = texts.map(|it| it["text"].as_str().unwrap_or_default()).rev();
    let mut rest = content;
    let phase = |text: &str| {
        let before = rest.strip_suffix(text).filter(|_| !text.trim().is_empty());
        let joint =
            before.and_then(|it| if it.is_empty() { Some("") } else { it.strip_suffix("\n\n") });
        match joint {
            Some(before) => {
                rest = before;
                Some(Phase::Final)
            }
            None if serde_json::from_str::<Value>(text).is_ok() => None,
            None => Some(Phase::Commentary),
        }
    };
    let mut phases: Vec<Option<Phase>> = texts.map(phase).collect();
    phases.reverse();
    phases
}

fn call(invocation: &Value, annotation: &Value, builder: &mut LogBuilder<'_>) {
    let name = as_text(invocation, "toolName").unwrap_or_default();
    let arguments = arguments_text(&invocation["args"]);
    let call = builder.call(as_text(invocation, "toolCallId"), name, &arguments);
    validated(&annotation["validated"], &call, builder);
    if invocation["state"] == "result" {
        let state = annotation["toolState"].as_str().unwrap_or_default();
        let has_failed = ["failed", "denied", "interrupted"].contains(&state);
        let result = &invocation["result"];
        let came = match has_failed {
            true => CallResult::Failed(error_info(result.get("error").unwrap_or(result))),
            false => CallResult::Output(result.clone()),
        };
        builder.result(&call, came);
    }
}

fn validated(word: &Value, call: &CallId, builder: &mut LogBuilder<'_>) {
    match word.as_str() {
        Some("accepted") => builder.decided(call, true, None),
        Some("rejected") => builder.decided(call, false, None),
        _ => (),
    }
}

/// Imports database rows with an `entity`: `USER`, `AI_TOOL`, `TOOL` and `AI_MESSAGE`. They are
/// ordered by `creationDate`; if one has no date, they must be in order, oldest first.
pub fn import_rows(rows: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let mut rows: Vec<&Value> = items(rows).iter().collect();
    let date = |row: &&Value| row["creationDate"].as_str().map(str::to_owned);
    if rows.iter().all(|row| row["creationDate"].is_string()) {
        // The newest first: of two with the same date too.
        if rows.first().and_then(date) > rows.last().and_then(date) {
            rows.reverse();
        }
        rows.sort_by_key(date);
    }
    let mut builder = LogBuilder::new(setting);
    // Whether the last row that an agent wrote is whole.
    let mut is_whole = true;
    for (idx, row) in rows.iter().enumerate() {
        if entity(row) == "USER" {
            builder.end(ending(is_whole));
            is_whole = true;
        }
        builder.at(&row["creationDate"]);
        let content = content(row);
        let text = text(&content);
        match entity(row).as_str() {
            "USER" => builder.input_message(as_text(row, "id"), MessageRole::User, &text, &[]),
            "AI_TOOL" => {
                continue_run(&rows[idx..], &mut builder);
                builder.step();
                import_content(&content, &text, &mut builder);
                row_calls(row, &mut builder);
                is_whole = row["isComplete"] != false;
            }
            "TOOL" => row_result(row, &content, &mut builder),
            "AI_MESSAGE" => {
                continue_run(&rows[idx..], &mut builder);
                builder.step();
                import_content(&content, &text, &mut builder);
                builder.end(ending(row["isComplete"] != false));
                is_whole = true;
            }
            _ => builder.unrecognized("entity", &row.to_string()),
        }
    }
    builder.end(ending(is_whole));
    builder.into_entries()
}

fn ending(is_whole: bool) -> Ending {
    Ending::of(if is_whole { RunStatus::Completed } else { RunStatus::Cancelled })
}

fn entity(row: &Value) -> String {
    row["entity"].as_str().unwrap_or_default().to_ascii_uppercase()
}

/// Starts a run for these rows, if none is open. Its id is the id of the message that ends the
/// answer or, if there is none, of the first row.
fn continue_run(rows: &[&Value], builder: &mut LogBuilder<'_>) {
    if !builder.is_in_run() {
        let mut of_answer = rows.iter().take_while(|row| entity(row) != "USER");
        let named = of_answer.find(|row| entity(row) == "AI_MESSAGE").or(rows.first());
        let id = named.and_then(|row| as_text(row, "id"));
        builder.begin(&Beginning { id, ..Beginning::default() });
    }
}

/// Returns the content of a row, which may be a JSON object as text. The object is used if the row
/// is a tool result or the object contains a text; otherwise the text is the content.
fn content(row: &Value) -> Value {
    let is_result = entity(row) == "TOOL";
    let has_text = |it: &Value| it["content"].is_string() || it["reasoning"].is_string();
    match &row["content"] {
        Value::String(text) => {
            let read = serde_json::from_str(text).ok();
            let read = read.filter(|it: &Value| it.is_object() && (is_result || has_text(it)));
            read.unwrap_or_else(|| Value::String(text.clone()))
        }
        content => content.clone(),
    }
}

fn text(content: &Value) -> String {
    let text = content.as_str().or_else(|| content["content"].as_str());
    text.unwrap_or_default().to_owned()
}

fn import_content(content: &Value, text: &str, builder: &mut LogBuilder<'_>) {
    if let Some(thinking) = as_text(content, "reasoning") {
        builder.thinking(None, thinking, false);
    }
    if !text.is_empty() {
        builder.text(text, None, false);
    }
}

fn row_calls(row: &Value, builder: &mut LogBuilder<'_>) {
    let mut calls = ["toolCalls", "tool_calls"].iter().map(|it| &row[*it]);
    for call in calls.find(|it| !it.is_null()).map(items).unwrap_or_default() {
        let arguments = match &call["arguments"] {
            Value::String(text) => text.clone(),
            other => arguments_text(other),
        };
        let name = as_text(call, "name").unwrap_or_default();
        let id = builder.call(as_text(call, "id"), name, &arguments);
        if let Some(accepted) = call["validated"].as_bool() {
            builder.decided(&id, accepted, None);
        }
    }
}

/// Imports the tool result in a row. An incomplete result counts as an interruption or, if the call
/// was rejected, as the reason for that. Zero, false and empty text are results.
fn row_result(row: &Value, content: &Value, builder: &mut LogBuilder<'_>) {
    let id = as_text(content, "tool_call_id").or_else(|| as_text(content, "toolCallId"));
    let result = content.get("content").or_else(|| content.get("result"));
    let call = builder.open_call(id, as_text(content, "name"));
    let is_rejected = call.as_ref().is_some_and(|it| builder.is_rejected(it));
    let came = match row["isComplete"] == false && !is_rejected {
        true => {
            let why = result.and_then(Value::as_str).unwrap_or("The call was interrupted.");
            CallResult::Failed(ErrorInfo::new(ErrorCode::ToolInterrupted, why))
        }
        false => CallResult::Output(result.cloned().unwrap_or(Value::String(String::new()))),
    };
    match call {
        Some(call) => builder.result(&call, came),
        None => builder.orphan(id, as_text(content, "name").unwrap_or_default(), came),
    }
}
