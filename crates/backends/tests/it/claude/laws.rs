//! Laws that hold for every recording, also if it is cut or interrupted at any line.

use std::collections::{HashMap, HashSet};

use backends::{Exit, ProgramEffect};
use serde_json::Value;
use transcript::{Event, PartKind, RunStatus};

use super::recording::{Player, Recording, Step, recordings};
use super::stage::Stage;

fn played(steps: &[Step]) -> Player {
    let mut player = Player::new(steps);
    steps.iter().for_each(|step| player.play(step));
    player
}

/// Returns the lines that the program wrote.
fn lines(recording: &Recording) -> impl Iterator<Item = Value> {
    recording.steps.iter().filter_map(|step| match step {
        Step::Output(line) => Some(serde_json::from_str(line).unwrap()),
        _ => None,
    })
}

fn events(stage: &Stage) -> impl Iterator<Item = &Event> {
    stage.closed.iter().flat_map(|run| &run.events)
}

fn exit() -> Exit {
    Exit { code: None, stderr: "killed".to_owned() }
}

/// The stage also checks that every run is well formed.
#[test]
fn every_run_ends() {
    for recording in recordings() {
        let player = played(&recording.steps);
        assert!(player.stage.run.is_none() && !player.stage.closed.is_empty());
    }
}

/// Other versions leave some kind of line out. A run that ends by itself must not depend on it.
#[test]
fn a_run_ends_without_any_one_kind_of_line() {
    let mut n_ended = 0;
    for recording in recordings() {
        // If the program was killed in the middle, nothing but its exit ends the run.
        let whole = played_without(&recording, "exit");
        if whole.stage.run.is_some() {
            continue;
        }
        let kinds: HashSet<String> = lines(&recording).map(|it| kind_of(&it)).collect();
        for left_out in kinds.iter().filter(|it| !it.starts_with("result/")) {
            let mut player = played_without(&recording, left_out);
            while player.stage.run.is_some() && player.stage.wake_at.is_some() {
                player.stage.wake();
            }
            let is_idle = player.stage.run.is_none();
            assert!(is_idle, "{} without {left_out}: nothing ends it", recording.name);
            n_ended += 1;
        }
    }
    assert!(n_ended > 300, "{n_ended}");
}

fn played_without(recording: &Recording, left_out: &str) -> Player {
    let mut player = Player::new(&recording.steps);
    for step in &recording.steps {
        match step {
            Step::Output(line) if kind_of(&serde_json::from_str(line).unwrap()) == left_out => (),
            Step::Exited(_) => (),
            Step::Input(_) => {
                // No message is sent to a run that is being stopped.
                while player.stage.is_stopping && player.stage.wake_at.is_some() {
                    player.stage.wake();
                }
                // A program that did not stop is replaced by another one, which gets the message.
                if player.stage.has_quit {
                    break;
                }
                player.play(step);
            }
            _ => player.play(step),
        }
    }
    player
}

fn kind_of(line: &Value) -> String {
    let word = |name: &str| line[name].as_str().unwrap_or_default();
    format!("{}/{}", word("type"), word("subtype"))
}

#[test]
fn an_exit_at_any_line_ends_the_run() {
    for recording in recordings() {
        for cut in 0..recording.steps.len() {
            let mut player = played(&recording.steps[..cut]);
            let stage = &mut player.stage;
            let expected = match (stage.run.is_some(), stage.is_stopping) {
                (true, true) => Some(RunStatus::Cancelled),
                (true, false) => Some(RunStatus::Failed),
                (false, _) => None,
            };
            let n_closed = stage.closed.len();
            let effects = stage.exit(exit());
            assert_eq!(stage.closed.get(n_closed).map(|it| it.status), expected);
            assert!(stage.run.is_none() && (expected.is_some() || effects.is_empty()));
        }
    }
}

