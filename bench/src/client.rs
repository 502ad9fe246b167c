//! A WebSocket client that measures how old each record is when it arrives.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use transcript::Millis;

use crate::server::{Server, TOKEN};

pub struct Client {
    socket: WebSocketStream<TcpStream>,
}

/// The fields of a frame that the benchmarks use.
#[derive(Debug, Deserialize)]
pub struct Frame {
    #[serde(rename = "type")]
    pub kind: String,
    pub at: Option<Millis>,
}

impl Client {
    pub async fn connect(server: &Server, receive_buffer: Option<u32>) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream = socket.connect(server.address().parse()?).await?;
        stream.set_nodelay(true)?;
        let url = format!("ws://{}/ws?token={TOKEN}", server.address());
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await?;
        Ok(Self { socket })
    }

    pub async fn say(&mut self, frame: &Value) -> anyhow::Result<()> {
        Ok(self.socket.send(Message::text(frame.to_string())).await?)
    }

    /// Subscribes to new records.
    pub async fn subscribe(&mut self, server: &Server, session: &str) -> anyhow::Result<()> {
        let after = server.head(session).await?;
        let frame =
            json!({ "type": "subscribe", "sessionId": session, "after": after, "deltas": true });
        self.say(&frame).await
    }

    pub async fn next(&mut self) -> anyhow::Result<Frame> {
        loop {
            match self.socket.next().await.context("the connection has ended")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Close(_) => anyhow::bail!("the connection was closed"),
                _ => (),
            }
        }
    }
}

impl Frame {
    /// Age of the record. Its time has a resolution of a millisecond.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    pub fn age(&self) -> Option<Duration> {
        let made = Duration::from_millis(u64::try_from(self.at?.0).ok()?);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        now.checked_sub(made)
    }
}
