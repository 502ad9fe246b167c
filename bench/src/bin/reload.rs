//! Opening a session whose one answer came in 10,000 deltas.

use std::time::Instant;

use bench::log::Writer;
use bench::{Delays, Server, say};
use store::{Options, Store};

const DELTAS: usize = 10_000;
const TIMES: usize = 200;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("data"), Options::default())?;
    let mut log = Writer::new("long");
    let session = log.session().clone();
    store.append(&session, log.head(), log.opening()).await?;
    for _ in 0..DELTAS / 500 {
        let head = log.head();
        store.append(&session, head, log.deltas(500)).await?;
    }
    let head = log.head();
    store.append(&session, head, log.closing(DELTAS)).await?;
    store.close().await;

    let server = Server::start_in(folder, "")?;
    for path in ["/api/sessions/long/messages", "/api/sessions/long/events", "/s/long"] {
        let mut delays = Delays::default();
        let mut bytes = 0;
        for _ in 0..TIMES {
            let began = Instant::now();
            bytes = server.get(path).await?.len();
            delays.add(began.elapsed());
        }
        let [p50, p99] = [0.5, 0.99].map(|share| delays.percentile(share));
        say(&format!("{path}: p50 {p50:.2} ms, p99 {p99:.2} ms, {} KB", bytes / 1024));
    }
    Ok(())
}
