//! A conversation in one user message, for an agent that was not part of it and only accepts such messages:
//! first the history, then the new message.

use serde_json::{Value, json};

use super::text_piece;

/// Returns one user message that contains the last message of the user and the history around it.
/// Without a history, the messages stay unchanged.
pub fn history_in_one_message(messages: &[Value]) -> Vec<Value> {
    let Some(last) = messages.iter().rposition(|it| it["role"] == "user") else {
        return messages.to_vec();
    };
    let (before, later) = (&messages[..last], &messages[last + 1..]);
    if before.is_empty() && later.is_empty() {
        return messages.to_vec();
    }
    let mut content = Vec::new();
    if !before.is_empty() {
        let history = before.iter().map(plain_text).collect::<String>();
        content
            .push(text_piece(&format!("This is how the conversation went so far:\n\n{history}")));
    }
    match (before.is_empty(), later.is_empty()) {
        (true, _) => (),
        (false, true) => content.push(text_piece("Now the user says:")),
        (false, false) => content.push(text_piece("Then the user said:")),
    }
    content.extend(pieces(&messages[last]["content"]));
    if !later.is_empty() {
        let history = later.iter().map(plain_text).collect::<String>();
        let history = format!("This was said and done about it:\n\n{history}Go on from there.");
        content.push(text_piece(&history));
    }
    vec![json!({ "role": "user", "content": content })]
}

fn pieces(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(pieces) => pieces.clone(),
        content => vec![text_piece(content.as_str().unwrap_or_default())],
    }
}

/// Returns a chat message as plain text with an empty line after it. Its pictures are left out.
fn plain_text(message: &Value) -> String {
    let who = match message["role"].as_str() {
        Some("system") => "Instructions",
        Some("user") => "User",
        Some("tool") => "Result",
        _ => "Assistant",
    };
    let words = pieces(&message["content"]);
    let words: Vec<&str> = words.iter().filter_map(|it| it["text"].as_str()).collect();
    let words = words.join("\n\n");
    let words = (!words.is_empty()).then(|| format!("{who}: {words}\n\n"));
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let [name, arguments] =
            ["name", "arguments"].map(|field| call["function"][field].as_str().unwrap_or_default());
        format!("{who} called {name} with {arguments}\n\n")
    });
    words.into_iter().chain(calls).collect()
}
