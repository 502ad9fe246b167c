//! What a server costs before anybody talks to it: its start, its memory, and idle connections.

use bench::{Client, Server};

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

    let server = Server::start("")?;
    let session = server.create_session().await?;
    let idle = server.memory()?;
    say(&format!("resident memory when idle: {:.1} MB", idle as f64 / 1e6));

    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(Client::connect(&server, None).await?);
    }
    let connected = server.memory()?;
    let each = |bytes: u64| (bytes.saturating_sub(idle)) as f64 / CONNECTIONS as f64 / 1024.0;
    say(&format!("{CONNECTIONS} idle WebSockets: {:.1} KB each", each(connected)));

    for client in &mut clients {
        client.subscribe(&server, &session).await?;
        while client.next().await?.kind != "caught_up" {}
    }
    let subscribed = server.memory()?;
    say(&format!("all subscribed to one session: {:.1} KB each", each(subscribed)));
    server.send(&session, "help").await?;
    for client in &mut clients {
        while client.next().await?.kind != "run_finish" {}
    }
    say("all of them saw a whole answer");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the figures")]
fn say(line: &str) {
    println!("{line}");
}
