//! Fuzzing of every operation and frame: the server answers with documented errors, loses nothing,
//! and keeps working.

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use transcript::{Event, Record, Seq, Transcript};

use crate::security::auth::raw;
use crate::support::document::{Answer, Document, Operation};
use crate::support::log::check_log;
use crate::support::program::{BEARER, Home, Server};
use crate::support::random_values::{Random, RandomValues};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

/// Number of requests for each operation.
const REQUESTS: usize = 250;
const FRAMES: usize = 2000;
/// Id of a session that requests may create and delete.
const DELETED: &str = "made-by-nonsense";
const APPROVAL: &str = "post_api_sessions_session_calls_call_approval";
/// Operations that random requests never succeed at, such as upgrades, the password within five
/// attempts, and decisions or results that nothing waits for.
const NEVER_GOOD: [&str; 12] = [
    "get_ws",
    "post_sign_in",
    "post_api_sessions_import",
    APPROVAL,
    "post_api_sessions_session_calls_call_result",
    "delete_api_grants_grant",
    "delete_api_sessions_session_grants_grant",
    "post_api_sessions_session_calls_call_approval_undo",
    "delete_api_sessions_session_queue",
    "patch_api_sessions_session_queue_message",
    "delete_api_sessions_session_queue_message",
    "post_api_sessions_session_queue_message_steer",
];

/// A server with sessions whose logs must survive.
struct Scene {
    home: Home,
    server: Server,
    /// A session whose id no request contains.
    witness: (String, Vec<Record>),
    /// A session that may get messages, but is never deleted.
    known: (String, Vec<Record>),
}

impl Scene {
    async fn new() -> Self {
        let home = Home::instant();
        let (ok, _, stderr) = home.pipe_in(&["password"], "correct horse\n");
        assert!(ok, "{stderr}");
        let server = home.start();
        let (witness, known) = (converse(&server).await, converse(&server).await);
        Self { home, server, witness, known }
    }

    /// Returns a tool call of the known session.
    fn call(&self) -> String {
        let call = self.known.1.iter().find_map(|record| match &record.event {
            Event::ToolCallStart { call_id, .. } => Some(call_id.to_string()),
            _ => None,
        });
        call.unwrap()
    }

    /// Returns an answer of the known session.
    fn answer(&self) -> String {
        let answer = self.known.1.iter().find_map(|record| record.response_id.as_ref());
        answer.unwrap().to_string()
    }

    /// Checks that nothing is lost, the server still works, and it has not panicked.
    async fn check(self) {
        let Self { server, witness: (witness, log), known: (known, beginning), .. } = self;
        assert_eq!(server.log(&witness).await, log, "untouched");
        // The message may be queued first, and is in neither the queue nor the messages when it
        // starts.
        let last = server.send(&known, "time in Lima").await;
        let is_answered = |it: &Transcript| {
            is_quiet(it) && it.messages.iter().any(|message| message.id() == last)
        };
        watch_until(&server, &known, is_answered).await;
        let grown = server.log(&known).await;
        assert_eq!(grown[..beginning.len()], beginning, "only added to");
        check_log(&grown, |_| false);
        let page = server.get(&format!("/api/sessions/{known}/messages?order=desc&limit=1")).await;
        assert_eq!(page["messages"][0]["status"], "completed", "a message still gets its answer");
        for line in server.stop() {
            assert!(!line.contains("panicked"), "{line}");
        }
    }
}

async fn converse(server: &Server) -> (String, Vec<Record>) {
    let session = server.create_session().await;
    server.send(&session, "list the files").await;
    watch_until(server, &session, is_quiet).await;
    let log = server.log(&session).await;
    (session, log)
}

