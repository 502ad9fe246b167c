//! Messages of an AG-UI client as events.
//!
//! Whatever comes between two of the user's is one run; each assistant message with calls ends a step.
//! They do not say: how a run ended, how long anything took, who agreed to a call. Activities are the
//! client's own and are kept as `unrecognized`.

use serde_json::Value;
use transcript::{RunStatus, SaidBy};

use super::incoming::content;
use crate::import::{Came, Ending, Entry, Retelling, Setting, as_text, error_info};

pub fn import(messages: &Value, setting: &Setting<'_>) -> Vec<Entry> {
    let mut retelling = Retelling::new(setting);
    let mut has_called = false;
    for message in messages.as_array().map(Vec::as_slice).unwrap_or_default() {
        match message["role"].as_str() {
            Some("user") => said(message, SaidBy::User, &mut retelling),
            Some("system" | "developer") => said(message, SaidBy::System, &mut retelling),
            Some("tool") => {
                result(message, &mut retelling);
                continue;
            }
            Some("reasoning") => {
                step(has_called, &mut retelling);
                retelling.thinking(message["content"].as_str().unwrap_or_default(), false);
            }
            Some("assistant") => {
                step(has_called, &mut retelling);
                assistant(message, &mut retelling);
            }
            _ => retelling.unrecognized("message", &message.to_string()),
        }
        has_called = message["toolCalls"].as_array().is_some_and(|it| !it.is_empty());
    }
    retelling.into_entries()
}

fn said(message: &Value, role: SaidBy, retelling: &mut Retelling<'_>) {
    retelling.end(Ending::of(RunStatus::Completed));
    // What cannot be read is no reason to lose the rest.
    let (text, files) = content(&message["content"], "content").unwrap_or_default();
    retelling.said(as_text(message, "id"), role, &text, &files);
}

fn step(has_called: bool, retelling: &mut Retelling<'_>) {
    if has_called || !retelling.is_in_run() {
        retelling.step();
    }
}

fn assistant(message: &Value, retelling: &mut Retelling<'_>) {
    if let Some(text) = as_text(message, "content") {
        retelling.text(text, None, false);
    }
    for call in message["toolCalls"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let function = &call["function"];
        let arguments = function["arguments"].as_str().unwrap_or_default();
        let name = as_text(function, "name").unwrap_or_default();
        retelling.call(as_text(call, "id"), name, arguments);
    }
}

fn result(message: &Value, retelling: &mut Retelling<'_>) {
    let id = as_text(message, "toolCallId");
    let came = match message.get("error").filter(|it| !it.is_null()) {
        Some(error) => Came::Failed(error_info(error)),
        None => Came::Out(message["content"].clone()),
    };
    match retelling.open_call(id, None) {
        Some(call) => retelling.result(&call, came, 0),
        None => retelling.orphan(id, "", came),
    }
}
