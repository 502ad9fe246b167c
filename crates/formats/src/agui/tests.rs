//! Events folded by a client are the messages of a snapshot, and the strictest client takes them.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::logs::any_log;
use transcript::{Event, Record, ResponseId};

use super::testing::{Client, folded, kept, reconnected};
use super::*;
use crate::tests::finished_runs;
use crate::tests::logs::{corpus, read, sound_log, spoken_log};

fn check_law(log: &[Record]) {
    for (run, _) in finished_runs(log) {
        for later in [0, 1, 2, 5, 20] {
            let received = Value::from(folded(log, &run, later).messages);
            let kept = kept(log, &run);
            match later {
                0 => assert_eq!(received, kept, "{run}"),
                _ => assert_eq!(in_any_order(received), in_any_order(kept), "{run} {later}"),
            }
        }
    }
}

/// Results that are sent together are in the order of their calls.
fn in_any_order(messages: Value) -> Vec<Value> {
    let mut messages = messages.as_array().unwrap().clone();
    let is_same_kind = |a: &Value, b: &Value| (a["role"] == "tool") == (b["role"] == "tool");
    for run in messages.chunk_by_mut(is_same_kind).filter(|it| it[0]["role"] == "tool") {
        run.sort_by_key(|it| it["id"].to_string());
    }
    messages
}

/// After any record they go; how much they miss is different every time.
fn check_returns(log: &[Record]) {
    for (run, _) in finished_runs(log) {
        let of_run: Vec<Record> =
            log.iter().filter(|it| it.response_id.as_ref() == Some(&run)).cloned().collect();
        let whole = kept(&of_run, &run);
        for n_received in 0..of_run.len() {
            let had = folded(&of_run[..n_received], &run, 0).messages;
            for happened in (n_received.max(1)..=of_run.len()).step_by(7).chain([of_run.len()]) {
                let client = reconnected(&of_run, &run, &had, happened);
                assert_eq!(Value::from(client.messages), whole, "{n_received} {happened}");
            }
        }
    }
}

#[test]
fn client_may_reconnect_after_any_record() {
    for (_, log) in corpus().into_iter().filter(|(name, _)| *name != "odd") {
        check_returns(&log);
    }
}

#[test]
fn a_conversation_streamed_is_its_snapshot() {
    for (_, log) in corpus().into_iter().filter(|(name, _)| *name != "odd") {
        check_law(&log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_random_run_streamed_is_its_snapshot(log in sound_log(60)) {
        check_law(&log);
    }

    #[test]
    fn client_may_reconnect_to_a_random_run(log in spoken_log(20)) {
        check_returns(&log);
    }

    #[test]
    fn the_strictest_client_takes_any_log(log in any_log(60)) {
        for run in ["r1", "r2"].map(ResponseId::new) {
            [0, 1, 3].iter().for_each(|later| drop(folded(&log, &run, *later)));
        }
    }

    #[test]
    fn no_body_is_too_odd(body in crate::tests::any_json()) {
        let _ = request(&body);
    }
}

/// Cases of the real clients that are not among the fixtures, because they are about nothing that we send:
/// `agui-http-500` is a refusal in JSON, and ours are plain text (`e2e/agui.test.mjs`); `agui-state` is about
/// `STATE_*`, and of `agui-custom-raw-activity` only `CUSTOM` is ours.
#[test]
fn the_client_of_these_tests_is_like_the_real_ones() {
    for line in include_str!("../../fixtures/agui/folded.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let frames = match &case["body"] {
            Value::String(body) => body.clone(),
            _ => case["events"].as_array().unwrap().iter().map(crate::sse::event).collect(),
        };
        let folded = std::panic::catch_unwind(move || {
            let mut client = Client::default();
            client.receive(&frames);
            client.messages
        });
        match (folded, case["ok"].as_bool().unwrap()) {
            (Ok(messages), true) => {
                assert_eq!(Value::from(messages), case["messages"], "{}", case["name"]);
            }
            (Err(_), false) => (),
            (_, ok) => panic!("{}: the real clients return {ok}", case["name"]),
        }
    }
}

const ASKS: &str = r#"
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"thinking_done","partId":"p9","text":"Hm."}
    r1 {"type":"text_done","partId":"p0","text":"Let me look."}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"rm","executor":"server"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":1}","validation":"pending"}
    r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
    r1 {"type":"tool_approval_resolved","callId":"c1","decision":"accepted","by":"user"}
    r1 {"type":"tool_result","callId":"c1","toolName":"rm","ok":true,"result":"removed"}
    r1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
    r1 {"type":"notice","level":"info","text":"n"}
    r1 {"type":"run_finish","status":"failed","error":{"code":"upstream_error","message":"gone"}}