#[tokio::test]
async fn fuzzed_requests_get_documented_errors() {
    let scene = Scene::new().await;
    let mut judge = Document::of(&scene.server).await;
    let document = Document::of(&scene.server).await;
    let (_, put) = scene.server.post("/api/blobs", json!("a file")).await;
    for (seed, operation) in (1..).zip(document.operations()) {
        if operation.path.ends_with("/restore") {
            delete_session(&scene.server, DELETED).await;
        }
        let mut known = known_strings(&scene, &operation);
        known.push(put["blob"].as_str().unwrap().to_owned());
        let mut values = RandomValues { random: Random::new(seed), document: &document, known };
        for _ in 0..REQUESTS {
            let body = body(&mut values, &operation);
            let head = head(&mut values, &operation, &scene.server, body.len());
            let request = [head.as_bytes(), &body].concat();
            let answer = parse(&raw(&scene.server, &request).await, &request);
            assert!(answer.status < 500, "{}", shown(&request));
            let may_be_taken = judge.allows(&operation, &body);
            assert!(may_be_taken || answer.status >= 400, "taken: {}", shown(&request));
            if leads_elsewhere(&answer) {
                continue;
            }
            judge.check(&operation, &answer);
        }
        let id = operation.id();
        // Random requests also never form a valid conversation of a compat API.
        let front_ends = ["_api_chat", "_api_agui", "_v1_chat"];
        let is_of_front_ends = front_ends.iter().any(|it| id.contains(it));
        let is_never_good = NEVER_GOOD.contains(&id.as_str()) || is_of_front_ends;
        let reached = judge.saw_good(&operation) || is_never_good;
        assert!(reached, "{} was never asked for anything it could do", operation.id());
    }
    scene.check().await;
}

/// Creates a session, unless there is one, and deletes it. For some seconds it can be restored.
async fn delete_session(server: &Server, id: &str) {
    server.post("/api/sessions", json!({"id": id, "agent": "demo"})).await;
    let path = format!("/api/sessions/{id}");
    server.request(reqwest::Method::DELETE, &path, None).await;
}

fn known_strings(scene: &Scene, operation: &Operation) -> Vec<String> {
    let workspace = scene.home.workspace();
    let path = |name: &str| workspace.join(name).display().to_string();
    let mut known = match operation.path.as_str() {
        // Paths where backups are allowed and where they are not.
        "/api/backup" => vec![path("copy.db"), path("no/such/folder.db"), path("")],
        "/api/sessions/{session}/calls/{call}/output" => vec![scene.call(); 2],
        "/api/sessions/{session}/answers/{answer}" => vec![scene.answer(); 2],
        "/v1/models/{model}" => vec!["demo".to_owned()],
        "/assets/{version}/{file}" => {
            [render::assets_version(), "main.js"].repeat(3).into_iter().map(str::to_owned).collect()
        }
        "/api/sessions" => vec![path(""), DELETED.to_owned(), "demo".to_owned()],
        _ => vec![DELETED.to_owned(), "main.js".to_owned(), "correct horse".to_owned()],
    };
    if operation.method != reqwest::Method::DELETE {
        known.push(scene.known.0.clone());
    }
    known
}

/// Returns whether the random path belongs to another operation or to none.
fn leads_elsewhere(answer: &Answer) -> bool {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = body["error"]["code"].as_str().unwrap_or_default();
    ["not_found", "method_not_allowed"].contains(&code)
}

fn head(
    values: &mut RandomValues<'_>,
    operation: &Operation,
    server: &Server,
    length: usize,
) -> String {
    let host = server.base.strip_prefix("http://").unwrap();
    let mut url = operation.url_of(|| {
        let segment = values.string();
        encoded(values, &segment)
    });
    for parameter in operation.parameters("query") {
        // Mostly valid, so that the other parameters are reached too.
        let times = match values.random.below(12) {
            0 => 2,
            1 => 0,
            2..=4 => 1,
            _ => usize::from(parameter["required"] == true),
        };
        for _ in 0..times {
            let value = match values.value(&parameter["schema"]) {
                Value::String(text) => text,
                _ if values.random.once_in(4) => values.string(),
                other => other.to_string(),
            };
            let (mark, name) = (if url.contains('?') { '&' } else { '?' }, &parameter["name"]);
            url = format!("{url}{mark}{}={}", name.as_str().unwrap(), encoded(values, &value));
        }
    }
    let media_type = ["application/json", "text/plain", "application/json; charset=utf-16", "?/?"];
    let media_type = values.random.pick(&media_type);
    format!(
        "{} {url} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {BEARER}\r\nConnection: close\r\n\
         Content-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n",
        operation.method
    )
}

fn body(values: &mut RandomValues<'_>, operation: &Operation) -> Vec<u8> {
    let Some(media_type) = operation.body_type() else {
        // This operation takes no body.
        return if values.random.once_in(4) { b"{\"a\":".to_vec() } else { Vec::new() };
    };
    let schema = &operation.json["requestBody"]["content"][media_type]["schema"];
    let value = values.value(schema);
    if let Some(password) = value["password"].as_str() {
        return format!("password={}", encoded(values, password)).into_bytes();
    }
    if values.random.once_in(3) {
        return value.to_string().into_bytes();
    }
    values.spoiled_text(&value)
}

