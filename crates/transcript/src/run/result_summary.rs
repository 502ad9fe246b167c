//! One-line summary of a call's result.

use serde_json::{Map, Value};

use crate::{Body, ErrorInfo, arguments_summary};

const MAX_CHARS: usize = 120;
/// Names of the fields of a result in which tools return text, in order of preference.
const TEXTS: [&str; 4] = ["text", "content", "output", "stdout"];
const EXIT_CODES: [&str; 2] = ["exitCode", "exit_code"];

/// Returns a one-line summary of the result of a tool call, such as `Found 3 entities`, `12 lines`,
/// `exit 1`, the only line of the output, or the reason of a failure. Never empty.
pub(crate) fn result_summary(
    result: Option<&Value>,
    error: Option<&ErrorInfo>,
    stdout: &Body,
    stderr: &Body,
) -> String {
    let exit_code = result.and_then(|it| EXIT_CODES.iter().find_map(|name| it.get(name)?.as_i64()));
    let failed_with = exit_code.filter(|it| *it != 0);
    if let Some(error) = error {
        let reason = first_line(&error.message);
        return match (failed_with, reason) {
            (Some(code), Some(reason)) if !is_exit_code_message(&reason, code) => {
                format!("exit {code}: {reason}")
            }
            (Some(code), _) => format!("exit {code}"),
            (None, reason) => reason.unwrap_or_else(|| "The call failed.".to_owned()),
        };
    }
    if let Some(code) = failed_with {
        return format!("exit {code}");
    }
    let output = [stdout, stderr].into_iter().find(|it| !it.is_empty());
    let summary = match result {
        Some(result) if exit_code.is_none() => summary_of(result),
        _ => None,
    };
    let output = || output.and_then(|it| text_summary(it.head(), it.lines()));
    summary.or_else(output).unwrap_or_else(|| "(no output)".to_owned())
}

/// Returns whether an error message only repeats the exit code of the command.
fn is_exit_code_message(error: &str, code: i64) -> bool {
    error.trim_end_matches('.').ends_with(&format!("exit code {code}"))
}

fn summary_of(result: &Value) -> Option<String> {
    match result {
        Value::Null => None,
        Value::String(text) => text_summary(text, text.lines().count() as u64),
        Value::Array(items) => Some(found(items.len(), "items")),
        Value::Object(fields) => object_summary(fields),
        Value::Bool(_) | Value::Number(_) => Some(result.to_string()),
    }
}

/// Summarizes a JSON object by its only list, else by its text, else by its fields.
fn object_summary(fields: &Map<String, Value>) -> Option<String> {
    let mut lists = fields.iter().filter_map(|(name, it)| Some((name, it.as_array()?)));
    if let (Some((name, items)), None) = (lists.next(), lists.next())
        && is_word(name)
    {
        return Some(found(items.len(), name));
    }
    let text = TEXTS.iter().find_map(|name| fields.get(*name)?.as_str());
    if let Some(summary) = text.and_then(|it| text_summary(it, it.lines().count() as u64)) {
        return Some(summary);
    }
    let summary = arguments_summary(&Value::Object(fields.clone()).to_string());
    first_line(&summary)
}

fn text_summary(text: &str, lines: u64) -> Option<String> {
    match lines {
        0 | 1 => first_line(text),
        lines => Some(format!("{lines} lines")),
    }
}

fn found(count: usize, name: &str) -> String {
    let name = name.replace('_', " ");
    match count {
        1 => format!("Found 1 {}", singular(&name)),
        count => format!("Found {count} {name}"),
    }
}

fn is_word(name: &str) -> bool {
    name.len() <= 30 && name.chars().all(|it| it.is_ascii_alphabetic() || it == '_')
}

fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    let with_e = ["ches", "shes", "xes", "sses"].iter().any(|it| name.ends_with(it));
    let stem = name.strip_suffix(if with_e { "es" } else { "s" });
    stem.unwrap_or(name).to_owned()
}

/// Returns the first line of the text that is not blank, cut to [`MAX_CHARS`].
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|it| !it.is_empty())?;
    Some(match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    })
}
