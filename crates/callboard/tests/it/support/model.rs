//! A model service that answers only as the test tells it to.
//!
//! Every request is handed to the test, which sends the response in pieces. Each request has its
//! own connection, so that its end is visible.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(crate) struct Model {
    pub(crate) base_url: String,
    asked: mpsc::UnboundedReceiver<Asked>,
}

/// A request to the model that awaits its response.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    has_begun: bool,
    connection: BufReader<TcpStream>,
}

impl Model {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (send, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let send = send.clone();
                tokio::spawn(async move { send.send(Asked::read(connection).await) });
            }
        });
        Self { base_url, asked }
    }

    /// Waits for the next request.
    pub(crate) async fn asked(&mut self) -> Asked {
        self.asked.recv().await.unwrap()
    }

    pub(crate) fn took_no_request(&mut self) -> bool {
        self.asked.try_recv().is_err()
    }
}

impl Asked {
    async fn read(connection: TcpStream) -> Self {
        let mut connection = BufReader::new(connection);
        let mut first = String::new();
        connection.read_line(&mut first).await.unwrap();
        let path = first.split(' ').nth(1).unwrap().to_owned();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            connection.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        connection.read_exact(&mut body).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap();
        Self { path, headers, body, has_begun: false, connection }
    }

    pub(crate) fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().unwrap()
    }

    /// Sends the head of a successful response, unless it has been sent.
    pub(crate) async fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\nconnection: close\r\n\r\n";
        self.write(head).await;
    }

    pub(crate) async fn send_delta(&mut self, delta: Value) {
        self.event(json!({ "choices": [{ "index": 0, "delta": delta }] })).await;
    }

    pub(crate) async fn event(&mut self, event: Value) {
        self.chunk(&format!("data: {event}\n\n")).await;
    }

    pub(crate) async fn chunk(&mut self, text: &str) {
        self.write(&format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    pub(crate) async fn finish(mut self, reason: &str) {
        let usage = json!({ "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 });
        let choice = json!({ "index": 0, "delta": {}, "finish_reason": reason });
        self.event(json!({ "choices": [choice], "usage": usage })).await;
        self.chunk("data: [DONE]\n\n").await;
        self.write("0\r\n\r\n").await;
    }

    /// Sends a complete response with a text.
    pub(crate) async fn answer(mut self, text: &str) {
        self.begin().await;
        self.send_delta(json!({ "content": text })).await;
        self.finish("stop").await;
    }

    /// Sends a complete response with one tool call.
    pub(crate) async fn call(self, name: &str, arguments: &Value) {
        self.calls(&[(name, arguments)]).await;
    }

    /// Sends a complete response with several tool calls.
    pub(crate) async fn calls(mut self, calls: &[(&str, &Value)]) {
        self.begin().await;
        let calls = calls.iter().enumerate().map(|(index, (name, arguments))| {
            let id = format!("call_{}", index + 1);
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "index": index, "id": id, "type": "function", "function": function })
        });
        self.send_delta(json!({ "tool_calls": calls.collect::<Vec<_>>() })).await;
        self.finish("tool_calls").await;
    }

    pub(crate) async fn refuse(mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n");
        self.write(&format!("{head}{headers}\r\n{body}")).await;
    }

    /// Waits until the other side has closed the connection.
    pub(crate) async fn closed(mut self) {
        let mut rest = Vec::new();
        // A reset ends the connection too.
        let _ = self.connection.read_to_end(&mut rest).await;
    }

    /// Writes to the connection, which the client may have closed.
    async fn write(&mut self, text: &str) {
        let _ = self.connection.write_all(text.as_bytes()).await;
    }
}
