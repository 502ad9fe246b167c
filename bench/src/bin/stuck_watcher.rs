//! A hundred sessions stream to two hundred watchers. Does one that never reads slow the others?
//!
//! Both halves in one run, alternating, so that a noisy machine hits both alike.

use bench::{Client, Delays, Server};
use futures_util::future::try_join_all;

const SESSIONS: usize = 100;
/// A p99 of few rounds depends more on the machine than on the server.
const ROUNDS: usize = 8;
const TEXT: &str = "write a report about tides";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start("")?;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(server.create_session("demo").await?);
    }
    let at_start = server.process.memory()?;
    let (mut without, mut with) = (Delays::default(), Delays::default());
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let mut all_reading = round(&server, &sessions, 2 * SESSIONS).await?;
        let mut stuck = Client::connect(&server, Some(2048)).await?;
        for session in &sessions {
            stuck.subscribe(&server, session).await?;
        }
        let mut one_stuck = round(&server, &sessions, 2 * SESSIONS - 1).await?;
        ratios.push(one_stuck.percentile(0.99) / all_reading.percentile(0.99));
        without.extend(all_reading);
        with.extend(one_stuck);
    }
    let grown = server.process.memory()?.saturating_sub(at_start);
    report("200 watchers, all reading", &mut without);
    report("199 reading, 1 stuck on all sessions", &mut with);
    #[expect(clippy::print_stdout, reason = "the figures")]
    {
        let ratio = with.percentile(0.99) / without.percentile(0.99);
        println!("p99 with / without: {ratio:.2}; by round: {ratios:.2?}");
        println!("memory grew by {:.1} MB", grown as f64 / 1e6);
    }
    Ok(())
}

/// Delays of the subscribers while every session answers once.
async fn round(server: &Server, sessions: &[String], n: usize) -> anyhow::Result<Delays> {
    let mut clients = Vec::new();
    for session in sessions.iter().cycle().take(n) {
        let mut client = Client::connect(server, None).await?;
        client.subscribe(server, session).await?;
        while client.next().await?.kind != "caught_up" {}
        clients.push(client);
    }
    let watch = clients.into_iter().map(|client| tokio::spawn(watch(client)));
    let watch: Vec<_> = watch.collect();
    try_join_all(sessions.iter().map(|session| server.send(session, TEXT))).await?;
    let mut delays = Delays::default();
    for seen in watch {
        delays.extend(seen.await??);
    }
    Ok(delays)
}

async fn watch(mut client: Client) -> anyhow::Result<Delays> {
    let mut delays = Delays::default();
    loop {
        let frame = client.next().await?;
        if let Some(age) = frame.age() {
            delays.add(age);
        }
        if frame.kind == "run_finish" {
            return Ok(delays);
        }
    }
}

#[expect(clippy::print_stdout, reason = "the figures")]
fn report(what: &str, delays: &mut Delays) {
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| delays.percentile(share));
    let n = delays.count();
    println!("{what}: p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms, {n} records");
}
