//! Laws that hold for every recording, also if it is cut or interrupted at any line. The stage
//! checks at every effect that only open things continue and end.

use backends::{Exit, RunInput};
use serde_json::Value;
use transcript::{Event, Part, PartKind, RunStatus};

use super::recording::{Recorded, Recording};
use super::stage::{Finished, Stage};

#[test]
fn an_exit_at_any_line_ends_the_run() {
    for recording in Recording::all() {
        for n in 0..=recording.lines.len() {
            let stage = play_some(&recording, n);
            let was_idle = stage.is_idle();
            let n_finished = stage.finished.len();
            let stage = gone(stage);
            assert!(stage.is_idle(), "{} cut at {n}", recording.name);
            let status = stage.finished[n_finished..].first().map(|it| it.status);
            let expected = (!was_idle).then_some(());
            assert_eq!(status.map(|_| ()), expected, "{} cut at {n}", recording.name);
        }
    }
}

#[test]
fn parts_equal_the_finished_messages() {
    for recording in Recording::all() {
        let stage = gone(Stage::play(&recording));
        let texts: Vec<String> = stage.finished.iter().flat_map(transcript_words).collect();
        assert_eq!(texts, final_words(&recording), "{}", recording.name);
    }
}

#[test]
fn deltas_add_up_to_the_finished_part() {
    for recording in Recording::all() {
        let stage = gone(Stage::play(&recording));
        for event in stage.finished.iter().flat_map(|it| &it.events) {
            let (id, whole) = match event {
                Event::TextDone { part_id, text, .. }
                | Event::ThinkingDone { part_id, text, .. } => (part_id.as_str(), text),
                Event::ToolArgumentsDone { call_id, arguments, .. } => {
                    (call_id.as_str(), arguments)
                }
                _ => continue,
            };
            let events = stage.finished.iter().flat_map(|it| &it.events);
            let deltas: String = events.filter_map(|it| delta_of(it, id)).collect();
            assert_eq!(&deltas, whole, "{} {id}", recording.name);
        }
    }
}

#[test]
fn outputs_of_commands_are_kept() {
    for recording in Recording::all() {
        let stage = gone(Stage::play(&recording));
        let calls = stage.finished.iter().flat_map(|it| it.answer.calls());
        for call in calls.filter(|it| it.name == "bash") {
            let printed = printed_by(&recording, call.provider_call_id.as_deref().unwrap());
            let (head, bytes) = (call.stdout.head(), call.stdout.bytes());
            assert!(printed.starts_with(head), "{} {}", recording.name, call.id);
            assert_eq!(printed.len() as u64, bytes, "{} {}", recording.name, call.id);
        }
    }
}

#[test]
fn an_interrupt_at_any_line_ends_the_run_cancelled() {
    for recording in Recording::all() {
        for n in 0..recording.lines.len() {
            let mut stage = play_some(&recording, n);
            if stage.is_idle() || stage.is_gone {
                continue;
            }
            let n_finished = stage.finished.len();
            stage.give(RunInput::Interrupt);
            assert!(stage.asked.is_empty(), "{} {n}: nobody is asked any more", recording.name);
            for (at, recorded) in &recording.lines[n..] {
                // The recorder's later inputs are left out.
                if stage.finished.len() == n_finished && matches!(recorded, Recorded::Output(_)) {
                    stage.play_line(*at, recorded);
                }
            }
            stage.answer_states();
            while stage.finished.len() == n_finished {
                assert!(stage.wake_at.is_some(), "{} {n}: nothing ends it", recording.name);
                stage.wake();
            }
            let status = stage.finished[n_finished].status;
            assert_eq!(status, RunStatus::Cancelled, "{} {n}", recording.name);
        }
    }
}

#[test]
fn every_line_of_pi_is_recognized() {
    // This includes the response to an invalid command, which the recorder once sent.
    for recording in Recording::all() {
        let stage = Stage::play(&recording);
        let events = stage.finished.iter().flat_map(|it| &it.events);
        let unknown: Vec<&Event> =
            events.filter(|it| matches!(it, Event::Unrecognized { .. })).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", recording.name);
    }
}

/// Other versions leave some kind of line out. A run that ends by itself must not depend on it.
#[test]
fn a_run_ends_without_any_one_kind_of_line() {
    let mut n_ended = 0;
    for recording in Recording::all() {
        let Some(last) = last_of_agent(&recording) else { continue };
        if last["type"] != "agent_end" || last["willRetry"] == true {
            continue;
        }
        for left_out in kinds_of_lines(&recording).iter().filter(|it| *it != "agent_end") {
            let mut stage = Stage::new(!recording.is_without_questions());
            for (at, recorded) in &recording.lines {
                match recorded {
                    Recorded::Output(line) if kind_of(line) == *left_out => (),
                    Recorded::Exited(_) => (),
                    _ => stage.play_line(*at, recorded),
                }
            }
            stage.answer_states();
            while !stage.is_idle() && stage.wake_at.is_some() {
                stage.wake();
                stage.answer_states();
            }
            assert!(stage.is_idle(), "{} without {left_out}: nothing ends it", recording.name);
            n_ended += 1;
        }
    }
    assert!(n_ended > 500, "{n_ended}");
}

