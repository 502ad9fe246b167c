//! Laws that hold for every recording, also if it is cut or interrupted at any line.

use std::collections::BTreeSet;

use backends::{Exit, ProgramInput, RunInput};
use serde_json::Value;
use transcript::RunStatus;

use super::recording::{Line, Recording, Replay, recordings};

fn died() -> ProgramInput {
    ProgramInput::Exited(Exit { code: Some(137), stderr: "killed".to_owned() })
}

/// Returns the finished texts and thinking blocks, and the outputs of commands, of the recording's
/// first thread and of its agents.
fn final_words(recording: &Recording) -> (Vec<String>, Vec<String>) {
    let (mut texts, mut outputs) = (Vec::new(), Vec::new());
    let mut thread = Value::Null;
    let mut agents = Vec::new();
    for line in &recording.lines {
        let Line::Output(line) = line else { continue };
        let message: Value = serde_json::from_str(line).unwrap();
        if thread.is_null() {
            thread = message["result"]["thread"]["id"].clone();
        }
        let (method, params) = (&message["method"], &message["params"]);
        let turn = &params["turn"];
        if method == "turn/started" && turn["rootTurnId"] != turn["id"] {
            agents.push(params["threadId"].clone());
        }
        let of = &params["threadId"];
        let is_ours = recording.is_exec || *of == thread || agents.contains(of);
        let item = if recording.is_exec { &message["item"] } else { &params["item"] };
        let is_completed = method == "item/completed" || message["type"] == "item.completed";
        if !is_ours || !is_completed {
            continue;
        }
        let text = |field: &str| item[field].as_str().unwrap().to_owned();
        match item["type"].as_str().unwrap() {
            "agentMessage" | "agent_message" => texts.push(text("text")),
            "reasoning" if recording.is_exec => texts.push(text("text")),
            "reasoning" => texts.push(item["summary"][0].as_str().unwrap().to_owned()),
            "command_execution" => outputs.push(text("aggregated_output")),
            "commandExecution" => {
                outputs.push(item["aggregatedOutput"].as_str().unwrap_or_default().to_owned());
            }
            _ => (),
        }
    }
    (texts, outputs)
}

#[test]
fn texts_and_outputs_equal_the_finished_items() {
    for recording in recordings() {
        let (texts, outputs) = final_words(&recording);
        let stage = recording.replay().stage;
        assert_eq!(stage.texts, texts, "{}", recording.name);
        assert_eq!(stage.corrected, Vec::<String>::new(), "{}", recording.name);
        let printed = stage.ended.iter().flat_map(|it| it.calls()).filter(|it| it.name == "shell");
        let printed: Vec<u64> = printed.map(|it| it.stdout.bytes()).collect();
        // An interrupted command ends after its run.
        let is_interrupted = recording.name.starts_with("app-sleep");
        let lengths: Vec<u64> = outputs.iter().map(|it| it.len() as u64).collect();
        assert!(is_interrupted || printed == lengths, "{}: {printed:?}", recording.name);
    }
}

#[test]
fn every_run_ends_and_every_line_is_recognized() {
    for recording in recordings() {
        let stage = recording.replay().stage;
        assert!(!stage.is_running() && !stage.ended.is_empty(), "{}", recording.name);
        assert!(!stage.outline.contains("unrecognized"), "{}", recording.name);
        assert!(!stage.has_quit, "{}", recording.name);
    }
}

/// Other versions leave some kind of line out. A run that ends by itself must not depend on it.
#[test]
fn a_run_ends_without_any_one_kind_of_line() {
    let mut n_ended = 0;
    for recording in recordings().iter().filter(|it| !it.is_exec) {
        // If the program was killed in the middle, nothing but its exit ends the run.
        if replayed_without(recording, "exit").stage.is_running() {
            continue;
        }
        let methods: BTreeSet<String> = recording.lines.iter().filter_map(method_of).collect();
        for left_out in &methods {
            let mut stage = replayed_without(recording, left_out).stage;
            while stage.is_running() && stage.wake_at.is_some() {
                stage.wake();
            }
            assert!(!stage.is_running(), "{} without {left_out}", recording.name);
            n_ended += 1;
        }
    }
    assert!(n_ended > 200, "{n_ended}");
}

