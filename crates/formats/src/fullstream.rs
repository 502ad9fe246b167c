//! `format=fullstream`: runs as the events of the AI SDK's `streamText().fullStream`, out and in.
//!
//! Everything without an event of its own becomes a `raw` event with a data part of `format=ui`.

pub(crate) mod import;

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::{
    Call, CallState, Content, Message, MessageRole, PartId, ResponseId, RunMessage, RunStatus,
    Step, TextRole, Usage,
};

pub use import::import;

use crate::call;
use crate::follow::{RunChange, all_changes};
use crate::ui::{self, known_reason};

#[cfg(test)]
mod tests;

/// Converts a message of the transcript to `format=fullstream`; `None` for events outside any run.
pub fn message(message: &Message) -> Option<Value> {
    let created_at = message.created_at;
    match &message.content {
        Content::User(input) => {
            let role = match input.role {
                MessageRole::User => "user",
                MessageRole::System => "system",
            };
            let id = &input.id;
            let content = &input.text;
            Some(json!({ "id": id, "role": role, "createdAt": created_at, "content": content }))
        }
        Content::Run(answer) => {
            let mut message = json!({
                "id": answer.id,
                "role": "assistant",
                "createdAt": created_at,
                "agent": answer.agent,
                "events": events(answer),
            });
            if let Some(model) = &answer.model {
                message["model"] = json!(model);
            }
            if let Some(ms) = answer.finish.as_ref().and_then(|it| it.duration_ms) {
                message["durationMs"] = json!(ms);
            }
            Some(message)
        }
        Content::Aside(_) => None,
    }
}

/// Returns the `fullStream` events of a run up to now.
pub fn events(answer: &RunMessage) -> Vec<Value> {
    let mut format = EventFormat::new(answer.id.clone());
    all_changes(answer).iter().flat_map(|change| format.events(change)).collect()
}

#[derive(Debug)]
struct EventFormat {
    run: ResponseId,
    model: Option<String>,
    /// Ids of texts and thinking in the stream. They are numbers, so that a repeated run gives the
    /// same events.
    names: HashMap<PartId, String>,
}

impl EventFormat {
    fn new(run: ResponseId) -> Self {
        Self { run, model: None, names: HashMap::new() }
    }

    fn events(&mut self, change: &RunChange<'_>) -> Vec<Value> {
        match change {
            RunChange::Begun(answer) => {
                self.model.clone_from(&answer.model);
                vec![json!({ "type": "start" })]
            }
            RunChange::StepBegun { .. } => {
                vec![json!({ "type": "start-step", "request": {}, "warnings": [] })]
            }
            RunChange::StepEnded { step, .. } => vec![self.finish_step(step)],
            RunChange::TextBegun(text) => vec![self.words_begin("text-start", &text.id)],
            RunChange::TextGrown(text, delta) => vec![self.words("text-delta", &text.id, delta)],
            RunChange::TextEnded(text) => {
                vec![self.words_end("text-end", &text.id, text.role == TextRole::Discarded)]
            }
            RunChange::ThinkingBegun(it) => vec![self.words_begin("reasoning-start", &it.id)],
            RunChange::ThinkingGrown(it, delta) => {
                vec![self.words("reasoning-delta", &it.id, delta)]
            }
            RunChange::ThinkingEnded(it) => {
                vec![self.words_end("reasoning-end", &it.id, it.discarded)]
            }
            RunChange::CallBegun(call) => {
                let (id, name) = (&call.id, call.label());
                vec![json!({ "type": "tool-input-start", "id": id, "toolName": name })]
            }
            RunChange::ArgumentsGrown(call, delta) => {
                vec![json!({ "type": "tool-input-delta", "id": call.id, "delta": delta })]
            }
            RunChange::ArgumentsDone(call) => {
                vec![json!({ "type": "tool-input-end", "id": call.id }), tool_call(call)]
            }
            RunChange::ApprovalRequested(call) => vec![approval_request(call)],
            RunChange::ApprovalResolved(call) => {
                let approved = call::accepted(call).is_some();
                let mut response = json!({
                    "type": "tool-approval-response",
                    "approvalId": ui::approval_id(call),
                    "toolCallId": call.id,
                    "approved": approved,
                });
                if let Some(reason) = ui::reason(call) {
                    response["reason"] = json!(reason);
                }
                vec![response]
            }
            RunChange::CallEnded(call) => vec![call_ended(call)],
            RunChange::Aside(number, kind) => {
                vec![json!({ "type": "raw", "rawValue": ui::data(&self.run, *number, kind) })]
            }
            RunChange::Ended(answer) => ended(answer),
        }
    }

