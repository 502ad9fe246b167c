//! Exported files.

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

fn exported(transcript: &Transcript) -> String {
    let export = crate::Export {
        session: &SessionId::new("s"),
        settings: &Settings::default(),
        stylesheet: "",
        files: crate::Files::new(),
        peers: crate::Peers::new(),
    };
    crate::export_html(transcript, export)
}

#[test]
fn queued_messages_are_exported() {
    let transcript = transcript(&[
        r#"{"type":"session_created","agent":"demo","title":"T"}"#,
        r#"{"type":"message_queued","messageId":"m","text":"and then?","mode":"queue"}"#,
    ]);
    let markdown = export_markdown(&transcript);
    assert!(markdown.ends_with("## You (waits for its turn)\n\nand then?\n"), "{markdown}");
    let html = exported(&transcript);
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

#[test]
fn a_linked_file_is_a_link() {
    let sent = r#""sent":{"parts":[{"type":"file","mediaType":"image/png","url":"https://example.com/dot"},{"type":"file","mediaType":"image/png","url":"javascript:alert(1)"}]}"#;
    let transcript = transcript(&[
        &format!(r#"{{"type":"user_message","messageId":"m1","text":"look",{sent}}}"#),
        &format!(r#"{{"type":"message_queued","messageId":"m2","text":"and then?",{sent}}}"#),
    ]);
    let link = r#"href="https://example.com/dot" target="_blank" rel="noopener noreferrer""#;
    let page = exported(&transcript);
    assert_eq!(page.matches(link).count(), 2, "{page}");
    assert!(!page.contains("alert(1)"), "{page}");
    assert!(!page.contains("Steer now"), "{page}");
    let markdown = export_markdown(&transcript);
    assert_eq!(markdown.matches("Linked: https://example.com/dot\n").count(), 2, "{markdown}");
}