/// Each text of the model is in the log once, in its order and unchanged.
#[test]
fn texts_equal_the_finished_blocks() {
    for recording in recordings() {
        let finally = lines(&recording).flat_map(|line| match line["type"].as_str() {
            Some("assistant") if line["is_api_error_message"] != true => texts(&line),
            Some("user") => command_output(&line).into_iter().collect(),
            _ => Vec::new(),
        });
        let player = played(&recording.steps);
        let (mut told, mut discarded_texts) = (Vec::new(), Vec::new());
        for event in events(&player.stage) {
            let (Event::TextDone { text, discarded, .. }
            | Event::ThinkingDone { text, discarded, .. }) = event
            else {
                continue;
            };
            if *discarded { &mut discarded_texts } else { &mut told }.push(text.clone());
        }
        let finally: Vec<_> = finally.collect();
        match recording.name.as_str() {
            // The program requests the same answer again, without streaming.
            "midfail-fallback" => assert_eq!(discarded_texts, ["This is begun and n"]),
            name => assert_eq!(discarded_texts, [""; 0], "{name}"),
        }
        match recording.name.as_str() {
            // An interrupted thinking block is never finished.
            "think-interrupt" => assert_eq!((finally.len(), told.len()), (0, 1)),
            name => assert_eq!(told, finally, "{name}"),
        }
    }
}

fn texts(line: &Value) -> Vec<String> {
    let blocks = line["message"]["content"].as_array().unwrap().iter();
    let text = |it: &Value| it["text"].as_str().or(it["thinking"].as_str()).map(str::to_owned);
    blocks.filter_map(text).collect()
}

/// Returns the runs that a recording gave, without times.
fn outcome(player: &Player) -> Vec<String> {
    let runs = player.stage.closed.iter().map(|run| {
        let parts = run.answer.parts.iter().map(|part| match &part.kind {
            PartKind::Text(text) => format!("{} {:?}", text.id, text.text),
            PartKind::Thinking(thinking) => format!("{} thinks {:?}", thinking.id, thinking.text),
            PartKind::Call(call) => {
                let arguments = call.arguments.whole().unwrap();
                let mut arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
                arguments.sort_all_objects();
                let outcome = call.outcome.as_ref().unwrap();
                let (result, error) = (&outcome.result, &outcome.error);
                format!("{} {} {arguments} {result:?} {error:?}", call.id, call.name)
            }
            _ => String::new(),
        });
        let parts: Vec<String> = parts.filter(|it| !it.is_empty()).collect();
        format!("{} {:?}\n{}", run.answer.id, run.status, parts.join("\n"))
    });
    runs.collect()
}

/// Checks whether a repetition of the line must change nothing. Deltas, usage, notices and requests
/// to us count each time.
fn may_come_twice(step: &Step) -> bool {
    let Step::Output(line) = step else { return false };
    let line: Value = serde_json::from_str(line).unwrap();
    match line["type"].as_str().unwrap_or_default() {
        "stream_event" => !line["event"]["type"].as_str().unwrap_or_default().ends_with("delta"),
        "assistant" | "control_request" => true,
        "user" => line["message"]["content"][0]["type"] == "tool_result",
        _ => false,
    }
}

#[test]
fn repeated_lines_change_nothing() {
    for recording in recordings() {
        let mut player = Player::new(&recording.steps);
        for step in &recording.steps {
            player.play(step);
            if may_come_twice(step) {
                player.play(step);
            }
        }
        assert_eq!(outcome(&player), outcome(&played(&recording.steps)), "{}", recording.name);
    }
}

/// Finished blocks may arrive after the end of their message.
#[test]
fn late_blocks_change_nothing() {
    let mut moved = 0;
    for recording in recordings() {
        let (mut late, mut held): (Vec<Step>, Vec<Step>) = (Vec::new(), Vec::new());
        for (at, step) in recording.steps.iter().enumerate() {
            let line = match step {
                Step::Output(line) => serde_json::from_str(line).unwrap(),
                _ => Value::Null,
            };
            let is_own = line["parent_tool_use_id"].is_null() && line["aborted"].is_null();
            let is_finished = line["type"] == "assistant" && is_own;
            if is_finished && ends_later(&recording.steps[at..], &line["message"]["id"]) {
                held.push(step.clone());
                moved += 1;
                continue;
            }
            late.push(step.clone());
            if line["event"]["type"] == "message_stop" {
                late.append(&mut held);
            }
        }
        assert!(held.is_empty());
        assert_eq!(
            outcome(&played(&late)),
            outcome(&played(&recording.steps)),
            "{}",
            recording.name
        );
    }
    assert!(moved > 100, "{moved}");
}

