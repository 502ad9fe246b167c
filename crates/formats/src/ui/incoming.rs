//! Requests of AI SDK clients: the chat, of which only the end is new.
//!
//! The log is authoritative, so messages that the client repeats are not read. Only the last message counts: the
//! text of a user's message, the decisions and results that the client has added to an assistant's message. A
//! request may contain both: a client that does not send decisions immediately keeps them until its user sends a
//! message.

use serde_json::Value;
use transcript::{CallId, ClientTool};

use crate::incoming::{BadRequest, Decided, IncomingMessage, client_tools};
use crate::known::{Known, KnownCall, KnownOutcome, KnownWords};

/// A chat request of an AI SDK client.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The client's id of the chat; `None` if the request contains none.
    pub chat: Option<String>,
    /// The purpose of the request.
    pub trigger: Trigger,
    /// Id of the message to edit, to answer again or to continue; `None` if the request contains
    /// none.
    pub message_id: Option<String>,
    /// The last message of the request, if its role is `user`.
    pub message: Option<IncomingMessage>,
    /// Decisions about approvals and tool results in the last assistant message.
    pub decided: Vec<Decided>,
    /// Parts of the run that the client has, if its last message is the answer of a run.
    pub known: Known,
    /// Tools of the request that the client runs itself.
    pub tools: Vec<ClientTool>,
}

/// The purpose of a chat request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The client sends a message, or decisions and tool results.
    Submit,
    /// The client wants another answer.
    Regenerate,
}

/// Parses the JSON body of a chat request, which contains all messages, or only the new one under
/// `message`.
pub fn request(body: &Value) -> Result<Request, BadRequest> {
    let fields = body.as_object().ok_or_else(|| BadRequest::new("The body is no JSON object."))?;
    let trigger = match &body["trigger"] {
        Value::Null => Trigger::Submit,
        Value::String(it) if it == "submit-message" => Trigger::Submit,
        Value::String(it) if it == "regenerate-message" => Trigger::Regenerate,
        _ => {
            let why = "`trigger` is neither \"submit-message\" nor \"regenerate-message\".";
            return Err(BadRequest::new(why));
        }
    };
    let field = |name: &str| fields.get(name).filter(|it| !it.is_null());
    let (messages, list) = match (field("message"), field("messages")) {
        (Some(message), _) => (std::slice::from_ref(message), false),
        (None, Some(Value::Array(messages))) => (messages.as_slice(), true),
        (None, Some(_)) => return Err(BadRequest::new("`messages` is no array.")),
        (None, None) => return Err(BadRequest::new("Neither `messages` nor `message` is there.")),
    };
    let place = |idx: usize| if list { format!("messages[{idx}]") } else { "message".to_owned() };
    let last = messages.len().checked_sub(1);
    let role = last.map(|idx| role(&messages[idx], &place(idx))).transpose()?;
    if !matches!(role, Some(Role::User | Role::Assistant)) && trigger == Trigger::Submit {
        return Err(BadRequest::new("There is no message to answer."));
    }
    let message = match (last, role) {
        (Some(idx), Some(Role::User)) => Some(incoming_message(&messages[idx], &place(idx))?),
        _ => None,
    };
    let decided = match messages.iter().rposition(|it| it["role"] == "assistant") {
        Some(idx) if Some(idx) == last => all_decided(&messages[idx], &place(idx))?,
        // What stands before the last message may be of any kind.
        Some(idx) => all_decided(&messages[idx], "").unwrap_or_default(),
        None => Vec::new(),
    };
    let known = messages.last().map(known).unwrap_or_default();
    let chat = optional_text(body, "id", "")?;
    let message_id = optional_text(body, "messageId", "")?;
    let tools = client_tools(&body["tools"])?;
    Ok(Request { chat, trigger, message_id, message, decided, known, tools })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
    System,
}

fn role(message: &Value, place: &str) -> Result<Role, BadRequest> {
    if !message.is_object() {
        return Err(BadRequest::new(format!("`{place}` is no object.")));
    }
    parts(message, place)?;
    match message["role"].as_str() {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("system") => Ok(Role::System),
        _ => {
            let why = format!("`{place}.role` is none of \"user\", \"assistant\" and \"system\".");
            Err(BadRequest::new(why))
        }
    }
}

