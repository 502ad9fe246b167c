//! All messages at once, for a client that has others than the session.
//!
//! Version 0.0.45 takes a snapshot as it is. Later ones merge it into what they have: what it leaves out
//! they drop, but thoughts only if it has one; what they do not know they put at the end. So where their
//! order is not ours, what both begin with comes first, alone.

use serde_json::{Value, json};

/// The events that give a client, which knows these messages, the session's.
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
