//! From a model's delta to the client that watches, with the log on, against a client of the model
//! itself (the floor) and against opencode, in the same run, alternating.
//!
//! One chat at 200 deltas a second; one flat out; 50 at 200. A delta's delay is from the model's
//! send to the client's read.

use std::time::{Duration, Instant};

use anyhow::ensure;
use bench::model::{Model, SCRIPTED, Script, Stamp};
use bench::opencode::Opencode;
use bench::stamp::Finder;
use bench::{Delays, Server, Tap, View, say};
use futures_util::future::try_join_all;
use serde_json::json;

const ROUNDS: usize = 5;

struct Case {
    name: &'static str,
    chats: usize,
    script: Script,
}

const CASES: [Case; 4] = [
    case("one chat at 200/s", 1, 2_000, Some(200)),
    case("one chat flat out", 1, 2_000, None),
    case("one long chat flat out", 1, 20_000, None),
    case("50 chats at 200/s", 50, 400, Some(200)),
];

const fn case(name: &'static str, chats: usize, deltas: usize, per_second: Option<u32>) -> Case {
    Case { name, chats, script: Script { deltas, per_second, stamp: Stamp::Sent } }
}

struct Outcome {
    delays: Delays,
    wall: Duration,
    /// CPU time of the server.
    cpu: Duration,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let model = Model::start().await?;
    let server = Server::start(&model.agent())?;
    let opencode = Opencode::start(&model)?;
    for case in CASES {
        for round in 1..=ROUNDS {
            model.follow(case.script);
            let Case { name, chats, script } = &case;
            report(&format!("{name}, {round}, direct"), direct(&model, *chats, *script).await?);
            report(&format!("{name}, {round}, ours"), ours(&server, *chats, *script).await?);
            let theirs = theirs(&opencode, *chats, *script).await?;
            report(&format!("{name}, {round}, opencode"), theirs);
        }
    }
    let [ours, theirs] = [server.process.memory()?, opencode.process.memory()?];
    say(&format!(
        "memory at the end: ours {} MB, opencode {} MB",
        ours / 1_000_000,
        theirs / 1_000_000
    ));
    Ok(())
}

async fn direct(model: &Model, chats: usize, script: Script) -> anyhow::Result<Outcome> {
    let address = model.base_url.trim_start_matches("http://").trim_end_matches("/v1");
    let began = Instant::now();
    let body = json!({ "model": SCRIPTED, "stream": true });
    let taps = (0..chats).map(|_| async {
        let mut tap = Tap::post(address, "/v1/chat/completions", &body).await?;
        tap.deltas(script.deltas).await
    });
    let mut delays = Delays::default();
    for seen in try_join_all(taps).await? {
        delays.extend(seen);
    }
    Ok(Outcome { delays, wall: began.elapsed(), cpu: Duration::ZERO })
}

async fn ours(server: &Server, chats: usize, script: Script) -> anyhow::Result<Outcome> {
    let mut sessions = Vec::new();
    for _ in 0..chats {
        sessions.push(server.create_session("model").await?);
    }
    let mut tap = server.tap(&sessions, View::Records).await?;
    let (began, before) = (Instant::now(), server.process.cpu()?);
    let send = try_join_all(sessions.iter().map(|session| server.send(session, "go")));
    let seen = async { Ok(tap.deltas_up_to(chats * script.deltas).await) };
    let (seen, _) = tokio::try_join!(seen, send)?;
    let (wall, cpu) = (began.elapsed(), server.process.cpu()? - before);
    // The end of an answer may still be on its way into the log; its deltas are there.
    for session in &sessions {
        let mut stored = Finder::default();
        stored.feed(&server.get(&format!("/api/sessions/{session}/messages")).await?);
        let stored = stored.delays.count();
        ensure!(stored == script.deltas, "{stored} of {} deltas are stored", script.deltas);
    }
    let (shown, all) = (seen.delays.count(), chats * script.deltas);
    ensure!(shown == all, "{shown} of {all} deltas were shown, though all are stored");
    Ok(Outcome { delays: seen.delays, wall, cpu })
}

async fn theirs(server: &Opencode, chats: usize, script: Script) -> anyhow::Result<Outcome> {
    let mut sessions = Vec::new();
    for _ in 0..chats {
        sessions.push(server.create_session().await?);
    }
    let mut tap = server.tap().await?;
    let (began, before) = (Instant::now(), server.process.cpu()?);
    let send = try_join_all(sessions.iter().map(|session| server.send(session, "go")));
    let (delays, _) = tokio::try_join!(tap.deltas(chats * script.deltas), send)?;
    Ok(Outcome { delays, wall: began.elapsed(), cpu: server.process.cpu()? - before })
}

fn report(what: &str, mut outcome: Outcome) {
    let [p50, p99] = [0.5, 0.99].map(|it| outcome.delays.percentile(it));
    let deltas = outcome.delays.count() as f64;
    let (wall, cpu) = (outcome.wall.as_secs_f64(), outcome.cpu.as_secs_f64());
    let each = cpu * 1e6 / deltas;
    say(&format!(
        "{what}: p50 {p50:.2} ms, p99 {p99:.2} ms, {wall:.2} s, {:.0} deltas/s, \
         CPU {cpu:.2} s, {each:.0} us a delta",
        deltas / wall
    ));
}
