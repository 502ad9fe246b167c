//! An MCP server for tests, over stdio and over HTTP, that can be good, silent, broken or hostile.
//!
//! Over stdio it is this test program, started again to run only the test `serve`.

use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};

/// Environment variable with the server's mode.
const MODE: &str = "MCP_TEST_SERVER";

pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Returns a configuration section that starts the server over stdio.
pub(crate) fn section(id: &str, mode: &str, more: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let program = program.display();
    format!(
        "[[mcp_servers]]\nid = \"{id}\"\ncommand = [\"{program}\"]\n\
         args = [\"support::mcp_server::serve\", \"--exact\", \"--nocapture\"]\n\
         env = {{ {MODE} = \"{mode}\", GIVEN = \"env:MCP_GIVEN\" }}\n{more}\n"
    )
}

/// Runs the server if the mode is set, and otherwise tests nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is told by its environment what to be")]
fn serve() {
    let Ok(mode) = std::env::var(MODE) else { return };
    if mode == "broken" {
        let mut stderr = std::io::stderr();
        writeln!(stderr, "the database is missing").unwrap();
        std::process::exit(7);
    }
    let mut server = TestServer::new(&mode);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        for message in server.handle(&serde_json::from_str(&line).unwrap()) {
            let mut stdout = std::io::stdout().lock();
            writeln!(stdout, "{message}").unwrap();
            stdout.flush().unwrap();
        }
    }
    // A stubborn server does not exit at the end of its input.
    if mode == "stubborn" {
        loop {
            std::thread::park();
        }
    }
}

pub(crate) struct TestServer {
    mode: String,
    /// Ids of the calls that were cancelled.
    cancelled: Vec<Value>,
    has_grown: bool,
}

impl TestServer {
    pub(crate) fn new(mode: &str) -> Self {
        Self { mode: mode.to_owned(), cancelled: Vec::new(), has_grown: false }
    }

