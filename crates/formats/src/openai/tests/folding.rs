//! How the official clients put chunks together, as they were seen to do it (`fixtures/openai`).

use serde_json::{Map, Value, json};

/// The message that a client has at the end of a response.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Folded {
    pub(super) message: Value,
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    /// `ChatCompletionStream`.
    Node,
    /// `chat.completions.stream`, whose rule is the same for all fields.
    Python,
}

pub(super) fn fold(chunks: &[Value], client: Client) -> Folded {
    let mut folded = Folded { message: json!({}), ..Folded::default() };
    for chunk in chunks {
        if let Some(usage) = chunk.get("usage").filter(|it| !it.is_null()) {
            folded.usage = usage.clone();
        }
        for choice in chunk["choices"].as_array().unwrap() {
            assert_eq!(choice["index"], 0, "there is one answer");
            let message = folded.message.as_object_mut().unwrap();
            let delta = choice["delta"].as_object().unwrap();
            match client {
                Client::Node => fold_as_node(message, delta),
                Client::Python => fold_as_python(message, delta),
            }
            let reason = choice["finish_reason"].as_str().map(str::to_owned);
            folded.finish_reason = reason.or(folded.finish_reason);
        }
    }
    let calls = folded.message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        call.as_object_mut().unwrap().shift_remove("index");
    }
    folded
}

/// Texts are concatenated; for everything else, the last value counts.
fn fold_as_node(message: &mut Map<String, Value>, delta: &Map<String, Value>) {
    for (name, more) in delta {
        match name.as_str() {
            "content" | "refusal" => append(message, name, more),
            "tool_calls" => {
                let calls = message.entry(name).or_insert_with(|| json!([]));
                let calls = calls.as_array_mut().unwrap();
                for more in more.as_array().unwrap() {
                    let call = entry_at(calls, more);
                    for name in ["id", "type"] {
                        replace(call, name, &more[name]);
                    }
                    let function = call.entry("function").or_insert_with(|| json!({}));
                    let function = function.as_object_mut().unwrap();
                    replace(function, "name", &more["function"]["name"]);
                    append(function, "arguments", &more["function"]["arguments"]);
                }
            }
            _ => drop(message.insert(name.clone(), more.clone())),
        }
    }
}

/// Texts are put together, objects merged, lists merged by `index`.
fn fold_as_python(message: &mut Map<String, Value>, delta: &Map<String, Value>) {
    for (name, more) in delta {
        let is_indexed =
            more.as_array().is_some_and(|it| it.iter().any(|it| !it["index"].is_null()));
        let before = message.entry(name).or_insert(Value::Null);
        if before.is_null() {
            *before = if is_indexed { json!([]) } else { more.clone() };
            if !is_indexed {
                continue;
            }
        }
        match (before, more) {
            (before, more) if name == "index" || name == "type" => *before = more.clone(),
            (Value::String(before), Value::String(more)) => before.push_str(more),
            (Value::Object(before), Value::Object(more)) => fold_as_python(before, more),
            (Value::Array(before), Value::Array(more)) => {
                for more in more {
                    fold_as_python(entry_at(before, more), more.as_object().unwrap());
                }
            }
            _ => (),
        }
    }
}

/// They throw at an index that leaves a gap.
fn entry_at<'a>(entries: &'a mut Vec<Value>, more: &Value) -> &'a mut Map<String, Value> {
    let index = more["index"].as_u64().unwrap() as usize;
    if index == entries.len() {
        entries.push(json!({}));
    }
    entries[index].as_object_mut().unwrap()
}

fn append(fields: &mut Map<String, Value>, name: &str, more: &Value) {
    let Some(more) = more.as_str() else { return };
    let before = fields.get(name).and_then(Value::as_str).unwrap_or_default();
    fields.insert(name.to_owned(), json!(format!("{before}{more}")));
}

fn replace(fields: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.as_str().is_some_and(|it| !it.is_empty()) {
        fields.insert(name.to_owned(), value.clone());
    }
}

#[test]
fn the_folds_are_those_of_the_clients() {
    for line in include_str!("../../../fixtures/openai/folded.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let chunks = case["chunks"].as_array().unwrap();
        for (client, name) in [(Client::Node, "node"), (Client::Python, "python")] {
            let folded = fold(chunks, client);
            assert_eq!(received(&folded), case[name], "{} {name}", case["name"]);
        }
    }
}

/// In the words of the fixture.
fn received(folded: &Folded) -> Value {
    let Folded { message, finish_reason, usage } = folded;
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let function = &call["function"];
        json!({ "id": call["id"], "name": function["name"], "arguments": function["arguments"] })
    });
    let text = message["content"].as_str().unwrap_or_default();
    let mut received = json!({ "text": text, "toolCalls": calls.collect::<Vec<_>>() });
    for (name, value) in
        [("reasoning", message.get("reasoning_content")), ("refusal", message.get("refusal"))]
    {
        if let Some(value) = value.filter(|it| it.is_string()) {
            received[name] = value.clone();
        }
    }
    received["finishReason"] = json!(finish_reason);
    if !usage.is_null() {
        let (input, output) = (&usage["prompt_tokens"], &usage["completion_tokens"]);
        received["usage"] = json!({ "input": input, "output": output });
    }
    received
}
