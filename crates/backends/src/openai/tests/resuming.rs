//! A run that a new backend resumes continues as if it had not been interrupted, its limits included.

use super::*;

impl Stage {
    /// Returns a stage with a new backend, which resumes this run from its log.
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

    /// Feeds results of up to that many running calls.
    fn results(&mut self, n_results: usize) {
        for _ in 0..n_results {
            let Some(call) = self.open.front().cloned() else { return };
            self.result(call.as_str());
        }
    }
}

/// A run of several steps with several calls each, with or without a restart after some results of its last
/// step of calls.
#[derive(Debug)]
struct Script {
    limits: Limits,
    steps: usize,
    calls: u32,
    results: usize,
}

impl Script {
    fn play(&self, is_resumed: bool) -> Stage {
        let mut stage = Stage::start(Settings { limits: self.limits, ..settings() });
        for step in 0..self.steps {
            stage.step_with_calls(self.calls);
            stage.now = stage.now.plus(2000);
            if step + 1 == self.steps && stage.ending.is_none() {
                stage.results(self.results);
                if is_resumed && !stage.open.is_empty() {
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
fn a_resumed_run_continues_as_if_uninterrupted() {
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
                let (whole, resumed) = (script.play(false), script.play(true));
                let context = format!("{limits:?}, step {steps}, {results} of {calls} results");
                assert_eq!(resumed.events, whole.events, "{context}");
                assert_eq!(resumed.ending, whole.ending, "{context}");
                n_stopped += usize::from(whole.decisions().last().unwrap().contains("_limit"));
            }
        }
    }
    assert!(n_stopped > 50, "limits that were reached are among them: {n_stopped}");
}

#[test]
fn a_resumed_run_repeats_open_calls_within_the_limit() {
    let mut stage = Stage::start(settings());
    stage.step_with_calls(4);
    stage.result("r.1");
    let mut stage = stage.resumed();
    assert_eq!(stage.asked, ["run r.2 time {}", "run r.3 time {}"]);
    stage.result("r.2");
    assert_eq!(stage.asked[2..], ["run r.4 time {}"]);
    stage.results(2);
    assert_eq!(stage.asked[3..], ["read"], "the conversation is read again");
}

#[test]
fn time_limit_includes_downtime() {
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
fn a_cut_off_answer_still_ends_after_its_calls() {
    let mut stage = Stage::start(settings());
    stage.head(200, &[]);
    stage.call(0);
    stage.finish("length");
    let mut stage = stage.resumed();
    stage.result("r.1");
    assert_eq!(stage.decisions(), ["false token_limit OutputLimit"]);
}