    /// Returns the messages that answer this one.
    fn handle(&mut self, message: &Value) -> Vec<Value> {
        let id = &message["id"];
        let params = &message["params"];
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        match message["method"].as_str().unwrap_or_default() {
            _ if self.mode == "silent" => Vec::new(),
            "initialize" => vec![answer(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "test", "version": "1" },
            }))],
            "tools/list" => {
                let tools = if self.mode == "hostile" { hostile() } else { self.tools() };
                // Uses two pages, so that pagination is covered.
                let half = tools.len() / 2;
                vec![answer(match params["cursor"].as_str() {
                    None => json!({ "tools": tools[..half], "nextCursor": "second" }),
                    Some(_) => json!({ "tools": tools[half..] }),
                })]
            }
            "tools/call" => {
                let token = &params["_meta"]["progressToken"];
                let name = params["name"].as_str().unwrap().to_owned();
                let mut replies = self.before(&name, &params["arguments"], token);
                replies.extend(self.call(&name, &params["arguments"], id));
                replies
            }
            "notifications/cancelled" => {
                self.cancelled.push(params["requestId"].clone());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn tools(&self) -> Vec<Value> {
        let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let number = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let none = json!({ "type": "object" });
        let mut tools = vec![("echo", &text), ("count", &number), ("huge", &number)];
        let plain = [
            "add",
            "picture",
            "mixed",
            "fail",
            "refuse",
            "grow",
            "die",
            "hang",
            "cancelled",
            "pid",
            "environment",
            "endless",
            "odd",
        ];
        tools.extend(plain.map(|name| (name, &none)));
        if self.has_grown {
            tools.push(("grown", &none));
        }
        let tool = |(name, schema): (&str, &Value)| json!({ "name": name, "description": format!("Does {name}."), "inputSchema": schema });
        tools.into_iter().map(tool).collect()
    }

    /// Returns the notifications before the result of a call.
    fn before(&mut self, name: &str, arguments: &Value, token: &Value) -> Vec<Value> {
        let notify = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
        match name {
            "count" => {
                let n = arguments["n"].as_u64().unwrap();
                let progress = |it: u64| json!({ "progressToken": token, "progress": it, "total": n, "message": format!("at {it}") });
                (1..=n).map(|it| notify("notifications/progress", progress(it))).collect()
            }
            "hang" => {
                let params = json!({ "progressToken": token, "progress": 1 });
                vec![notify("notifications/progress", params)]
            }
            "grow" => {
                self.has_grown = true;
                vec![notify("notifications/tools/list_changed", json!({}))]
            }
            _ => Vec::new(),
        }
    }

    fn call(&mut self, name: &str, arguments: &Value, id: &Value) -> Option<Value> {
        let text = |it: &str| json!({ "content": [{ "type": "text", "text": it }] });
        let result = match name {
            "echo" => text(arguments["text"].as_str().unwrap()),
            "count" => text("counted"),
            "grow" => text("grown up"),
            "grown" => text("new"),
            "huge" => text(&"0123456789".repeat(arguments["n"].as_u64().unwrap() as usize / 10)),
            "endless" => text(&"x".repeat(17 * 1024 * 1024)),
            "odd" => json!({ "content": [{ "type": "hologram" }, { "type": "text" }] }),
            "pid" => text(&std::process::id().to_string()),
            "cancelled" => text(&json!(self.cancelled).to_string()),
            "environment" => {
                let names: Vec<String> =
                    std::env::vars().map(|(n, v)| format!("{n}={v}")).collect();
                text(&names.join("\n"))
            }
            "add" => {
                json!({ "content": [{ "type": "text", "text": "{\"sum\":3}" }], "structuredContent": { "sum": 3 } })
            }
            "picture" => json!({ "content": [
                { "type": "text", "text": "a dot" },
                { "type": "image", "data": PNG, "mimeType": "image/png" },
                { "type": "image", "data": "!!!", "mimeType": "image/png" },
            ]}),
            "mixed" => json!({ "content": [
                { "type": "resource", "resource": { "uri": "test://a/notes.txt", "text": "in a file" } },
                { "type": "resource", "resource": { "uri": "test://a/data.bin", "blob": "AAEC", "mimeType": "application/octet-stream" } },
                { "type": "resource_link", "uri": "https://example.com/x", "name": "x" },
            ]}),
            "fail" => {
                json!({ "content": [{ "type": "text", "text": "no such row" }], "isError": true })
            }
            "refuse" => {
                let error = json!({ "code": -32602, "message": "not like that" });
                return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            "die" => {
                let mut stderr = std::io::stderr();
                writeln!(stderr, "out of memory").unwrap();
                std::process::exit(3)
            }
            "hang" => return None,
            other => text(&format!("did {other}")),
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }
}

/// Returns a list of mostly invalid tools. The tool `echo` is valid.
fn hostile() -> Vec<Value> {
    let object = json!({ "type": "object" });
    let tool = |name: Value, schema: Value| json!({ "name": name, "inputSchema": schema });
    vec![
        tool(json!("a.b"), object.clone()),
        tool(json!("a_b"), object.clone()),
        tool(json!("a b"), object.clone()),
        tool(json!("a_b"), object.clone()),
        tool(json!(""), object.clone()),
        tool(json!(5), object.clone()),
        tool(json!("x".repeat(300)), object.clone()),
        tool(json!("<script>alert(1)</script>"), object.clone()),
        tool(json!("Ünï\u{202e}cödé"), object.clone()),
        tool(json!("no_schema"), Value::Null),
        tool(json!("schema_is_text"), json!("nope")),
        tool(json!("schema_is_array"), json!({ "type": "array" })),
        tool(json!("schema_is_huge"), json!({ "type": "object", "title": "x".repeat(100_000) })),
        tool(
            json!("schema_is_elsewhere"),
            json!({ "type": "object", "$ref": "http://127.0.0.1:1/x" }),
        ),
        tool(
            json!("schema_is_nonsense"),
            json!({ "type": "object", "properties": { "a": { "pattern": "(((" } } }),
        ),
        json!({ "name": "talkative", "description": "x".repeat(1_000_000), "inputSchema": object }),
        json!("no tool"),
        tool(
            json!("echo"),
            json!({ "type": "object", "properties": { "text": { "type": "string" } } }),
        ),
    ]
}

/// The test server over HTTP. Results are sent as event streams.
#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) url: String,
    state: Arc<Mutex<HttpState>>,
}

struct HttpState {
    server: TestServer,
    /// Id of the current session, increased when the server loses its state.
    session: u32,
    headers: HeaderMap,
}

impl HttpServer {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let state =
            HttpState { server: TestServer::new("good"), session: 1, headers: HeaderMap::new() };
        let this = Self { url, state: Arc::new(Mutex::new(state)) };
        let router = Router::new().route("/mcp", post(handle_post)).with_state(this.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        this
    }

    /// Simulates a restart of the server.
    pub(crate) fn forget(&self) {
        let mut state = self.state.lock().unwrap();
        state.session += 1;
        state.server = TestServer::new("good");
    }

    /// Returns a header of the last request.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let state = self.state.lock().unwrap();
        Some(state.headers.get(name)?.to_str().unwrap().to_owned())
    }
}

async fn handle_post(State(this): State<HttpServer>, headers: HeaderMap, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    let mut state = this.state.lock().unwrap();
    let session = state.session.to_string();
    state.headers = headers;
    let is_new = message["method"] == "initialize";
    let named = state.headers.get("mcp-session-id").map(|it| it.to_str().unwrap());
    if !is_new && named != Some(&session) {
        let error =
            json!({ "code": -32000, "message": "Bad Request: No valid session ID provided" });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
        return (StatusCode::BAD_REQUEST, axum::Json(answer)).into_response();
    }
    let replies = state.server.handle(&message);
    if message.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let events =
        replies.into_iter().map(|it| Ok::<_, Infallible>(Event::default().data(it.to_string())));
    // A call without a result keeps its stream open.
    let is_answered = message["params"]["name"] != "hang";
    let stream = futures_util::stream::iter(events.collect::<Vec<_>>());
    let headers = [("mcp-session-id", session)];
    if is_answered {
        (headers, Sse::new(stream)).into_response()
    } else {
        use futures_util::StreamExt;
        (headers, Sse::new(stream.chain(futures_util::stream::pending()))).into_response()
    }
}
