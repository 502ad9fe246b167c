//! Checks that an imported conversation equals the live one.
//!
//! Each recorded session has the lines that the program wrote while it ran, and the file that it
//! kept. A session may continue an older conversation, so the live runs are the last turns of the
//! file. Notices are not compared, since most are about things that programs do not keep: failed
//! attempts, questions, warnings.

use std::collections::{BTreeMap, BTreeSet};

use backends::import::Tail;
use serde_json::Value;
use transcript::{Body, Call, ErrorCode, PartKind, RunMessage, SteerState, TextRole};

use super::files::File;
use super::laws::answer;
use crate::{claude, codex, pi};

/// Sessions whose import differs, and the reason.
const DEVIATIONS: &[(&str, &str)] = &[
    ("claude/approve-deny-interrupt", REFUSED),
    ("claude/long-sigterm-oneshot", UNFINISHED),
    ("claude/sessionid-reuse", ANOTHER),
    ("claude/think-interrupt", UNFINISHED),
    ("codex/app-long-interrupt", UNFINISHED),
    ("codex/app-middrop", UNFINISHED),
    ("codex/app-second-turn-start-while-busy", "The recorder's second message had no id of ours."),
    ("codex/app-sleep-interrupt", UNFINISHED),
    ("codex/app-sleep-interrupt-clean", UNFINISHED),
    ("codex/exec-approve", EXEC),
    ("codex/exec-e500", EXEC),
    ("codex/exec-edit", EXEC),
    ("codex/exec-resume-badid", ANOTHER),
    ("pi/0.73/approve-abort", STOPPED),
    ("pi/0.73/approve-abort-cancel", REFUSED),
    ("pi/0.73/approve-deny", REFUSED),
    ("pi/0.73/kill-1", UNFINISHED),
    ("pi/0.73/sleep-sigint", UNFINISHED),
    ("pi/0.73/sleep-sigkill", UNFINISHED),
    ("pi/0.73/steer", FOLLOWED),
    ("pi/1.5/approve-abort", STOPPED),
    ("pi/1.5/approve-deny", REFUSED),
    ("pi/1.5/bigout", "The file's copy is abridged."),
    ("pi/1.5/steer", FOLLOWED),
];
const REFUSED: &str = "That a person refused a call is not kept: it failed.";
const STOPPED: &str = "That a person stopped it is not kept: it broke off.";
const UNFINISHED: &str = "Words and output of what never finished are not kept.";
const FOLLOWED: &str = "A message that waited for the answer's end begins a run of its own.";
const EXEC: &str = "`codex exec` says less than Codex keeps.";
const ANOTHER: &str = "The file is an earlier conversation's: this one never began.";

#[test]
fn an_imported_conversation_equals_the_live_one() {
    let live = live();
    let files = File::all();
    let mut found = BTreeMap::new();
    let mut compared = 0;
    for file in &files {
        let Some(live) = live.get(&file.name) else { continue };
        let turns = file.import(Tail::Close).turns;
        let skipped = turns.len().saturating_sub(live.len());
        let imported: Vec<String> =
            turns[skipped..].iter().map(|it| conversation_text(&answer(it))).collect();
        let live: Vec<String> = live.iter().map(conversation_text).collect();
        compared += 1;
        if imported != live {
            found.insert(file.name.as_str(), (live.join("\n"), imported.join("\n")));
        }
    }
    assert!(compared > 150, "{compared}");
    let known: BTreeSet<&str> = DEVIATIONS.iter().map(|(name, _)| *name).collect();
    let new = found.iter().filter(|(name, _)| !known.contains(**name));
    let new: Vec<String> = new
        .map(|(name, (live, imported))| {
            format!("{name} was seen live as\n{live}\nand is imported as\n{imported}")
        })
        .collect();
    assert!(new.is_empty(), "{}", new.join("\n"));
    for name in known {
        assert!(found.contains_key(name), "{name} deviates no more");
    }
}

/// Only Pi keeps costs.
#[test]
fn an_imported_conversation_costs_the_same_as_the_live_one() {
    let cost = |answer: &RunMessage| answer.finish.as_ref().and_then(|it| it.cost);
    let (live, mut paid) = (live(), 0);
    let known: BTreeSet<&str> = DEVIATIONS.iter().map(|(name, _)| *name).collect();
    for file in File::all().iter().filter(|it| it.name.starts_with("pi/")) {
        let Some(live) = live.get(&file.name).filter(|_| !known.contains(&*file.name)) else {
            continue;
        };
        let turns = file.import(Tail::Close).turns;
        let skipped = turns.len().saturating_sub(live.len());
        let imported: Vec<_> = turns[skipped..].iter().map(|it| cost(&answer(it))).collect();
        assert_eq!(imported, live.iter().map(cost).collect::<Vec<_>>(), "{}", file.name);
        paid += imported.iter().flatten().count();
    }
    assert!(paid > 30, "{paid}");
}

fn live() -> BTreeMap<String, Vec<RunMessage>> {
    let named = |folder: &'static str, live: Vec<(String, Vec<RunMessage>)>| {
        live.into_iter().map(move |(name, answers)| (format!("{folder}/{name}"), answers))
    };
    let all = named("claude", claude::live())
        .chain(named("codex", codex::live()))
        .chain(named("pi", pi::live()));
    all.collect()
}

/// Returns the texts and calls of the agent and of its sub-agents, and the end of the run, as text.
pub(super) fn conversation_text(answer: &RunMessage) -> String {
    let (mut lines, mut inside) = (Vec::new(), Vec::new());
    for part in &answer.parts {
        let output = match &part.kind {
            PartKind::Text(it) if it.role != TextRole::Discarded => format!("says {:?}", it.text),
            PartKind::Thinking(it) if !it.discarded => format!("thinks {:?}", it.text),
            PartKind::Call(call) => shown(call),
            PartKind::Steered(it) if it.state == SteerState::Seen => {
                format!("is told {:?}", it.text)
            }
            _ => continue,
        };
        match &part.parent {
            None => lines.push(output),
            Some(_) => inside.push(format!("inside: {output}")),
        }
    }
    lines.append(&mut inside);
    let finish = answer.finish.as_ref();
    let error = finish.and_then(|it| it.error.as_ref());
    // A file does not tell how the program exited.
    let why = error.filter(|it| it.code != ErrorCode::AgentExited).map(|it| &it.message);
    let status = finish.map(|it| it.status);
    lines.push(format!("ends {status:?} {:?} {why:?}\n", error.map(|it| &it.code)));
    lines.join("\n")
}

fn shown(call: &Call) -> String {
    let arguments: Value =
        serde_json::from_str(&call.arguments.whole().unwrap_or_default()).unwrap_or_default();
    let outcome = call.outcome.as_ref();
    let result = outcome.and_then(|it| it.result.as_ref()).and_then(Body::whole);
    let result: Value = serde_json::from_str(&result.unwrap_or_default()).unwrap_or_default();
    // Only Callboard knows the reason for a denial.
    let error = outcome.and_then(|it| it.error.as_ref()).map(|it| &it.code);
    let (stdout, stderr) = (call.stdout.whole(), call.stderr.whole());
    format!(
        "calls {} {arguments} -> {} {error:?} {stdout:?} {stderr:?}",
        call.name,
        without_nulls(&result)
    )
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.iter().filter(|(_, it)| !it.is_null());
            given.map(|(name, it)| (name.clone(), without_nulls(it))).collect()
        }
        other => other.clone(),
    }
}
