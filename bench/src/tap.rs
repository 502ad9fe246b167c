//! A connection that is read raw: what comes is searched for stamps and for nothing else, so that
//! the client costs little beside the server.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Delays;
use crate::stamp::Finder;

/// Longer than any pause of a server.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Tap {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Number of bytes read, including the response's head.
    pub bytes: usize,
}

/// The received bytes, and the time of the last ones.
pub struct Seen {
    pub delays: Delays,
    pub last: Instant,
}

impl Tap {
    /// Sends a request without reading the response.
    pub async fn request(address: &str, request: &str) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(request.as_bytes()).await?;
        Ok(Self { stream, buffer: vec![0; 64 * 1024], bytes: 0 })
    }

    pub async fn get(address: &str, path: &str) -> anyhow::Result<Self> {
        Self::request(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n")).await
    }

    pub async fn post(address: &str, path: &str, body: &Value) -> anyhow::Result<Self> {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\n");
        let kind = "Content-Type: application/json";
        let length = body.len();
        Self::request(address, &format!("{head}{kind}\r\nContent-Length: {length}\r\n\r\n{body}"))
            .await
    }

    pub async fn web_socket(address: &str, path: &str) -> anyhow::Result<Self> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let mut tap = Self::request(address, &request).await?;
        tap.wait_for("\r\n\r\n").await?;
        Ok(tap)
    }

    /// A WebSocket's text frame. Clients must mask; a mask of zeros changes nothing.
    pub async fn say(&mut self, frame: &Value) -> anyhow::Result<()> {
        let text = frame.to_string();
        let length = u16::try_from(text.len())?.to_be_bytes();
        let mut bytes = vec![0x81, 0x80 | 126, length[0], length[1], 0, 0, 0, 0];
        bytes.extend_from_slice(text.as_bytes());
        Ok(self.stream.write_all(&bytes).await?)
    }

    /// Reads until these words have arrived, up to the end of their piece.
    pub async fn wait_for(&mut self, words: &str) -> anyhow::Result<()> {
        let mut read = Vec::new();
        while memchr::memmem::find(&read, words.as_bytes()).is_none() {
            read.extend_from_slice(self.read().await?);
        }
        Ok(())
    }

    /// Ages of deltas on arrival, for a number of them.
    pub async fn deltas(&mut self, n: usize) -> anyhow::Result<Delays> {
        let seen = self.deltas_up_to(n).await;
        ensure!(seen.delays.count() == n, "{} deltas instead of {n}", seen.delays.count());
        Ok(seen.delays)
    }

    /// Ages of deltas from a server that may lose some: reads until nothing more arrives.
    pub async fn deltas_up_to(&mut self, n: usize) -> Seen {
        let mut finder = Finder::default();
        let mut last = Instant::now();
        while finder.delays.count() < n {
            let Ok(piece) = self.read().await else { break };
            finder.feed(piece);
            last = Instant::now();
        }
        Seen { delays: finder.delays, last }
    }

    async fn read(&mut self) -> anyhow::Result<&[u8]> {
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut self.buffer)).await;
        let n = read.context("nothing came for a while")??;
        ensure!(n > 0, "the connection has ended");
        self.bytes += n;
        Ok(&self.buffer[..n])
    }
}
