//! Calls every operation with success and with failure, and checks each response against the
//! OpenAPI document.

mod faces;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use serde_json::{Value, json};
use transcript::Seq;

use crate::security::auth::raw;
use crate::support::document::{Answer, Document, Worded};
use crate::support::program::{BEARER, Home, Server};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

/// Errors that these tests cannot cause. They belong to a full disk (`disk.rs`), a body that takes
/// half a minute (`door.rs`), or the moment of shutdown.
const ELSEWHERE: [&str; 4] = ["408 too_slow", "500 internal_error", "503 stopping", "507 storage"];

/// A program agent that is not installed on this machine.
const ABSENT: &str = "absent";

const GET: Method = Method::GET;
const POST: Method = Method::POST;

/// A client that checks every response against the document.
struct Caller<'a> {
    server: &'a Server,
    document: Document,
    client: reqwest::Client,
}

impl Caller<'_> {
    async fn call(&mut self, method: Method, path: &str, url: &str, body: Body<'_>) -> Value {
        self.call_with(method, path, url, body, &[(AUTHORIZATION.as_str(), BEARER)]).await.1
    }

    async fn call_with(
        &mut self,
        method: Method,
        path: &str,
        url: &str,
        body: Body<'_>,
        headers: &[(&str, &str)],
    ) -> (u16, Value) {
        let operation = self.document.operation(&method, path);
        let mut request = self.client.request(method, format!("{}{url}", self.server.base));
        request = match body {
            Body::None => request,
            Body::Json(value) => request.json(&value),
            Body::Text(text) => request.body(text.to_owned()),
        };
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let media_type = response.headers().get(CONTENT_TYPE).map(|it| it.to_str().unwrap());
        let media_type = media_type.unwrap_or_default().to_owned();
        // After status 101 the connection speaks another protocol.
        let body =
            if status == 101 { Vec::new() } else { response.bytes().await.unwrap().to_vec() };
        (status, self.document.check(&operation, &Answer { status, media_type, body }))
    }

    /// Checks the head of a response that may never end.
    async fn open(&mut self, path: &str, url: &str) {
        let operation = self.document.operation(&GET, path);
        let response = self.server.open(url).await;
        let status = response.status().as_u16();
        let media_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        self.document.check(&operation, &Answer { status, media_type, body: Vec::new() });
    }

    /// Sends a request that no HTTP library would send.
    async fn call_raw(&mut self, method: Method, path: &str, rest: &str) {
        let operation = self.document.operation(&method, path);
        let host = self.server.base.strip_prefix("http://").unwrap();
        let url = operation.url("x");
        let head =
            format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {BEARER}\r\n");
        let answer = raw(self.server, format!("{head}{rest}").as_bytes()).await;
        let (head, body) =
            answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{url}: {answer}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let media_type = head.lines().find_map(|it| it.strip_prefix("content-type: "));
        let media_type = media_type.unwrap_or_default().to_owned();
        self.document.check(&operation, &Answer { status, media_type, body: body.into() });
    }
}

enum Body<'a> {
    None,
    Json(Value),
    Text(&'a str),
}

#[tokio::test]
async fn every_response_conforms_to_the_document() {
    let home = Home::new(&format!(
        "[[agents]]\nid = \"{ABSENT}\"\nkind = \"claude\"\ncommand = [\"./{ABSENT}\"]\n"
    ));
    let (ok, _, stderr) = home.pipe_in(&["password"], "correct horse\n");
    assert!(ok, "{stderr}");
    let server = home.start();
    let redirect = reqwest::redirect::Policy::none();
    let client = tools::http_client_builder().redirect(redirect).build().unwrap();
    let mut caller = Caller { server: &server, document: Document::of(&server).await, client };
    caller.document.worded = Some(Worded::read(include_str!("conformance/worded.txt")));

    use_everything(&mut caller, &home).await;
    refuse_everything(&mut caller).await;

    let worded = caller.document.worded.as_ref().unwrap();
    assert!(worded.unknown.is_empty(), "not in worded.txt: {:#?}", worded.unknown);
    assert!(worded.unseen().is_empty(), "in worded.txt, but never seen: {:#?}", worded.unseen());
    let mut unseen = caller.document.unseen();
    for missing in unseen.values_mut() {
        missing.retain(|it| !ELSEWHERE.contains(&it.as_str()));
    }
    unseen.retain(|_, missing| !missing.is_empty());
    assert!(unseen.is_empty(), "documented, but never seen: {unseen:#?}");
}

