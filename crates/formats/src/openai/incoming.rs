//! Requests of the chat completions API: the whole conversation, of which the end is new.
//!
//! A parameter that would change the meaning of a request is refused. All others are for models, not for
//! agents, and are ignored.

use serde_json::{Value, json};
use transcript::{CallId, ClientTool};

use crate::import::{as_text, result_of};
use crate::incoming::{BadRequest, Decided, File, IncomingMessage, client_tools};
use crate::known::{Known, KnownCall, KnownOutcome, KnownWords};

/// A chat completion request to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Name of the agent that has to answer, from the field `model`.
    pub model: String,
    /// Whether the response is streamed.
    pub stream: bool,
    /// Whether the last chunk of the stream contains the token usage.
    pub include_usage: bool,
    /// Earlier messages of the request, for [`import`](super::import): with the tool results at
    /// their end, without the new message.
    pub before: Value,
    /// Results of the tool calls that the client had to run.
    pub results: Vec<Decided>,
    /// Parts of the resumed run that the client has.
    pub known: Known,
    /// The new user message; `None` if only the tool results are new.
    pub message: Option<IncomingMessage>,
    /// Tools of the request that the client runs itself.
    pub tools: Vec<ClientTool>,
}

/// Parses the JSON body of a chat completion request.
pub fn request(body: &Value) -> Result<Request, BadRequest> {
    if !body.is_object() {
        return Err(BadRequest::new("The body is no JSON object."));
    }
    let Some(model) = as_text(body, "model") else {
        return Err(bad("model", "`model` is missing: it is the name of an agent."));
    };
    refuse_what_would_be_missed(body)?;
    let Value::Array(messages) = &body["messages"] else {
        return Err(bad("messages", "`messages` is no array."));
    };
    for (idx, message) in messages.iter().enumerate() {
        check_message(message, &format!("messages[{idx}]"))?;
    }
    let (message, before) = match messages.split_last() {
        Some((last, before)) if last["role"] == "user" => (Some(incoming_message(last)?), before),
        Some((last, _)) if last["role"] == "tool" => (None, messages.as_slice()),
        Some(_) => {
            let why = "The last of `messages` is neither a user's nor a tool's.";
            return Err(bad("messages", why));
        }
        None => return Err(bad("messages", "`messages` is empty.")),
    };
    let results = results(before)?;
    Ok(Request {
        model: model.to_owned(),
        stream: flag(body, "stream")?,
        include_usage: include_usage(body)?,
        known: known(before),
        results,
        before: Value::from(before),
        message,
        tools: tools(body)?,
    })
}

fn bad(param: &str, why: &str) -> BadRequest {
    BadRequest::about(param, why)
}

fn flag(body: &Value, name: &str) -> Result<bool, BadRequest> {
    match &body[name] {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(*flag),
        _ => Err(bad(name, &format!("`{name}` is no boolean."))),
    }
}

/// Refuses parameters that an agent cannot follow, unless they have a harmless value. A client that
/// sets them would misinterpret the answer.
fn refuse_what_would_be_missed(body: &Value) -> Result<(), BadRequest> {
    let refused = [
        ("n", vec![json!(1)], "an agent gives one answer: leave `n` out, or ask again"),
        (
            "response_format",
            vec![json!({ "type": "text" })],
            "an agent answers in text: say in a message how it should look",
        ),
        ("modalities", vec![json!(["text"])], "an agent answers in text"),
        ("logprobs", vec![json!(false)], "agents do not tell how likely their words are"),
        ("functions", vec![], "functions are declared under `tools`"),
        (
            "tool_choice",
            vec![json!("auto"), json!("none")],
            "an agent chooses its tools itself: \"auto\" and \"none\" are understood",
        ),
    ];
    for (param, harmless, why) in refused {
        if !body[param].is_null() && !harmless.contains(&body[param]) {
            return Err(bad(param, &format!("`{param}` cannot be had here: {why}.")));
        }
    }
    Ok(())
}

fn include_usage(body: &Value) -> Result<bool, BadRequest> {
    match &body["stream_options"] {
        Value::Null => Ok(false),
        Value::Object(options) => Ok(options.get("include_usage") == Some(&Value::Bool(true))),
        _ => Err(bad("stream_options", "`stream_options` is no object.")),
    }
}

fn tools(body: &Value) -> Result<Vec<ClientTool>, BadRequest> {
    if !matches!(&body["tools"], Value::Null | Value::Array(_)) {
        return Err(bad("tools", "`tools` is no array."));
    }
    let tools = client_tools(&body["tools"]).map_err(|why| bad("tools", &why.to_string()))?;
    Ok(if body["tool_choice"] == "none" { Vec::new() } else { tools })
}

