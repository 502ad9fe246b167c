//! The chat endpoints of the compat APIs, all called in the same ways: accepted, refused for every
//! reason, and resumed. A new endpoint is one entry in [`FACES`].

use super::*;

struct Face {
    path: &'static str,
    url: &'static str,
    /// Endpoint that resumes a stream: the documented path, and the URL for a session.
    resume: (&'static str, fn(&str) -> String),
    /// Builds a user message from an id and a text.
    message: fn(&str, &str) -> Value,
    /// Builds an assistant message with the client's result of a call.
    given: fn(&str) -> Value,
    /// Builds a request to regenerate the answer to a message.
    again: fn(&str) -> Value,
}

const FACES: [Face; 4] = [
    Face {
        path: "/api/chat",
        url: "/api/chat",
        resume: ("/api/chat/{session}/stream", |id| format!("/api/chat/{id}/stream")),
        message: ui_message,
        given: given_ui,
        again: again_ui,
    },
    Face {
        path: "/api/chat/{agent}",
        url: "/api/chat/demo",
        resume: ("/api/chat/{agent}/{session}/stream", |id| format!("/api/chat/demo/{id}/stream")),
        message: ui_message,
        given: given_ui,
        again: again_ui,
    },
    Face {
        path: "/api/chat/v4",
        url: "/api/chat/v4",
        resume: ("/api/chat/v4", |id| format!("/api/chat/v4?chatId={id}")),
        message: v4_message,
        given: given_v4,
        again: again_v4,
    },
    Face {
        path: "/api/chat/v4/{agent}",
        url: "/api/chat/v4/demo",
        resume: ("/api/chat/v4/{agent}", |id| format!("/api/chat/v4/demo?chatId={id}")),
        message: v4_message,
        given: given_v4,
        again: again_v4,
    },
];

fn ui_message(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

fn given_ui(call: &str) -> Value {
    let part = json!({ "type": "tool-pick", "toolCallId": call, "state": "output-available", "input": {}, "output": 1 });
    json!({ "id": "a", "role": "assistant", "parts": [part] })
}

fn again_ui(id: &str) -> Value {
    let messages = [ui_message(id, "x")];
    json!({ "trigger": "regenerate-message", "messageId": id, "messages": messages })
}

/// AI SDK 4 has no separate way to regenerate.
fn again_v4(id: &str) -> Value {
    json!({ "messages": [v4_message(id, "x")] })
}

fn v4_message(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "content": text })
}

fn given_v4(call: &str) -> Value {
    let invocation = json!({ "state": "result", "toolCallId": call, "toolName": "pick", "args": {}, "result": 1 });
    let part = json!({ "type": "tool-invocation", "toolInvocation": invocation });
    json!({ "id": "a", "role": "assistant", "content": "", "parts": [part] })
}

impl Face {
    async fn post(&self, caller: &mut Caller<'_>, body: Value) -> (u16, Value) {
        let bearer = [(AUTHORIZATION.as_str(), BEARER)];
        caller.call_with(POST, self.path, self.url, Body::Json(body), &bearer).await
    }

    /// Asks to regenerate the answer to a message of that session.
    async fn ask_again(
        &self,
        caller: &mut Caller<'_>,
        (session, agent): (&str, &str),
        message: &str,
    ) -> u16 {
        let mut body = (self.again)(message);
        (body["id"], body["agent"]) = (json!(session), json!(agent));
        self.post(caller, body).await.0
    }
}

/// Holds conversations from their beginning, and covers refusals in an idle session.
pub(super) async fn converse(caller: &mut Caller<'_>) {
    for (n, face) in FACES.iter().enumerate() {
        let id = format!("face-{n}");
        let first = json!({ "id": id, "messages": [(face.message)("u1", "time in Lima")] });
        assert_eq!(face.post(caller, first.clone()).await.0, 200);
        caller.call(GET, face.resume.0, &(face.resume.1)(&id), Body::None).await;

        let unknown = json!({ "id": "nobody", "messages": [(face.given)("none")] });
        assert_eq!(face.post(caller, unknown).await.0, 404);
        let nothing = json!({ "id": id, "messages": [(face.given)("none")] });
        assert_eq!(face.post(caller, nothing).await.0, 409);
        let mut nobody = first;
        nobody["agent"] = json!("nobody");
        assert_eq!(face.post(caller, nobody.clone()).await.0, 400);
        nobody["id"] = json!("with-nobody");
        assert_eq!(face.post(caller, nobody).await.0, 400);
    }
    for face in &FACES[..2] {
        assert_eq!(face.ask_again(caller, ("face-0", "demo"), "none").await, 404);
    }
    meet_a_program(caller).await;
    give_a_result(caller).await;
}

