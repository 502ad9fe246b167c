//! What an AG-UI client sends to start a run: `RunAgentInput`.
//!
//! The log is the truth here, so of the messages only the end is read: what the user said last, or the
//! results of tools that the client has run. State, context and the client's own properties are left
//! to the server.

use serde_json::Value;

use crate::incoming::{BadRequest, Decided, File, Given, Said};

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub thread: String,
    pub run: String,
    pub given: Given,
    /// Tools of the client: each with `name`, `description` and `parameters`.
    pub tools: Vec<Value>,
    pub forwarded: Value,
}

pub fn request(body: &Value) -> Result<Request, BadRequest> {
    if !body.is_object() {
        return Err(BadRequest::new("The body is no JSON object."));
    }
    let messages = array(body, "messages")?;
    let resumed = array(body, "resume")?;
    let given = match (resumed, messages.last()) {
        ([], None) => Given::Nothing,
        ([], Some(last)) if last["role"] == "user" => {
            Given::Said(said(last, &format!("messages[{}]", messages.len() - 1))?)
        }
        (resumed, _) => {
            let mut decided: Vec<Decided> =
                resumed.iter().enumerate().map(decision).collect::<Result<_, _>>()?;
            decided.extend(tool_results(messages)?);
            if decided.is_empty() { Given::Nothing } else { Given::Decided(decided) }
        }
    };
    let tools = array(body, "tools")?.to_vec();
    for (idx, tool) in tools.iter().enumerate() {
        text(tool, "name", &format!("tools[{idx}]"))?;
    }
    Ok(Request {
        thread: text(body, "threadId", "")?,
        run: text(body, "runId", "")?,
        given,
        tools,
        forwarded: body["forwardedProps"].clone(),
    })
}

fn said(message: &Value, place: &str) -> Result<Said, BadRequest> {
    let id = message["id"].as_str().map(str::to_owned);
    let pieces = match &message["content"] {
        Value::String(text) => {
            return Ok(Said { id, text: text.clone(), files: Vec::new() });
        }
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
    Ok(Said { id, text: texts.join("\n\n"), files })
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
        _ => {
            let why = format!("`{place}.type` is neither \"data\" nor \"url\".");
            return Err(BadRequest::new(why));
        }
    };
    Ok(File { media_type, name: piece["filename"].as_str().map(str::to_owned), url })
}

/// As versions before 1.0 send files.
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

/// Those that stand at the end: what came before an answer is known.
fn tool_results(messages: &[Value]) -> Result<Vec<Decided>, BadRequest> {
    let n_results = messages.iter().rev().take_while(|it| it["role"] == "tool").count();
    let first = messages.len() - n_results;
    let result = |(idx, message): (usize, &Value)| {
        let place = format!("messages[{}]", first + idx);
        let call = text(message, "toolCallId", &place)?;
        Ok(match message["error"].as_str() {
            Some(error) => Decided::Error { call, error: error.to_owned() },
            None => Decided::Output { call, output: message["content"].clone() },
        })
    };
    messages[first..].iter().enumerate().map(result).collect()
}

/// Absent and null are empty.
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
