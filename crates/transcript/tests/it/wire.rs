//! Records as JSON: the order of fields, and the treatment of unknown types and fields.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::Value;
use testkit::logs::any_log;
use transcript::*;

/// Checks that both ways of parsing agree.
fn parse(json: &str) -> Record {
    let read = Record::from_json(json).unwrap();
    assert_eq!(read, serde_json::from_str(json).unwrap());
    read
}

#[test]
fn header_first_then_type_then_fields() {
    let record = Record::new(
        Seq(42),
        Millis(1_763_232_268_123),
        SessionId::new("s-1"),
        Some(ResponseId::new("r-1")),
        Event::TextDelta {
            part_id: PartId::new("r-1.0"),
            parent_call_id: None,
            delta: "Hel\"".into(),
        },
    );
    expect![[r#"{"seq":42,"at":"2025-11-15T18:44:28.123Z","sessionId":"s-1","responseId":"r-1","type":"text_delta","partId":"r-1.0","delta":"Hel\""}"#]]
    .assert_eq(&record.to_json());
    assert_eq!(parse(&record.to_json()), record);
}

#[test]
fn unknown_types_and_fields_are_kept() {
    for json in [
        r#"{"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"of_tomorrow","deep":{"a":[1,null]}}"#,
        r#"{"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"notice","level":"info","text":"hi","shade":"blue"}"#,
        r#"{"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"text_delta","delta":7}"#,
        r#"{"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"text_delta","partId":"p","delta":"a","shade":"blue"}"#,
        r#"{"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"text_delta","partId":"p","delta":"a","callId":"c"}"#,
        r#"{"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"tool_arguments_delta","callId":"c","delta":"a","offset":1}"#,
        r#"{"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s"}"#,
    ] {
        assert_eq!(parse(json).to_json(), json);
    }
}

#[test]
fn an_unreadable_body_is_kept() {
    assert!(matches!(event_from_body("not json"), Event::Other(_)));
    assert!(matches!(event_from_body("[1]"), Event::Other(_)));
    assert!(matches!(event_from_body(r#"{"type":"queue_released"}"#), Event::QueueReleased {}));
}

#[test]
fn error_codes_match_their_json() {
    for (code, _) in ErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
    let newer: ErrorCode = serde_json::from_str("\"of_tomorrow\"").unwrap();
    assert_eq!(newer, ErrorCode::Other("of_tomorrow".into()));
}

#[test]
fn session_ids_are_safe_in_paths() {
    assert!(SessionId::parse("0199-aZ_").is_some());
    for bad in ["", "a/b", "..", "a b", "ü", &"a".repeat(129)] {
        assert_eq!(SessionId::parse(bad), None, "{bad}");
    }
}

/// Logs of released versions must replay forever.
#[test]
fn the_log_of_version_1_replays() {
    let log = include_str!("../../fixtures/v1.jsonl");
    let records: Vec<Record> = log.lines().map(parse).collect();
    for (record, line) in records.iter().zip(log.lines()) {
        assert!(!matches!(record.event, Event::Other(_)), "cannot be read: {line}");
        let (written, read) = (serde_json::to_value(record), serde_json::from_str::<Value>(line));
        assert_eq!(written.unwrap(), read.unwrap(), "all fields are kept");
    }
    let kinds: std::collections::BTreeSet<String> = records.iter().map(kind).collect();
    assert_eq!(kinds.len(), 39, "every type of that version");
    let transcript = Transcript::replay(&records);
    let shown: Vec<String> = transcript.messages.iter().map(crate::examples::sketch).collect();
    expect_test::expect_file!["../../fixtures/v1.txt"].assert_eq(&shown.join(""));
}

fn kind(record: &Record) -> String {
    let body: Value = serde_json::from_str(&record.body()).unwrap();
    body["type"].as_str().unwrap().to_owned()
}

proptest! {
    /// The fast parser agrees with the calendar library, also with one character changed.
    #[test]
    fn timestamps_parse_like_the_calendar_library(
        ms in -62_135_596_800_000_i64..253_402_300_799_999,
        (at, letter) in (0_usize..24, "[0-9TZ:. +-]"),
    ) {
        let written = Millis(ms).to_string();
        prop_assert_eq!(Millis::parse(&written), Some(Millis(ms)));
        let mut changed = written;
        changed.replace_range(at..=at, &letter);
        let expected = changed.parse::<jiff::Timestamp>().ok().map(|it| Millis(it.as_millisecond()));
        prop_assert_eq!(Millis::parse(&changed), expected, "{}", changed);
    }

    #[test]
    fn records_round_trip_through_json(log in any_log(40)) {
        for record in log {
            prop_assert_eq!(&parse(&record.to_json()), &record);
            prop_assert_eq!(event_from_body(&record.body()), record.event);
        }
    }
}