/// Checks that a message of the request contains nothing that would be lost.
fn check_message(message: &Value, place: &str) -> Result<(), BadRequest> {
    let refuse = |field: &str, why: &str| {
        let place = format!("{place}{field}");
        Err(bad(&place, &format!("`{place}` {why}.")))
    };
    let role = message["role"].as_str().unwrap_or_default();
    if !["system", "developer", "user", "assistant", "tool", "function"].contains(&role) {
        let why = "is none of \"system\", \"developer\", \"user\", \"assistant\" and \"tool\"";
        return refuse(".role", why);
    }
    if role == "tool" && as_text(message, "tool_call_id").is_none() {
        return refuse(".tool_call_id", "is missing: it names the call that this came of");
    }
    let pieces = match &message["content"] {
        Value::Null if role == "assistant" => return Ok(()),
        Value::String(_) => return Ok(()),
        Value::Array(pieces) => pieces,
        _ => return refuse(".content", "is neither a text nor an array"),
    };
    for (idx, piece) in pieces.iter().enumerate() {
        let field = format!(".content[{idx}]");
        match (piece["type"].as_str(), file(piece)) {
            (Some("text"), _) if piece["text"].is_string() => (),
            (Some("refusal"), _) if role == "assistant" => (),
            (Some("image_url" | "file"), Some(file)) if is_at_hand(&file) => (),
            (Some("image_url" | "file"), _) => {
                let why = "does not hold its file: Callboard fetches none, so send it as a `data:` address";
                return refuse(&field, why);
            }
            _ => return refuse(&field, "is neither a text, an image nor a file"),
        }
    }
    Ok(())
}

fn is_at_hand(file: &File) -> bool {
    file.url.starts_with("data:")
}

fn incoming_message(message: &Value) -> Result<IncomingMessage, BadRequest> {
    let (text, files) = content(&message["content"]);
    if text.trim().is_empty() && files.is_empty() {
        return Err(bad("messages", "The last of `messages` says nothing."));
    }
    Ok(IncomingMessage::new(None, text, &files))
}

/// Returns the parts of the run that the client has. Its messages contain no ids of texts, but it
/// has everything up to the step of the last tool call that it names.
fn known(messages: &[Value]) -> Known {
    let called = messages.iter().filter_map(|it| it["tool_calls"].as_array()).flatten();
    let called = called.filter_map(|it| as_text(it, "id"));
    let ended = messages.iter().filter_map(|it| as_text(it, "tool_call_id"));
    let has = KnownCall { asked: false, outcome: KnownOutcome::Any };
    let calls = called.chain(ended).map(|id| (CallId::new(id), has.clone())).collect();
    Known { calls, words: KnownWords::OfSteps, n_steps: 0 }
}

/// Returns the tool results after the last assistant message. If one of that message's tool calls
/// has no result, the request is invalid.
fn results(messages: &[Value]) -> Result<Vec<Decided>, BadRequest> {
    let spoken = messages.iter().rposition(|it| it["role"] == "assistant");
    let later = messages.iter().skip(spoken.map_or(0, |idx| idx + 1));
    let later = later.filter(|it| it["role"] == "tool");
    let results: Vec<(&str, Value)> = later
        .filter_map(|it| {
            Some((as_text(it, "tool_call_id")?, result_of(&content(&it["content"]).0)))
        })
        .collect();
    let calls = spoken.and_then(|idx| messages[idx]["tool_calls"].as_array());
    let calls = calls.into_iter().flatten();
    let is_missing = |id: &&str| results.iter().all(|(of, _)| of != id);
    if let Some(id) = calls.filter_map(|it| as_text(it, "id")).find(is_missing) {
        let why =
            format!("The call {id:?} has no result: each needs a message of the role \"tool\".");
        return Err(bad("messages", &why));
    }
    let decided = |(call, output): (&str, Value)| Decided::Output { call: call.to_owned(), output };
    Ok(results.into_iter().map(decided).collect())
}

/// Returns the text and the files of a message's content, which is a string or a list of content
/// parts.
pub(super) fn content(content: &Value) -> (String, Vec<File>) {
    let pieces = match content {
        Value::String(text) => return (text.clone(), Vec::new()),
        Value::Array(pieces) => pieces,
        _ => return (String::new(), Vec::new()),
    };
    let words = |it| as_text(it, "text").or_else(|| as_text(it, "refusal"));
    let texts: Vec<&str> = pieces.iter().filter_map(words).collect();
    (texts.join("\n\n"), pieces.iter().filter_map(file).collect())
}

fn file(piece: &Value) -> Option<File> {
    let (url, name, of_no_kind) = match as_text(&piece["image_url"], "url") {
        Some(url) => (url, None, "image/*"),
        None => {
            let file = &piece["file"];
            (as_text(file, "file_data")?, as_text(file, "filename"), "application/octet-stream")
        }
    };
    let kind = url.strip_prefix("data:").and_then(|it| it.split([';', ',']).next());
    Some(File {
        media_type: kind.unwrap_or(of_no_kind).to_owned(),
        name: name.map(str::to_owned),
        url: url.to_owned(),
    })
}
