//! The history of any log, cut anywhere, is one that a strict provider accepts.

use expect_test::expect;
use serde_json::Value;
use transcript::{Event, Millis, Record, ResponseId, Seq, SessionId, Transcript, event_from_body};

use super::history;

const LOG: &str = r#"
    - {"type":"user_message","messageId":"m1","text":"look around"}
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"text_done","partId":"p0","text":"Let me look."}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"list","executor":"server"}
    r1 {"type":"tool_arguments_delta","callId":"c1","delta":"{\"path\":"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"path\":\".\"}","validation":"not_required"}
    r1 {"type":"tool_call_start","callId":"c2","toolName":"","executor":"server"}
    r1 {"type":"text_done","partId":"p3","text":"Both at once."}
    r1 {"type":"tool_result","callId":"c2","toolName":"time","ok":false,"error":{"code":"tool_error","message":"no clock"}}
    r1 {"type":"tool_result","callId":"c1","toolName":"list","ok":true,"result":{"n":3}}
    r1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
    r1 {"type":"step_start","index":1}
    r1 {"type":"text_done","partId":"p4","text":"Three files."}
    r1 {"type":"step_finish","index":1,"finishReason":"stop"}
    r1 {"type":"run_finish","status":"completed"}
    - {"type":"user_message","messageId":"m2","text":"thanks"}
"#;

fn records() -> Vec<Record> {
    let lines = LOG.lines().map(str::trim).filter(|line| !line.is_empty());
    (1..)
        .zip(lines)
        .map(|(seq, line)| {
            let (run, body) = line.split_once(' ').unwrap();
            let run = (run != "-").then(|| ResponseId::new(run));
            let event = event_from_body(body);
            assert!(!matches!(event, Event::Other(_)), "{line}");
            Record::new(Seq(seq), Millis(0), SessionId::new("s"), run, event)
        })
        .collect()
}

#[test]
fn calls_are_followed_by_their_results_at_every_cut() {
    let records = records();
    for cut in 0..=records.len() {
        let mut messages = history(&Transcript::replay(&records[..cut])).into_iter().peekable();
        while let Some(message) = messages.next() {
            assert_ne!(message["role"], "tool", "a result without its call, cut at {cut}");
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let result = messages.next().expect("a result for every call");
                assert_eq!(
                    (&result["role"], &result["tool_call_id"]),
                    (&"tool".into(), &call["id"])
                );
                let arguments = call["function"]["arguments"].as_str().unwrap();
                assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
            }
        }
    }
}

#[test]
fn the_whole_conversation() {
    let lines: Vec<String> =
        history(&Transcript::replay(&records())).iter().map(Value::to_string).collect();
    expect![[r#"
        {"role":"user","content":"look around"}
        {"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"list","arguments":"{\"path\":\".\"}"}},{"id":"c2","type":"function","function":{"name":"time","arguments":"{}"}}]}
        {"role":"tool","tool_call_id":"c1","content":"{\"n\":3}"}
        {"role":"tool","tool_call_id":"c2","content":"{\"ok\":false,\"error\":{\"code\":\"tool_error\",\"message\":\"no clock\"}}"}
        {"role":"assistant","content":"Both at once."}
        {"role":"assistant","content":"Three files."}
        {"role":"user","content":"thanks"}
    "#]].assert_eq(&(lines.join("\n") + "\n"));
}