/// A program agent cannot rewind its conversation, whether it is installed or not.
async fn meet_a_program(caller: &mut Caller<'_>) {
    let record = |seq: u64, event: Value| {
        let mut record = event;
        record["seq"] = json!(seq);
        record["at"] = json!("2026-11-15T18:44:28.123Z");
        record["sessionId"] = json!("of-a-program");
        record.to_string()
    };
    let log = [
        record(1, json!({ "type": "session_created", "agent": ABSENT })),
        record(2, json!({ "type": "user_message", "messageId": "m1", "text": "x" })),
    ];
    let import = "/api/sessions/import";
    caller.call(POST, import, import, Body::Text(&log.join("\n"))).await;
    for face in &FACES {
        assert_eq!(face.ask_again(caller, ("of-a-program", ABSENT), "m1").await, 409);
    }
}

/// Covers refusals in a busy session with a full queue, and its stream.
pub(super) async fn meet_a_busy_session(caller: &mut Caller<'_>, id: &str) {
    let list = caller.server.get(&format!("/api/sessions/{id}/messages")).await;
    let first = list["messages"][0]["id"].as_str().unwrap();
    for face in &FACES {
        let one_more = json!({ "id": id, "messages": [(face.message)("late", "and this?")] });
        assert_eq!(face.post(caller, one_more).await.0, 429);
        assert_eq!(face.ask_again(caller, (id, "demo"), first).await, 409);
        caller.open(face.resume.0, &(face.resume.1)(id)).await;
    }
}

/// Sends the result of a call that a client has run.
async fn give_a_result(caller: &mut Caller<'_>) {
    let tools = json!({ "pick": { "description": "Picks.", "parameters": { "type": "object" } } });
    let asked = ui_message("u1", "use the client tool pick");
    let body = json!({ "id": "picks", "messages": [asked], "tools": tools });
    assert_eq!(FACES[0].post(caller, body).await.0, 200);
    let list = caller.server.get("/api/sessions/picks/messages").await;
    let call = list["messages"][1]["toolCalls"][0]["id"].as_str().unwrap();
    let path = "/api/sessions/{session}/calls/{call}/result";
    for call in [call, "none"] {
        let url = format!("/api/sessions/picks/calls/{call}/result");
        caller.call(POST, path, &url, Body::Json(json!({ "output": 1 }))).await;
    }
}

pub(super) const AGUI: [(&str, &str); 2] =
    [("/api/agui", "/api/agui"), ("/api/agui/{agent}", "/api/agui/demo")];

pub(super) fn run_input(thread: &str, text: Option<&str>) -> Body<'static> {
    let message = text.map(|text| json!({ "role": "user", "content": text }));
    let messages: Vec<Value> = message.into_iter().collect();
    Body::Json(json!({ "threadId": thread, "runId": "r", "messages": messages }))
}

pub(super) async fn speak_agui(caller: &mut Caller<'_>) {
    let silent = caller.server.create_session().await;
    for (path, url) in AGUI {
        let thread = path.replace(['/', '{', '}'], "-");
        let message = json!({ "role": "user", "content": "hello" });
        let with_nobody = Body::Json(
            json!({ "threadId": "new", "runId": "r", "agent": "nobody", "messages": [message] }),
        );
        for (body, status) in [
            (run_input(&thread, Some("time in Lima")), 200),
            (run_input(&thread, None), 200),
            (run_input("a/b", None), 400),
            (run_input("unknown", None), 404),
            (run_input(&silent, None), 409),
            (with_nobody, 400),
        ] {
            let bearer = [(AUTHORIZATION.as_str(), BEARER)];
            let (answered, _) = caller.call_with(POST, path, url, body, &bearer).await;
            assert_eq!(answered, status, "{path}");
        }
    }
}
