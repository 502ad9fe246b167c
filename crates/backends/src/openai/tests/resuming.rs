//! A run that a new value takes up goes on as if nothing had happened, its limits included.

use super::*;

impl Stage {
    /// A new value in a new process, with what the log says of this one.
    fn resumed(self) -> Self {
        let run = ResponseId::new("r");
        let start = json!({ "type": "run_start", "agent": "m", "trigger": "user" });
        let start = (Millis(1_000_000), serde_json::from_value(start).unwrap());
        let records: Vec<Record> = (1..)
            .zip([start].into_iter().chain(self.log.clone()))
            .map(|(seq, (at, event))| {
                Record::new(Seq(seq), at, SessionId::new("s"), Some(run.clone()), event)
            })
            .collect();
        let answer = Box::new(RunMessage::replay(&run, &records));
        let mut stage = Self::new(Arc::clone(&self.settings));
        (stage.now, stage.log, stage.events) = (self.now, self.log, self.events);
        stage.give(ModelInput::Resume { answer, history: Vec::new() });
        stage
    }

    /// Feeds results to up to that many running calls.
    fn results(&mut self, n_results: usize) {
        for _ in 0..n_results {
            let Some(call) = self.open.front().cloned() else { return };
            self.result(call.as_str());
        }
    }
}

/// Outcome of a run of several steps with several calls each, with or without a restart after some results of
/// its last step of calls.
#[derive(Debug)]
struct Script {
    limits: Limits,
    steps: usize,
    calls: u32,
    results: usize,
}

impl Script {
    fn play(&self, is_taken_up: bool) -> Stage {
        let mut stage = Stage::start(Settings { limits: self.limits, ..settings() });
        for step in 0..self.steps {
            stage.step_with_calls(self.calls);
            stage.now = stage.now.plus(2000);
            if step + 1 == self.steps && stage.ending.is_none() {
                stage.results(self.results);
                if is_taken_up && !stage.open.is_empty() {
                    stage = stage.resumed();
                }
            }
            stage.results(usize::MAX);
            if stage.ending.is_some() {
                return stage;
            }
            stage.history();
        }
        stage.head(200, &[]);
        stage.say(json!({ "content": "Done." }));
        stage.finish("stop");
        stage
    }
}

#[test]
fn a_run_that_is_taken_up_goes_on_as_it_would_have() {
    let none = Limits::default();
    let mut limits = vec![none];
    for n in 0..8 {
        let number = u32::try_from(n).unwrap();
        limits.extend([
            Limits { steps: Some(number + 1), ..none },
            Limits { tokens: Some(n * 15), ..none },
            Limits { seconds: Some(n + 1), ..none },
            Limits { tool_calls: Some(number), ..none },
        ]);
    }
    let mut n_stopped = 0;
    for limits in limits {
        for (steps, calls) in [(1, 1), (1, 3), (2, 2), (3, 3)] {
            for results in 0..calls as usize {
                let script = Script { limits, steps, calls, results };
                let (whole, taken_up) = (script.play(false), script.play(true));
                let context = format!("{limits:?}, step {steps}, {results} of {calls} results");
                assert_eq!(taken_up.events, whole.events, "{context}");
                assert_eq!(taken_up.ending, whole.ending, "{context}");
                n_stopped += usize::from(whole.decisions().last().unwrap().contains("_limit"));
            }
        }
    }
    assert!(n_stopped > 50, "limits that were reached are among them: {n_stopped}");
}

#[test]
fn open_calls_are_handed_over_again_and_a_few_at_a_time() {
    let mut stage = Stage::start(settings());
    stage.step_with_calls(4);
    stage.result("r.1");
    let mut stage = stage.resumed();
    assert_eq!(stage.asked, ["run r.2 time {}", "run r.3 time {}"]);
    stage.result("r.2");
    assert_eq!(stage.asked[2..], ["run r.4 time {}"]);
    stage.results(2);
    assert_eq!(stage.asked[3..], ["read"], "the conversation is read anew");
}

#[test]
fn a_time_limit_counts_on_while_nobody_is_there() {
    let limits = Limits { seconds: Some(60), ..Limits::default() };
    let mut stage = Stage::start(Settings { limits, ..settings() });
    stage.step_with_calls(1);
    let mut stage = stage.resumed();
    stage.now = stage.now.plus(59_999);
    stage.result("r.1");
    assert_eq!(stage.decisions(), ["true tool_calls ToolCalls"]);
    let mut late = Stage::start(Settings { limits, ..settings() });
    late.step_with_calls(1);
    let mut late = late.resumed();
    late.now = late.now.plus(60_000);
    late.result("r.1");
    assert_eq!(late.decisions(), ["false time_limit TimeLimit"]);
}

#[test]
fn an_answer_that_was_cut_off_still_ends_after_its_calls() {
    let mut stage = Stage::start(settings());
    stage.head(200, &[]);
    stage.call(0);
    stage.finish("length");
    let mut stage = stage.resumed();
    stage.result("r.1");
    assert_eq!(stage.decisions(), ["false token_limit OutputLimit"]);
}
