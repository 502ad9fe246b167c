//! Cost of an idle server: its start, its memory, and idle connections,
//! beside those of other servers in the same run.

use bench::peer::{Broadcast, Broadcaster};
use bench::{Client, Server, Tap, say};

const STARTS: usize = 15;
const CONNECTIONS: usize = 10_000;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(Server::start("")?.started_in.as_secs_f64() * 1e3);
    }
    starts.sort_by(f64::total_cmp);
    say(&format!("start to ready line: median {:.1} ms of {STARTS}", starts[STARTS / 2]));

    for runtime in ["node", "bun"] {
        idle_with_peer(runtime).await?;
    }
    let server = Server::start("")?;
    let session = server.create_session("demo").await?;
    let idle = server.process.memory()?;
    say(&format!("resident memory when idle: {:.1} MB", idle as f64 / 1e6));

    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(Client::connect(&server, None).await?);
    }
    let connected = server.process.memory()?;
    let each = |bytes| kilobytes_each(idle, bytes);
    say(&format!("{CONNECTIONS} idle WebSockets: {:.1} KB each", each(connected)));

    for client in &mut clients {
        client.subscribe(&server, &session).await?;
        while client.next().await?.kind != "caught_up" {}
    }
    let subscribed = server.process.memory()?;
    say(&format!("all subscribed to one session: {:.1} KB each", each(subscribed)));
    server.send(&session, "help").await?;
    for client in &mut clients {
        while client.next().await?.kind != "run_finish" {}
    }
    say("all of them saw a whole answer");
    Ok(())
}

async fn idle_with_peer(runtime: &str) -> anyhow::Result<()> {
    let what = Broadcast { subscribers: 0, sessions: 1, per_second: 1, deltas: 0 };
    let server = Broadcaster::start(runtime, what, "")?;
    let idle = server.process.memory()?;
    let mut taps = Vec::new();
    for _ in 0..CONNECTIONS {
        taps.push(Tap::web_socket(&server.address, "/0").await?);
    }
    let each = kilobytes_each(idle, server.process.memory()?);
    say(&format!("{CONNECTIONS} idle WebSockets to {runtime}: {each:.1} KB each"));
    Ok(())
}

fn kilobytes_each(idle: u64, connected: u64) -> f64 {
    connected.saturating_sub(idle) as f64 / CONNECTIONS as f64 / 1024.0
}
