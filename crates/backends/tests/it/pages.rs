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
use transcript::{Record, Transcript};

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

/// Within a run, the only user messages in the history are steering messages.
#[test]
fn no_recording_gives_a_model_a_message_that_nobody_sent() {
    for session in all() {
        let transcript = Transcript::replay(&session.records);
        let reader = Reader { agent: "", model: None, system: None, files: Files::LeftOut };
        for message in transcript.messages.iter().filter(|it| it.answer().is_some()) {
            let mut alone = Transcript::default();
            alone.messages.push(message.clone());
            let history = history(&alone, &reader);
            let inner = history.get(1..history.len() - 1).unwrap_or_default();
            let parts = message.answer().unwrap().parts.iter();
            let steered: Vec<&str> = parts.filter_map(steered).collect();
            for said in inner.iter().filter(|it| it["role"] == "user") {
                let said = said["content"].as_str().unwrap();
                assert!(steered.iter().any(|it| said.contains(it)), "{}: {said}", session.name);
            }
        }
    }
}

fn steered(part: &transcript::Part) -> Option<&str> {
    match &part.kind {
        transcript::PartKind::Steered(it) => Some(it.text.as_str()),
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
