//! Small logs and their transcripts. `UPDATE_EXPECT=1` updates the expected values.

use expect_test::{Expect, expect};
use serde_json::json;
use transcript::*;

#[test]
fn text_before_a_call_is_commentary_and_after_it_final() {
    check(
        "
        run_start {'agent':'demo','trigger':'user'}
        step_start {'index':0}
        text_delta {'partId':'p0','delta':' Let me '}
        text_delta {'partId':'p0','delta':'look. '}
        text_done {'partId':'p0','text':' Let me look. '}
        tool_call_start {'callId':'c1','toolName':'list_files','executor':'server'}
        tool_arguments_done {'callId':'c1','arguments':'{}','summary':'','validation':'not_required'}
        tool_running {'callId':'c1'}
        tool_result {'callId':'c1','toolName':'list_files','ok':true,'result':{'n':3},'durationMs':7}
        step_finish {'index':0,'finishReason':'tool-calls'}
        step_start {'index':1}
        text_done {'partId':'p2','text':'Three files.'}
        step_finish {'index':1,'finishReason':'stop'}
        run_finish {'status':'completed','durationMs':9}
        ",
        expect![[r#"
            answer r completed
              commentary for c1: " Let me look. "
              call list_files succeeded, commentary Some("Let me look.")
              final: "Three files."
              content "Three files."
        "#]],
    );
}

#[test]
fn each_call_takes_the_text_since_the_call_before() {
    check(
        "
        step_start {'index':0}
        text_done {'partId':'p0','text':'First.'}
        tool_call_start {'callId':'c1','toolName':'a','executor':'server'}
        text_done {'partId':'p2','text':'Then.'}
        tool_call_start {'callId':'c3','toolName':'b','executor':'server'}
        tool_call_start {'callId':'c4','toolName':'c','executor':'server'}
        text_done {'partId':'p5','text':'Carried over.'}
        step_finish {'index':0,'finishReason':'tool-calls'}
        step_start {'index':1}
        text_done {'partId':'p6','text':'And on.'}
        tool_call_start {'callId':'c7','toolName':'d','executor':'server'}
        text_done {'partId':'p8','text':'Never dropped.'}
        step_finish {'index':1,'finishReason':'tool-calls'}
        run_finish {'status':'completed','durationMs':9}
        ",
        expect![[r#"
            answer r completed
              commentary for c1: "First."
              call a streaming_input, commentary Some("First.")
              commentary for c3: "Then."
              call b streaming_input, commentary Some("Then.")
              call c streaming_input, commentary None
              commentary for c7: "Carried over."
              commentary for c7: "And on."
              call d streaming_input, commentary Some("Carried over.\n\nAnd on.")
              final: "Never dropped."
              content "Never dropped."
        "#]],
    );
}

#[test]
fn without_final_text_the_last_texts_become_final() {
    let log = "
        step_start {'index':0}
        text_done {'partId':'p0','text':'First.'}
        tool_call_start {'callId':'c1','toolName':'a','executor':'server'}
        step_finish {'index':0,'finishReason':'tool-calls'}
        step_start {'index':1}
        text_done {'partId':'p2','text':'The answer is 42.'}
        tool_call_start {'callId':'c3','toolName':'b','executor':'server'}
        step_finish {'index':1,'finishReason':'tool-calls'}
        step_start {'index':2}
        step_finish {'index':2,'finishReason':'stop'}
        ";
    for status in ["completed", "failed", "cancelled"] {
        let log = format!("{log}\nrun_finish {{'status':'{status}'}}");
        let expected = format!(
            r#"answer r {status}
  commentary for c1: "First."
  call a streaming_input, commentary Some("First.")
  final: "The answer is 42."
  call b streaming_input, commentary None
  content "The answer is 42."
"#
        );
        let transcript = Transcript::replay(&parse(&log));
        assert_eq!(sketch(&transcript.messages[0]), expected);
    }
}

#[test]
fn text_is_undecided_in_an_open_step_and_kept_on_cancel() {
    let open = "
        step_start {'index':0}
        text_delta {'partId':'p0','delta':'I was about to'}
        ";
    check(
        open,
        expect![[r#"
            answer r open
              undecided: "I was about to"
              content ""
        "#]],
    );
    check(
        &format!(
            "{open}
            text_done {{'partId':'p0','text':'I was about to'}}
            step_finish {{'index':0,'finishReason':'cancelled'}}
            output_cancelled {{'reason':'user_cancel'}}
            run_finish {{'status':'cancelled','durationMs':9}}
            "
        ),
        expect![[r#"
            answer r cancelled interrupted
              final: "I was about to"
              content "I was about to"
        "#]],
    );
}

#[test]
fn the_phase_of_a_provider_takes_precedence() {
    check(
        "
        step_start {'index':0}
        text_done {'partId':'p0','text':'The answer.','phase':'final'}
        text_done {'partId':'p1','text':'By the way.','phase':'commentary'}
        step_finish {'index':0,'finishReason':'stop'}
        step_start {'index':1}
        tool_call_start {'callId':'c2','toolName':'a','executor':'agent'}
        text_done {'partId':'p3','text':'Last words.','phase':'commentary'}
        text_done {'partId':'p4','text':'Oops','discarded':true}
        run_finish {'status':'completed','durationMs':9}
        ",
        expect![[r#"
            answer r completed
              final: "The answer."
              commentary for c2: "By the way."
              call a streaming_input, commentary Some("By the way.")
              commentary: "Last words."
              discarded: "Oops"
              content "The answer."
        "#]],
    );
}

#[test]
fn texts_of_a_sub_agent_stay_in_its_scope() {
    check(
        "
        step_start {'index':0}
        text_done {'partId':'p0','text':'Ask someone.'}
        tool_call_start {'callId':'c1','toolName':'task','executor':'agent'}
        step_start {'index':0,'parentCallId':'c1'}
        text_done {'partId':'p2','text':'Inner words.','parentCallId':'c1'}
        tool_call_start {'callId':'c3','toolName':'read','executor':'agent','parentCallId':'c1'}
        step_finish {'index':0,'finishReason':'tool-calls','parentCallId':'c1'}
        text_done {'partId':'p4','text':'Inner answer.','parentCallId':'c1'}
        step_finish {'index':0,'finishReason':'tool-calls'}
        text_done {'partId':'p5','text':'Outer answer.'}
        run_finish {'status':'completed','durationMs':9}
        ",
        expect![[r#"
            answer r completed
              commentary for c1: "Ask someone."
              call task streaming_input, commentary Some("Ask someone.")
              in c1: commentary for c3: "Inner words."
              in c1: call read streaming_input, commentary Some("Inner words.")
              in c1: final: "Inner answer."
              final: "Outer answer."
              content "Outer answer."
        "#]],
    );
}

#[test]
fn a_parallel_sub_agent_keeps_its_texts() {
    check(
        "
        step_start {'index':0}
        tool_call_start {'callId':'c1','toolName':'task','executor':'agent'}
        step_start {'index':0,'parentCallId':'c1'}
        text_done {'partId':'p2','text':'Inner words.','parentCallId':'c1'}
        tool_call_start {'callId':'c3','toolName':'read','executor':'agent'}
        tool_call_start {'callId':'c4','toolName':'look','executor':'agent','parentCallId':'c1'}
        run_finish {'status':'completed','durationMs':9}
        ",
        expect![[r#"
            answer r completed
              call task streaming_input, commentary None
              in c1: final: "Inner words."
              call read streaming_input, commentary None
              in c1: call look streaming_input, commentary None
              content ""
        "#]],
    );
}

#[test]
fn output_merges_only_where_it_adjoins() {
    let output = |offset, delta: &str| Event::ToolOutputDelta {
        call_id: CallId::new("c1"),
        stream: OutputStream::Stdout,
        offset,
        delta: delta.to_owned(),
    };
    for (offset, is_merged) in [(2, false), (3, true), (4, false)] {
        let mut event = output(0, "abc");
        assert_eq!(stream::merge(&mut event, &output(offset, "d")), is_merged, "at {offset}");
        assert_eq!(event, output(0, if is_merged { "abcd" } else { "abc" }));
    }
}

#[test]
fn leaked_arguments_are_marked_in_either_order() {
    check(
        r#"
        step_start {'index':0}
        text_done {'partId':'p0','text':'{\"q\": 1}'}
        tool_call_start {'callId':'c1','toolName':'a','executor':'server'}
        tool_arguments_done {'callId':'c1','arguments':'{\"q\":1}','validation':'not_required'}
        text_done {'partId':'p2','text':'{\"q\":1}'}
        text_done {'partId':'p3','text':'[Note] this is text'}
        text_done {'partId':'p4','text':'{\"other\":2}'}
        run_finish {'status':'completed','durationMs':9}
        "#,
        expect![[r#"
            answer r completed
              commentary for c1, leaked: "{\"q\": 1}"
              call a queued, commentary None
              final, leaked: "{\"q\":1}"
              final: "[Note] this is text"
              final: "{\"other\":2}"
              content "[Note] this is text\n\n{\"other\":2}"
        "#]],
    );
}

#[test]
fn a_decision_sets_the_state_of_the_call() {
    for (decision, code, state) in [
        ("accepted", "tool_error", CallState::Failed),
        ("rejected", "tool_denied", CallState::Denied),
        ("timed_out", "approval_timeout", CallState::Denied),
        ("withdrawn", "tool_interrupted", CallState::Interrupted),
    ] {
        let log = format!(
            "
            tool_call_start {{'callId':'c1','toolName':'shell','executor':'server'}}
            tool_arguments_done {{'callId':'c1','arguments':'{{}}','validation':'pending'}}
            tool_approval_requested {{'callId':'c1','options':{{'scopes':['once'],'canEdit':true}}}}
            tool_approval_resolved {{'callId':'c1','decision':'{decision}','by':'me'}}
            tool_result {{'callId':'c1','toolName':'shell','ok':false,'error':{{'code':'{code}','message':'no'}}}}
            "
        );
        let transcript = Transcript::replay(&parse(&log));
        let call = transcript.messages[0].run().unwrap().calls().next().unwrap().clone();
        assert_eq!(call.state, state);
    }
}

#[test]
fn a_call_runs_only_after_its_approval() {
    let log = "
        tool_call_start {'callId':'c1','toolName':'shell','executor':'agent'}
        tool_arguments_done {'callId':'c1','arguments':'{}','validation':'not_required'}
        tool_running {'callId':'c1'}
        tool_approval_requested {'callId':'c1','options':{'scopes':['once'],'canEdit':true}}
        tool_running {'callId':'c1'}
        tool_approval_resolved {'callId':'c1','decision':'accepted','by':'me'}
        tool_running {'callId':'c1'}";
    let states: Vec<_> = (2..=7)
        .map(|n| {
            let log = parse(log).into_iter().take(n).collect::<Vec<_>>();
            let transcript = Transcript::replay(&log);
            let call = transcript.messages[0].run().unwrap().calls().next().unwrap().clone();
            (call.state, call.running_since.is_some())
        })
        .collect();
    use CallState::{AwaitingApproval, Queued, Running};
    let waits = (AwaitingApproval, false);
    let expected =
        [(Queued, false), (Running, true), waits, waits, (Queued, false), (Running, true)];
    assert_eq!(states, expected);
}

#[test]
fn records_without_a_start_create_their_part() {
    check(
        "
        tool_result {'callId':'c9','toolName':'','ok':true,'result':'an orphan'}
        text_delta {'partId':'p0','delta':'no start'}
        tool_result {'callId':'c9','toolName':'late','ok':false}
        tool_arguments_delta {'callId':'c8','delta':'{'}
        ",
        expect![[r#"
            answer r open
              call Call #1 succeeded, commentary None
              commentary for c8: "no start"
              call Call #2 streaming_input, commentary Some("no start")
              content ""
        "#]],
    );
}

#[test]
fn rewound_messages_stay_but_are_superseded() {
    let mut records = parse(
        "
        run_start {'agent':'demo','trigger':'user'}
        run_finish {'status':'failed','durationMs':1}
        ",
    );
    let rewound =
        Event::HistoryRewound { before_message_id: "r".into(), reason: RewindReason::Retry };
    records.push(Record::new(Seq(3), Millis(0), SessionId::new("s"), None, rewound));
    let transcript = Transcript::replay(&records);
    assert!(transcript.messages[0].superseded);
    assert_eq!(transcript.messages[0].changed, Seq(3));
}

#[test]
fn queued_messages_wait_in_their_order() {
    let mut queue = Queue::default();
    let queued = |id: &str, position: Option<u32>| json!({"type": "message_queued", "messageId": id, "text": id, "position": position});
    for event in [
        queued("a", None),
        queued("b", None),
        queued("c", Some(0)),
        json!({"type": "message_moved", "messageId": "b", "position": 0}),
        json!({"type": "message_edited", "messageId": "a", "text": "A"}),
        json!({"type": "message_dropped", "messageId": "c"}),
        json!({"type": "queue_held", "reason": "stopped"}),
        queued("d", None),
        json!({"type": "message_edited", "messageId": "d", "text": "d", "mode": "steer"}),
        json!({"type": "message_steered", "messageId": "d", "text": "d", "state": "returned"}),
    ] {
        let event = event_from_body(&event.to_string());
        assert!(queue.apply(&Record::new(Seq(1), Millis(0), SessionId::new("s"), None, event)));
    }
    let waiting: Vec<_> =
        queue.messages.iter().map(|it| (it.text.as_str(), it.held, it.returned)).collect();
    assert_eq!(waiting, [("b", true, false), ("A", true, false), ("d", false, true)]);
    assert_eq!(queue.next().map(|it| it.text.as_str()), Some("d"), "queued after the stop");
}

#[track_caller]
fn check(log: &str, expect: Expect) {
    let transcript = Transcript::replay(&parse(log));
    expect.assert_eq(&transcript.messages.iter().map(sketch).collect::<String>());
}

/// Parses a log of run `r`, one record per line: type and fields, with single quotes for legibility.
pub(crate) fn parse(log: &str) -> Vec<Record> {
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    (1..)
        .zip(lines)
        .map(|(seq, line)| {
            let (kind, fields) = line.split_once(' ').unwrap();
            let fields = fields.replace('\'', "\"").replacen('{', "", 1);
            let event = event_from_body(&format!(r#"{{"type":"{kind}",{fields}"#));
            assert!(!matches!(event, Event::Other(_)), "cannot read: {line}");
            let run = Some(ResponseId::new("r"));
            Record::new(Seq(seq), Millis(seq as i64), SessionId::new("s"), run, event)
        })
        .collect()
}

/// Describes a message in a few lines.
pub(crate) fn sketch(message: &Message) -> String {
    let answer = match &message.content {
        Content::User(message) => return format!("said {:?}\n", message.text),
        Content::Aside(kind) => return format!("aside {kind:?}\n"),
        Content::Run(answer) => answer,
    };
    let status = answer.finish.as_ref().map_or("open".to_owned(), |it| {
        serde_json::to_value(it.status).unwrap().as_str().unwrap().to_owned()
    });
    let interrupted = if answer.was_interrupted() { " interrupted" } else { "" };
    let mut sketch = format!("answer {} {status}{interrupted}\n", answer.id);
    for part in &answer.parts {
        let nesting = part.parent.as_ref().map_or(String::new(), |it| format!("in {it}: "));
        sketch += &format!("  {nesting}{}\n", sketch_part(answer, &part.kind));
    }
    sketch + &format!("  content {:?}\n", answer.content())
}

fn sketch_part(answer: &RunMessage, kind: &PartKind) -> String {
    match kind {
        PartKind::Text(text) => {
            let role = match &text.role {
                TextRole::Undecided => "undecided".to_owned(),
                TextRole::Commentary { call: Some(call) } => format!("commentary for {call}"),
                TextRole::Commentary { call: None } => "commentary".to_owned(),
                TextRole::Final => "final".to_owned(),
                TextRole::Discarded => "discarded".to_owned(),
            };
            let leaked = if text.leaked { ", leaked" } else { "" };
            format!("{role}{leaked}: {:?}", text.text)
        }
        PartKind::Thinking(thinking) => format!("thinking: {:?}", thinking.text),
        PartKind::Call(call) => {
            let (label, state) = (call.label(), call.state.as_str());
            format!("call {label} {state}, commentary {:?}", answer.commentary(call))
        }
        PartKind::Steered(steered) => format!("steered: {:?}", steered.text),
        PartKind::Exchange(exchange) => format!("exchange with {}", exchange.agent),
        PartKind::Notice { text, .. } => format!("notice: {text:?}"),
        PartKind::Unrecognized { raw, .. } => format!("unrecognized: {raw:?}"),
    }
}

#[test]
fn an_edited_message_keeps_its_other_parts() {
    let text = |it: &str| json!({ "type": "text", "text": it });
    let link = json!({ "type": "file", "mediaType": "image/png", "url": "https://example.com/" });
    let mut sent = SentForm { parts: vec![link.clone(), text("a"), text("b")], metadata: None };
    sent.replace_text("c");
    assert_eq!(sent.parts, [link.clone(), text("c")]);
    let mut untexted = SentForm { parts: vec![link.clone()], metadata: None };
    untexted.replace_text("c");
    assert_eq!(untexted.parts, [link, text("c")]);
    let mut plain = SentForm { parts: Vec::new(), metadata: Some(json!(1)) };
    plain.replace_text("c");
    assert!(plain.parts.is_empty());
}

#[test]
fn only_web_addresses_are_links() {
    let file = |url: &str| json!({ "type": "file", "mediaType": "a/b", "url": url });
    let urls = ["HTTPS://example.com", "javascript:alert(1)", "file:///etc/passwd", "data:,", "x"];
    let sent = SentForm { parts: urls.map(file).to_vec(), metadata: None };
    assert_eq!(sent.links().map(|it| it.url).collect::<Vec<_>>(), ["HTTPS://example.com"]);
}

#[test]
fn a_link_survives_a_new_text_and_attachments() {
    let text = |it: &str| json!({ "type": "text", "text": it });
    let link = json!({ "type": "file", "mediaType": "image/png", "url": "https://example.com/" });
    let other = json!({ "type": "data-mood", "data": 1 });
    let sent = SentForm { parts: vec![text("a"), link.clone(), other.clone()], metadata: None };
    let name = "n".to_owned();
    let file = Attachment { blob: "b".to_owned(), name, media_type: "a/b".to_owned(), size: 1 };
    let attached = json!({ "type": "file", "mediaType": "a/b", "filename": "n" });
    let beside = sent.links_with("b", &[file]).unwrap();
    assert_eq!(beside.parts, [link, attached, text("b")]);
    let without = SentForm { parts: vec![text("a"), other], metadata: None };
    assert_eq!(without.links_with("b", &[]), None);
}

#[test]
fn only_plain_text_messages_are_steerable() {
    let is_steerable = |more: &str| {
        let event = format!(r#"{{"type":"message_queued","messageId":"m","text":"a"{more}}}"#);
        let event = serde_json::from_str(&event).unwrap();
        let record = Record::new(Seq(1), Millis(0), SessionId::new("s"), None, event);
        let mut queue = Queue::default();
        queue.apply(&record);
        queue.messages[0].is_steerable()
    };
    assert!(is_steerable(""));
    assert!(!is_steerable(r#","sent":{"metadata":{"mood":"good"}}"#));
    assert!(!is_steerable(r#","sent":{"parts":[{"type":"data-x","data":1}]}"#));
    let file = r#"{"blob":"b","name":"n","mediaType":"a/b","size":1}"#;
    assert!(!is_steerable(&format!(r#","attachments":[{file}]"#)));
}
