//! Every recording as the page that a person sees: its outline, to be read, and the laws that hold for
//! every page, whatever made it.

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

/// A recording that was played, as the server would have written it down.
pub(crate) struct Session {
    pub(crate) name: String,
    /// Where its outline is kept.
    pub(crate) outline: PathBuf,
    pub(crate) records: Vec<Record>,
    /// What the agent said, line by line.
    pub(crate) said: Vec<String>,
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
fn every_recording_is_this_page() {
    for session in all() {
        let page = page(&Transcript::replay(&session.records));
        expect_file![session.outline].assert_eq(&outline(&page));
    }
}

#[test]
fn no_words_of_a_recording_are_out_of_reach() {
    for session in all() {
        check_words(&session.records);
    }
}

/// Within a run, wherever it is cut, the only user messages in the history are steering messages, and these and the
/// agent's words are in their order.
#[test]
fn no_recording_gives_a_model_a_message_that_nobody_sent() {
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
    // Somebody has to begin, and to ask.
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

/// What was given back is said in its own turn.
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

/// One test for each kind, since they take long and may run side by side.
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

/// A few of each program, with all that is hard for a page; `e2e/law.test.mjs` follows them in a browser.
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
fn some_recordings_are_these_logs() {
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
