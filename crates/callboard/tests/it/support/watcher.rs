//! A WebSocket client for tests.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use transcript::{Record, Seq, Transcript};

use crate::support::program::{Server, TOKEN};

pub(crate) struct Watcher {
    pub(crate) socket: WebSocketStream<TcpStream>,
}

impl Watcher {
    pub(crate) async fn connect(server: &Server) -> Self {
        Self::connect_with_buffer(server, None).await
    }

    /// Connects with this receive buffer. With a small one, a slow reader is noticed soon.
    pub(crate) async fn connect_with_buffer(server: &Server, buffer: Option<u32>) -> Self {
        let address = server.base.strip_prefix("http://").unwrap();
        let request = format!("ws://{address}/ws?token={TOKEN}").into_client_request().unwrap();
        Self::open(server, request, buffer).await
    }

    /// Connects as a browser that is signed in by this cookie.
    pub(crate) async fn connect_by_cookie(
        server: &Server,
        cookie: &str,
        buffer: Option<u32>,
    ) -> Self {
        let address = server.base.strip_prefix("http://").unwrap();
        let mut request = format!("ws://{address}/ws").into_client_request().unwrap();
        request.headers_mut().insert("cookie", cookie.parse().unwrap());
        request.headers_mut().insert("origin", server.base.parse().unwrap());
        Self::open(server, request, buffer).await
    }

    async fn open(server: &Server, request: Request, buffer: Option<u32>) -> Self {
        let address = server.base.strip_prefix("http://").unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        if let Some(buffer) = buffer {
            socket.set_recv_buffer_size(buffer).unwrap();
        }
        let stream = socket.connect(address.parse().unwrap()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        Self { socket }
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    pub(crate) async fn subscribe(&mut self, session: &str, after: Seq, deltas: bool) {
        let frame = json!({
            "type": "subscribe", "sessionId": session, "after": after, "deltas": deltas,
        });
        self.send(frame).await;
    }

    /// Returns the next frame, or none if the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.next_text().await.map(|text| serde_json::from_str(&text).unwrap())
    }

    /// Returns the text of the next frame, or none if the connection has ended.
    pub(crate) async fn next_text(&mut self) -> Option<Utf8Bytes> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Some(text),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => (),
            }
        }
    }

    /// Returns the next frame of that type. Panics if the connection ends first.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await.expect("the connection should be open");
            if frame["type"] == kind {
                return frame;
            }
        }
    }
}

/// Returns the record in a frame, if it is one.
pub(crate) fn as_record(frame: &Value) -> Option<Record> {
    frame.get("seq").filter(|_| frame.get("at").is_some())?;
    Some(serde_json::from_value(frame.clone()).unwrap())
}

/// Watches a session from its beginning until `is_done` holds for its transcript.
pub(crate) async fn watch_until(
    server: &Server,
    session: &str,
    is_done: impl Fn(&Transcript) -> bool,
) -> Transcript {
    let mut watcher = Watcher::connect(server).await;
    watcher.subscribe(session, Seq(0), true).await;
    let mut transcript = Transcript::default();
    let mut caught_up = false;
    while !caught_up || !is_done(&transcript) {
        let frame = watcher.next().await.expect("the connection should be open");
        caught_up |= frame["type"] == "caught_up";
        if let Some(record) = as_record(&frame) {
            transcript.apply(&record);
        }
    }
    transcript
}

/// Returns whether nothing runs and nothing is queued.
pub(crate) fn is_quiet(transcript: &Transcript) -> bool {
    let summary = &transcript.summary;
    summary.open_run.is_none() && !summary.unanswered && summary.queued == 0
}
