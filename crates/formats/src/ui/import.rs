//! `UIMessage`s as events.
//!
//! Not contained: the commentary of each call, durations of calls, reasons of denials, actions of sub-agents.
//! Parts of other programs are kept as `unrecognized`.

use serde_json::{Map, Value};
use transcript::{
    Direction, ErrorCode, ErrorInfo, Event, ExchangeId, ExchangeMode, Level, MessageRole,
    RunStatus, SteerState,
};

use crate::import::{
    Beginning, CallResult, Ending, Entry, Holds, List, LogBuilder, Setting, arguments_text,
    as_text, error_info, items,
};
use crate::ui::foreign;

pub(crate) const MESSAGES: List = List {
    of: "messages",
    tag: "role",
    words: &["user", "assistant", "system"],
    fields: &[("parts", &[Holds::List]), ("metadata", &[Holds::Object])],
    read: import,
};

/// Imports a list of `UIMessage`s as the log of a new session.
pub fn import(messages: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let mut builder = LogBuilder::new(setting);
    for message in items(messages) {
        builder.at(&message["metadata"]["createdAt"]);
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

fn parts(message: &Value) -> &[Value] {
    items(&message["parts"])
}

fn input_message(message: &Value, role: MessageRole, builder: &mut LogBuilder<'_>) {
    let texts = parts(message).iter().filter(|it| it["type"] == "text");
    let texts: Vec<&str> = texts.filter_map(|it| it["text"].as_str()).collect();
    // Clients put the pieces of instructions together as they are.
    let joint = if role == MessageRole::System { "" } else { "\n\n" };
    let (id, text, parts) = (as_text(message, "id"), texts.join(joint), parts(message).to_vec());
    builder.input_message_in_parts(id, role, &text, parts, message.get("metadata"));
}

fn answer(message: &Value, builder: &mut LogBuilder<'_>) {
    let metadata = &message["metadata"];
    let (agent, model) = (as_text(metadata, "agent"), as_text(metadata, "model"));
    builder.begin(&Beginning { id: as_text(message, "id"), agent, model });
    for part in parts(message).iter().filter(|_| !stands_for_nothing(message)) {
        let text = part["text"].as_str().unwrap_or_default();
        let discarded = part["providerMetadata"]["callboard"]["discarded"] == true;
        match part["type"].as_str().unwrap_or_default() {
            "step-start" => builder.step(),
            "text" => {
                builder.text(text, None, discarded);
                builder.extras(foreign::extras(part));
            }
            "reasoning" => {
                builder.thinking(as_text(part, "id"), text, discarded);
                builder.extras(foreign::extras(part));
            }
            "dynamic-tool" => {
                call(part, as_text(part, "toolName").unwrap_or_default(), builder);
            }
            kind => match (kind.strip_prefix("tool-"), kind.strip_prefix("data-")) {
                (Some(name), _) => call(part, name, builder),
                (None, Some(name)) => data(part, name, builder),
                (None, None) => builder.unrecognized(foreign::SOURCE, &part.to_string()),
            },
        }
    }
    builder.end(ending(metadata));
}

/// Returns whether the message of a run is empty: its only part is a step, because a message must
/// have a part.
fn stands_for_nothing(message: &Value) -> bool {
    let has_finished_step = message["metadata"]["finishReason"].is_string();
    matches!(parts(message), [only] if only["type"] == "step-start") && !has_finished_step
}

fn ending(metadata: &Value) -> Ending {
    let read = |field: &str| metadata[field].clone();
    Ending {
        reason: None,
        status: serde_json::from_value(read("status")).unwrap_or(RunStatus::Completed),
        error: serde_json::from_value(read("error")).ok(),
        usage: serde_json::from_value(read("usage")).ok(),
        cost: metadata["cost"].as_f64(),
        duration_ms: metadata["durationMs"].as_u64(),
        finish_reason: as_text(metadata, "finishReason").map(str::to_owned),
    }
}

fn call(part: &Value, name: &str, builder: &mut LogBuilder<'_>) {
    let input = part.get("input").or_else(|| part.get("rawInput")).unwrap_or(&Value::Null);
    let call = builder.call(as_text(part, "toolCallId"), name, &arguments_text(input));
    builder.extras(foreign::extras(part));
    let approval = &part["approval"];
    if let Some(approved) = approval["approved"].as_bool() {
        builder.decided(&call, approved, as_text(approval, "reason"));
    }
    match part["state"].as_str() {
        Some("output-available") => {
            builder.result(&call, CallResult::Output(part["output"].clone()))
        }
        Some("output-error") => {
            builder.result(&call, CallResult::Failed(error_info(&part["errorText"])));
        }
        Some(state)
            if state == "output-denied"
                || (state == "approval-responded" && approval["approved"] == false) =>
        {
            let why = as_text(approval, "reason").unwrap_or("The call was refused.");
            let error = ErrorInfo::new(ErrorCode::ToolDenied, why);
            builder.result(&call, CallResult::Failed(error));
        }
        // It was still running: the end of the run interrupts it.
        _ => (),
    }
}

/// Imports a data part that Callboard has exported. Other data parts are kept as `unrecognized`.
pub(crate) fn data(part: &Value, name: &str, builder: &mut LogBuilder<'_>) {
    let data = &part["data"];
    let text = || data["text"].as_str().unwrap_or_default().to_owned();
    match name {
        "steered" => {
            let state = serde_json::from_value(data["state"].clone()).unwrap_or(SteerState::Seen);
            builder.steered(as_text(part, "id"), &text(), state);
        }
        "notice" => {
            let level = serde_json::from_value(data["level"].clone()).unwrap_or(Level::Info);
            builder.push(Event::Notice { level, text: text() });
        }
        "unrecognized" => {
            let field = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
            let (source, raw) = (field("source"), field("raw"));
            let lines = data["lines"].as_u64().unwrap_or(1);
            builder.push(Event::Unrecognized { source, raw, lines });
        }
        "exchange" => exchange(part, data, builder),
        _ => builder.unrecognized(foreign::SOURCE, &part.to_string()),
    }
}

fn exchange(part: &Value, data: &Value, builder: &mut LogBuilder<'_>) {
    let exchange_id = ExchangeId::new(as_text(part, "id").unwrap_or_default());
    let direction = serde_json::from_value(data["direction"].clone()).unwrap_or(Direction::Sent);
    let agent = as_text(data, "agent").unwrap_or_default().to_owned();
    builder.push(Event::AgentMessage {
        call_id: None,
        mode: ExchangeMode::default(),
        depth: 0,
        exchange_id: exchange_id.clone(),
        direction,
        agent: agent.clone(),
        peer_session_id: None,
        peer_response_id: None,
        text: data["text"].as_str().unwrap_or_default().to_owned(),
    });
    let no_fields = Map::new();
    let fields = data.as_object().unwrap_or(&no_fields);
    if let Some(ok) = fields.get("ok").and_then(Value::as_bool) {
        builder.push(Event::AgentCallbackResult {
            exchange_id,
            direction,
            agent,
            peer_session_id: None,
            peer_response_id: None,
            ok,
            result: fields.get("result").filter(|it| !it.is_null()).cloned(),
            error: fields.get("error").and_then(|it| serde_json::from_value(it.clone()).ok()),
        });
    }
}
