//! From a stream's bytes to the message they make: our records and reducer against the client
//! libraries that read such streams in JavaScript, in the same run, alternating.
//!
//! Theirs runs in a fresh process each time, warmed up with 1,000 events, and is timed from within;
//! ours is timed after as much of a warm-up.

use std::hint::black_box;
use std::time::Instant;

use anyhow::ensure;
use bench::log::Writer;
use bench::{median, peer, say};
use transcript::{Content, Record, Transcript};

const ROUNDS: usize = 5;
const ARGUMENT_DELTAS: usize = 20;

#[derive(Clone, Copy)]
enum Case {
    Text(usize),
    Tools(usize),
}

fn main() -> anyhow::Result<()> {
    compare(Case::Text(10_000), &["ai", "openai"], ROUNDS)?;
    compare(Case::Tools(200), &["ai"], ROUNDS)?;
    compare(Case::Tools(100), &["openai"], ROUNDS)?;
    // The other library takes so long that three repetitions must suffice.
    compare(Case::Tools(800), &["ai"], 3)?;
    without_parsing()?;
    growth()
}

fn compare(case: Case, peers: &[&str], rounds: usize) -> anyhow::Result<()> {
    let bytes = records(case);
    let (kind, n) = match case {
        Case::Text(n) => ("text", n),
        Case::Tools(n) => ("tools", n),
    };
    let mut ours = Vec::new();
    let mut theirs = vec![Vec::new(); peers.len()];
    reduce(&records(Case::Text(1000)), Case::Text(1000))?;
    for _ in 0..rounds {
        ours.push(reduce(&bytes, case)?);
        for (peer, times) in peers.iter().zip(&mut theirs) {
            times.push(peer::output("reduce.mjs", &[peer, kind, &n.to_string()])?.parse()?);
        }
    }
    say(&format!("{kind} {n}: ours {} ms", in_words(&ours)));
    for (peer, times) in peers.iter().zip(theirs) {
        let ratio = median(times.clone()) / median(ours.clone());
        say(&format!("{kind} {n}: {peer} {} ms, ratio {ratio:.0}", in_words(&times)));
    }
    Ok(())
}

fn in_words(times: &[f64]) -> String {
    let (low, high) = times.iter().fold((f64::MAX, 0_f64), |it, t| (it.0.min(*t), it.1.max(*t)));
    format!("{:.2} [{low:.2}-{high:.2}]", median(times.to_vec()))
}

/// A session's records as sent, one per line.
fn records(case: Case) -> Vec<u8> {
    let mut log = Writer::new("s");
    let mut records = log.opening().to_vec();
    match case {
        Case::Text(n) => {
            records.extend_from_slice(&log.deltas(n));
            records.extend_from_slice(&log.closing(n));
        }
        Case::Tools(n) => {
            let mut pieces = vec!["a word "; ARGUMENT_DELTAS];
            (pieces[0], pieces[ARGUMENT_DELTAS - 1]) = ("{\"text\":\"", "\"}");
            for call in 0..n {
                records.extend_from_slice(&log.call(call as u32, &pieces));
            }
            records.extend_from_slice(&log.closing(0));
        }
    }
    records.iter().flat_map(|it| (it.to_json() + "\n").into_bytes()).collect()
}

/// Time in milliseconds, from bytes to state.
fn reduce(bytes: &[u8], case: Case) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut transcript = Transcript::whole();
    for line in bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
        transcript.apply(&Record::from_json(std::str::from_utf8(line)?)?);
    }
    let took = began.elapsed().as_secs_f64() * 1e3;
    let parts = match &black_box(&transcript).messages[0].content {
        Content::Run(answer) => answer.parts.len(),
        Content::User(_) | Content::Aside(_) => 0,
    };
    let expected = if let Case::Tools(n) = case { n + 1 } else { 1 };
    ensure!(parts == expected, "{parts} parts instead of {expected}");
    Ok(took)
}

/// The reducer's share of our time.
fn without_parsing() -> anyhow::Result<()> {
    for (name, case) in [("text 10000", Case::Text(10_000)), ("tools 200", Case::Tools(200))] {
        let bytes = records(case);
        let lines = bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty());
        let records = lines.map(serde_json::from_slice).collect::<Result<Vec<Record>, _>>()?;
        let times = (0..ROUNDS).map(|_| {
            let began = Instant::now();
            let mut transcript = Transcript::whole();
            transcript.extend(black_box(&records));
            black_box(&transcript);
            began.elapsed().as_secs_f64() * 1e3
        });
        say(&format!("{name}: the reducer alone {} ms", in_words(&times.collect::<Vec<_>>())));
    }
    Ok(())
}

/// Ten times as many deltas should take ten times as long.
fn growth() -> anyhow::Result<()> {
    let (short, long) = (records(Case::Text(10_000)), records(Case::Text(100_000)));
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let long = reduce(&long, Case::Text(100_000))?;
        ratios.push(long / reduce(&short, Case::Text(10_000))?);
    }
    say(&format!("time of 100k deltas / of 10k: {}", in_words(&ratios)));
    Ok(())
}
