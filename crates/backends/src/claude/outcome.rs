//! The outcome of a call: the program's result, in the form in which the log keeps it.
//!
//! The result arrives twice: as the text for the model, and as an object with the same content in fields. The
//! object is kept if there is one, without content that the arguments or the output already have, such as an
//! edited file.

use serde_json::{Map, Value, json};
use transcript::{ErrorCode, ErrorInfo, OutputStream, Truncated};

use super::text::{shortened, text_of};
use super::wire::TaskEnd;

const NO_OUTPUT: &str = "(Bash completed with no output)";

#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) has_run: bool,
    pub(super) output: Vec<(OutputStream, String)>,
    pub(super) result: Option<Value>,
    pub(super) error: Option<ErrorInfo>,
    /// Truncation, if the model got only a part of the tool call's output.
    pub(super) truncated: Option<Truncated>,
}

/// The context of a tool call that failed.
#[derive(Debug)]
pub(super) struct CallContext<'a> {
    pub(super) tool_name: &'a str,
    /// Error of a tool call that was refused through Callboard. `None` if it was not refused.
    pub(super) refusal: Option<&'a ErrorInfo>,
    /// Whether a person asked to stop the run.
    pub(super) is_stopped: bool,
    /// Claude Code's metadata about the tool call, if any.
    pub(super) meta: Option<&'a Value>,
}

/// Returns the truncation of a tool result of which the model got only the beginning. Claude Code
/// keeps the whole result in a file.
fn truncated(content: &Value, structured: Option<&Value>) -> Option<Truncated> {
    let total_bytes = structured?.get("persistedOutputSize")?.as_u64()?;
    let shown_bytes = text_of(content).len() as u64;
    Some(Truncated { total_bytes, total_lines: None, shown_bytes })
}

impl Outcome {
    /// Returns the outcome of a tool call that never ran, or whose effect is unknown.
    pub(super) fn failed(error: ErrorInfo) -> Self {
        Self {
            has_run: false,
            output: Vec::new(),
            result: None,
            error: Some(error),
            truncated: None,
        }
    }

    pub(super) fn succeeded(tool_name: &str, content: Value, structured: Option<Value>) -> Self {
        let mut output = Vec::new();
        let truncated = truncated(&content, structured.as_ref());
        let result = match structured {
            Some(Value::Object(mut fields)) => {
                if fields.get("isImage") != Some(&Value::Bool(true)) {
                    output = take_output(&mut fields);
                }
                // Empty fields of a command are dropped.
                if fields.contains_key("interrupted") {
                    fields.retain(|name, value| name != "noOutputExpected" && !is_blank(value));
                }
                // The text of a result with a picture is in none of the fields.
                if fields.get("type").is_some_and(|it| it == "image") {
                    let words = Some(text_of(&content)).filter(|it| !it.is_empty());
                    fields.extend(words.map(|it| ("text".to_owned(), it.into())));
                }
                match tidy(fields) {
                    fields if !fields.is_empty() => Some(Value::Object(fields)),
                    _ if !output.is_empty() => None,
                    _ => Some(plain(content)),
                }
            }
            // The result of a sub-agent's command is only text.
            None if tool_name == "Bash" && is_print(&content) => {
                output.push((OutputStream::Stdout, text_of(&content)));
                None
            }
            _ => Some(plain(content)),
        };
        Self { has_run: true, output, result, error: None, truncated }
    }

    /// Adds the end of a background task to the outcome of the tool call that launched it.
    pub(super) fn ended(mut self, task: &TaskEnd) -> Self {
        let status = task.status.as_deref().unwrap_or("completed");
        if let Some(Value::Object(fields)) = &mut self.result {
            fields.insert("status".to_owned(), status.into());
        }
        let why = task.summary.as_deref().map(shortened).filter(|it| !it.is_empty());
        self.error = match status {
            "completed" => None,
            "stopped" | "killed" => {
                Some(ErrorInfo::new(ErrorCode::ToolInterrupted, "It was stopped."))
            }
            _ => {
                let why = why.unwrap_or_else(|| "It failed and did not say why.".to_owned());
                Some(ErrorInfo::new(ErrorCode::ToolError, why))
            }
        };
        self
    }

    pub(super) fn from_error(content: &Value, context: &CallContext<'_>) -> Self {
        let text = text_of(content);
        let text = text.trim();
        let text = text.strip_prefix("<tool_use_error>").unwrap_or(text);
        let text = text.strip_suffix("</tool_use_error>").unwrap_or(text);
        let text = text.strip_prefix("Error: ").unwrap_or(text);
        if let Some(why) = context.why_not_run(text) {
            return Self::failed(why);
        }
        let mut outcome = Self::of_failure(context.tool_name, text);
        if context.is_stopped {
            outcome.error = Some(interrupted());
        }
        outcome
    }

