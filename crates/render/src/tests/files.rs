//! What an exported file says.

use transcript::{Record, SessionId, Transcript};

use crate::{Bodies, Settings, View, export_markdown};

fn transcript(events: &[&str]) -> Transcript {
    let records: Vec<Record> = (1..)
        .zip(events)
        .map(|(seq, event)| {
            let head = format!(r#"{{"seq":{seq},"at":"2026-11-15T09:00:00Z","sessionId":"s","#);
            serde_json::from_str(&(head + &event[1..])).unwrap()
        })
        .collect();
    Transcript::replay(&records)
}

#[test]
fn messages_that_wait_are_in_it() {
    let transcript = transcript(&[
        r#"{"type":"session_created","agent":"demo","title":"T"}"#,
        r#"{"type":"message_queued","messageId":"m","text":"and then?","mode":"queue"}"#,
    ]);
    let markdown = export_markdown(&transcript);
    assert!(markdown.ends_with("## You (waits for its turn)\n\nand then?\n"), "{markdown}");
    let html = crate::export_html(
        &transcript,
        crate::Export {
            session: &SessionId::new("s"),
            settings: &Settings::default(),
            stylesheet: "",
            files: crate::Files::new(),
            peers: crate::Peers::new(),
        },
    );
    assert!(html.contains("and then?"), "{html}");
}

#[test]
fn a_fence_is_longer_than_any_in_the_text() {
    let transcript = transcript(&[
        r#"{"type":"run_start","responseId":"r","agent":"demo","trigger":"user"}"#,
        r#"{"type":"unrecognized","responseId":"r","source":"x","raw":"a list:\n  ````rust\n  ````"}"#,
    ]);
    let markdown = export_markdown(&transcript);
    assert!(markdown.contains("\n`````\na list"), "{markdown}");
}

#[test]
fn elements_of_two_sessions_never_share_an_id() {
    let id = |session: &str| View::new(SessionId::new(session), Bodies::Cut).id("x");
    assert_ne!(id("alpha-session"), id("beta-session"));
    assert_eq!(id("alpha"), "alpha-x");
}