"#;

#[test]
fn an_approval_takes_two_runs() {
    let log = read(ASKS);
    let mut stream = Stream::new(ResponseId::new("r1"), "th", "run1");
    let mut lines = String::new();
    for record in &log {
        for event in stream.apply(record) {
            lines += &format!("{event}\n");
        }
        if matches!(record.event, Event::ToolApprovalRequested { .. }) {
            break;
        }
    }
    let resume = json!([{ "interruptId": "approval_c1", "status": "cancelled" }]);
    let again = request(&json!({ "threadId": "th", "runId": "run2", "resume": resume })).unwrap();
    let mut stream = Stream::new(ResponseId::new("r1"), "th", "run2");
    for event in stream.replay_unknown(&log, &again.known) {
        lines += &format!("{event}\n");
    }
    expect![[r#"
        {"type":"RUN_STARTED","threadId":"th","runId":"run1"}
        {"type":"STEP_STARTED","stepName":"step 1"}
        {"type":"REASONING_START","messageId":"p9"}
        {"type":"REASONING_MESSAGE_START","messageId":"p9","role":"reasoning"}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"p9","delta":"Hm."}
        {"type":"REASONING_MESSAGE_END","messageId":"p9"}
        {"type":"REASONING_END","messageId":"p9"}
        {"type":"TEXT_MESSAGE_START","messageId":"p0","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"p0","delta":"Let me look."}
        {"type":"TEXT_MESSAGE_END","messageId":"p0"}
        {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"rm","parentMessageId":"p0"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"p\":1}"}
        {"type":"TOOL_CALL_END","toolCallId":"c1"}
        {"type":"STEP_FINISHED","stepName":"step 1"}
        {"type":"RUN_FINISHED","threadId":"th","runId":"run1","outcome":{"type":"interrupt","interrupts":[{"id":"approval_c1","reason":"tool_call","message":"May rm run?","toolCallId":"c1","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"},"editedArgs":{"type":"object"}},"required":["approved"]}}]}}
        {"type":"RUN_STARTED","threadId":"th","runId":"run2"}
        {"type":"TOOL_CALL_RESULT","messageId":"result_c1","toolCallId":"c1","content":"removed","role":"tool"}
        {"type":"CUSTOM","name":"data-notice","value":{"level":"info","text":"n"}}
        {"type":"RUN_ERROR","message":"gone","code":"upstream_error"}
    "#]].assert_eq(&lines);
}