/// Checks whether the end of the message is among these steps.
fn ends_later(steps: &[Step], message: &Value) -> bool {
    let mut said = steps.iter().filter_map(|step| match step {
        Step::Output(line) => Some(serde_json::from_str::<Value>(line).unwrap()),
        _ => None,
    });
    said.any(|it| it["event"]["type"] == "message_stop" && it["api_message_id"] == *message)
}

/// A model service may number its calls from one again in each answer.
#[test]
fn consecutive_calls_with_one_id_are_separate_calls() {
    let mut compared = 0;
    for recording in recordings() {
        let ids = ids_in_turn(&recording);
        if ids.len() < 2 {
            continue;
        }
        let rename =
            |text: &String| ids.iter().fold(text.clone(), |it, id| it.replace(id, &ids[0]));
        let steps: Vec<Step> = recording
            .steps
            .iter()
            .map(|step| match step {
                Step::Output(line) => Step::Output(rename(line)),
                Step::Input(line) => Step::Input(rename(line)),
                step => step.clone(),
            })
            .collect();
        let expected: Vec<String> = outcome(&played(&recording.steps)).iter().map(rename).collect();
        assert_eq!(outcome(&played(&steps)), expected, "{}", recording.name);
        compared += 1;
    }
    assert!(compared >= 3, "{compared}");
}

/// Returns the ids of the calls if no call is mentioned after the next one has started.
fn ids_in_turn(recording: &Recording) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for line in lines(recording) {
        let blocks = line["message"]["content"].as_array().into_iter().flatten();
        let block =
            blocks.chain([&line["event"]["content_block"]]).find(|it| !it["name"].is_null());
        ids.extend(block.and_then(|it| it["id"].as_str()).map(str::to_owned));
    }
    ids.dedup();
    let spans: Option<Vec<(usize, usize)>> = ids
        .iter()
        .map(|id| {
            let says = |it: &Step| matches!(it, Step::Output(line) if line.contains(id.as_str()));
            let steps = &recording.steps;
            Some((steps.iter().position(says)?, steps.iter().rposition(says)?))
        })
        .collect();
    let spans = spans.unwrap_or_default();
    let is_in_turn = spans.windows(2).all(|it| it[0].1 < it[1].0);
    if is_in_turn { ids } else { Vec::new() }
}

fn command_output(line: &Value) -> Option<String> {
    let text = line["message"]["content"].as_str()?;
    let output = text.strip_prefix("<local-command-stdout>")?;
    Some(output.strip_suffix("</local-command-stdout>")?.trim().to_owned())
}

#[test]
fn deltas_add_up_to_the_finished_text() {
    for recording in recordings() {
        let player = played(&recording.steps);
        let mut streamed: HashMap<&str, String> = HashMap::new();
        for event in events(&player.stage) {
            match event {
                Event::TextDelta { part_id, delta, .. }
                | Event::ThinkingDelta { part_id, delta, .. } => {
                    streamed.entry(part_id.as_str()).or_default().push_str(delta);
                }
                Event::TextDone { part_id, text, .. }
                | Event::ThinkingDone { part_id, text, .. } => {
                    assert_eq!(streamed.get(part_id.as_str()).unwrap_or(text), text);
                }
                _ => (),
            }
        }
    }
}

