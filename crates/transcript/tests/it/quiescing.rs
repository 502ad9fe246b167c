//! A quiesced session does nothing by itself and has lost nothing.

use proptest::prelude::*;
use testkit::logs::{any_log, started_log};
use transcript::*;

/// Checks everything that a server acts upon when it opens the session.
fn check_quiescent(transcript: &Transcript) {
    let Transcript { summary, queue, messages, .. } = transcript;
    assert_eq!(summary.open_run, None);
    assert!(!summary.unanswered);
    assert!(summary.open_exchanges.is_empty(), "{:?}", summary.open_exchanges);
    assert_eq!(queue.next(), None);
    for answer in messages.iter().filter_map(Message::run) {
        assert!(!answer.is_open(), "{}", answer.id);
    }
}

fn quiesced(log: &[Record]) -> Transcript {
    let mut transcript = Transcript::replay(log);
    let added = quiesce(log);
    transcript.extend(&added);
    assert_eq!(transcript.head.0, (log.len() + added.len()) as u64, "numbers continue");
    check_quiescent(&transcript);
    let whole: Vec<Record> = log.iter().chain(&added).cloned().collect();
    assert_eq!(quiesce(&whole), [], "quiescing again adds nothing");
    transcript
}

/// Checks that no message is lost or added.
fn check_nothing_lost(log: &[Record]) {
    let (before, after) = (Transcript::replay(log), quiesced(log));
    let ids = |it: &Transcript| it.messages.iter().map(Message::id).collect::<Vec<_>>();
    assert_eq!(ids(&after), ids(&before));
    let answers = || after.messages.iter().filter_map(Message::run);
    assert!(!answers().flat_map(RunMessage::calls).any(Call::is_open));
    for queued in &before.queue.messages {
        let now = after.queue.get(&queued.id).expect("the message is still queued");
        assert!(now.held);
        assert_eq!(now.mode, SendMode::Queue, "there is no run to steer");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_log_can_be_quiesced(log in any_log(60)) {
        quiesced(&log);
    }

    #[test]
    fn every_prefix_of_a_log_can_be_quiesced(log in started_log(12)) {
        for end in 0..=log.len() {
            quiesced(&log[..end]);
        }
    }
}

const BUSY: &str = r#"
    - {"type":"session_created","agent":"demo"}
    - {"type":"user_message","messageId":"m1","text":"look"}
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"text_start","partId":"p1"}
    r1 {"type":"text_delta","partId":"p1","delta":"I ask"}
    - {"type":"message_queued","messageId":"m2","text":"and then?","mode":"steer"}
    r1 {"type":"message_steered","messageId":"m2","text":"and then?","state":"handed_over"}
    - {"type":"message_queued","messageId":"m3","text":"later","mode":"queue"}
    - {"type":"message_queued","messageId":"m4","text":"soon","mode":"steer"}
    r1 {"type":"agent_message","exchangeId":"x1","direction":"sent","agent":"demo","peerSessionId":"s2","text":"now?","mode":"sync"}
    r1 {"type":"agent_message","exchangeId":"x2","direction":"sent","agent":"demo","peerSessionId":"s3","text":"some day?","mode":"async"}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"shell","executor":"server"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{}","summary":"","validation":"pending"}
    r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":false}}
"#;

fn parse(log: &str) -> Vec<Record> {
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let record = |(seq, line): (u64, &str)| {
        let (run, body) = line.split_once(' ').unwrap();
        let run = (run != "-").then(|| ResponseId::new(run));
        let event = event_from_body(body);
        assert!(!matches!(event, Event::Other(_)), "{line}");
        Record::new(Seq(seq), Millis(seq as i64), SessionId::new("s"), run, event)
    };
    (1..).zip(lines).map(record).collect()
}

/// A run that has given back its first steered message and not read the second.
const GIVEN_BACK: &str = r#"
    - {"type":"session_created","agent":"demo"}
    - {"type":"user_message","messageId":"m1","text":"look"}
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    - {"type":"message_queued","messageId":"m2","text":"first","mode":"steer"}
    - {"type":"message_queued","messageId":"m3","text":"second","mode":"steer"}
    r1 {"type":"message_steered","messageId":"m2","text":"first","state":"handed_over"}
    r1 {"type":"message_steered","messageId":"m3","text":"second","state":"handed_over"}
    r1 {"type":"message_steered","messageId":"m2","text":"first","state":"returned"}
    - {"type":"message_queued","messageId":"m2","text":"first","position":0}
"#;

#[test]
fn returned_messages_keep_their_order() {
    let queue = quiesced(&parse(GIVEN_BACK)).queue;
    let texts: Vec<&str> = queue.messages.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(texts, ["first", "second"]);
}

#[test]
fn no_prefix_of_a_busy_session_loses_messages() {
    let log = parse(BUSY);
    for end in 0..=log.len() {
        check_nothing_lost(&log[..end]);
    }
    let added: Vec<String> = quiesce(&log)
        .iter()
        .map(|it| {
            format!("{} {}\n", it.response_id.as_ref().map_or("-", |it| it.as_str()), it.body())
        })
        .collect();
    expect_test::expect![[r#"
        r1 {"type":"message_steered","messageId":"m4","text":"soon","state":"returned"}
        r1 {"type":"message_steered","messageId":"m2","text":"and then?","state":"returned"}
        - {"type":"message_queued","messageId":"m2","text":"and then?","position":0}
        r1 {"type":"text_done","partId":"p1","text":"I ask"}
        r1 {"type":"tool_approval_resolved","callId":"c1","decision":"withdrawn","by":"callboard"}
        r1 {"type":"agent_callback_result","exchangeId":"x1","direction":"sent","agent":"demo","peerSessionId":"s2","ok":false,"error":{"code":"agent_cancelled","message":"The session was imported before the answer came."}}
        r1 {"type":"tool_result","callId":"c1","toolName":"shell","ok":false,"error":{"code":"tool_interrupted","message":"Tool call had not ended when the session was imported"}}
        r1 {"type":"step_finish","index":0,"finishReason":"cancelled"}
        r1 {"type":"output_cancelled","reason":"import"}
        r1 {"type":"run_finish","status":"cancelled","durationMs":12}
        r1 {"type":"agent_callback_result","exchangeId":"x2","direction":"sent","agent":"demo","peerSessionId":"s3","ok":false,"error":{"code":"agent_cancelled","message":"The session was imported before the answer came."}}
        - {"type":"queue_held","reason":"imported"}
    "#]].assert_eq(&added.concat());
}
