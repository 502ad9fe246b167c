//! A scripted model behind an OpenAI-compatible API, whose deltas carry stamps.
//!
//! Runs within the benchmark. Each request gets the answer that the script says at that moment.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::stamp;

/// Name of the model that follows the script; every other one answers with one word.
pub const SCRIPTED: &str = "scripted";

/// The form of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    pub deltas: usize,
    /// Deltas per second; `None` for as fast as they are read.
    pub per_second: Option<u32>,
    pub stamp: Stamp,
}

/// The time that a delta contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// The due time, so that a stall shows in all deltas that it delayed.
    Due,
    /// The time of sending, without the runtime's timer, which has a resolution of a millisecond.
    Sent,
}

#[derive(Clone)]
pub struct Model {
    pub base_url: String,
    script: Arc<Mutex<Script>>,
    streams: Arc<AtomicU16>,
}

impl Model {
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let script = Script { deltas: 1, per_second: None, stamp: Stamp::Sent };
        let (script, streams) = (Arc::new(Mutex::new(script)), Arc::default());
        let model = Self { base_url, script, streams };
        let serving = model.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let model = serving.clone();
                // A client may disconnect early.
                tokio::spawn(async move { model.serve(connection).await.is_ok() });
            }
        });
        Ok(model)
    }

    pub fn follow(&self, script: Script) {
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = script;
    }

    /// The configuration of the agent that uses it.
    pub fn agent(&self) -> String {
        let Self { base_url, .. } = self;
        format!(
            "[[agents]]\nid = \"model\"\nkind = \"openai\"\nbase_url = \"{base_url}\"\n\
             model = \"{SCRIPTED}\"\ntools = []\n"
        )
    }

    async fn serve(&self, connection: TcpStream) -> anyhow::Result<()> {
        connection.set_nodelay(true)?;
        let mut connection = BufReader::new(connection);
        loop {
            let body = read_request(&mut connection).await?;
            let to = connection.get_mut();
            to.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                  transfer-encoding: chunked\r\n\r\n",
            )
            .await?;
            if body.contains(&format!("\"model\":\"{SCRIPTED}\"")) {
                self.answer(to).await?;
            } else {
                say(to, &delta("word", None)).await?;
            }
            say(to, &delta("", Some("stop"))).await?;
            say(to, "[DONE]").await?;
            to.write_all(b"0\r\n\r\n").await?;
        }
    }

    async fn answer(&self, to: &mut TcpStream) -> anyhow::Result<()> {
        let script = *self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        let pause = script.per_second.map(|rate| Duration::from_secs(1) / rate);
        let (began, clock) = (tokio::time::Instant::now(), stamp::now());
        let mut last = Duration::ZERO;
        for n in 0..script.deltas {
            let mut at = stamp::now();
            if let Some(pause) = pause {
                let due = pause * n as u32;
                tokio::time::sleep_until(began + due).await;
                at = if script.stamp == Stamp::Due { clock + due } else { stamp::now() };
            }
            // The clock may be set back, but stamps only grow.
            at = at.max(last + Duration::from_nanos(1));
            last = at;
            say(to, &delta(&format!("{} ", stamp::write(stream, at)), None)).await?;
        }
        Ok(())
    }
}

async fn read_request(from: &mut BufReader<TcpStream>) -> anyhow::Result<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        anyhow::ensure!(from.read_line(&mut line).await? > 0, "hung up");
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).await?;
    String::from_utf8(body).context("a request that is no text")
}

async fn say(to: &mut TcpStream, data: &str) -> std::io::Result<()> {
    let event = format!("data: {data}\n\n");
    to.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await
}

fn delta(text: &str, finish_reason: Option<&str>) -> String {
    let choice =
        json!({ "index": 0, "delta": { "content": text }, "finish_reason": finish_reason });
    json!({
        "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", "object": "chat.completion.chunk",
        "created": 1_741_570_283, "model": SCRIPTED, "choices": [choice],
    })
    .to_string()
}
