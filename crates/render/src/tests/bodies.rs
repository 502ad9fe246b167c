//! Bodies that a page fetches on request and an exported file contains.

use serde_json::{Value, json};
use transcript::{Call, Content, Message, SessionId, Transcript};

use super::corpus;
use crate::message::tool;
use crate::testing::dom::element;
use crate::{BodyKind, Export, Files, Peers, Settings, export_html, whole_body, whole_text};

/// Kinds that are shown unchanged; the others are views.
const TEXTS: [BodyKind; 7] = [
    BodyKind::Arguments,
    BodyKind::Proposed,
    BodyKind::Stdout,
    BodyKind::Stderr,
    BodyKind::Result,
    BodyKind::File,
    BodyKind::Call,
];

pub(super) const KINDS: [BodyKind; 11] = [
    BodyKind::Arguments,
    BodyKind::Proposed,
    BodyKind::Stdout,
    BodyKind::Stderr,
    BodyKind::Result,
    BodyKind::File,
    BodyKind::Call,
    BodyKind::Edit,
    BodyKind::ArgumentsView,
    BodyKind::Approval,
    BodyKind::ResultView,
];

fn calls(transcript: &Transcript) -> impl Iterator<Item = (&Message, &Call)> {
    let answers = transcript.messages.iter().filter_map(|it| Some((it, it.run()?)));
    answers.flat_map(|(message, answer)| answer.calls().map(move |call| (message, call)))
}

fn whole(records: &[transcript::Record]) -> Transcript {
    let mut transcript = Transcript::whole();
    transcript.extend(records);
    transcript
}

/// Highlighting and indentation keep the text; output is as a terminal shows it.
#[test]
fn a_whole_body_has_the_complete_text() {
    let mut files = 0;
    for (name, records) in corpus::logs() {
        let transcript = whole(&records);
        for (message, call) in calls(&transcript) {
            files += usize::from(tool::file(call).is_some());
            for kind in TEXTS {
                let text = whole_text(call, kind);
                let html = whole_body(&SessionId::new("s"), message, call, kind);
                let shown = element("body", &html).text();
                if text.contains(['\x1b', '\r', '\x08', '\0']) {
                    continue;
                }
                match serde_json::from_str::<Value>(&text) {
                    Ok(value) => assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value),
                    Err(_) => assert_eq!(shown, text, "{name} {}", call.id),
                }
            }
        }
    }
    assert!(files > 0, "no log contains a file");
}

#[test]
fn an_export_contains_its_attachments() {
    let (_, records) = corpus::logs().into_iter().find(|(name, _)| *name == "every event").unwrap();
    let transcript = whole(&records);
    let attached = transcript.messages.iter().filter_map(|it| match &it.content {
        Content::User(message) => Some(&message.attachments),
        _ => None,
    });
    let blobs: Vec<&str> = attached.flatten().map(|it| it.blob.as_str()).collect();
    assert!(!blobs.is_empty());
    let export = |files: Files| {
        let (session, settings) = (&SessionId::new("s"), &Settings::default());
        export_html(
            &transcript,
            Export { session, settings, stylesheet: "", files, peers: Peers::new() },
        )
    };
    let address = |blob: &&str| (blob.to_string(), format!("data:image/png;base64,{blob}"));
    let with = export(blobs.iter().map(address).collect());
    let without = export(Files::new());
    for blob in blobs {
        assert!(with.contains(&format!("data:image/png;base64,{blob}")), "{blob}");
    }
    for page in [with, without] {
        assert!(!page.contains("/api/blobs"), "{page}");
    }
}

/// Output is drawn the same whether it was streamed or reported at the end.
#[test]
fn command_output_is_drawn_like_in_a_terminal() {
    let output = "\u{1b}[31mred\u{1b}[0m\nplain\n";
    let forms = [
        json!(output),
        json!({ "stdout": output, "stderr": "" }),
        json!({ "stdout": "", "stderr": output }),
        json!({ "output": output }),
    ];
    for result in forms {
        let records = corpus::call("Bash", (json!({ "command": "make" }), result.clone()));
        let page = crate::testing::page(&Transcript::replay(&records));
        let drawn = page
            .elements()
            .into_iter()
            .find(|it| it.attribute("id").is_some_and(|it| it.ends_with("-told")));
        let drawn = drawn.unwrap_or_else(|| panic!("no output of {result}"));
        assert_eq!(
            drawn.text().split_whitespace().collect::<Vec<_>>(),
            ["red", "plain"],
            "{result}"
        );
        assert!(drawn.elements().iter().any(|it| it.name() == "span" && it.text() == "red"));
    }
}

#[test]
fn output_longer_than_its_box_shows_its_length() {
    for (n, expected) in [(20, vec![]), (21, vec!["Show all 21 linesShow less"]), (5000, vec![])] {
        let mut records = corpus::call("Bash", (json!({ "command": "seq" }), json!(null)));
        let lines: String = (0..n).map(|it| format!("line {it}\n")).collect();
        let output = json!({ "seq": records.len() + 1, "at": "2026-11-15T09:00:00Z", "sessionId": "s",
            "responseId": "r", "callId": "r.1", "type": "tool_output_delta", "stream": "stdout",
            "offset": 0, "delta": lines });
        records.push(serde_json::from_value(output).unwrap());
        let page = crate::testing::page(&Transcript::replay(&records));
        let boxes = page.elements().into_iter().filter(|it| it.has_class("all-lines"));
        assert_eq!(
            boxes.map(crate::testing::dom::Node::text).collect::<Vec<_>>(),
            expected,
            "{n} lines"
        );
        let is_cut = page.elements().iter().any(|it| it.has_class("show-all"));
        assert_eq!(is_cut, n == 5000, "{n} lines");
    }
}
