//! Inputs and results of calls, as the values that foreign formats need.

use serde_json::{Value, json};
use transcript::{Body, Call, Decision, Resolution, arguments_summary};

/// Returns the arguments with which a tool call ran: as a person edited them, otherwise as the
/// model wrote them. Invalid JSON becomes a string, and empty arguments become an empty object.
pub(crate) fn input(call: &Call) -> Value {
    let text = text_of(call.input());
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// Returns the arguments with which a tool call ran, always as an object. A value of another type
/// is put in its field `unreadable`.
pub(crate) fn input_object(call: &Call) -> Value {
    match input(call) {
        object @ Value::Object(_) => object,
        other => json!({ "unreadable": other }),
    }
}

/// Returns the result of a tool call together with the printed output; null if it has neither.
pub(crate) fn output(call: &Call) -> Value {
    let result = call.outcome.as_ref().and_then(|it| it.result.as_ref()).map(json_of);
    let printed = [("stdout", &call.stdout), ("stderr", &call.stderr)];
    let printed = printed.into_iter().filter(|(_, body)| !body.is_empty());
    match result {
        Some(Value::Object(mut fields)) => {
            for (name, body) in printed {
                fields.entry(name).or_insert_with(|| json!(text_of(body)));
            }
            Value::Object(fields)
        }
        Some(result) => result,
        None if call.stdout.is_empty() && call.stderr.is_empty() => Value::Null,
        None if call.stderr.is_empty() => json!(text_of(&call.stdout)),
        None => printed.map(|(name, body)| (name.to_owned(), json!(text_of(body)))).collect(),
    }
}

/// Returns the error message of a failed tool call; `None` if the call is open or succeeded.
pub(crate) fn error_text(call: &Call) -> Option<String> {
    let outcome = call.outcome.as_ref().filter(|it| !it.ok)?;
    let message = outcome.error.as_ref().map(|it| it.message.clone()).filter(|it| !it.is_empty());
    Some(message.unwrap_or_else(|| "The call failed.".to_owned()))
}

/// Returns a one-line summary of the arguments with which a tool call ran. If a person edited the
/// arguments, the agent's own summary is not used.
pub(crate) fn input_summary(call: &Call) -> String {
    let edited = call.edited.as_ref().map(|it| arguments_summary(&text_of(it)));
    edited.unwrap_or_else(|| call.summary.clone())
}

/// Returns the one-line summary of a tool call's result; empty while the call is open.
pub(crate) fn summary(call: &Call) -> &str {
    call.outcome.as_ref().map_or("", |it| &it.summary)
}

pub(crate) fn accepted(call: &Call) -> Option<&Resolution> {
    resolution(call).filter(|it| it.decision == Decision::Accepted)
}

pub(crate) fn resolution(call: &Call) -> Option<&Resolution> {
    call.approval.as_ref()?.resolved.as_ref()
}

/// Returns the whole text of a body. If the transcript kept only both ends, a note about the
/// omitted bytes is between them.
pub(crate) fn text_of(body: &Body) -> String {
    body.whole().unwrap_or_else(|| {
        format!("{}\n… {} bytes left out …\n{}", body.head(), body.omitted(), body.tail())
    })
}

pub(crate) fn json_of(body: &Body) -> Value {
    let text = text_of(body);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
