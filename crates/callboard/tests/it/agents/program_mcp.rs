//! Callboard's own tools as program agents call them: over HTTP, with a pass, and matched to the
//! calls in the program's output.

use reqwest::header::{AUTHORIZATION, HOST, ORIGIN};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use transcript::{Call, CallState, Event, Executor, Record, RunMessage, RunStatus};

use crate::agents::callboard_tools::notes;
use crate::support::program::{Home, Server, TOKEN};
use crate::support::stand_in::{
    answer_in, last_answer, left, open_gate, playing, session, wait_until_reached,
};
use crate::support::watcher::watch_until;

/// The tool server's address and pass, as the last program got them.
struct ToolServer {
    url: String,
    token: String,
}

impl ToolServer {
    /// Reads the configuration of the last program. It must have started.
    fn of(home: &Home) -> Self {
        let args = left(home, "args");
        let config = args.lines().last().unwrap().split("--mcp-config ").nth(1).unwrap();
        let config = config.split(" --allowedTools").next().unwrap();
        let config: Value = serde_json::from_str(config).unwrap();
        let server = &config["mcpServers"]["callboard"];
        assert_eq!(server["headers"]["Authorization"], "Bearer ${CALLBOARD_TOOLS_TOKEN}");
        let env = left(home, "env");
        let token = env.lines().find_map(|it| it.strip_prefix("CALLBOARD_TOOLS_TOKEN=")).unwrap();
        assert!(!args.contains(token), "everybody can read a command line");
        Self { url: server["url"].as_str().unwrap().to_owned(), token: token.to_owned() }
    }

    fn request(&self, message: &Value) -> RequestBuilder {
        let accept = "application/json, text/event-stream";
        tools::http_client().post(&self.url).header("accept", accept).json(message)
    }

    /// Sends a message and returns the head of the response, which arrives immediately.
    async fn ask(&self, message: &Value) -> Response {
        self.request(message).bearer_auth(&self.token).send().await.unwrap()
    }

    /// Sends a request whose response is immediate, and returns it.
    async fn get(&self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let answer: Value = self.ask(&message).await.json().await.unwrap();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
        answer
    }

    /// Calls `callboard_note`; `meta` identifies the program's call.
    async fn note(&self, text: &str, meta: Value) -> Response {
        self.call("n", "callboard_note", json!({ "text": text }), meta).await
    }

    async fn call(&self, id: &str, name: &str, arguments: Value, meta: Value) -> Response {
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        let method = "tools/call";
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let response = self.ask(&message).await;
        assert_eq!(response.status(), StatusCode::OK);
        response
    }

    async fn notify(&self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        assert_eq!(self.ask(&message).await.status(), StatusCode::ACCEPTED);
    }
}

/// Waits for the result of a call. Returns whether it succeeded, and its text.
async fn result(response: Response) -> (bool, String) {
    let body = response.text().await.unwrap();
    let mut data = body.lines().filter_map(|it| it.strip_prefix("data: "));
    let answer: Value = serde_json::from_str(data.next_back().unwrap()).unwrap();
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (result["isError"] == false, text)
}