fn parts<'a>(message: &'a Value, place: &str) -> Result<&'a [Value], BadRequest> {
    let parts = message["parts"].as_array().map(Vec::as_slice);
    parts.ok_or_else(|| BadRequest::new(format!("`{place}.parts` is no array.")))
}

fn all_decided(message: &Value, place: &str) -> Result<Vec<Decided>, BadRequest> {
    let parts = parts(message, place)?.iter().enumerate();
    let decided = parts.map(|(idx, part)| decided(part, &format!("{place}.parts[{idx}]")));
    decided.filter_map(Result::transpose).collect()
}

fn incoming_message(message: &Value, place: &str) -> Result<IncomingMessage, BadRequest> {
    let parts = parts(message, place)?;
    let mut texts = Vec::new();
    let mut has_files = false;
    for (idx, part) in parts.iter().enumerate() {
        let place = format!("{place}.parts[{idx}]");
        match part["type"].as_str() {
            Some("text") => texts.push(text(part, "text", &place)?),
            Some("file") => {
                text(part, "mediaType", &place)?;
                text(part, "url", &place)?;
                has_files = true;
            }
            // Data and sources of the client's own are nothing to an agent.
            Some(_) => (),
            None => return Err(BadRequest::new(format!("`{place}` has no `type`."))),
        }
    }
    let id = optional_text(message, "id", place)?;
    if texts.iter().all(|it| it.trim().is_empty()) && !has_files {
        return Err(BadRequest::new(format!("`{place}` has neither text nor files.")));
    }
    let metadata = message.get("metadata").filter(|it| !it.is_null()).cloned();
    Ok(IncomingMessage::of_parts(id, texts.join("\n\n"), parts.to_vec(), metadata))
}

/// Returns the decision or result that the client has added to a tool part, independent of the
/// party that runs the tool. `None` for other parts.
fn decided(part: &Value, place: &str) -> Result<Option<Decided>, BadRequest> {
    let kind = part["type"].as_str().unwrap_or_default();
    if !kind.starts_with("tool-") && kind != "dynamic-tool" {
        return Ok(None);
    }
    let call = text(part, "toolCallId", place)?;
    Ok(match part["state"].as_str() {
        Some("approval-responded") => {
            let approved = part["approval"]["approved"].as_bool().ok_or_else(|| {
                BadRequest::new(format!("`{place}.approval.approved` is no boolean."))
            })?;
            let reason = part["approval"]["reason"].as_str().map(str::to_owned);
            Some(Decided::Approval { call, approved, reason, arguments: None })
        }
        Some("output-available") => Some(Decided::Output { call, output: part["output"].clone() }),
        Some("output-error") => {
            Some(Decided::Error { call, error: text(part, "errorText", place)? })
        }
        Some(_) => None,
        None => return Err(BadRequest::new(format!("`{place}.state` is no text."))),
    })
}

fn known(message: &Value) -> Known {
    let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let called = parts.iter().filter_map(|part| {
        let call = CallId::new(part["toolCallId"].as_str()?);
        Some((call, KnownCall { asked: part["approval"].is_object(), outcome: outcome(part) }))
    });
    let last = parts.iter().rposition(|it| it["toolCallId"].is_string());
    let later = parts.iter().skip(last.map_or(0, |idx| idx + 1));
    let has_visible_text = |it: &&Value| it["type"] == "text" || it["type"] == "reasoning";
    Known {
        calls: called.collect(),
        words: KnownWords::After(later.filter(has_visible_text).count()),
        n_steps: parts.iter().filter(|it| it["type"] == "step-start").count(),
    }
}

fn outcome(part: &Value) -> KnownOutcome {
    match part["state"].as_str() {
        Some("output-available") => KnownOutcome::Output(part["output"].clone()),
        Some("output-error") => {
            KnownOutcome::Error(part["errorText"].as_str().unwrap_or_default().to_owned())
        }
        Some("output-denied") => KnownOutcome::Any,
        _ => KnownOutcome::None,
    }
}

fn text(part: &Value, field: &str, place: &str) -> Result<String, BadRequest> {
    let found = part[field].as_str().map(str::to_owned);
    found.ok_or_else(|| BadRequest::new(format!("`{place}.{field}` is no text.")))
}

fn optional_text(fields: &Value, field: &str, place: &str) -> Result<Option<String>, BadRequest> {
    match &fields[field] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => {
            let dot = if place.is_empty() { "" } else { "." };
            Err(BadRequest::new(format!("`{place}{dot}{field}` is no text.")))
        }
    }
}
