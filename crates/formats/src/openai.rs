//! A transcript as OpenAI chat messages: the history that a model gets, the only one.
//!
//! Total: whatever the log holds, cut anywhere, every call is followed by its result, right after
//! the message that made it. Superseded, discarded and leaked text is left out.

use serde_json::{Value, json};
use transcript::{Answer, Body, Call, Content, Part, PartKind, SaidBy, TextRole, Transcript};

pub fn history(transcript: &Transcript) -> Vec<Value> {
    let mut messages = Vec::new();
    for message in transcript.messages.iter().filter(|message| !message.superseded) {
        match &message.content {
            Content::Said(said) => {
                let role = match said.role {
                    SaidBy::User => "user",
                    SaidBy::System => "system",
                };
                messages.push(json!({ "role": role, "content": said.text }));
            }
            Content::Answer(answer) => messages.extend(answer_messages(answer)),
            Content::Aside(_) => (),
        }
    }
    messages
}

/// One assistant message a step, each with its calls and followed by their results. What a
/// sub-agent did is its own affair: the outer call's result says what came of it.
fn answer_messages(answer: &Answer) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut turn = Turn::default();
    for part in answer.parts.iter().filter(|part| part.parent.is_none()) {
        if turn.is_over_before(part) {
            messages.extend(std::mem::take(&mut turn).into_messages());
        }
        turn.add(part);
    }
    messages.extend(turn.into_messages());
    messages
}

/// What the model said in one go: text, then calls.
#[derive(Default)]
struct Turn<'a> {
    step: Option<usize>,
    texts: Vec<&'a str>,
    calls: Vec<&'a Call>,
}

impl<'a> Turn<'a> {
    /// Text that follows calls starts anew: a provider takes no text between calls and results.
    fn is_over_before(&self, part: &Part) -> bool {
        let text_after_calls =
            matches!(part.kind, PartKind::Text(_) | PartKind::Steered(_)) && !self.calls.is_empty();
        let is_empty = self.texts.is_empty() && self.calls.is_empty();
        !is_empty && (part.step != self.step || text_after_calls)
    }

    fn add(&mut self, part: &'a Part) {
        self.step = part.step;
        match &part.kind {
            PartKind::Text(text) if text.role != TextRole::Discarded && !text.leaked => {
                self.texts.push(&text.text);
            }
            PartKind::Call(call) => self.calls.push(call),
            _ => (),
        }
    }

    fn into_messages(self) -> Vec<Value> {
        let said: Vec<&str> = self.texts.into_iter().filter(|it| !it.trim().is_empty()).collect();
        let content = said.join("\n\n");
        if self.calls.is_empty() {
            return match content.is_empty() {
                true => Vec::new(),
                false => vec![json!({ "role": "assistant", "content": content })],
            };
        }
        let calls: Vec<Value> = self.calls.iter().map(|call| tool_call(call)).collect();
        let content = if content.is_empty() { Value::Null } else { Value::String(content) };
        let mut messages =
            vec![json!({ "role": "assistant", "content": content, "tool_calls": calls })];
        messages.extend(self.calls.iter().map(|call| tool_result(call)));
        messages
    }
}

fn tool_call(call: &Call) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.label(), "arguments": arguments(call) },
    })
}

/// Providers refuse arguments that are no JSON; what broke off goes along as a quoted remark.
fn arguments(call: &Call) -> String {
    let text = call.arguments.whole().unwrap_or_default();
    let is_object = serde_json::from_str::<Value>(&text).is_ok_and(|it| it.is_object());
    match (is_object, text.trim().is_empty()) {
        (true, _) => text,
        (false, true) => "{}".to_owned(),
        (false, false) => json!({ "unreadable": text }).to_string(),
    }
}

fn tool_result(call: &Call) -> Value {
    json!({ "role": "tool", "tool_call_id": call.id, "content": result_text(call) })
}

/// A call without a result, because its run is still open or was cut, says so.
fn result_text(call: &Call) -> String {
    let Some(outcome) = &call.outcome else {
        let error = json!({ "code": "tool_interrupted", "message": "This call has no result." });
        return json!({ "ok": false, "error": error }).to_string();
    };
    match (&outcome.error, &outcome.result) {
        (Some(error), _) => json!({ "ok": false, "error": error }).to_string(),
        (None, Some(result)) => whole(result),
        (None, None) => whole(&call.stdout),
    }
}

fn whole(body: &Body) -> String {
    body.whole().unwrap_or_else(|| format!("{}\n…\n{}", body.head(), body.tail()))
}

#[cfg(test)]
mod tests;
