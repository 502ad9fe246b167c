//! Every recording as a page: snapshots of its outline, and laws that hold for every page.

mod agui;
mod losses;
mod messages;
mod outline;
mod ui_messages;

use std::path::PathBuf;

use expect_test::expect_file;
use formats::openai::{Files, Reader, history};
use render::testing::{check_every_prefix, check_ids, check_words, page};
use serde_json::{Value, json};
use transcript::{Message, Part, PartKind, Record, SteerState, Transcript};

use self::outline::outline;

/// A played recording with its log.
pub(crate) struct Session {
    pub(crate) name: String,
    /// Path of the outline's snapshot.
    pub(crate) outline: PathBuf,
    pub(crate) records: Vec<Record>,
    /// Lines that the agent wrote.
    pub(crate) output: Vec<String>,
}

fn all() -> impl Iterator<Item = Session> {
    let kinds = [
        crate::claude::sessions,
        crate::codex::sessions,
        crate::pi::sessions,
        crate::captures::sessions,
        crate::vectors::sessions,
        crate::made_up::sessions,
    ];
    kinds.into_iter().flat_map(|sessions| sessions())
}

#[test]
fn every_recording_matches_its_page_snapshot() {
    for session in all() {
        let page = page(&Transcript::replay(&session.records));
        expect_file![session.outline].assert_eq(&outline(&page));
    }
}

#[test]
fn every_text_of_a_recording_is_reachable() {
    for session in all() {
        check_words(&session.records);
    }
}

/// At any record of a run, the only user messages in the history are steering messages, and these
/// and the agent's texts are in order.
#[test]
fn the_history_has_no_message_that_nobody_sent() {
    for session in all() {
        let mut transcript = Transcript::default();
        for record in &session.records {
            transcript.apply(record);
            if let Some(message) = transcript.messages.last().filter(|it| it.run().is_some()) {
                check_history(&session.name, message);
            }
        }
    }
}

fn check_history(session: &str, message: &Message) {
    let reader = Reader { agent: "", model: None, system: None, files: Files::LeftOut };
    let mut alone = Transcript::default();
    alone.messages.push(message.clone());
    let history = history(&alone, &reader);
    let of_role = |messages: &[Value], role: &str| -> String {
        let texts = messages.iter().filter(|it| it["role"] == role);
        texts.filter_map(|it| it["content"].as_str()).collect::<Vec<_>>().join("\n\n")
    };
    // A history starts and ends with a user message.
    let inner = history.strip_prefix(&[nudge()]).unwrap_or(&history);
    let inner = inner.strip_suffix(&[nudge()]).unwrap_or(inner);
    let parts = || message.run().into_iter().flat_map(|it| &it.parts);
    let parts = || parts().filter(|it| it.parent.is_none());
    let steered: Vec<&str> = parts().filter_map(steered).collect();
    assert_eq!(of_role(inner, "user"), steered.join("\n\n"), "{session}");
    let words: Vec<&str> = parts().filter_map(words).collect();
    let told = of_role(inner, "assistant");
    let told = told.split("\n\n[interrupted").next().unwrap_or_default();
    assert_eq!(told, words.join("\n\n"), "{session}");
}

fn nudge() -> Value {
    json!({ "role": "user", "content": "Continue." })
}

/// Returns the text of a steering message, unless it was returned and is a message of its own.
fn steered(part: &Part) -> Option<&str> {
    match &part.kind {
        PartKind::Steered(it) if it.state != SteerState::Returned => Some(it.text.as_str()),
        _ => None,
    }
}

fn words(part: &Part) -> Option<&str> {
    match &part.kind {
        PartKind::Text(it) if part.kind.has_visible_text() => Some(it.text.as_str()),
        _ => None,
    }
}

/// Defines one test for each kind, since they take long and may run in parallel.
macro_rules! patches_lead_to_every_page_of {
    ($($kind:ident),*) => {
        mod law {
            $(
                #[test]
                fn $kind() {
                    super::check_patches(stringify!($kind), crate::$kind::sessions());
                }
            )*
        }
    };
}

patches_lead_to_every_page_of!(claude, codex, pi, captures, vectors, made_up);

#[expect(clippy::print_stdout, reason = "how much was compared is part of the result")]
fn check_patches(kind: &str, sessions: Vec<Session>) {
    let mut cuts = 0;
    for session in &sessions {
        check_ids(&session.records);
        cuts += check_every_prefix(&session.records);
    }
    println!("{kind}: {cuts} cuts compared in {} recordings", sessions.len());
    assert!(cuts > 5 * sessions.len(), "{cuts} cuts");
}

/// Recordings of each program with everything that is hard for a page, which `e2e/law.test.mjs`
/// plays in a browser.
const FOR_THE_BROWSER: [&str; 12] = [
    "claude/approve-deny",
    "claude/maxtok",
    "claude/parallel",
    "claude/subagent",
    "claude/thinktool",
    "codex/app-middrop",
    "codex/app-ticks",
    "made_up/claude/agents-within-agents",
    "made_up/claude/carriage-returns",
    "made_up/codex/a-long-output",
    "pi/0.73/sleep-abort",
    "pi/0.73/steer",
];

#[test]
fn logs_for_the_browser_match_their_recordings() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/logs");
    let mut written = 0;
    for session in all().filter(|it| FOR_THE_BROWSER.contains(&it.name.as_str())) {
        let file = folder.join(session.name.replace(['/', '.'], "-") + ".jsonl");
        let line = |it: &Record| serde_json::to_string(it).unwrap() + "\n";
        expect_file![file].assert_eq(&session.records.iter().map(line).collect::<String>());
        written += 1;
    }
    assert_eq!(written, FOR_THE_BROWSER.len());
}