#[test]
fn calls_have_the_reported_arguments_and_outcome() {
    for recording in recordings() {
        let player = played(&recording.steps);
        for line in lines(&recording) {
            for block in line["message"]["content"].as_array().into_iter().flatten() {
                let id = block["id"].as_str().or(block["tool_use_id"].as_str()).unwrap_or_default();
                let mut calls = player.stage.closed.iter().flat_map(|run| run.answer.calls());
                let call = calls.find(|it| it.provider_call_id.as_deref() == Some(id));
                match (block["type"].as_str(), call) {
                    (Some("tool_use"), Some(call)) => {
                        let arguments = call.arguments.whole().unwrap();
                        let arguments: Value = serde_json::from_str(&arguments).unwrap();
                        assert_eq!(arguments, block["input"]);
                    }
                    // A call that launched a task succeeds or fails with the task.
                    (Some("tool_result"), Some(call)) => {
                        let is_ok = match line["tool_use_result"]["isAsync"] == true {
                            true => is_done(&recording, id),
                            false => block["is_error"] != true,
                        };
                        assert_eq!(call.outcome.as_ref().unwrap().ok, is_ok);
                    }
                    (Some("tool_use" | "tool_result"), None) => panic!("{id} was lost"),
                    _ => (),
                }
            }
        }
    }
}

/// Checks whether the task that the call launched has completed.
fn is_done(recording: &Recording, call: &str) -> bool {
    let is_end = |it: &Value| it["subtype"] == "task_notification" && it["tool_use_id"] == call;
    lines(recording).any(|it| is_end(&it) && it["status"] == "completed")
}

/// The run ends cancelled regardless of later lines, at the latest after the timeout.
#[test]
fn an_interrupt_at_any_line_ends_the_run_cancelled() {
    for recording in recordings() {
        for cut in 0..recording.steps.len() {
            for rest in [&recording.steps[cut..], &[]] {
                let mut player = played(&recording.steps[..cut]);
                if player.stage.run.is_none() {
                    assert_eq!(player.stage.interrupt(), [], "there is nothing to stop");
                    continue;
                }
                let n_closed = player.stage.closed.len();
                let was_stopping = player.stage.is_stopping;
                player.stage.interrupt();
                let said = rest.iter().filter(|it| matches!(it, Step::Output(_)));
                said.for_each(|step| player.play(step));
                if player.stage.closed.len() == n_closed {
                    let effects = player.stage.wake();
                    // The program is ended unless it may be idle.
                    let may_be_idle = was_stopping || has_ended_turn(rest);
                    assert!(effects.contains(&ProgramEffect::Quit) || may_be_idle);
                }
                assert_eq!(player.stage.closed[n_closed].status, RunStatus::Cancelled);
            }
        }
    }
}

fn has_ended_turn(steps: &[Step]) -> bool {
    let is_end =
        |it: &Step| matches!(it, Step::Output(line) if line.contains(r#""type":"result""#));
    steps.iter().any(is_end)
}

#[test]
fn an_exit_after_an_interrupt_ends_the_run_cancelled() {
    for recording in recordings() {
        for cut in 0..recording.steps.len() {
            let mut player = played(&recording.steps[..cut]);
            if player.stage.run.is_some() {
                player.stage.interrupt();
                player.stage.exit(exit());
                assert_eq!(player.stage.closed.last().unwrap().status, RunStatus::Cancelled);
            }
        }
    }
}

/// Each result of the program states the total cost of all turns so far.
#[test]
fn costs_of_runs_add_up_to_the_reported_total() {
    let mut compared = 0;
    for recording in recordings() {
        let results = lines(&recording).filter(|it| it["type"] == "result");
        let told: Vec<(f64, f64)> = results.map(|it| (total_cost(&it), own_cost(&it))).collect();
        let Some((first, last)) = told.first().zip(told.last()) else { continue };
        // A resumed conversation has earlier costs.
        let expected = last.0 - (first.0 - first.1);
        let own: f64 = told.iter().map(|it| it.1).sum();
        // Some recordings are abridged and lack the usage of each model.
        if expected == 0.0 || own == 0.0 {
            continue;
        }
        let runs = played(&recording.steps).stage.closed;
        let cost: f64 = runs.iter().filter_map(|it| it.answer.finish.as_ref()?.cost).sum();
        assert!((cost - expected).abs() < 1e-9, "{}: {cost}, not {expected}", recording.name);
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

fn total_cost(result: &Value) -> f64 {
    result["total_cost_usd"].as_f64().unwrap_or_default()
}

fn own_cost(result: &Value) -> f64 {
    let models = result["model_usage_since_last_result"].as_object();
    models.into_iter().flatten().filter_map(|(_, it)| it["costUSD"].as_f64()).sum()
}