#[test]
fn what_clients_send() {
    let read = |body: Value| {
        let mut whole = json!({ "threadId": "th", "runId": "r2" });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        request(&whole).map(|it| (it.message, it.decided))
    };
    let user = |content: Value| json!({ "messages": [{ "id": "u1", "role": "user", "content": content }] });
    let resume = |status: &str, payload: Value| json!({ "resume": [{ "interruptId": "approval_c1", "status": status, "payload": payload }] });
    let image = json!({ "type": "image", "source": { "type": "data", "value": "AA==", "mimeType": "image/png" } });
    let binary = json!({ "type": "binary", "mimeType": "image/png", "url": "http://x" });
    let named = json!({ "type": "document", "source": { "type": "file", "value": "abc", "mimeType": "text/plain" } });
    let read_well = [
        read(user(json!("hi"))),
        read(user(json!([{ "type": "text", "text": "hi" }, image, binary]))),
        read(user(json!([named]))),
        read(resume("resolved", json!({ "approved": true, "editedArgs": { "p": 2 } }))),
        read(resume("cancelled", json!({ "reason": "no" }))),
        read(
            json!({ "messages": [{ "role": "assistant" }, { "role": "tool", "toolCallId": "c2", "content": "done" }] }),
        ),
        read(json!({ "messages": [
            { "role": "assistant" }, { "role": "tool", "toolCallId": "c2", "error": "no" },
            { "role": "user", "content": "and" },
        ] })),
        read(json!({})),
    ];
    let lines: Vec<String> = read_well.map(|it| format!("{:?}", it.unwrap())).into();
    expect![[r#"
        (Some(IncomingMessage { id: Some("u1"), text: "hi", files: [], sent: None }), [])
        (Some(IncomingMessage { id: Some("u1"), text: "hi", files: [File { media_type: "image/png", name: None, url: "data:image/png;base64,AA==" }], sent: Some(SentForm { parts: [Object {"type": String("file"), "mediaType": String("image/png")}, Object {"type": String("file"), "mediaType": String("image/png"), "url": String("http://x")}, Object {"type": String("text"), "text": String("hi")}], metadata: None }) }), [])
        (Some(IncomingMessage { id: Some("u1"), text: "", files: [File { media_type: "text/plain", name: None, url: "/api/blobs/abc" }], sent: Some(SentForm { parts: [Object {"type": String("file"), "mediaType": String("text/plain")}], metadata: None }) }), [])
        (None, [Approval { call: "c1", approved: true, reason: None, arguments: Some(Object {"p": Number(2)}) }])
        (None, [Approval { call: "c1", approved: false, reason: Some("no"), arguments: None }])
        (None, [Output { call: "c2", output: String("done") }])
        (Some(IncomingMessage { id: None, text: "and", files: [], sent: None }), [Error { call: "c2", error: "no" }])
        (None, [])
    "#]].assert_eq(&(lines.join("\n") + "\n"));
    let bad = [
        request(&json!(7)).map(|it| (it.message, it.decided)),
        request(&json!({})).map(|it| (it.message, it.decided)),
        read(json!({ "messages": 7 })),
        read(user(json!(7))),
        read(user(json!(" "))),
        read(user(json!([{ "type": "smell" }]))),
        read(user(json!([{ "type": "image", "source": { "type": "smell", "value": "x" } }]))),
        read(resume("resolved", json!({}))),
        read(resume("maybe", json!({}))),
        read(json!({ "resume": [{ "interruptId": "x", "status": "cancelled" }] })),
        read(json!({ "tools": [{}] })),
        read(json!({ "tools": {} })),
        read(json!({ "messages": [7] })),
        read(json!({ "protocolVersion": 1 })),
    ];
    let whys: Vec<String> = bad.map(|it| it.unwrap_err().to_string()).into();
    expect![[r#"
        The body is no JSON object.
        `threadId` is no text.
        `messages` is no array.
        `messages[0].content` is neither text nor array.
        `messages[0]` has neither text nor files.
        `messages[0].content[0].type` is no kind of content.
        `messages[0].content[0].source.type` is none of "data", "url" and "file".
        `resume[0].payload.approved` is no boolean.
        `resume[0].status` is neither "resolved" nor "cancelled".
        `resume[0].interruptId` is none that was given out here.
        `tools[0]` has no name of 1 to 64 letters, digits, '_' or '-'.
        `tools` is no array.
        `messages[0]` is no object.
        `protocolVersion` is no text.
    "#]]
    .assert_eq(&(whys.join("\n") + "\n"));
}

/// It has them, under its own ids.
#[test]
fn results_from_the_client_are_not_sent_back() {
    let log = read(ASKS);
    let result = json!({ "id": "mine", "role": "tool", "toolCallId": "c1", "content": "removed" });
    for (results, n_sent) in [(vec![], 1), (vec![result], 0)] {
        let call = json!({ "id": "c1", "type": "function", "function": { "name": "rm" } });
        let mut messages = vec![json!({ "id": "p0", "role": "assistant", "toolCalls": [call] })];
        messages.extend(results);
        let body = json!({ "threadId": "th", "runId": "run2", "messages": messages });
        let mut stream = Stream::new(ResponseId::new("r1"), "th", "run2");
        let events = stream.replay_unknown(&log, &request(&body).unwrap().known);
        let results = events.iter().filter(|it| it["type"] == "TOOL_CALL_RESULT");
        assert_eq!(results.count(), n_sent);
    }
}

fn imported(events: &Value) -> String {
    let document = crate::import::Format::find("agui").unwrap().parse(&events.to_string()).unwrap();
    crate::import::tests::lines(&document.entries(&crate::import::tests::setting()))
}

/// Lists of messages add only messages that no event contained, each once.
#[test]
fn message_lists_are_imported_once() {
    let call =
        json!({ "id": "c0", "type": "function", "function": { "name": "ls", "arguments": "{}" } });
    let earlier = json!([
        { "id": "u0", "role": "user", "content": "look" },
        { "id": "t0", "role": "reasoning", "content": "Hm." },
        { "id": "a0", "role": "assistant", "content": "So.", "toolCalls": [call] },
        { "id": "x0", "role": "tool", "toolCallId": "c0", "content": "3" },
        { "id": "u1", "role": "user", "content": "and?" },
    ]);
    let mut known = earlier.as_array().unwrap().clone();
    known.push(json!({ "id": "m1", "role": "assistant", "content": "Done." }));
    let events = json!([
        { "type": "RUN_STARTED", "threadId": "t", "runId": "run1", "input": { "messages": earlier } },
        { "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant" },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Do" },
        { "type": "MESSAGES_SNAPSHOT", "messages": known },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "ne." },
        { "type": "TEXT_MESSAGE_END", "messageId": "m1" },
        { "type": "MESSAGES_SNAPSHOT", "messages": known },
        { "type": "RUN_FINISHED", "threadId": "t", "runId": "run1" },
    ]);
    expect![[r#"
        - {"type":"user_message","messageId":"u0","text":"look"}
        t0 {"type":"run_start","agent":"demo","trigger":"user"}
        t0 {"type":"step_start","index":0}
        t0 {"type":"thinking_start","partId":"t0"}
        t0 {"type":"thinking_done","partId":"t0","text":"Hm."}
        t0 {"type":"step_finish","index":0,"finishReason":"stop"}
        t0 {"type":"step_start","index":1}
        t0 {"type":"text_start","partId":"a0"}
        t0 {"type":"text_done","partId":"a0","text":"So."}
        t0 {"type":"tool_call_start","callId":"c0","providerCallId":"c0","toolName":"ls","arguments":"{}","executor":"agent"}
        t0 {"type":"tool_arguments_done","callId":"c0","arguments":"{}","summary":"","validation":"not_required"}
        t0 {"type":"tool_result","callId":"c0","toolName":"ls","ok":true,"result":3}
        t0 {"type":"step_finish","index":1,"finishReason":"tool-calls"}
        t0 {"type":"run_finish","status":"completed"}
        - {"type":"user_message","messageId":"u1","text":"and?"}
        run1 {"type":"run_start","agent":"demo","trigger":"user"}
        run1 {"type":"text_start","partId":"m1"}
        run1 {"type":"text_done","partId":"m1","text":"Done."}
        run1 {"type":"run_finish","status":"completed"}
    "#]].assert_eq(&imported(&events));
}

/// Several parts grow in parallel, across steps, and not each has a start event.
#[test]
fn parallel_parts_are_imported_in_order() {
    let events = json!([
        { "type": "RUN_STARTED", "threadId": "t", "runId": "run1" },
        { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "ls" },
        { "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"a\"" },
        { "type": "STEP_STARTED", "stepName": "s" },
        { "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ":1}" },
        { "type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c1", "content": "3" },
        { "type": "STEP_FINISHED", "stepName": "s" },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "without a start" },
        { "type": "TOOL_CALL_ARGS", "toolCallId": "c9", "delta": "{}" },
        { "type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "one " },
        { "type": "STATE_SNAPSHOT", "snapshot": {} },
        { "type": "REASONING_MESSAGE_CHUNK", "messageId": "t2", "delta": "Hm." },
        { "type": "TEXT_MESSAGE_CHUNK", "delta": "part" },
        { "type": "RUN_FINISHED", "threadId": "t", "runId": "run1" },
    ]);
    expect![[r#"
        run1 {"type":"run_start","agent":"demo","trigger":"user"}
        run1 {"type":"step_start","index":0}
        run1 {"type":"tool_call_start","callId":"c1","providerCallId":"c1","toolName":"ls","arguments":"{\"a\":1}","executor":"agent"}
        run1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"a\":1}","summary":"","validation":"not_required"}
        run1 {"type":"tool_result","callId":"c1","toolName":"ls","ok":true,"result":3}
        run1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        run1 {"type":"text_start","partId":"m1"}
        run1 {"type":"text_done","partId":"m1","text":"without a start"}
        run1 {"type":"unrecognized","source":"event","raw":"{\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":\"c9\",\"delta\":\"{}\"}"}
        run1 {"type":"text_start","partId":"m2"}
        run1 {"type":"text_done","partId":"m2","text":"one part"}
        run1 {"type":"unrecognized","source":"event","raw":"{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{}}"}
        run1 {"type":"thinking_start","partId":"t2"}
        run1 {"type":"thinking_done","partId":"t2","text":"Hm."}
        run1 {"type":"run_finish","status":"completed"}
    "#]].assert_eq(&imported(&events));
}

/// Messages come with the start of a run; a run that waited for its client continues in the next.
#[test]
fn events_of_agui_of_several_runs() {
    let message = json!({ "id": "u1", "role": "user", "content": "remove it" });
    let events = json!([
        { "type": "RUN_STARTED", "threadId": "t", "runId": "run1", "input": { "messages": [message] } },
        { "type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "rm", "delta": "{\"p\"" },
        { "type": "TOOL_CALL_CHUNK", "delta": ":1}" },
        { "type": "RUN_FINISHED", "threadId": "t", "runId": "run1", "outcome": { "type": "interrupt", "interrupts": [] } },
        { "type": "RUN_STARTED", "threadId": "t", "runId": "run2", "input": { "messages": [message] } },
        { "type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c1", "content": "gone" },
        { "type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "It is " },
        { "type": "TEXT_MESSAGE_CHUNK", "delta": "gone." },
        { "type": "STATE_SNAPSHOT", "snapshot": {} },
        { "type": "RUN_ERROR", "message": "Too late.", "code": "of_others" },
    ]);
    expect![[r#"
        - {"type":"user_message","messageId":"u1","text":"remove it"}
        run1 {"type":"run_start","agent":"demo","trigger":"user"}
        run1 {"type":"tool_call_start","callId":"c1","providerCallId":"c1","toolName":"rm","arguments":"{\"p\":1}","executor":"agent"}
        run1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"p\":1}","summary":"","validation":"not_required"}
        run1 {"type":"tool_result","callId":"c1","toolName":"rm","ok":true,"result":"gone"}
        run1 {"type":"text_start","partId":"m1"}
        run1 {"type":"text_done","partId":"m1","text":"It is gone."}
        run1 {"type":"unrecognized","source":"event","raw":"{\"type\":\"STATE_SNAPSHOT\",\"snapshot\":{}}"}
        run1 {"type":"output_cancelled","reason":"error"}
        run1 {"type":"run_finish","status":"failed","error":{"code":"of_others","message":"Too late."}}
    "#]]
    .assert_eq(&imported(&events));
}
