//! Helpers for tests that write Codex's lines themselves, in an open thread and turn.

use std::sync::Arc;

use backends::Launch;
use backends::codex::{Settings, backend};
use serde_json::{Value, json};

use super::stage::Stage;

/// Thread id of an earlier process.
pub(crate) const EARLIER: &str = "0199e09f-40e5-7493-a575-de63127bb063";
pub(crate) const THREAD: &str = "thread-1";
pub(crate) const TURN: &str = "turn-1";

pub(crate) fn stage(launch: &Launch) -> Stage {
    Stage::new(backend(Arc::new(Settings::default()), launch))
}

/// Returns a stage with an open run whose turn has started.
pub(crate) fn in_turn() -> Stage {
    let mut stage = stage(&Launch::default());
    stage.start("go");
    stage.respond("initialize", json!({}));
    stage.respond("thread/start", json!({ "thread": { "id": THREAD } }));
    stage.respond("turn/start", json!({ "turn": { "id": TURN } }));
    stage.outline.clear();
    stage
}

impl Stage {
    /// Answers our last request of this method.
    pub(crate) fn respond(&mut self, method: &str, result: Value) {
        let id = self.request(method)["id"].clone();
        self.line(&json!({ "id": id, "result": result }).to_string());
    }

    pub(crate) fn refuse(&mut self, method: &str, message: &str) {
        let id = self.request(method)["id"].clone();
        let error = json!({ "code": -32600, "message": message });
        self.line(&json!({ "id": id, "error": error }).to_string());
    }

    /// Returns our last request of this method.
    pub(crate) fn request(&self, method: &str) -> Value {
        let lines = self.written.iter().rev();
        let mut messages = lines.map(|it| serde_json::from_str::<Value>(it).unwrap());
        messages.find(|it| it["method"] == method).expect("it was asked")
    }

    /// Returns the last line that we wrote.
    pub(crate) fn last_written(&self) -> Value {
        serde_json::from_str(self.written.last().unwrap()).unwrap()
    }

    /// Sends a notification, which is one of the current turn unless it names another one.
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.line(&notification(method, params));
    }

    /// Sends a request of Codex, which is one of the current turn unless it names another one.
    pub(crate) fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.line(&json!({ "id": id, "method": method, "params": of_turn(params) }).to_string());
    }

    pub(crate) fn started(&mut self, item: Value) {
        self.notify("item/started", json!({ "item": item }));
    }

    pub(crate) fn completed(&mut self, item: Value) {
        self.notify("item/completed", json!({ "item": item }));
    }

    pub(crate) fn turn_completed(&mut self, turn: &str, status: &str) {
        let turn = json!({ "id": turn, "status": status });
        self.notify("turn/completed", json!({ "turn": turn }));
    }

    /// Returns the effects since the last call of this function, as text.
    pub(crate) fn take_outline(&mut self) -> String {
        std::mem::take(&mut self.outline)
    }
}

/// Returns a notification, which is one of the current turn unless it names another one.
pub(crate) fn notification(method: &str, params: Value) -> String {
    json!({ "method": method, "params": of_turn(params) }).to_string()
}

fn of_turn(mut params: Value) -> Value {
    for (name, value) in [("threadId", THREAD), ("turnId", TURN)] {
        if params.get(name).is_none() {
            params[name] = json!(value);
        }
    }
    params
}

pub(crate) fn command(id: &str, status: &str) -> Value {
    json!({ "type": "commandExecution", "id": id, "command": "ls", "cwd": "/w", "status": status })
}