fn noted() -> (bool, String) {
    (true, r#"{"noted":true}"#.to_owned())
}

fn meta(id: &str) -> Value {
    json!({ "claudecode/toolUseId": id })
}

fn call_of(answer: &RunMessage) -> &Call {
    let calls: Vec<&Call> = answer.calls().collect();
    let [call] = calls[..] else { panic!("not one call: {calls:?}") };
    call
}

fn n_results(log: &[Record]) -> usize {
    log.iter().filter(|it| matches!(it.event, Event::ToolResult { .. })).count()
}

/// Starts a server, sends a message, and waits until the scene has reached the gate.
async fn begin(home: &Home, gate: &str) -> (Server, String, ToolServer) {
    let server = home.start();
    let session = session(&server).await;
    server.send(&session, "go").await;
    wait_until_reached(home, gate).await;
    (server, session, ToolServer::of(home))
}

const NOTE: &str = r#"mcp__callboard__callboard_note '{"text":"Half way."}'"#;

#[tokio::test]
async fn a_pass_is_required_and_ends_with_its_program() {
    let home = playing("hear_user; reached up; wait_for go; text Bye; result; exit 0", "");
    let (server, session, tools) = begin(&home, "up").await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let knock = async |change: &dyn Fn(RequestBuilder) -> RequestBuilder| {
        change(tools.request(&list)).send().await.unwrap().status()
    };
    let bearer = |token: &str| format!("Bearer {token}");
    let own = bearer(&tools.token);
    assert_eq!(knock(&|it| it).await, StatusCode::UNAUTHORIZED);
    for wrong in [
        bearer(""),
        bearer(TOKEN),
        bearer("x"),
        tools.token.clone(),
        own.replace("Bearer", "Basic"),
    ] {
        assert_eq!(
            knock(&|it| it.header(AUTHORIZATION, &wrong)).await,
            StatusCode::UNAUTHORIZED,
            "{wrong}"
        );
    }
    let port = tools.url.rsplit(':').next().unwrap().replace("/mcp", "");
    for host in
        ["evil.example".to_owned(), format!("evil.example:{port}"), "127.0.0.1:1".to_owned()]
    {
        let status = knock(&|it| it.header(AUTHORIZATION, &own).header(HOST, &host)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{host}");
    }
    for (name, value) in
        [(ORIGIN.as_str(), tools.url.trim_end_matches("/mcp")), ("sec-fetch-site", "none")]
    {
        let status = knock(&|it| it.header(AUTHORIZATION, &own).header(name, value)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "no page, not even one of ours: {name}");
    }
    assert_eq!(knock(&|it| it.header(AUTHORIZATION, &own)).await, StatusCode::OK);
    let get = tools::http_client()
        .request(Method::GET, &tools.url)
        .bearer_auth(&tools.token)
        .send()
        .await
        .unwrap();
    assert_eq!(get.status(), StatusCode::METHOD_NOT_ALLOWED, "we say nothing unasked");
    let elsewhere = tools::http_client()
        .post(format!("{}/mcp", server.base))
        .bearer_auth(TOKEN)
        .send()
        .await
        .unwrap();
    assert_eq!(elsewhere.status(), StatusCode::NOT_FOUND, "not at the public address");

    open_gate(&home, "go").await;
    last_answer(&server, &session).await;
    server.request(Method::DELETE, &format!("/api/sessions/{session}"), None).await;
    assert_eq!(knock(&|it| it.header(AUTHORIZATION, &own)).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn required_mcp_methods_are_answered() {
    let home = playing("hear_user; reached up; wait_for go; result", "");
    let (server, session, tools) = begin(&home, "up").await;
    for (wanted, got) in [("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")] {
        let greeting = tools.get("initialize", json!({ "protocolVersion": wanted })).await;
        assert_eq!(greeting["result"]["protocolVersion"], got);
        assert_eq!(greeting["result"]["serverInfo"]["name"], "callboard");
    }
    tools.notify("notifications/initialized", json!({})).await;
    tools.notify("notifications/cancelled", json!({ "requestId": "never heard of" })).await;
    assert_eq!(tools.get("ping", Value::Null).await["result"], json!({}));
    let listed = tools.get("tools/list", json!({})).await["result"]["tools"].clone();
    let listed = listed.as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["agents_list", "agents_message", "callboard_note"]);
    assert!(listed.iter().all(|it| it["inputSchema"]["type"] == "object"));
    assert_eq!(tools.get("resources/list", json!({})).await["error"]["code"], -32601);
    let other = tools.get("tools/call", json!({ "name": "shell", "arguments": {} })).await;
    assert_eq!(other["error"]["code"], -32602, "a program has its own: {other}");
    let nonsense = tools.request(&json!([])).bearer_auth(&tools.token).send().await.unwrap();
    assert_eq!(nonsense.status(), StatusCode::BAD_REQUEST);
    open_gate(&home, "go").await;
    assert_eq!(n_results(&server.log(&session).await), 0);
}

/// Returns the arguments in the records that start calls.
fn starts(log: &[Record]) -> Vec<Option<Value>> {
    let arguments = |it: &Record| match &it.event {
        Event::ToolCallStart { arguments, .. } => {
            Some(arguments.as_ref().map(|it| serde_json::from_str(it).unwrap()))
        }
        _ => None,
    };
    log.iter().filter_map(arguments).collect()
}

/// The line may arrive before or after the request, which may identify its call or not.
#[tokio::test]
async fn a_request_is_matched_to_the_programs_call() {
    let story = format!("use t1 {NOTE}");
    for is_line_first in [true, false] {
        for named in
            [meta("t1"), json!({ "toolCallId": "t1" }), json!({ "callId": "t1" }), json!({})]
        {
            let scene = match is_line_first {
                true => format!("hear_user; {story}; reached up; wait_for line;"),
                false => format!("hear_user; reached up; wait_for line; {story};"),
            };
            let rest = r#"wait_for done; used t1 "{}" false; text Done; result"#;
            let home = playing(&format!("{scene} {rest}"), "");
            let (server, session, tools) = begin(&home, "up").await;
            let response = tools.note("Half way.", named.clone()).await;
            open_gate(&home, "line").await;
            assert_eq!(result(response).await, noted(), "{named}");
            open_gate(&home, "done").await;
            let answer = last_answer(&server, &session).await;
            let call = call_of(&answer);
            assert_eq!((call.name.as_str(), call.executor), ("callboard_note", Executor::Agent));
            assert_eq!(call.state, CallState::Succeeded);
            let result = call.outcome.as_ref().unwrap().result.as_ref().unwrap();
            assert_eq!(result.whole().unwrap(), r#"{"noted":true}"#, "as the tool gave it");
            assert_eq!(notes(&answer).len(), 1);
            let log = server.log(&session).await;
            assert_eq!(n_results(&log), 1);
            assert!(log.iter().all(|it| !matches!(it.event, Event::ToolApprovalRequested { .. })));
            assert_eq!(starts(&log), [Some(json!({ "text": "Half way." }))]);
        }
    }
}

/// Each request gets its own call, whichever comes first.
#[tokio::test]
async fn two_equal_calls_stay_separate() {
    let scene = format!(
        "hear_user; use t1 {NOTE}; use t2 {NOTE}; reached up; wait_for done;
         used t1 x false; used t2 x false; text Done; result"
    );
    for metas in [[meta("t2"), meta("t1")], [json!({}), json!({})]] {
        let home = playing(&scene, "");
        let (server, session, tools) = begin(&home, "up").await;
        let [first, second] = metas.map(|it| tools.note("Half way.", it));
        let (first, second) = tokio::join!(first, second);
        assert_eq!([result(first).await, result(second).await], [noted(), noted()]);
        open_gate(&home, "done").await;
        let answer = last_answer(&server, &session).await;
        let states: Vec<_> = answer.calls().map(|it| (it.executor, it.state)).collect();
        assert_eq!(states, [(Executor::Agent, CallState::Succeeded); 2]);
        assert_eq!(notes(&answer).len(), 2);
    }
}

#[tokio::test]
async fn an_unreported_call_gets_its_own_block() {
    let home = playing("hear_user; text Look:; reached up; wait_for done; text Done; result", "");
    let (server, session, tools) = begin(&home, "up").await;
    let calls = [tools.note("one", json!({})), tools.note("two", meta("unheard"))];
    let [first, second] = calls.map(async |it| result(it.await).await);
    assert_eq!(tokio::join!(first, second), (noted(), noted()));
    open_gate(&home, "done").await;
    let answer = last_answer(&server, &session).await;
    let states: Vec<_> = answer.calls().map(|it| (it.executor, it.state)).collect();
    assert_eq!(states, [(Executor::Server, CallState::Succeeded); 2]);
    let mut ids: Vec<_> = answer.calls().map(|it| &it.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 2);
    assert_eq!(notes(&answer).len(), 2);
    let log = server.log(&session).await;
    assert_eq!(n_results(&log), 2);
    let mut starts = starts(&log);
    starts.sort_by_key(|it| format!("{it:?}"));
    assert_eq!(starts, [Some(json!({ "text": "one" })), Some(json!({ "text": "two" }))]);
}

#[tokio::test]
async fn tools_cannot_be_called_between_runs() {
    let home = playing("hear_user; text Done; result; reached idle; hear_user", "");
    let (server, session, tools) = begin(&home, "idle").await;
    last_answer(&server, &session).await;
    let before = server.log(&session).await;
    let (ok, text) = result(tools.note("Hello?", json!({})).await).await;
    assert!(!ok && text.contains("No run is open"), "{text}");
    assert_eq!(server.log(&session).await, before);
}

/// Policy under which a note awaits an approval.
const ASKING: &str = "[approvals]\ncallboard_note = \"ask\"\nagents_list = \"deny\"\n";

async fn asked(server: &Server, session: &str) -> String {
    let is_asked = |call: &Call| call.state == CallState::AwaitingApproval;
    let transcript = watch_until(server, session, |it| {
        it.summary.open_run.is_some() && answer_in(it).calls().any(is_asked)
    });
    let answer = answer_in(&transcript.await);
    answer.calls().find(|it| is_asked(it)).unwrap().id.to_string()
}

#[tokio::test]
async fn the_policy_decides_when_the_call_comes() {
    let scene = format!(
        "hear_user; use t1 {NOTE}; use t2 mcp__callboard__agents_list '{{}}'; reached up; wait_for done;
         used t1 x false; used t2 'not allowed' true; text Done; result"
    );
    let home = playing(&scene, ASKING);
    let (server, session, tools) = begin(&home, "up").await;
    let waits = tools.note("Half way.", meta("t1")).await;
    let (ok, text) = result(tools.call("l", "agents_list", json!({}), meta("t2")).await).await;
    assert!(!ok && text.contains("policy"), "{text}");
    let call = asked(&server, &session).await;
    let path = format!("/api/sessions/{session}/calls/{call}/approval");
    let (status, _) = server.post(&path, json!({ "decision": "accepted" })).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(result(waits).await, noted());
    open_gate(&home, "done").await;
    let answer = last_answer(&server, &session).await;
    let states: Vec<_> = answer.calls().map(|it| it.state).collect();
    assert_eq!(states, [CallState::Succeeded, CallState::Denied]);
    assert_eq!(notes(&answer).len(), 1);
}

/// The program cancels the request or closes the connection: the approval is withdrawn, the tool
/// never runs, and the program reports the outcome.
#[tokio::test]
async fn an_abandoned_call_is_withdrawn() {
    let scene = format!(
        "hear_user; use t1 {NOTE}; reached up; wait_for done; used t1 'given up' true; text Done; result"
    );
    for is_told in [true, false] {
        let home = playing(&scene, ASKING);
        let (server, session, tools) = begin(&home, "up").await;
        let waits = tools.note("Half way.", meta("t1")).await;
        asked(&server, &session).await;
        if is_told {
            tools.notify("notifications/cancelled", json!({ "requestId": "n" })).await;
            assert!(
                !waits.text().await.unwrap().contains("data:"),
                "no answer to what was taken back"
            );
        } else {
            drop(waits);
        }
        let is_withdrawn = |it: &Call| it.state == CallState::Interrupted;
        watch_until(&server, &session, |it| {
            it.summary.open_run.is_some() && answer_in(it).calls().any(is_withdrawn)
        })
        .await;
        open_gate(&home, "done").await;
        let answer = last_answer(&server, &session).await;
        assert_eq!(answer.finish.as_ref().unwrap().status, RunStatus::Completed);
        assert_eq!(call_of(&answer).state, CallState::Interrupted);
        assert_eq!(notes(&answer), []);
        assert_eq!(n_results(&server.log(&session).await), 1);
    }
}

#[tokio::test]
async fn a_call_ends_with_its_run_and_with_its_program() {
    for end in ["text Done; result; hear_user", "exit 3", "kill -9 $$"] {
        let scene = format!("hear_user; use t1 {NOTE}; reached up; wait_for done; {end}");
        let home = playing(&scene, ASKING);
        let (server, session, tools) = begin(&home, "up").await;
        let waits = tools.note("Half way.", meta("t1")).await;
        let untold = tools.call("l", "agents_list", json!({}), meta("later")).await;
        asked(&server, &session).await;
        open_gate(&home, "done").await;
        for response in [waits, untold] {
            let (ok, text) = result(response).await;
            assert!(!ok && text.contains("stopped"), "{end}: {text}");
        }
        let answer = last_answer(&server, &session).await;
        assert!(!call_of(&answer).outcome.as_ref().unwrap().ok, "{end}");
        assert_eq!(n_results(&server.log(&session).await), 1);
    }
}

/// The server is stopped while a program waits for a result.
#[tokio::test]
async fn stopping_the_server_answers_open_requests() {
    let scene = format!("hear_user; use t1 {NOTE}; reached up; wait_for never");
    let home = playing(&scene, ASKING);
    let (server, session, tools) = begin(&home, "up").await;
    let waits = tools.note("Half way.", meta("t1")).await;
    asked(&server, &session).await;
    server.stop();
    assert!(!result(waits).await.0);
}