/// Calls every operation once with success.
async fn use_everything(caller: &mut Caller<'_>, home: &Home) {
    let made = caller.call(POST, "/api/sessions", "/api/sessions", Body::Json(json!({}))).await;
    let id = made["id"].as_str().unwrap().to_owned();
    let session = "/api/sessions/{session}";
    let of = |rest: &str| (format!("{session}{rest}"), format!("/api/sessions/{id}{rest}"));
    let put = caller.call(POST, "/api/blobs", "/api/blobs", Body::Text("a file")).await;
    let blob = put["blob"].as_str().unwrap();
    caller.call(GET, "/api/blobs/{hash}", &format!("/api/blobs/{blob}"), Body::None).await;

    let mut watcher = Watcher::connect(caller.server).await;
    watcher.send(json!({ "type": "subscribe", "sessions": true })).await;
    watcher.subscribe(&id, Seq(0), true).await;
    let attachment =
        json!({ "blob": blob, "name": "a.txt", "mediaType": "text/plain", "size": put["size"] });
    let message = json!({ "text": "time in Lima, read missing.txt", "clientId": "c", "attachments": [attachment] });
    let (messages, messages_url) = of("/messages");
    caller.call(POST, &messages, &messages_url, Body::Json(message)).await;
    check_frames_until(caller, &mut watcher, "run_finish").await;
    watch_until(caller.server, &id, is_quiet).await;
    let list = caller.call(GET, &messages, &format!("{messages_url}?order=desc"), Body::None).await;
    assert_eq!(list["messages"][0]["toolCalls"].as_array().unwrap().len(), 2);
    for query in
        ["contract", "contract&status=all", "ui", "ui-v4&limit=1", "openai", "fullstream", "agui"]
    {
        let url = format!("{messages_url}?format={query}");
        caller.call(GET, &messages, &url, Body::None).await;
    }
    let (events, events_url) = of("/events");
    for query in ["", "?deltas=1&limit=3", "?after=2&deltas=false"] {
        caller.call(GET, &events, &format!("{events_url}{query}"), Body::None).await;
    }
    let patch = Body::Json(json!({ "title": "About Lima", "archived": false }));
    caller.call(Method::PATCH, session, &of("").1, patch).await;
    let asset = |file| format!("/assets/{}/{file}", render::assets_version());
    for (path, url) in [
        ("/", "/"),
        ("/", "/?archived=true&before=1.x"),
        ("/", "/?q=Lima"),
        ("/", "/?q=Lima&part=found"),
        ("/s/{session}", &format!("/s/{id}")),
        ("/assets/{version}/{file}", &asset("page.css")),
        ("/assets/{version}/{file}", &asset("icon.svg")),
        ("/healthz", "/healthz"),
        ("/metrics", "/metrics"),
        ("/api/openapi.json", "/api/openapi.json"),
        ("/api/agents", "/api/agents"),
        ("/api/tools", "/api/tools"),
        ("/api/mcp", "/api/mcp"),
        ("/api/sizes", "/api/sizes?limit=5"),
        ("/api/sessions", "/api/sessions?limit=1&archived=false"),
        ("/api/search", "/api/search?q=Lima"),
        (session, &of("").1),
    ] {
        caller.call(GET, path, url, Body::None).await;
    }
    let call = list["messages"][0]["toolCalls"][0]["id"].as_str().unwrap();
    let (output, output_url) =
        (format!("{session}/calls/{{call}}/output"), of(&format!("/calls/{call}/output")).1);
    for query in ["", "?stream=result", "?stream=arguments&from=2"] {
        caller.call(GET, &output, &format!("{output_url}{query}"), Body::None).await;
    }
    caller.call(GET, &output, &of("/calls/none/output").1, Body::None).await;
    let texts = format!("{session}/texts");
    for query in ["?first=2", "?first=2&format=html&download=true", "?first=999", ""] {
        caller.call(GET, &texts, &of(&format!("/texts{query}")).1, Body::None).await;
    }
    caller.call(GET, &texts, "/api/sessions/none/texts?first=1", Body::None).await;
    let answer = list["messages"][0]["id"].as_str().unwrap();
    for id in [answer, "none"] {
        let path = format!("{session}/answers/{{answer}}");
        caller.call(GET, &path, &of(&format!("/answers/{id}")).1, Body::None).await;
        caller.call(GET, &path, &of(&format!("/answers/{id}?format=text")).1, Body::None).await;
    }
    let (raw, raw_url) = of("/raw");
    for query in ["", "?after=1&limit=2", "?seq=3", "?run=none", "?format=text"] {
        caller.call(GET, &raw, &format!("{raw_url}{query}"), Body::None).await;
    }
    let (export, export_url) = of("/export");
    for query in ["", "?format=md", "?format=json", "?at=3", "?format=jsonl"] {
        caller.call(GET, &export, &format!("{export_url}{query}"), Body::None).await;
    }
    let import = "/api/sessions/import";
    let record = json!({
        "seq": 1, "at": "2026-11-15T18:44:28.123Z", "sessionId": "imported",
        "type": "session_created", "agent": "demo",
    });
    for _ in 0..2 {
        caller.call(POST, import, import, Body::Text(&record.to_string())).await;
    }
    let nobody = format!("{import}?id=other&agent=nobody");
    caller.call(POST, import, &nobody, Body::Text(&record.to_string())).await;
    let set = Body::Json(json!({ "theme": "dark" }));
    caller.call(Method::PATCH, "/api/settings", "/api/settings", set).await;
    let settings = caller.call(GET, "/api/settings", "/api/settings", Body::None).await;
    assert_eq!(settings["theme"], "dark");
    let copy = json!({ "file": home.workspace().join("copy.db") });
    caller.call(POST, "/api/backup", "/api/backup", Body::Json(copy)).await;
    interrupt_and_continue(caller, &id, &mut watcher).await;
    ask_and_decide(caller).await;
    faces::speak_agui(caller).await;
    talk_as_to_a_model(caller).await;
    faces::converse(caller).await;
    let (events, events_url) = of("/contract-events");
    caller.open(&events, &events_url).await;
    let (restore, restore_url) = of("/restore");
    caller.call(Method::DELETE, session, &format!("{}?seconds=60", of("").1), Body::None).await;
    for _ in 0..2 {
        caller.call(POST, &restore, &restore_url, Body::None).await;
    }
    caller.call(Method::DELETE, session, &of("").1, Body::None).await;
    check_frames_until(caller, &mut watcher, "session_deleted").await;

    let form = Body::Text("password=correct+horse");
    caller.call(POST, "/sign-in", "/sign-in", form).await;
    caller.call(POST, "/sign-out", "/sign-out", Body::None).await;
    caller.call(GET, "/sign-out", "/sign-out", Body::None).await;
    let everywhere = "/api/sign-out-everywhere";
    caller.call(POST, everywhere, everywhere, Body::None).await;
    let upgrade = [
        (AUTHORIZATION.as_str(), BEARER),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    caller.call_with(GET, "/ws", "/ws", Body::None, &upgrade).await;
}

/// Calls the operations that need a working or a stopped agent.
async fn interrupt_and_continue(caller: &mut Caller<'_>, id: &str, watcher: &mut Watcher) {
    let of = |rest: &str| {
        (format!("/api/sessions/{{session}}/{rest}"), format!("/api/sessions/{id}/{rest}"))
    };
    let (messages, messages_url) = of("messages");
    let message = || Body::Json(json!({ "text": "tell me a story" }));
    caller.call(POST, &messages, &messages_url, message()).await;
    check_frames_until(caller, watcher, "text_delta").await;
    for verb in ["continue", "retry"] {
        let (path, url) = of(verb);
        assert_eq!(caller.call(POST, &path, &url, Body::None).await["error"]["code"], "agent_busy");
    }
    let edited = || Body::Json(json!({ "text": "help", "replaces": "none" }));
    let busy = caller.call(POST, &messages, &messages_url, edited()).await;
    assert_eq!(busy["error"]["code"], "agent_busy");
    let elsewhere = Body::Json(json!({ "workspace": "/" }));
    let url = format!("/api/sessions/{id}");
    let busy = caller.call(Method::PATCH, "/api/sessions/{session}", &url, elsewhere).await;
    assert_eq!(busy["error"]["code"], "agent_busy");
    let (cancel, cancel_url) = of("cancel");
    assert_eq!(caller.call(POST, &cancel, &cancel_url, Body::None).await["cancelled"], true);
    let lost = caller.call(POST, &messages, &messages_url, edited()).await;
    assert_eq!(lost["error"]["code"], "message_not_found");
    for verb in ["continue", "retry"] {
        let (path, url) = of(verb);
        assert!(caller.call(POST, &path, &url, Body::None).await["responseId"].is_string());
        caller.call(POST, &cancel, &cancel_url, Body::None).await;
    }
    // Sends more messages than the queue holds.
    let mut full = Value::Null;
    for _ in 0..102 {
        full = caller.call(POST, &messages, &messages_url, message()).await;
    }
    assert_eq!(full["error"]["code"], "queue_full");
    for (path, url) in faces::AGUI {
        caller.call(POST, path, url, faces::run_input(id, Some("one more"))).await;
    }
    let list = json!({ "model": "demo", "messages": [{ "role": "user", "content": "hello" }] });
    let full = complete(caller, id, Body::Json(list)).await;
    assert_eq!(full["error"]["code"], "queue_full");
    faces::meet_a_busy_session(caller, id).await;
    change_the_queue(caller, id).await;
}

/// Calls every operation on queued messages.
async fn change_the_queue(caller: &mut Caller<'_>, id: &str) {
    let (queue, url) = ("/api/sessions/{session}/queue", format!("/api/sessions/{id}/queue"));
    let waiting = caller.call(GET, queue, &url, Body::None).await;
    let first = waiting["messages"][0]["id"].as_str().unwrap().to_owned();
    let message = format!("{queue}/{{message}}");
    let steer = format!("{message}/steer");
    let change = || Body::Json(json!({ "text": "time in Lima", "position": 3 }));
    caller.call(Method::PATCH, &message, "/api/sessions/none/queue/none", change()).await;
    for message_id in [&first, "none"] {
        caller.call(Method::PATCH, &message, &format!("{url}/{message_id}"), change()).await;
        let steered = format!("{url}/{message_id}/steer");
        caller.call(POST, &steer, &steered, Body::None).await;
    }
    let waiting = caller.call(GET, queue, &url, Body::None).await;
    assert_eq!(waiting["messages"][3]["text"], "time in Lima");
    assert_eq!(waiting["messages"][3]["mode"], "queue", "the demo agent cannot be steered");
    let cancel = "/api/sessions/{session}/cancel";
    caller.call(POST, cancel, &format!("/api/sessions/{id}/cancel"), Body::None).await;
    let waiting = caller.call(GET, queue, &url, Body::None).await;
    assert_eq!(waiting["messages"][0]["held"], true);
    let refused = caller.call(POST, &steer, &format!("{url}/{first}/steer"), Body::None).await;
    assert_eq!(refused["error"]["code"], "cannot_steer");
    for message_id in [&first, "none"] {
        let one = format!("{url}/{message_id}");
        caller.call(Method::DELETE, &message, &one, Body::None).await;
    }
    let release = format!("{queue}/release");
    caller.call(POST, &release, &format!("{url}/release"), Body::None).await;
    caller.call(Method::DELETE, queue, &url, Body::None).await;
    let waiting = caller.call(GET, queue, &url, Body::None).await;
    assert_eq!(waiting["messages"], json!([]));
}

/// Calls the operations for an approval and for grants.
async fn ask_and_decide(caller: &mut Caller<'_>) {
    let id = caller.server.create_session().await;
    let mut watcher = Watcher::connect(caller.server).await;
    watcher.subscribe(&id, Seq(0), true).await;
    caller.server.send(&id, "run touch made").await;
    let call =
        watcher.until("tool_approval_requested").await["callId"].as_str().unwrap().to_owned();
    let path = "/api/sessions/{session}/calls/{call}/approval";
    let cancel = format!("/api/sessions/{id}/cancel?unlessAsking=true");
    let refused = caller.call(POST, "/api/sessions/{session}/cancel", &cancel, Body::None).await;
    assert_eq!(refused["error"]["code"], "awaiting_decision");
    let url = format!("/api/sessions/{id}/calls/{call}/approval");
    let decision = || Body::Json(json!({ "decision": "accepted", "scope": "always" }));
    caller.call(POST, path, &url, decision()).await;
    check_frames_until(caller, &mut watcher, "run_finish").await;
    assert_eq!(caller.call(POST, path, &url, decision()).await["error"]["by"], "user");
    for session in [&id, "none"] {
        let unknown = format!("/api/sessions/{session}/calls/none/approval");
        caller.call(POST, path, &unknown, decision()).await;
    }
    take_back(caller, &id, &call, &mut watcher).await;
    caller.server.send(&id, "run touch made").await;
    let call =
        watcher.until("tool_approval_requested").await["callId"].as_str().unwrap().to_owned();
    let url = format!("/api/sessions/{id}/calls/{call}/approval");
    caller.call(POST, path, &url, decision()).await;
    check_frames_until(caller, &mut watcher, "run_finish").await;
    let grants = caller.call(GET, "/api/grants", "/api/grants", Body::None).await;
    let grant = format!("/api/grants/{}", grants["grants"][0]["id"].as_str().unwrap());
    for _ in 0..2 {
        caller.call(Method::DELETE, "/api/grants/{grant}", &grant, Body::None).await;
    }
}

/// Revokes an always grant by its call, and a grant of a session.
async fn take_back(caller: &mut Caller<'_>, id: &str, call: &str, watcher: &mut Watcher) {
    let undo = "/api/sessions/{session}/calls/{call}/approval/undo";
    let url =
        |session: &str, call: &str| format!("/api/sessions/{session}/calls/{call}/approval/undo");
    let undone = caller.call(POST, undo, &url(id, call), Body::None).await;
    assert_eq!(undone, json!({ "stopped": false }), "it has run");
    for (session, call) in [(id, call), (id, "none"), ("none", call)] {
        caller.call(POST, undo, &url(session, call), Body::None).await;
    }
    caller.server.send(id, "run touch made").await;
    let call =
        watcher.until("tool_approval_requested").await["callId"].as_str().unwrap().to_owned();
    let approval = format!("/api/sessions/{id}/calls/{call}/approval");
    let decision = json!({ "decision": "accepted", "scope": "session" });
    caller.server.post(&approval, decision).await;
    check_frames_until(caller, watcher, "run_finish").await;
    let path = "/api/sessions/{session}/grants";
    let url = format!("/api/sessions/{id}/grants");
    let grants = caller.call(GET, path, &url, Body::None).await;
    caller.call(GET, path, "/api/sessions/none/grants", Body::None).await;
    let grant = format!("{url}/{}", grants["grants"][0]["id"].as_str().unwrap());
    for _ in 0..2 {
        caller.call(Method::DELETE, &format!("{path}/{{grant}}"), &grant, Body::None).await;
    }
    assert_eq!(caller.call(GET, path, &url, Body::None).await, json!({ "grants": [] }));
}

/// Calls the OpenAI-compatible operations.
async fn talk_as_to_a_model(caller: &mut Caller<'_>) {
    caller.call(GET, "/v1/models", "/v1/models", Body::None).await;
    caller.call(GET, "/v1/models/{model}", "/v1/models/demo", Body::None).await;
    let tool = json!({ "type": "function", "function": { "name": "pick" } });
    let asked = json!({ "role": "user", "content": "use the client tool pick" });
    let body = |model: &str, messages: Value| {
        Body::Json(json!({ "model": model, "messages": messages, "tools": [tool] }))
    };
    let made = complete(caller, "picking", body("default", json!([asked]))).await;
    let call = &made["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "pick", "{made}");
    let busy = complete(caller, "picking", body("demo", json!([asked]))).await;
    assert_eq!(busy["error"]["code"], "agent_busy");
    let result = json!({ "role": "tool", "tool_call_id": call["id"], "content": "teal" });
    let made = complete(caller, "picking", body("demo", json!([result]))).await;
    assert_eq!(made["choices"][0]["finish_reason"], "stop", "{made}");
    let stray = json!({ "role": "tool", "tool_call_id": "none", "content": "teal" });
    let refused = complete(caller, "picking", body("demo", json!([stray]))).await;
    assert_eq!(refused["error"]["code"], "nothing_to_do");
    let broken = json!({ "role": "user", "content": "break" });
    let failed = complete(caller, "breaking", body("demo", json!([broken]))).await;
    assert_eq!(failed["error"]["code"], "upstream_error");
    let unknown = complete(caller, "breaking", body("nobody", json!([broken]))).await;
    assert_eq!(unknown["error"]["param"], "model");
    let leaving = "/api/sessions/breaking?seconds=60";
    caller.call(Method::DELETE, "/api/sessions/{session}", leaving, Body::None).await;
    let gone = complete(caller, "breaking", body("demo", json!([broken]))).await;
    assert_eq!(gone["error"]["code"], "session_not_found");
}

async fn complete(caller: &mut Caller<'_>, session: &str, body: Body<'_>) -> Value {
    let headers = [(AUTHORIZATION.as_str(), BEARER), ("x-callboard-session", session)];
    let path = "/v1/chat/completions";
    caller.call_with(POST, path, path, body, &headers).await.1
}

async fn check_frames_until(caller: &Caller<'_>, watcher: &mut Watcher, kind: &str) {
    loop {
        let frame = watcher.next().await.unwrap();
        caller.document.check_frame("ServerFrame", &frame);
        if frame["type"] == kind {
            return;
        }
    }
}

/// Calls every operation with each documented kind of failure.
async fn refuse_everything(caller: &mut Caller<'_>) {
    let foreign_host = [(HOST.as_str(), "evil.example")];
    let foreign_origin = [("origin", "https://evil.example")];
    for operation in caller.document.operations() {
        let (method, path) = (operation.method.clone(), operation.path.clone());
        for (segment, query) in [("none", ""), ("%ff", ""), ("none", "?limit=many")] {
            if path.contains('{') || !operation.parameters("query").is_empty() {
                let body = caller.document.sample_body(&operation).map_or(Body::None, Body::Json);
                let url = format!("{}{query}", operation.url(segment));
                caller.call(method.clone(), &path, &url, body).await;
            }
        }
        for headers in [&foreign_host[..], &foreign_origin[..], &[]] {
            let url = operation.url("none");
            caller.call_with(method.clone(), &path, &url, Body::None, headers).await;
        }
        if operation.body_type().is_some() {
            let too_large = format!("Content-Length: {}\r\n\r\n", 300 << 20);
            caller.call_raw(method.clone(), &path, &too_large).await;
            let broken = "Transfer-Encoding: chunked\r\n\r\nthis is no length\r\n";
            caller.call_raw(method, &path, broken).await;
        }
    }
    caller.call(GET, "/ws", "/ws", Body::None).await;
    caller.call(GET, "/", "/?before=nonsense", Body::None).await;
    caller.call(GET, "/api/search", "/api/search?q=x&sessionId=a%2Fb", Body::None).await;
    for wrong in [json!({ "agent": "nobody" }), json!({ "id": "twin" }), json!({ "id": "twin" })] {
        caller.call(POST, "/api/sessions", "/api/sessions", Body::Json(wrong)).await;
    }
    for verb in ["continue", "retry"] {
        let path = format!("/api/sessions/{{session}}/{verb}");
        caller.call(POST, &path, &format!("/api/sessions/twin/{verb}"), Body::None).await;
    }
    for _ in 0..6 {
        caller.call(POST, "/sign-in", "/sign-in", Body::Text("password=guess")).await;
    }
}
