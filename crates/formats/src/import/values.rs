//! Values of files as results, arguments and errors.

use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo};

pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the result that a file has as text: the JSON value if the text is exactly its compact
/// form, otherwise the text itself.
pub(crate) fn result_of(text: &str) -> Value {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let is_written_so = |it: &Value| serde_json::to_string(it).is_ok_and(|it| it == text);
    value.filter(is_written_so).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Returns the arguments of a tool call as text, from which the same value can be parsed.
pub(crate) fn arguments_text(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        input => input.to_string(),
    }
}

pub(crate) fn as_text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value[field].as_str().filter(|it| !it.is_empty())
}

/// Returns the error of a rejected tool call. Files have the reason in the place of the call's
/// result.
pub(super) fn rejected(value: &Value) -> ErrorInfo {
    let why = match value {
        Value::String(text) if !text.trim().is_empty() => text.clone(),
        Value::Null | Value::String(_) => "The call was rejected.".to_owned(),
        other => other.to_string(),
    };
    ErrorInfo::new(ErrorCode::ToolDenied, why)
}

/// Converts the error in a file, which may be an object or a text. Null becomes a general message.
pub(crate) fn error_info(error: &Value) -> ErrorInfo {
    match error {
        Value::String(text) => ErrorInfo::new(ErrorCode::ToolError, text.clone()),
        Value::Null => ErrorInfo::new(ErrorCode::ToolError, "The call failed."),
        error => serde_json::from_value(error.clone()).unwrap_or_else(|_| {
            let text = as_text(error, "message").map(str::to_owned);
            ErrorInfo::new(ErrorCode::ToolError, text.unwrap_or_else(|| error.to_string()))
        }),
    }
}
