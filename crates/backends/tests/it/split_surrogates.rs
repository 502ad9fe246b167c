//! Surrogate pairs that are split between two lines, as programs do that count UTF-16 units. No
//! line is lost, and an unpaired surrogate costs one character.

use backends::ProgramKind;
use backends::import::{ConversationFile, Tail, read};
use transcript::{Event, Record};

use crate::{claude, codex, pi};

/// Returns the log of a program that streams a text in these pieces, each escaped as in JSON.
type StreamPieces = fn(&[String]) -> Vec<Record>;

const PROGRAMS: [StreamPieces; 3] = [
    |pieces| {
        let delta = |it: &String| {
            format!(
                r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{it}"}}}}}}"#
            )
        };
        let begin = [
            r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}"#,
        ];
        claude::replayed(&lines(&begin, pieces, delta))
    },
    |pieces| {
        let delta = |it: &String| {
            format!(
                r#"{{"type":"message_update","assistantMessageEvent":{{"type":"text_delta","contentIndex":0,"delta":"{it}"}}}}"#
            )
        };
        let begin = [r#"{"type":"message_start","message":{"role":"assistant"}}"#];
        pi::replayed(&lines(&begin, pieces, delta))
    },
    |pieces| {
        let delta = |it: &String| {
            format!(
                r#"{{"method":"item/agentMessage/delta","params":{{"threadId":"thread-1","turnId":"turn-1","itemId":"m","delta":"{it}"}}}}"#
            )
        };
        codex::replayed_unchanged(&lines(&[], pieces, delta))
    },
];

fn lines(begin: &[&str], pieces: &[String], delta: impl Fn(&String) -> String) -> Vec<String> {
    begin.iter().map(|&it| it.to_owned()).chain(pieces.iter().map(delta)).collect()
}

/// Returns the units, each as a JSON escape.
fn escaped(units: &[u16]) -> String {
    units.iter().map(|it| format!(r"\u{it:04x}")).collect()
}

#[track_caller]
fn streamed(records: &[Record]) -> String {
    let output = records.iter().filter_map(|it| match &it.event {
        Event::TextDelta { delta, .. } => Some(delta.as_str()),
        Event::Unrecognized { raw, .. } => panic!("lost: {raw}"),
        _ => None,
    });
    output.collect()
}

#[test]
fn a_text_cut_within_surrogate_pairs_arrives_whole() {
    let text = "a🙂ü😀🙂b";
    let units: Vec<u16> = text.encode_utf16().collect();
    for stream in PROGRAMS {
        for cut in 1..units.len() {
            let pieces = [escaped(&units[..cut]), escaped(&units[cut..])];
            assert_eq!(streamed(&stream(&pieces)), text, "cut at {cut}");
        }
        let units: Vec<String> = units.iter().map(|it| escaped(&[*it])).collect();
        assert_eq!(streamed(&stream(&units)), text, "cut everywhere");
    }
}

#[test]
fn an_unpaired_surrogate_costs_one_character() {
    for stream in PROGRAMS {
        let pieces = [r"x\ude42y \ud83d z".to_owned(), "!".to_owned()];
        assert_eq!(streamed(&stream(&pieces)), "x\u{fffd}y \u{fffd} z!");
    }
}

#[test]
fn a_file_with_an_unpaired_surrogate_is_read() {
    let files = [
        (
            ProgramKind::Claude,
            r#"{"type":"user","uuid":"u","sessionId":"c","cwd":"/w","timestamp":"2026-11-15T19:00:00.000Z","message":{"role":"user","content":"say \ud83d it"}}"#,
        ),
        (
            ProgramKind::Pi,
            r#"{"type":"session","id":"c","cwd":"/w"}
{"type":"message","id":"u","timestamp":"2026-11-15T19:00:00.000Z","message":{"role":"user","content":"say \ud83d it"}}"#,
        ),
        (
            ProgramKind::Codex,
            r#"{"type":"session_meta","payload":{"id":"c","cwd":"/w"}}
{"type":"event_msg","payload":{"type":"item_completed","turn_id":"t","item":{"type":"UserMessage","id":"u","content":[{"type":"text","text":"say \ud83d it"}]}}}"#,
        ),
    ];
    for (kind, text) in files {
        let text = format!("{text}\n");
        let kept = ConversationFile { kind, text: &text, side_files: &[], agent: "agent" };
        let imported = read(&kept, Tail::Close).expect("it says which conversation it is");
        let entries = imported.turns.iter().flat_map(|it| &it.entries).chain(&imported.rest);
        let is_unread = |it: &Event| matches!(it, Event::Unrecognized { .. });
        assert!(!entries.clone().any(|it| is_unread(&it.event)), "{kind:?}");
        let output = entries.filter(
            |it| matches!(&it.event, Event::UserMessage { text, .. } if text == "say \u{fffd} it"),
        );
        assert_eq!(output.count(), 1, "{kind:?}");
    }
}