fn replayed_without(recording: &Recording, left_out: &str) -> Replay {
    let mut replay = Replay::new(recording);
    for line in &recording.lines {
        let is_left_out = method_of(line).is_some_and(|it| it == left_out);
        if !is_left_out && !matches!(line, Line::Ended(_)) {
            replay.step(line);
        }
    }
    replay
}

/// Returns the method if the line is a notification.
fn method_of(line: &Line) -> Option<String> {
    let Line::Output(line) = line else { return None };
    let message: Value = serde_json::from_str(line).unwrap();
    let method = message["method"].as_str().filter(|_| message["id"].is_null());
    method.map(str::to_owned)
}

/// Checks whether a repetition of the line must change nothing. Repeated deltas add text, and a
/// response comes once.
fn may_come_twice(line: &Line) -> bool {
    let Line::Output(line) = line else { return false };
    let message: Value = serde_json::from_str(line).unwrap();
    let name = message["method"].as_str().or(message["type"].as_str()).unwrap_or("response");
    let is_more = name.contains("elta") || name == "error" || name == "thread.started";
    !is_more
        && !matches!(name, "response" | "thread/status/changed" | "turn.completed" | "turn.failed")
}

#[test]
fn repeated_lines_change_nothing() {
    for recording in recordings() {
        let mut replay = Replay::new(&recording);
        for line in &recording.lines {
            replay.step(line);
            if may_come_twice(line) {
                replay.step(line);
            }
        }
        let durations = |outline: &str| outline.replace(char::is_numeric, "");
        let once = recording.replay().stage.outline;
        assert_eq!(durations(&replay.stage.outline), durations(&once), "{}", recording.name);
    }
}

#[test]
fn responses_to_requests_equal_the_recorded_ones() {
    let answers: Vec<(Value, Value)> =
        recordings().iter().flat_map(|it| it.replay().answers).collect();
    assert_eq!(answers.len(), 8);
    for (ours, theirs) in answers {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn an_exit_at_any_line_ends_the_run() {
    for recording in recordings() {
        for cut in 0..recording.lines.len() {
            let mut replay = Replay::new(&recording);
            recording.lines[..cut].iter().for_each(|it| replay.step(it));
            let was_running = replay.stage.is_running();
            replay.stage.give(died());
            assert!(!replay.stage.is_running());
            if was_running && !recording.is_exec {
                let ending = replay.stage.endings.last().unwrap();
                let is_interrupted = ending.status == RunStatus::Cancelled;
                let code = ending.error.as_ref().map(|it| it.code.as_str());
                assert!(is_interrupted || code == Some("agent_exited"), "{}", recording.name);
            }
        }
    }
}

#[test]
fn an_interrupt_at_any_line_ends_the_run_cancelled() {
    for recording in recordings().iter().filter(|it| !it.is_exec) {
        for cut in 0..recording.lines.len() {
            let mut replay = Replay::new(recording);
            recording.lines[..cut].iter().for_each(|it| replay.step(it));
            if !replay.stage.is_running() {
                continue;
            }
            let n_ended = replay.stage.endings.len();
            replay.stage.give(RunInput::Interrupt);
            // The recorded lines follow until the run has ended.
            for line in &recording.lines[cut..] {
                if replay.stage.endings.len() == n_ended {
                    replay.step(line);
                }
            }
            let ending = &replay.stage.endings[n_ended];
            assert_eq!(ending.status, RunStatus::Cancelled, "{} at {cut}", recording.name);
        }
    }
}

#[test]
fn an_unanswered_interrupt_ends_the_run_cancelled() {
    for recording in recordings() {
        for cut in 0..recording.lines.len() {
            let mut replay = Replay::new(&recording);
            recording.lines[..cut].iter().for_each(|it| replay.step(it));
            if !replay.stage.is_running() {
                continue;
            }
            replay.stage.give(RunInput::Interrupt);
            replay.stage.wake();
            assert!(!replay.stage.is_running(), "{} at {cut}", recording.name);
            let ending = replay.stage.endings.last().unwrap();
            assert_eq!(ending.status, RunStatus::Cancelled, "{} at {cut}", recording.name);
            replay.stage.give(died());
        }
    }
}
