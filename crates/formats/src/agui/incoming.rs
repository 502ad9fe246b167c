//! Requests of AG-UI clients: `RunAgentInput`.
//!
//! The log is authoritative, so only the end of the messages is read: the last message of the user, and the
//! results of tools that the client has run since the last answer. State, context and the client's own
//! properties are ignored.

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::{CallId, ClientTool};

use super::Version;
use crate::incoming::{BadRequest, Decided, File, IncomingMessage, client_tools};
use crate::known::{Known, KnownCall, KnownOutcome, KnownWords};

/// Request of an AG-UI client for a run: its `RunAgentInput`.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The client's id of the conversation (`threadId`), which is the id of the session.
    pub thread: String,
    /// The client's id of the run (`runId`).
    pub run: String,
    /// Version of AG-UI that the client speaks.
    pub version: Version,
    /// Ids of the messages that the client has, in their order.
    pub messages: Vec<String>,
    /// Parts of the resumed run that the client has.
    pub known: Known,
    /// The last message of the request, if its role is `user`.
    pub message: Option<IncomingMessage>,
    /// Decisions about approvals, and results of tools that the client has run.
    pub decided: Vec<Decided>,
    /// Tools of the request that the client runs itself.
    pub tools: Vec<ClientTool>,
}

/// Parses the JSON body of an AG-UI request.
pub fn request(body: &Value) -> Result<Request, BadRequest> {
    if !body.is_object() {
        return Err(BadRequest::new("The body is no JSON object."));
    }
    let messages = array(body, "messages")?;
    if let Some(idx) = messages.iter().position(|it| !it.is_object()) {
        return Err(BadRequest::new(format!("`messages[{idx}]` is no object.")));
    }
    array(body, "tools")?;
    let resumed = array(body, "resume")?.iter().enumerate().map(decision);
    let mut decided: Vec<Decided> = resumed.collect::<Result<_, _>>()?;
    decided.extend(results(messages)?);
    let ids = messages.iter().filter_map(|it| it["id"].as_str());
    Ok(Request {
        thread: text(body, "threadId", "")?,
        run: text(body, "runId", "")?,
        // Versions before 1.0 do not send their version.
        version: match &body["protocolVersion"] {
            Value::Null => Version::V0,
            _ => text(body, "protocolVersion", "").map(|_| Version::V1)?,
        },
        known: known(messages, &decided),
        messages: ids.map(str::to_owned).collect(),
        message: last_user_message(messages)?,
        decided,
        tools: client_tools(&body["tools"])?,
    })
}

/// Returns the parts of the run that the client has, from the messages of its request. It has every
/// tool call that it decides about, even if its messages lack the call.
fn known(messages: &[Value], decided: &[Decided]) -> Known {
    let called = messages.iter().filter_map(|it| it["toolCalls"].as_array()).flatten();
    let called = called.filter_map(|it| it["id"].as_str());
    let mut calls: HashMap<CallId, KnownCall> = called
        .chain(decided.iter().map(Decided::call))
        .map(|id| (CallId::new(id), KnownCall::default()))
        .collect();
    let ended = messages.iter().filter_map(|it| it["toolCallId"].as_str());
    for id in ended {
        calls.entry(CallId::new(id)).or_default().outcome = KnownOutcome::Any;
    }
    let names = messages.iter().filter_map(|it| it["id"].as_str()).map(str::to_owned).collect();
    Known { calls, words: KnownWords::Named(names), n_steps: 0 }
}

/// Returns all messages of a request but the last one, for [`import`](super::import).
pub fn earlier(body: &Value) -> &[Value] {
    let messages = body["messages"].as_array().and_then(|it| it.split_last());
    messages.map_or(&[], |(_, earlier)| earlier)
}

fn last_user_message(messages: &[Value]) -> Result<Option<IncomingMessage>, BadRequest> {
    match messages.split_last() {
        Some((last, earlier)) if last["role"] == "user" => {
            incoming_message(last, &format!("messages[{}]", earlier.len())).map(Some)
        }
        _ => Ok(None),
    }
}

fn incoming_message(message: &Value, place: &str) -> Result<IncomingMessage, BadRequest> {
    let id = message["id"].as_str().map(str::to_owned);
    let pieces = match &message["content"] {
        text @ Value::String(_) => &vec![json!({ "type": "text", "text": text })],
        Value::Array(pieces) => pieces,
        _ => return Err(BadRequest::new(format!("`{place}.content` is neither text nor array."))),
    };
    let mut texts = Vec::new();
    let mut files = Vec::new();
    for (idx, piece) in pieces.iter().enumerate() {
        let place = format!("{place}.content[{idx}]");
        match piece["type"].as_str() {
            Some("text") => texts.push(text(piece, "text", &place)?),
            _ => files.push(any_file(piece, &place)?),
        }
    }
    if texts.iter().all(|it| it.trim().is_empty()) && files.is_empty() {
        return Err(BadRequest::new(format!("`{place}` has neither text nor files.")));
    }
    Ok(IncomingMessage::new(id, texts.join("\n\n"), &files))
}

