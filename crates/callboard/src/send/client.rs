//! Client of a session on a running server, over its WebSocket.

use std::collections::HashMap;

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async};
use transcript::{Record, Seq};

use crate::serve::ServerFile;

/// Maximum number of reconnects to the server without a new record.
const ATTEMPTS: u32 = 5;

pub(super) struct Client {
    server: ServerFile,
    pub(super) session: String,
    socket: WebSocketStream<TcpStream>,
    /// Sequence number of the last record received.
    seen: Seq,
    attempts: u32,
}

/// Frame of the server's WebSocket that `callboard send` has to handle.
pub(super) enum ServerEvent {
    /// A record of the session, and its JSON as it was received.
    Record(Box<Record>, Utf8Bytes),
    /// The server refused a command of this client.
    Refused { code: String, message: String },
}

/// The session to which `callboard send` subscribes, or the settings of a new one.
pub(super) struct SessionChoice<'a> {
    pub(super) agent: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) workspace: Option<&'a str>,
}

impl Client {
    /// Connects to the server and subscribes to the named session, or to a new one.
    pub(super) async fn open(
        server: ServerFile,
        choice: SessionChoice<'_>,
    ) -> anyhow::Result<Self> {
        let SessionChoice { agent, session, workspace } = choice;
        let found = match session {
            Some(id) => call(&server, &format!("/api/sessions/{id}"), None).await?,
            None => {
                check_agent(&server, agent).await?;
                let new = json!({ "agent": agent, "workspace": workspace });
                call(&server, "/api/sessions", Some(new)).await?
            }
        };
        let (id, session_agent) = (text_of(&found, "id"), text_of(&found, "agent"));
        if session_agent != agent {
            bail!(
                "session {id} talks to {session_agent}, not to {agent}: name {session_agent}, or omit --session"
            );
        }
        let seen = Seq(found["head"].as_u64().unwrap_or_default());
        let socket = connect(&server, &id, seen).await?;
        Ok(Self { server, session: id, socket, seen, attempts: 0 })
    }

    pub(super) fn address(&self) -> String {
        format!("{}/s/{}", self.server.address, self.session)
    }

    /// Sends a command about the session over the WebSocket.
    pub(super) async fn send_command(
        &mut self,
        command: &str,
        fields: Value,
    ) -> anyhow::Result<()> {
        let mut frame: HashMap<String, Value> = serde_json::from_value(fields)?;
        frame.insert("type".to_owned(), command.into());
        frame.insert("sessionId".to_owned(), self.session.as_str().into());
        let frame = serde_json::to_string(&frame)?;
        self.socket.send(Message::text(frame)).await.context("sending to the server")
    }

    /// Returns the next event of the session. Reconnects and catches up from the log if the server
    /// has closed the connection because it was slow.
    pub(super) async fn next(&mut self) -> anyhow::Result<ServerEvent> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    if let Some(event) = self.parse_event(text)? {
                        return Ok(event);
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => self.connect_again().await?,
                Some(Ok(_)) => (),
            }
        }
    }

    fn parse_event(&mut self, text: Utf8Bytes) -> anyhow::Result<Option<ServerEvent>> {
        let frame: Value = serde_json::from_str(&text).context("reading a frame of the server")?;
        if frame.get("seq").is_some() && frame.get("at").is_some() {
            let record: Record = serde_json::from_value(frame)?;
            self.attempts = 0;
            self.seen = record.seq;
            return Ok(Some(ServerEvent::Record(Box::new(record), text)));
        }
        Ok(match frame["type"].as_str() {
            Some("error") => Some(ServerEvent::Refused {
                code: text_of(&frame, "code"),
                message: text_of(&frame, "message"),
            }),
            Some("session_deleted") => bail!("the session was deleted"),
            _ => None,
        })
    }

    async fn connect_again(&mut self) -> anyhow::Result<()> {
        self.attempts += 1;
        if self.attempts > ATTEMPTS {
            bail!("the server keeps closing the connection");
        }
        let socket = connect(&self.server, &self.session, self.seen).await;
        self.socket = socket.context("the server has stopped, and the run has ended")?;
        Ok(())
    }
}

/// Returns an error if the agent cannot be used now, so that no unusable session is created.
async fn check_agent(server: &ServerFile, agent: &str) -> anyhow::Result<()> {
    let listed = call(server, "/api/agents", None).await?;
    let agents = listed["agents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = agents.iter().find(|it| it["id"] == agent);
    match found.and_then(|it| it["problem"].as_str()) {
        Some(problem) => bail!("{agent} cannot be used now: {problem}"),
        None => Ok(()),
    }
}

async fn connect(
    server: &ServerFile,
    session: &str,
    after: Seq,
) -> anyhow::Result<WebSocketStream<TcpStream>> {
    let ServerFile { address, token } = server;
    let host = address.trim_start_matches("http://");
    let asking = || format!("asking the server at {address}");
    let stream = TcpStream::connect(host).await.with_context(asking)?;
    let mut request = format!("ws://{host}/ws").into_client_request()?;
    let key = HeaderValue::from_str(&format!("Bearer {token}"))?;
    request.headers_mut().insert(AUTHORIZATION, key);
    let (mut socket, _) = client_async(request, stream).await.with_context(asking)?;
    let frame =
        json!({ "type": "subscribe", "sessionId": session, "after": after, "deltas": true });
    socket.send(Message::text(frame.to_string())).await.with_context(asking)?;
    Ok(socket)
}

/// Sends an HTTP request to the server and returns the JSON response: POST if it has a body, else
/// GET.
async fn call(server: &ServerFile, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
    let ServerFile { address, token } = server;
    let (client, url) = (tools::http_client(), format!("{address}{path}"));
    let request = match body {
        Some(body) => client.post(url).json(&body),
        None => client.get(url),
    };
    let answer = request.bearer_auth(token).send().await;
    let answer = answer.with_context(|| format!("asking the server at {address}"))?;
    let is_good = answer.status().is_success();
    let body: Value = answer.json().await.context("reading the server's answer")?;
    if body["error"]["code"] == "session_not_found" {
        bail!("there is no such session; its id follows /s/ in the address of its page");
    }
    if !is_good {
        bail!("{}", body["error"]["message"].as_str().unwrap_or("the server refused"));
    }
    Ok(body)
}

fn text_of(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}