fn last_of_agent(recording: &Recording) -> Option<Value> {
    let lines = recording.lines.iter().rev().filter_map(|(_, it)| match it {
        Recorded::Output(line) => Some(line),
        _ => None,
    });
    let mut lines = lines.filter(|it| ["agent_start", "agent_end"].contains(&kind_of(it).as_str()));
    serde_json::from_str(lines.next()?).ok()
}

fn kinds_of_lines(recording: &Recording) -> std::collections::BTreeSet<String> {
    let lines = recording.lines.iter().filter_map(|(_, it)| match it {
        Recorded::Output(line) => Some(kind_of(line)),
        _ => None,
    });
    // One name matches no line, so that all of them are played.
    lines.chain(["nothing".to_owned()]).collect()
}

fn kind_of(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["type"].as_str().unwrap_or_default().to_owned()
}

fn play_some(recording: &Recording, n: usize) -> Stage {
    let mut stage = Stage::new(!recording.is_without_questions());
    for (at, recorded) in &recording.lines[..n] {
        stage.play_line(*at, recorded);
    }
    stage
}

fn gone(mut stage: Stage) -> Stage {
    stage.exit(Exit { code: Some(1), stderr: String::new() });
    stage
}

/// Returns the texts, thinking blocks and arguments of a run, in their order.
fn transcript_words(finished: &Finished) -> Vec<String> {
    let words = |part: &Part| match &part.kind {
        PartKind::Text(text) => Some(text.text.clone()),
        PartKind::Thinking(thinking) => Some(thinking.text.clone()),
        PartKind::Call(call) if call.arguments_incomplete => Some("incomplete".to_owned()),
        PartKind::Call(call) => {
            let arguments = call.arguments.whole().unwrap();
            Some(serde_json::from_str::<Value>(&arguments).unwrap().to_string())
        }
        _ => None,
    };
    finished.answer.parts.iter().filter_map(words).collect()
}

fn final_words(recording: &Recording) -> Vec<String> {
    let mut words = Vec::new();
    // Updates of a message without an end.
    let mut unfinished = Vec::new();
    for (_, recorded) in &recording.lines {
        let Recorded::Output(line) = recorded else { continue };
        let line: Value = serde_json::from_str(line).unwrap();
        let message = &line["message"];
        match line["type"].as_str().unwrap() {
            "message_update" => unfinished.push(line),
            "message_end" if message["role"] == "assistant" => {
                let broke_off = ["aborted", "error"].iter().any(|it| message["stopReason"] == **it);
                let blocks = message["content"].as_array().unwrap().iter();
                words.extend(blocks.map(|it| block_words(it, broke_off)));
                unfinished.clear();
            }
            _ => (),
        }
    }
    assert!(unfinished.is_empty(), "{} breaks off in a message", recording.name);
    words
}

/// Returns the output of a command, or the last partial output if the result lacks it.
fn printed_by(recording: &Recording, call: &str) -> String {
    let mut printed = String::new();
    for (_, recorded) in &recording.lines {
        let Recorded::Output(line) = recorded else { continue };
        let line: Value = serde_json::from_str(line).unwrap();
        if line["toolCallId"] != call {
            continue;
        }
        let so_far = line["partialResult"]["content"][0]["text"].as_str();
        let whole = line["result"]["structuredContent"]["output"].as_str();
        if let Some(text) = whole.or(so_far) {
            text.clone_into(&mut printed);
        }
    }
    printed
}

fn block_words(block: &Value, broke_off: bool) -> String {
    match block["type"].as_str().unwrap() {
        "text" => block["text"].as_str().unwrap().to_owned(),
        "thinking" => block["thinking"].as_str().unwrap().to_owned(),
        _ if broke_off => "incomplete".to_owned(),
        _ => block["arguments"].to_string(),
    }
}

fn delta_of<'a>(event: &'a Event, id: &str) -> Option<&'a str> {
    match event {
        Event::TextDelta { part_id, delta, .. } | Event::ThinkingDelta { part_id, delta, .. } => {
            (part_id.as_str() == id).then_some(delta)
        }
        Event::ToolArgumentsDelta { call_id, delta } => (call_id.as_str() == id).then_some(delta),
        _ => None,
    }
}

/// A message is sent several times, but its cost counts once.
#[test]
fn runs_cost_what_their_messages_cost() {
    let mut total = 0.0;
    for recording in Recording::all() {
        let lines = recording.lines.iter().filter_map(|(_, it)| match it {
            Recorded::Output(line) => serde_json::from_str::<Value>(line).ok(),
            _ => None,
        });
        let ends = lines.filter(|it| it["type"] == "message_end");
        let expected: f64 =
            ends.filter_map(|it| it["message"]["usage"]["cost"]["total"].as_f64()).sum();
        let runs = gone(Stage::play(&recording)).finished;
        let cost: f64 = runs.iter().filter_map(|it| it.answer.finish.as_ref()?.cost).sum();
        assert!((cost - expected).abs() < 1e-9, "{}: {cost}, not {expected}", recording.name);
        total += cost;
    }
    assert!(total > 0.01, "{total}");
}