pub(super) fn any_file(piece: &Value, place: &str) -> Result<File, BadRequest> {
    match piece["type"].as_str() {
        Some("image" | "audio" | "video" | "document") => file(piece, place),
        Some("binary") => binary(piece, place),
        _ => Err(BadRequest::new(format!("`{place}.type` is no kind of content."))),
    }
}

fn file(piece: &Value, place: &str) -> Result<File, BadRequest> {
    let source = &piece["source"];
    let place = format!("{place}.source");
    let media_type = source["mimeType"].as_str().unwrap_or("application/octet-stream").to_owned();
    let value = text(source, "value", &place)?;
    let url = match source["type"].as_str() {
        Some("data") => format!("data:{media_type};base64,{value}"),
        Some("url") => value,
        // By its name, if it is none of an address: files have their names from us.
        Some("file") if value.contains(':') => value,
        Some("file") => format!("/api/blobs/{value}"),
        _ => {
            let why = format!("`{place}.type` is none of \"data\", \"url\" and \"file\".");
            return Err(BadRequest::new(why));
        }
    };
    let name = piece["metadata"]["filename"].as_str().or_else(|| piece["filename"].as_str());
    Ok(File { media_type, name: name.map(str::to_owned), url })
}

/// Parses a file in the form of AG-UI versions before 1.0.
fn binary(piece: &Value, place: &str) -> Result<File, BadRequest> {
    let media_type = text(piece, "mimeType", place)?;
    let url = match (piece["data"].as_str(), piece["url"].as_str()) {
        (Some(data), _) => format!("data:{media_type};base64,{data}"),
        (None, Some(url)) => url.to_owned(),
        (None, None) => {
            return Err(BadRequest::new(format!("`{place}` has neither `data` nor `url`.")));
        }
    };
    Ok(File { media_type, name: piece["filename"].as_str().map(str::to_owned), url })
}

fn decision((idx, resumed): (usize, &Value)) -> Result<Decided, BadRequest> {
    let place = format!("resume[{idx}]");
    let interrupt = text(resumed, "interruptId", &place)?;
    let call = interrupt.strip_prefix("approval_").ok_or_else(|| {
        BadRequest::new(format!("`{place}.interruptId` is none that was given out here."))
    })?;
    let payload = &resumed["payload"];
    let approved = match resumed["status"].as_str() {
        Some("cancelled") => false,
        Some("resolved") => payload["approved"]
            .as_bool()
            .ok_or_else(|| BadRequest::new(format!("`{place}.payload.approved` is no boolean.")))?,
        _ => {
            let why = format!("`{place}.status` is neither \"resolved\" nor \"cancelled\".");
            return Err(BadRequest::new(why));
        }
    };
    Ok(Decided::Approval {
        call: call.to_owned(),
        approved,
        reason: payload["reason"].as_str().map(str::to_owned),
        arguments: payload.get("editedArgs").filter(|it| it.is_object()).cloned(),
    })
}

/// Returns the tool results after the last message that is neither `user` nor `tool`. Earlier
/// results are known already.
fn results(messages: &[Value]) -> Result<Vec<Decided>, BadRequest> {
    let is_answer = |it: &Value| it["role"] != "tool" && it["role"] != "user";
    let first = messages.iter().rposition(is_answer).map_or(0, |idx| idx + 1);
    let new = messages.iter().enumerate().skip(first).filter(|(_, it)| it["role"] == "tool");
    let result = |(idx, message): (usize, &Value)| {
        let call = text(message, "toolCallId", &format!("messages[{idx}]"))?;
        Ok(match message["error"].as_str() {
            Some(error) => Decided::Error { call, error: error.to_owned() },
            None => Decided::Output { call, output: message["content"].clone() },
        })
    };
    new.map(result).collect()
}

/// Returns the array in a field of the request. A field that is absent or null is an empty array.
fn array<'a>(body: &'a Value, field: &str) -> Result<&'a [Value], BadRequest> {
    match &body[field] {
        Value::Null => Ok(&[]),
        Value::Array(values) => Ok(values),
        _ => Err(BadRequest::new(format!("`{field}` is no array."))),
    }
}

fn text(value: &Value, field: &str, place: &str) -> Result<String, BadRequest> {
    let dot = if place.is_empty() { "" } else { "." };
    let found = value[field].as_str().map(str::to_owned);
    found.ok_or_else(|| BadRequest::new(format!("`{place}{dot}{field}` is no text.")))
}
