//! Cost of drawing a record of a call, by the number of calls that its answer has already: it must be
//! the same for the first and for the last.

use std::time::Instant;

use bench::log::Writer;
use bench::{median, say};
use render::{Bodies, Live, View};
use transcript::{Record, Transcript};

const ROUNDS: usize = 5;
/// Number of timed calls, after the existing ones.
const TIMED: u32 = 50;

fn main() {
    let few = cost(100);
    for calls in [100, 1000, 4000] {
        let cost = if calls == 100 { few } else { cost(calls) };
        say(&format!("{calls} calls: {cost:.1} us a record, {:.2} of the first", cost / few));
    }
}

/// Times in microseconds, one record at a time.
fn cost(calls: u32) -> f64 {
    let mut log = Writer::new("s");
    let mut records = log.opening().to_vec();
    for call in 0..calls {
        records.extend_from_slice(&log.call(call, &["{}"]));
    }
    let timed: Vec<Record> =
        (calls..calls + TIMED).flat_map(|it| log.call(it, &["{}"]).to_vec()).collect();
    let transcript = Transcript::replay(&records);
    let rounds = (0..ROUNDS).map(|_| {
        let view = View::new(log.session().clone(), Bodies::Cut);
        let mut live = Live::new(view, transcript.clone());
        let began = Instant::now();
        for record in &timed {
            live.apply([record]);
        }
        began.elapsed().as_secs_f64() * 1e6 / timed.len() as f64
    });
    median(rounds.collect())
}
