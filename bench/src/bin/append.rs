//! From a record to its commit: against a plain file that is synced as often, in the same run.
//!
//! 50 sessions at 100 records a second each, one record an append, each waiting for its commit.
//! Delays count from the moment a record was due, so that a stall shows in all that it held up.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bench::log::Writer;
use bench::{Delays, say};
use store::{Options, Store};
use tokio::sync::oneshot;

const SESSIONS: usize = 50;
const PER_SECOND: u64 = 100;
const SECONDS: u64 = 5;
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let store = Store::open(&folder.path().join("data"), Options::default())?;
    let file = synced_file(File::create(folder.path().join("log.jsonl"))?);
    let (mut ours, mut plain) = (Delays::default(), Delays::default());
    for round in 0..ROUNDS {
        ours.extend(append_to_store(&store, round).await?);
        plain.extend(append_to_file(&file, round).await?);
    }
    report("store, sync full", &mut ours);
    report("JSON lines + fdatasync", &mut plain);
    let [p50, p99] = [0.5, 0.99].map(|it| ours.percentile(it) / plain.percentile(it));
    say(&format!("store / file: p50 {p50:.2}, p99 {p99:.2}"));
    flat_out(&store).await?;
    pages_per_delta(&store).await
}

async fn append_to_store(store: &Store, round: usize) -> anyhow::Result<Delays> {
    let mut tasks = Vec::new();
    for n in 0..SESSIONS {
        let store = store.clone();
        let mut log = Writer::new(&format!("r{round}s{n}"));
        store.append(&log.session().clone(), log.head(), log.opening()).await?;
        tasks.push(tokio::spawn(async move {
            let mut delays = Delays::default();
            let mut due = Due::new();
            for _ in 0..PER_SECOND * SECONDS {
                let since = due.next().await;
                let (session, head) = (log.session().clone(), log.head());
                store.append(&session, head, log.delta()).await?;
                delays.add(since.elapsed());
            }
            anyhow::Ok(delays)
        }));
    }
    gather(tasks).await
}

type Line = (String, oneshot::Sender<()>);

/// A thread that writes all pending records and syncs once.
fn synced_file(mut file: File) -> mpsc::Sender<Line> {
    let (send, lines) = mpsc::channel::<Line>();
    std::thread::spawn(move || {
        while let Ok(first) = lines.recv() {
            let batch: Vec<Line> = std::iter::once(first).chain(lines.try_iter()).collect();
            let text: String = batch.iter().map(|(line, _)| line.as_str()).collect();
            if file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).is_err() {
                return;
            }
            for (_, done) in batch {
                let _ = done.send(());
            }
        }
    });
    send
}

async fn append_to_file(file: &mpsc::Sender<Line>, round: usize) -> anyhow::Result<Delays> {
    let mut tasks = Vec::new();
    for n in 0..SESSIONS {
        let file = file.clone();
        let mut log = Writer::new(&format!("r{round}s{n}"));
        tasks.push(tokio::spawn(async move {
            let mut delays = Delays::default();
            let mut due = Due::new();
            for _ in 0..PER_SECOND * SECONDS {
                let since = due.next().await;
                let line = log.delta()[0].to_json() + "\n";
                let (done, written) = oneshot::channel();
                file.send((line, done))?;
                written.await?;
                delays.add(since.elapsed());
            }
            anyhow::Ok(delays)
        }));
    }
    gather(tasks).await
}

async fn gather(
    tasks: Vec<tokio::task::JoinHandle<anyhow::Result<Delays>>>,
) -> anyhow::Result<Delays> {
    let mut all = Delays::default();
    for task in tasks {
        all.extend(task.await??);
    }
    Ok(all)
}

/// Due times at a steady rate, independent of delays.
struct Due {
    next: Instant,
}

impl Due {
    fn new() -> Self {
        Self { next: Instant::now() }
    }

    async fn next(&mut self) -> Instant {
        self.next += Duration::from_micros(1_000_000 / PER_SECOND);
        tokio::time::sleep_until(self.next.into()).await;
        self.next
    }
}

/// Records a second when every writer writes again after each commit.
async fn flat_out(store: &Store) -> anyhow::Result<()> {
    const BATCHES: usize = 100;
    const BATCH: usize = 20;
    let began = Instant::now();
    let mut tasks = Vec::new();
    for n in 0..SESSIONS {
        let store = store.clone();
        let mut log = Writer::new(&format!("flat{n}"));
        tasks.push(tokio::spawn(async move {
            store.append(&log.session().clone(), log.head(), log.opening()).await?;
            for _ in 0..BATCHES {
                let (session, head) = (log.session().clone(), log.head());
                store.append(&session, head, log.deltas(BATCH)).await?;
            }
            anyhow::Ok(Delays::default())
        }));
    }
    gather(tasks).await?;
    let rate = (SESSIONS * BATCHES * BATCH) as f64 / began.elapsed().as_secs_f64();
    say(&format!("flat out, 50 sessions, 20 records an append: {rate:.0} records/s"));
    Ok(())
}

/// Pages of 4096 bytes written to the WAL by 1000 lone deltas, in a session of growing length.
async fn pages_per_delta(store: &Store) -> anyhow::Result<()> {
    let mut log = Writer::new("pages");
    store.append(&log.session().clone(), log.head(), log.opening()).await?;
    let mut written = 0;
    for length in [1_000, 10_000, 100_000] {
        while written < length - 1000 {
            let (session, head) = (log.session().clone(), log.head());
            store.append(&session, head, log.deltas(500)).await?;
            written += 500;
        }
        let before = store.pages_written();
        for _ in 0..1000 {
            let (session, head) = (log.session().clone(), log.head());
            store.append(&session, head, log.delta()).await?;
        }
        written += 1000;
        let bytes = (store.pages_written() - before) as f64 * 4096.0 / 1000.0;
        say(&format!("bytes written per lone delta at {length} deltas: {bytes:.0}"));
    }
    Ok(())
}

fn report(what: &str, delays: &mut Delays) {
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| delays.percentile(share));
    let n = delays.count();
    say(&format!("{what}: p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms, {n} records"));
}