    /// Returns the outcome of a tool call that ran and failed. `text` is Claude Code's report.
    fn of_failure(tool_name: &str, text: &str) -> Self {
        if tool_name == "Bash"
            && let Some((code, printed)) = exit_code(text)
        {
            let output = Some((OutputStream::Stdout, printed.to_owned()));
            let error = format!("The command ended with exit code {code}.");
            return Self {
                has_run: true,
                output: output.filter(|(_, it)| !it.is_empty()).into_iter().collect(),
                result: Some(json!({ "exitCode": code })),
                error: Some(ErrorInfo::new(ErrorCode::ToolError, error)),
                truncated: None,
            };
        }
        let message = shortened(text);
        let (code, result) = match text {
            "" => (ErrorCode::ToolFailed, None),
            text => (ErrorCode::ToolError, (message != text).then(|| text.into())),
        };
        let message = match message {
            it if it.is_empty() => "The tool failed and did not say why.".to_owned(),
            it => it,
        };
        let error = Some(ErrorInfo::new(code, message));
        Self { has_run: true, output: Vec::new(), result, error, truncated: None }
    }
}

impl CallContext<'_> {
    /// Returns the error of a tool call that did not run. `None` if it ran.
    fn why_not_run(&self, text: &str) -> Option<ErrorInfo> {
        let Some(kind) = self.meta.and_then(|it| it.get("non_execution_kind")?.as_str()) else {
            return self.why_refused(text);
        };
        if let Some(refusal) = self.refusal {
            return Some(refusal.clone());
        }
        let was_decided = self.meta.is_some_and(|it| it.get("permission_decision").is_some());
        Some(match kind {
            // The program's text about a stop is meant for the model.
            "user-rejected" if !was_decided => interrupted(),
            _ => ErrorInfo::new(ErrorCode::ToolDenied, shortened(text)),
        })
    }

    /// Returns the error of a refused tool call, for versions of Claude Code without metadata. They
    /// report a refusal as text: Callboard's text, or their own.
    fn why_refused(&self, text: &str) -> Option<ErrorInfo> {
        if self.meta.is_some() {
            return None;
        }
        match self.refusal {
            Some(refusal) => Some(refusal.clone()),
            None if is_refusal(text) => {
                Some(ErrorInfo::new(ErrorCode::ToolDenied, shortened(text)))
            }
            None => None,
        }
    }
}

/// Returns whether the text is Claude Code's report of a tool call that its own rules forbid.
fn is_refusal(text: &str) -> bool {
    text.starts_with("Permission to use ") && text.contains("has been denied")
        || text.starts_with("Claude requested permissions to ")
}

/// Returns whether the content is a command's output. Claude Code's note that there was none is
/// not.
fn is_print(content: &Value) -> bool {
    matches!(plain(content.clone()), Value::String(text) if text != NO_OUTPUT && !text.is_empty())
}

fn interrupted() -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolInterrupted, "Tool call was interrupted by the user")
}

/// Removes `stdout` and `stderr` from a tool result, and returns them as output for the log.
fn take_output(fields: &mut Map<String, Value>) -> Vec<(OutputStream, String)> {
    let mut output = Vec::new();
    for (name, stream) in [("stdout", OutputStream::Stdout), ("stderr", OutputStream::Stderr)] {
        match fields.shift_remove(name) {
            Some(Value::String(text)) if !text.is_empty() => output.push((stream, text)),
            Some(Value::String(_)) | None => (),
            Some(other) => {
                fields.insert(name.to_owned(), other);
            }
        }
    }
    output
}

/// Tidies a tool result: flattens the `file` object of a file that was read, and drops the original
/// of an edited file, because the patch has the same information.
fn tidy(mut fields: Map<String, Value>) -> Map<String, Value> {
    fields.shift_remove("originalFile");
    match fields.shift_remove("file") {
        Some(Value::Object(file)) => fields.extend(file),
        Some(other) => {
            fields.insert("file".to_owned(), other);
        }
        None => (),
    }
    fields
}

fn is_blank(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || value.as_str() == Some("")
}

/// Joins the blocks of a tool result into one text, if all of them are texts.
fn plain(content: Value) -> Value {
    let is_text = |it: &Value| it.get("text").is_some_and(Value::is_string);
    match &content {
        Value::Array(blocks) if blocks.iter().all(is_text) => text_of(&content).into(),
        _ => content,
    }
}

/// Splits Claude Code's text about a command that failed, which begins with `Exit code 3`, into
/// exit code and output. `None` without an exit code.
fn exit_code(text: &str) -> Option<(i64, &str)> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    Some((first.strip_prefix("Exit code ")?.parse().ok()?, rest))
}