/// Percent-encodes a text, sometimes invalidly. The result is always valid HTTP and never too long.
fn encoded(values: &mut RandomValues<'_>, text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes().take(5000) {
        if byte.is_ascii_alphanumeric() || b"-_.%".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02x}");
        }
    }
    match values.random.below(20) {
        0 => encoded += "%",
        1 => encoded += "%zz",
        2 => encoded += "%ff",
        3 => encoded += "%00",
        _ if encoded.is_empty() => encoded += "-",
        _ => (),
    }
    encoded
}

fn parse(answer: &str, request: &[u8]) -> Answer {
    let parts = answer.split_once("\r\n\r\n");
    let (head, body) = parts.unwrap_or_else(|| panic!("no answer to {}", shown(request)));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let media_type = head.lines().find_map(|it| it.strip_prefix("content-type: "));
    let media_type = media_type.unwrap_or_default().to_owned();
    Answer { status, media_type, body: body.into() }
}

fn shown(request: &[u8]) -> String {
    String::from_utf8_lossy(&request[..request.len().min(1000)]).into_owned()
}

#[tokio::test]
async fn fuzzed_frames_get_documented_errors() {
    let scene = Scene::new().await;
    let document = Document::of(&scene.server).await;
    let known = vec![scene.known.0.clone(), "demo".to_owned(), "none".to_owned()];
    let mut values = RandomValues { random: Random::new(7), document: &document, known };
    let schema = json!({ "$ref": "#/components/schemas/ClientFrame" });
    let mut watcher = Watcher::connect(&scene.server).await;
    for number in 0..FRAMES {
        let frame = values.value(&schema);
        for message in messages(&mut values, &frame) {
            watcher.socket.send(message).await.unwrap();
        }
        // Marks the end of the responses with a request whose error is unique.
        let mark = format!("mark-{number}");
        watcher.send(json!({ "type": "subscribe", "sessionId": mark })).await;
        loop {
            let frame = watcher.next().await.expect("the connection should be open");
            document.check_frame("ServerFrame", &frame);
            if frame["type"] == "error" && frame["sessionId"] == mark {
                break;
            }
            let message = &frame["message"];
            assert!(frame["type"] != "error" || !message.as_str().unwrap().trim().is_empty());
        }
    }
    scene.check().await;
}

/// Returns one frame: valid, invalid, fragmented, or of another kind.
fn messages(values: &mut RandomValues<'_>, frame: &Value) -> Vec<Message> {
    let spoiled = values.spoiled_text(frame);
    let text = String::from_utf8_lossy(&spoiled).into_owned();
    match values.random.below(8) {
        0 => vec![Message::binary(spoiled)],
        1 => vec![Message::Ping("x".into()), Message::Pong("y".into()), Message::text(text)],
        2 => pieces(values, frame.to_string().as_bytes()),
        3 | 4 => vec![Message::text(frame.to_string())],
        _ => vec![Message::text(text)],
    }
}

/// Fragments a frame, with a ping between the fragments, as the protocol allows.
fn pieces(values: &mut RandomValues<'_>, text: &[u8]) -> Vec<Message> {
    let (first, second) = text.split_at(values.random.below(text.len()));
    let piece = |bytes: &[u8], kind, is_last| {
        Message::Frame(Frame::message(bytes.to_vec(), OpCode::Data(kind), is_last))
    };
    vec![
        piece(first, Data::Text, false),
        Message::Ping("between".into()),
        piece(b"", Data::Continue, false),
        piece(second, Data::Continue, true),
    ]
}

#[tokio::test]
async fn invalid_websocket_data_ends_only_its_connection() {
    let scene = Scene::new().await;
    let mut other = Watcher::connect(&scene.server).await;
    other.subscribe(&scene.known.0, Seq(0), true).await;
    let frame = |bytes: &[u8], code| Message::Frame(Frame::message(bytes.to_vec(), code, true));
    let broken = [
        frame(b"out of nowhere", OpCode::Data(Data::Continue)),
        frame(b"\xff\xfe no text", OpCode::Data(Data::Text)),
        frame(b"reserved", OpCode::Data(Data::Reserved(5))),
    ];
    for message in broken {
        let mut watcher = Watcher::connect(&scene.server).await;
        watcher.socket.send(message).await.unwrap();
        while watcher.next().await.is_some() {}
    }
    other.until("caught_up").await;
    other.send(json!({ "type": "ping" })).await;
    other.until("pong").await;
    scene.check().await;
}
