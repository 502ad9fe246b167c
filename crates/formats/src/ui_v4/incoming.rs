//! Requests of clients of version 4: messages with `content`, of which the last is new.

use serde_json::Value;
use transcript::CallId;

use crate::incoming::{BadRequest, Decided, File, IncomingMessage, client_tools};
use crate::known::{Known, KnownCall, KnownOutcome, KnownWords};
use crate::ui::{Request, Trigger};

/// Parses the JSON body of an AI SDK 4 chat request.
pub fn request(body: &Value) -> Result<Request, BadRequest> {
    let fields = body.as_object().ok_or_else(|| BadRequest::new("The body is no JSON object."))?;
    let messages = match fields.get("messages") {
        Some(Value::Array(messages)) => messages,
        Some(_) => return Err(BadRequest::new("`messages` is no array.")),
        None => return Err(BadRequest::new("`messages` is missing.")),
    };
    let last = messages.last().ok_or_else(|| BadRequest::new("There is no message to answer."))?;
    let place = format!("messages[{}]", messages.len() - 1);
    let message = match last["role"].as_str() {
        Some("user") => Some(incoming_message(last, &place)?),
        Some("assistant" | "system" | "data") => None,
        _ => return Err(BadRequest::new(format!("`{place}.role` is no role of a message."))),
    };
    let decided = match messages.iter().rfind(|it| it["role"] == "assistant") {
        Some(answer) if message.is_none() => results(answer, &place)?,
        // What stands before the last message may be of any kind.
        Some(answer) => results(answer, "").unwrap_or_default(),
        None => Vec::new(),
    };
    let chat = fields.get("id").and_then(Value::as_str).map(str::to_owned);
    let tools = client_tools(&body["tools"])?;
    let known = known(last);
    let (trigger, message_id) = (Trigger::Submit, None);
    Ok(Request { chat, trigger, message_id, message, decided, known, tools })
}

fn incoming_message(message: &Value, place: &str) -> Result<IncomingMessage, BadRequest> {
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Null => texts(&message["parts"]),
        _ => return Err(BadRequest::new(format!("`{place}.content` is no text."))),
    };
    let attached = match &message["experimental_attachments"] {
        Value::Array(files) => files.as_slice(),
        Value::Null => &[],
        _ => {
            let why = format!("`{place}.experimental_attachments` is no array.");
            return Err(BadRequest::new(why));
        }
    };
    let file = |(idx, file): (usize, &Value)| {
        let field = |name: &str| {
            let why = format!("`{place}.experimental_attachments[{idx}].{name}` is no text.");
            file[name].as_str().map(str::to_owned).ok_or_else(|| BadRequest::new(why))
        };
        let name = file["name"].as_str().map(str::to_owned);
        Ok(File { media_type: field("contentType")?, name, url: field("url")? })
    };
    let files = attached.iter().enumerate().map(file).collect::<Result<Vec<_>, _>>()?;
    if text.trim().is_empty() && files.is_empty() {
        return Err(BadRequest::new(format!("`{place}` has neither text nor files.")));
    }
    let id = message["id"].as_str().map(str::to_owned);
    Ok(IncomingMessage::new(id, text, &files))
}

fn texts(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = parts.iter().filter(|it| it["type"] == "text").filter_map(|it| it["text"].as_str());
    texts.collect::<Vec<_>>().join("\n\n")
}

fn known(message: &Value) -> Known {
    let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let called = parts.iter().filter_map(|part| {
        let invocation = &part["toolInvocation"];
        let call = CallId::new(invocation["toolCallId"].as_str()?);
        let outcome = match invocation["state"] == "result" {
            true => KnownOutcome::Any,
            false => KnownOutcome::None,
        };
        Some((call, KnownCall { asked: false, outcome }))
    });
    let last = parts.iter().rposition(|it| it["type"] == "tool-invocation");
    let later = parts.iter().skip(last.map_or(0, |idx| idx + 1));
    let has_visible_text = |it: &&Value| it["type"] == "text" || it["type"] == "reasoning";
    let words = KnownWords::SpokenAfter(later.filter(has_visible_text).count());
    Known { calls: called.collect(), words, n_steps: 0 }
}

fn results(message: &Value, place: &str) -> Result<Vec<Decided>, BadRequest> {
    let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let invocations = parts.iter().enumerate().filter(|(_, it)| it["type"] == "tool-invocation");
    let given = invocations.filter(|(_, it)| it["toolInvocation"]["state"] == "result");
    let result = |(idx, part): (usize, &Value)| {
        let why = format!("`{place}.parts[{idx}].toolInvocation.toolCallId` is no text.");
        let invocation = &part["toolInvocation"];
        let call = invocation["toolCallId"].as_str().ok_or_else(|| BadRequest::new(why))?;
        Ok(Decided::Output { call: call.to_owned(), output: invocation["result"].clone() })
    };
    given.map(result).collect()
}
