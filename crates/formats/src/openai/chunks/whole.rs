//! A response at once, for a client that does not stream.

use serde_json::{Value, json};
use transcript::{Call, Executor, Part, PartKind, RunMessage, TextRole};

use super::{
    ASKS, ChunkFormat, Completion, OtherCalls, error, has_failed, headline, openai_reason, outcome,
};
use crate::call;

impl ChunkFormat {
    pub(super) fn completion(&self, answer: &RunMessage) -> Completion {
        if has_failed(answer) {
            return Completion::Failed(error(answer));
        }
        let outer = || {
            let parts = answer.parts.iter().skip(self.before.n_parts);
            parts.filter(|part| part.parent.is_none())
        };
        let texts = outer().filter_map(|part| match &part.kind {
            PartKind::Text(text) if text.role != TextRole::Discarded && !text.leaked => {
                Some(text.text.clone())
            }
            _ => None,
        });
        let calls = outer().filter_map(|part| match &part.kind {
            PartKind::Call(call) if call.executor == Executor::Client => Some(tool_call(call)),
            _ => None,
        });
        let reasoning = joined(outer().filter_map(|part| self.reasoning_of(part)));
        let calls: Vec<Value> = calls.collect();
        let mut message = json!({ "role": "assistant", "content": joined(texts) });
        if !reasoning.is_empty() {
            message["reasoning_content"] = json!(reasoning);
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let reason = if answer.is_open() { "tool_calls" } else { openai_reason(answer) };
        Completion::Answer(json!({
            "id": self.id(),
            "object": "chat.completion",
            "created": self.created,
            "model": self.options.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
            "usage": self.usage(answer),
        }))
    }

    fn reasoning_of(&self, part: &Part) -> Option<String> {
        match &part.kind {
            PartKind::Thinking(it) if !it.discarded => Some(it.text.clone()),
            PartKind::Call(call)
                if call.executor != Executor::Client
                    && self.options.other_calls == OtherCalls::Reasoning =>
            {
                let asks = if call.approval.is_some() { ASKS } else { "" };
                Some(format!("{}{asks}{}", headline(call), outcome(call)))
            }
            _ => None,
        }
    }
}

fn tool_call(call: &Call) -> Value {
    let text = call::text_of(&call.arguments);
    let arguments = if text.is_empty() { "{}".to_owned() } else { text };
    let function = json!({ "name": call.label(), "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n\n")
}
