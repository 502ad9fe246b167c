//! 50 sessions to 1,000 subscribers, 20 each: ours with everything that comes before the fan-out (a
//! model's stream is read, its deltas are in the log), against servers that only fan out.
//!
//! Every server has core 0 to itself; run this program on core 1. Delays count from the moment a
//! delta was due to the subscriber's read. What goes to the subscribers is as long in all.

use std::time::Instant;

use bench::model::{Model, Script, Stamp};
use bench::peer::{Broadcast, Broadcaster};
use bench::{Delays, Process, Server, Tap, View, say};
use futures_util::future::try_join_all;
use transcript::{Event, Millis, PartId, Record, ResponseId, Seq, SessionId};

const SESSIONS: usize = 50;
const EACH: usize = 20;
const SECONDS: usize = 5;
const ROUNDS: usize = 3;

#[derive(Clone, Copy)]
enum Side {
    Ours { each: usize, view: View },
    Peer(&'static str),
}

const SIDES: [(&str, Side); 5] = [
    ("ours", Side::Ours { each: EACH, view: View::Records }),
    ("node ws", Side::Peer("node")),
    ("bun", Side::Peer("bun")),
    ("ours, one subscriber a session", Side::Ours { each: 1, view: View::Records }),
    ("ours, pages", Side::Ours { each: EACH, view: View::Html }),
];

/// Figures of one run.
struct Outcome {
    delays: Delays,
    seconds: f64,
    cpu: f64,
    bytes: usize,
    lost: usize,
}

/// The client runs on one core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let rates = std::env::args().skip(1).map(|it| it.parse()).collect::<Result<Vec<u32>, _>>()?;
    let rates = if rates.is_empty() { vec![100, 400] } else { rates };
    let model = Model::start().await?;
    for per_second in rates {
        for round in 1..=ROUNDS {
            for (name, side) in SIDES {
                let outcome = run(&model, side, per_second).await?;
                report(&format!("{per_second}/s a session, round {round}, {name}"), outcome);
            }
        }
    }
    Ok(())
}

async fn run(model: &Model, side: Side, per_second: u32) -> anyhow::Result<Outcome> {
    match side {
        Side::Ours { each, view } => run_ours(model, each, view, per_second).await,
        Side::Peer(runtime) => run_peer(runtime, per_second).await,
    }
}

async fn run_ours(
    model: &Model,
    each: usize,
    view: View,
    per_second: u32,
) -> anyhow::Result<Outcome> {
    let deltas = per_second as usize * SECONDS;
    model.follow(Script { deltas, per_second: Some(per_second), stamp: Stamp::Due });
    let server = Server::start_pinned(&model.agent())?;
    let (mut sessions, mut taps) = (Vec::new(), Vec::new());
    for _ in 0..SESSIONS {
        let session = server.create_session("model").await?;
        for _ in 0..each {
            taps.push(server.tap(std::slice::from_ref(&session), view).await?);
        }
        sessions.push(session);
    }
    let before = server.process.cpu()?;
    let send = try_join_all(sessions.iter().map(|session| server.send(session, "go")));
    let (outcome, _) = tokio::try_join!(watch(taps, deltas, &server.process), send)?;
    Ok(Outcome { cpu: outcome.cpu - before.as_secs_f64(), ..outcome })
}

async fn run_peer(runtime: &str, per_second: u32) -> anyhow::Result<Outcome> {
    let deltas = per_second as usize * SECONDS;
    let subscribers = SESSIONS * EACH;
    let what = Broadcast { subscribers, sessions: SESSIONS, per_second, deltas };
    let server = Broadcaster::start(runtime, what, &frame())?;
    let mut taps = Vec::new();
    let mut before = server.process.cpu()?;
    for n in 0..subscribers {
        // The server begins when the last subscriber is connected.
        before = server.process.cpu()?;
        taps.push(Tap::web_socket(&server.address, &format!("/{}", n % SESSIONS)).await?);
    }
    let outcome = watch(taps, deltas, &server.process).await?;
    Ok(Outcome { cpu: outcome.cpu - before.as_secs_f64(), ..outcome })
}

/// A record of the same length as ours, with the place of the stamp.
fn frame() -> String {
    let run = ResponseId::new("0199f3a2-7c5e-7d10-8a44-0123456789ab");
    let session = SessionId::new("0199f3a2-7c5e-7d10-8a44-ba9876543210");
    let (part_id, delta) = (PartId::numbered(&run, 1), "@STAMP ".to_owned());
    let event = Event::TextDelta { part_id, parent_call_id: None, delta };
    Record::new(Seq(1234), Millis(1_763_232_268_000), session, Some(run), event).to_json()
}

/// Reads from all subscribers until each has everything, or nothing more arrives.
async fn watch(taps: Vec<Tap>, deltas: usize, server: &Process) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let mut last = began;
    let due = taps.len() * deltas;
    let watch = taps.into_iter().map(|mut tap| {
        tokio::spawn(async move {
            let before = tap.bytes;
            let seen = tap.deltas_up_to(deltas).await;
            (seen, tap.bytes - before)
        })
    });
    let watch: Vec<_> = watch.collect();
    let (mut delays, mut bytes) = (Delays::default(), 0);
    for seen in watch {
        let (seen, more) = seen.await?;
        delays.extend(seen.delays);
        last = last.max(seen.last);
        bytes += more;
    }
    let (seconds, cpu) = ((last - began).as_secs_f64(), server.cpu()?.as_secs_f64());
    let lost = due - delays.count();
    Ok(Outcome { delays, seconds, cpu, bytes, lost })
}

fn report(what: &str, mut outcome: Outcome) {
    let [p50, p99] = [0.5, 0.99].map(|it| outcome.delays.percentile(it));
    let messages = outcome.delays.count() as f64;
    let rate = messages / outcome.seconds / 1e3;
    let each = outcome.cpu * 1e6 / messages;
    let bytes = outcome.bytes as f64 / messages;
    say(&format!(
        "{what}: {rate:.0}k messages/s, p50 {p50:.1} ms, p99 {p99:.1} ms, CPU {:.2} s, \
         {each:.2} us and {bytes:.0} bytes a message, {} lost",
        outcome.cpu, outcome.lost
    ));
}
