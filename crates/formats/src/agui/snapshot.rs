//! Snapshots of all messages, for a client whose messages differ from the session's.
//!
//! Version 0.0.45 replaces its messages with a snapshot. Later versions merge it: they drop messages that are not
//! in it (thoughts only if it contains one), and append those that are new to them. So if their order differs, a
//! snapshot of the common beginning comes first.

use serde_json::{Value, json};

/// Returns the snapshot events that give a client, which has messages with the `known` ids, all
/// messages of the session.
pub fn snapshots(known: &[String], messages: Vec<Value>) -> Vec<Value> {
    let is_same = |(known, message): &(&String, &Value)| message["id"] == known.as_str();
    let n_shared = known.iter().zip(&messages).take_while(is_same).count();
    let shared = (n_shared < known.len()).then(|| shared(&messages, n_shared));
    shared.into_iter().chain([messages]).map(snapshot).collect()
}

fn shared(messages: &[Value], n_shared: usize) -> Vec<Value> {
    let is_thought = |it: &Value| it["role"] == "reasoning";
    let (shared, others) = messages.split_at(n_shared);
    let mut shared = shared.to_vec();
    if !shared.iter().any(is_thought) && others.iter().any(is_thought) {
        // With this one all others go, and with those of the next snapshot it goes itself.
        shared.push(json!({ "id": "no thoughts", "role": "reasoning", "content": "" }));
    }
    shared
}

fn snapshot(messages: Vec<Value>) -> Value {
    json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages })
}