    fn words_begin(&mut self, kind: &str, id: &PartId) -> Value {
        let name = self.names.len().to_string();
        let name = self.names.entry(id.clone()).or_insert(name);
        json!({ "type": kind, "id": name })
    }

    fn words(&self, kind: &str, id: &PartId, text: &str) -> Value {
        json!({ "type": kind, "id": self.names.get(id), "text": text })
    }

    fn words_end(&self, kind: &str, id: &PartId, discarded: bool) -> Value {
        let mut end = json!({ "type": kind, "id": self.names.get(id) });
        if discarded {
            end["providerMetadata"] = ui::discarded_mark();
        }
        end
    }

    fn finish_step(&self, step: &Step) -> Value {
        let finished = step.finished.as_ref();
        let reason = finished.map_or("unknown", |it| it.reason.as_str());
        let mut response = json!({ "id": self.run });
        if let Some(finished) = finished {
            response["timestamp"] = json!(finished.at);
        }
        if let Some(model) = &self.model {
            response["modelId"] = json!(model);
        }
        json!({
            "type": "finish-step",
            "finishReason": known_reason(reason),
            "rawFinishReason": reason,
            "usage": counts(finished.and_then(|it| it.usage)),
            "response": response,
        })
    }
}

/// Returns the event of a complete tool call. It is marked as invalid if the arguments are not an
/// object.
fn tool_call(call: &Call) -> Value {
    let input = call::input(call);
    let is_valid = input.is_object();
    let (id, name) = (&call.id, call.label());
    let mut event =
        json!({ "type": "tool-call", "toolCallId": id, "toolName": name, "input": input });
    if !is_valid {
        event["invalid"] = json!(true);
        event["dynamic"] = json!(true);
    }
    event
}

fn approval_request(call: &Call) -> Value {
    let approval = ui::approval_id(call);
    json!({ "type": "tool-approval-request", "approvalId": approval, "toolCall": tool_call(call) })
}

fn call_ended(call: &Call) -> Value {
    let mut event = json!({
        "type": "tool-result",
        "toolCallId": call.id,
        "toolName": call.label(),
        "input": call::input(call),
    });
    let error = call.outcome.as_ref().and_then(|it| it.error.as_ref());
    match call::error_text(call) {
        None => event["output"] = call::output(call),
        Some(text) => {
            let is_denied = call.state == CallState::Denied && call::resolution(call).is_some();
            event["type"] = json!(if is_denied { "tool-output-denied" } else { "tool-error" });
            event["error"] = error.map_or_else(|| json!({ "message": text }), |it| json!(it));
        }
    }
    event
}

fn ended(answer: &RunMessage) -> Vec<Value> {
    let Some(finish) = &answer.finish else { return Vec::new() };
    let reason = ui::finish_reason(answer).unwrap_or("unknown");
    let finish_event = |reason: &str| json!({ "type": "finish", "finishReason": reason, "totalUsage": counts(answer.usage()) });
    match finish.status {
        RunStatus::Completed => vec![finish_event(reason)],
        RunStatus::Cancelled => {
            vec![json!({ "type": "abort", "totalUsage": counts(answer.usage()) })]
        }
        RunStatus::Failed => {
            let unknown = json!({ "message": "The run failed." });
            let error = finish.error.as_ref().map_or(unknown, |it| json!(it));
            vec![json!({ "type": "error", "error": error }), finish_event("error")]
        }
    }
}

/// Converts token counts to the form of the AI SDK; an empty object if they are unknown.
fn counts(usage: Option<Usage>) -> Value {
    let Some(usage) = usage else { return json!({}) };
    let mut counts = json!({
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
    });
    if let Some(cached) = usage.cached_tokens {
        counts["cachedInputTokens"] = json!(cached);
    }
    if let Some(reasoning) = usage.reasoning_tokens {
        counts["reasoningTokens"] = json!(reasoning);
    }
    counts
}
