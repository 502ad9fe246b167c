//! What is true of every recording, wherever it is cut, stopped or interrupted.

use std::collections::BTreeSet;

use backends::{Exit, ProgramInput, RunInput};
use serde_json::Value;
use transcript::RunStatus;

use super::recording::{Line, Recording, Replay, recordings};

fn died() -> ProgramInput {
    ProgramInput::Exited(Exit { code: Some(137), stderr: "killed".to_owned() })
}

/// What Codex finally said, of the thread that the recording begins with: texts and thoughts, and the
/// outputs of commands.
fn final_words(recording: &Recording) -> (Vec<String>, Vec<String>) {
    let (mut said, mut outputs) = (Vec::new(), Vec::new());
    let mut thread = Value::Null;
    let mut agents = Vec::new();
    for line in &recording.lines {
        let Line::Said(line) = line else { continue };
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
            "agentMessage" | "agent_message" => said.push(text("text")),
            "reasoning" if recording.is_exec => said.push(text("text")),
            "reasoning" => said.push(item["summary"][0].as_str().unwrap().to_owned()),
            "command_execution" => outputs.push(text("aggregated_output")),
            "commandExecution" => {
                outputs.push(item["aggregatedOutput"].as_str().unwrap_or_default().to_owned());
            }
            _ => (),
        }
    }
    (said, outputs)
}

#[test]
fn the_last_word_is_what_codex_finally_said() {
    for recording in recordings() {
        let (said, outputs) = final_words(&recording);
        let stage = recording.replay().stage;
        assert_eq!(stage.said, said, "{}", recording.name);
        assert_eq!(stage.mended, Vec::<String>::new(), "{}", recording.name);
        let printed = stage.ended.iter().flat_map(|it| it.calls()).filter(|it| it.name == "shell");
        let printed: Vec<u64> = printed.map(|it| it.stdout.bytes()).collect();
        // A command that was interrupted ends after its run.
        let is_interrupted = recording.name.starts_with("app-sleep");
        let lengths: Vec<u64> = outputs.iter().map(|it| it.len() as u64).collect();
        assert!(is_interrupted || printed == lengths, "{}: {printed:?}", recording.name);
    }
}

#[test]
fn every_run_ends_once_and_nothing_is_unknown() {
    for recording in recordings() {
        let stage = recording.replay().stage;
        assert!(!stage.is_running() && !stage.ended.is_empty(), "{}", recording.name);
        assert!(!stage.story.contains("unrecognized"), "{}", recording.name);
        assert!(!stage.has_quit, "{}", recording.name);
    }
}

/// Other versions leave a kind of line out. What ends a run by itself must not hang on it.
#[test]
fn a_run_ends_without_its_program_whatever_line_is_left_out() {
    let mut n_ended = 0;
    for recording in recordings().iter().filter(|it| !it.is_exec) {
        // Where the program was ended in the middle, nothing else would have ended the run.
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

/// Of a notification.
fn method_of(line: &Line) -> Option<String> {
    let Line::Said(line) = line else { return None };
    let message: Value = serde_json::from_str(line).unwrap();
    let method = message["method"].as_str().filter(|_| message["id"].is_null());
    method.map(str::to_owned)
}

/// All but deltas, of which twice is more, and responses, of which there is one.
fn may_come_twice(line: &Line) -> bool {
    let Line::Said(line) = line else { return false };
    let message: Value = serde_json::from_str(line).unwrap();
    let name = message["method"].as_str().or(message["type"].as_str()).unwrap_or("response");
    let is_more = name.contains("elta") || name == "error" || name == "thread.started";
    !is_more
        && !matches!(name, "response" | "thread/status/changed" | "turn.completed" | "turn.failed")
}

#[test]
fn what_comes_twice_is_told_once() {
    for recording in recordings() {
        let mut replay = Replay::new(&recording);
        for line in &recording.lines {
            replay.step(line);
            if may_come_twice(line) {
                replay.step(line);
            }
        }
        let durations = |story: &str| story.replace(char::is_numeric, "");
        let once = recording.replay().stage.story;
        assert_eq!(durations(&replay.stage.story), durations(&once), "{}", recording.name);
    }
}

#[test]
fn questions_are_answered_in_the_words_that_codex_took() {
    let answers: Vec<(Value, Value)> =
        recordings().iter().flat_map(|it| it.replay().answers).collect();
    assert_eq!(answers.len(), 8);
    for (ours, theirs) in answers {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn cut_anywhere_the_run_fails_and_nothing_stays_open() {
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
fn interrupted_anywhere_the_run_is_cancelled_when_the_program_ends_it() {
    for recording in recordings().iter().filter(|it| !it.is_exec) {
        for cut in 0..recording.lines.len() {
            let mut replay = Replay::new(recording);
            recording.lines[..cut].iter().for_each(|it| replay.step(it));
            if !replay.stage.is_running() {
                continue;
            }
            let n_ended = replay.stage.endings.len();
            replay.stage.give(RunInput::Interrupt);
            // What Codex says anyway, until the run is over.
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
fn interrupted_anywhere_the_run_is_cancelled_when_the_program_does_not_answer() {
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
