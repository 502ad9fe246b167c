//! The history of any log, cut anywhere, is one that a strict provider accepts.

mod chunks;
mod folding;
mod incoming;
mod one_message;
mod stored;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::logs::any_log;
use transcript::{Record, Transcript};

use testkit::strict;

use super::{Files, Reader, history};
use crate::tests::logs::read;

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
    read(LOG)
}

fn reader() -> Reader<'static> {
    Reader { agent: "demo", model: None, system: Some("Be brief."), files: Files::LeftOut }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_strict_provider_takes_any_log_cut_anywhere(log in any_log(60)) {
        for cut in 0..=log.len() {
            let messages = history(&Transcript::replay(&log[..cut]), &reader());
            if let Err(why) = strict::check(&messages) {
                panic!("{why}, cut at {cut}: {}", Value::from(messages));
            }
        }
    }
}

/// Within a run the history has only the model's messages and steering ones, and the model's words are all there, in
/// their order.
#[track_caller]
fn check_runs(transcript: &Transcript) {
    check_runs_for(transcript, Files::LeftOut);
    let read = |_: &transcript::Attachment| Some(vec![1, 2, 3]);
    check_runs_for(transcript, Files::GoAlong { sees: true, read: &read });
}

/// A model that sees also gets the pictures that tools gave, directly behind the results.
#[track_caller]
fn check_runs_for(transcript: &Transcript, files: Files<'_>) {
    let reader = Reader { agent: "demo", model: None, system: None, files };
    for message in transcript.messages.iter().filter(|it| it.run().is_some()) {
        let mut alone = Transcript::default();
        alone.messages.push(transcript::Message { superseded: false, ..message.clone() });
        let history = history(&alone, &reader);
        let mut texts: Vec<&str> = user_texts(&history);
        // Somebody has to begin, and to ask.
        let nudges = [history.get(1), history.iter().nth_back(1)];
        if history[0]["content"] == super::NUDGE
            && nudges[0].is_none_or(|it| it["role"] == "assistant")
        {
            texts.remove(0);
        }
        if history.len() > 1
            && texts.last() == Some(&super::NUDGE)
            && nudges[1].is_some_and(|it| it["role"] == "assistant")
        {
            texts.pop();
        }
        let parts = || message.run().unwrap().parts.iter().filter(|it| it.parent.is_none());
        let steered: Vec<&str> = parts().filter_map(super::steered_text).collect();
        assert_eq!(texts.join("\n\n"), steered.join("\n\n"), "{}", Value::from(history));
        let words =
            parts().filter(|it| it.kind.has_visible_text()).filter_map(|it| match &it.kind {
                transcript::PartKind::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
        let words = words.collect::<Vec<_>>().join("\n\n");
        let received = of_role(&history, "assistant").join("\n\n");
        let received = received.split("\n\n[interrupted").next().unwrap();
        assert_eq!(received, words, "{}", message.id());
    }
}

/// The texts of user messages, without the titles of pictures that tools gave.
#[track_caller]
fn user_texts(history: &[Value]) -> Vec<&str> {
    let mut found = Vec::new();
    for (idx, message) in history.iter().enumerate().filter(|(_, it)| it["role"] == "user") {
        let Some(pieces) = message["content"].as_array() else {
            found.extend(message["content"].as_str());
            continue;
        };
        assert_eq!(history[idx - 1]["role"], "tool", "{message}");
        assert_eq!((&pieces[0]["type"], &pieces[1]["type"]), (&json!("text"), &json!("image_url")));
        let texts = pieces.iter().filter_map(|it| it["text"].as_str());
        found.extend(texts.filter(|it| !(it.starts_with("What ") && it.ends_with(" gave:"))));
    }
    found
}

fn of_role<'a>(history: &'a [Value], role: &str) -> Vec<&'a str> {
    history.iter().filter(|it| it["role"] == role).filter_map(|it| it["content"].as_str()).collect()
}

#[test]
fn a_run_holds_no_user_message_that_nobody_sent() {
    for (_, log) in crate::tests::logs::corpus() {
        (0..=log.len()).for_each(|cut| check_runs(&Transcript::replay(&log[..cut])));
    }
    check_runs(&Transcript::replay(&records()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_random_run_holds_no_user_message_that_nobody_sent(log in any_log(60)) {
        (0..=log.len()).for_each(|cut| check_runs(&Transcript::replay(&log[..cut])));
    }
}

#[test]
fn text_after_a_call_of_its_step_joins_the_call_message() {
    let log = r#"
        - {"type":"user_message","messageId":"m1","text":"look"}
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"step_start","index":0}
        r1 {"type":"text_done","partId":"p0","text":"Before."}
        r1 {"type":"tool_call_start","callId":"c1","toolName":"list","executor":"server"}
        r1 {"type":"text_done","partId":"p1","text":"After the call."}
        r1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        r1 {"type":"tool_result","callId":"c1","toolName":"list","ok":true,"result":1}
        r1 {"type":"step_start","index":1}
        r1 {"type":"tool_call_start","callId":"c2","toolName":"list","executor":"server"}
    "#;
    check(
        log,
        &reader(),
        expect![[r#"
            {"role":"system","content":"Be brief."}
            {"role":"user","content":"look"}
            {"role":"assistant","content":"Before.\n\nAfter the call.","tool_calls":[{"id":"qy2ineqiq","type":"function","function":{"name":"list","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"qy2ineqiq","content":"1"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"8qfcp0gha","type":"function","function":{"name":"list","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"8qfcp0gha","content":"{\"ok\":false,\"error\":{\"code\":\"tool_interrupted\",\"message\":\"This call has no result.\"}}"}
        "#]],
    );
}

#[test]
fn a_strict_provider_takes_a_conversation_cut_anywhere() {
    let records = records();
    for cut in 0..=records.len() {
        let messages = history(&Transcript::replay(&records[..cut]), &reader());
        assert_eq!(strict::check(&messages), Ok(()), "cut at {cut}");
    }
}

#[track_caller]
fn check(log: &str, reader: &Reader<'_>, expect: expect_test::Expect) {
    let messages = history(&Transcript::replay(&read(log)), reader);
    assert_eq!(strict::check(&messages), Ok(()));
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    expect.assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn the_whole_conversation() {
    check(
        LOG,
        &reader(),
        expect![[r#"
        {"role":"system","content":"Be brief."}
        {"role":"user","content":"look around"}
        {"role":"assistant","content":"Let me look.\n\nBoth at once.","tool_calls":[{"id":"qy2ineqiq","type":"function","function":{"name":"list","arguments":"{\"path\":\".\"}"}},{"id":"8qfcp0gha","type":"function","function":{"name":"time","arguments":"{}"}}]}
        {"role":"tool","tool_call_id":"qy2ineqiq","content":"{\"n\":3}"}
        {"role":"tool","tool_call_id":"8qfcp0gha","content":"{\"ok\":false,\"error\":{\"code\":\"tool_error\",\"message\":\"no clock\"}}"}
        {"role":"assistant","content":"Three files."}
        {"role":"user","content":"thanks"}
    "#]],
    );
}

#[test]
fn interrupted_text_joins_its_calls_with_a_mark() {
    let log = r#"
        - {"type":"user_message","messageId":"m1","text":"look"}
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"step_start","index":0}
        r1 {"type":"tool_call_start","callId":"c1","toolName":"list","executor":"server"}
        r1 {"type":"text_delta","partId":"p1","delta":"While it r"}
        r1 {"type":"text_done","partId":"p1","text":"While it r"}
        r1 {"type":"tool_result","callId":"c1","toolName":"list","ok":false,"error":{"code":"tool_interrupted","message":"stopped"}}
        r1 {"type":"output_cancelled","reason":"user_cancel"}
        r1 {"type":"run_finish","status":"cancelled"}
        r2 {"type":"run_start","agent":"demo","trigger":"continue"}
    "#;
    check(
        log,
        &reader(),
        expect![[r#"
        {"role":"system","content":"Be brief."}
        {"role":"user","content":"look"}
        {"role":"assistant","content":"While it r\n\n[interrupted by the user]","tool_calls":[{"id":"qy2ineqiq","type":"function","function":{"name":"list","arguments":"{}"}}]}
        {"role":"tool","tool_call_id":"qy2ineqiq","content":"{\"ok\":false,\"error\":{\"code\":\"tool_interrupted\",\"message\":\"stopped\"}}"}
    "#]],
    );
}

#[test]
fn ids_and_data_go_back_to_where_they_came_from() {
    let log = r#"
        - {"type":"user_message","messageId":"m1","text":"look"}
        r1 {"type":"run_start","agent":"a","model":"m","trigger":"user"}
        r1 {"type":"tool_call_start","callId":"r1.1","providerCallId":"call_1","toolName":"list","executor":"server"}
        r1 {"type":"tool_arguments_done","callId":"r1.1","arguments":"{}","validation":"not_required","providerData":{"toolCall":{"extra_content":{"google":1}},"message":{"reasoning_details":[7]}}}
        r1 {"type":"tool_call_start","callId":"r1.2","providerCallId":"call_1","toolName":"list","executor":"server"}
        r1 {"type":"tool_result","callId":"r1.1","toolName":"list","ok":true,"result":1}
    "#;
    let reader =
        |model| Reader { agent: "a", model: Some(model), system: None, files: Files::LeftOut };
    check(
        log,
        &reader("m"),
        expect![[r#"
        {"role":"user","content":"look"}
        {"reasoning_details":[7],"role":"assistant","content":null,"tool_calls":[{"extra_content":{"google":1},"id":"call_1","type":"function","function":{"name":"list","arguments":"{}"}},{"id":"hqc20u706","type":"function","function":{"name":"list","arguments":"{}"}}]}
        {"role":"tool","tool_call_id":"call_1","content":"1"}
        {"role":"tool","tool_call_id":"hqc20u706","content":"{\"ok\":false,\"error\":{\"code\":\"tool_interrupted\",\"message\":\"This call has no result.\"}}"}
    "#]],
    );
    check(
        log,
        &reader("another"),
        expect![[r#"
        {"role":"user","content":"look"}
        {"role":"assistant","content":null,"tool_calls":[{"id":"n5wdpm70g","type":"function","function":{"name":"list","arguments":"{}"}},{"id":"hqc20u706","type":"function","function":{"name":"list","arguments":"{}"}}]}
        {"role":"tool","tool_call_id":"n5wdpm70g","content":"1"}
        {"role":"tool","tool_call_id":"hqc20u706","content":"{\"ok\":false,\"error\":{\"code\":\"tool_interrupted\",\"message\":\"This call has no result.\"}}"}
    "#]],
    );
}

#[test]
fn files_go_along() {
    let log = r#"
        - {"type":"user_message","messageId":"m1","text":"see","attachments":[{"blob":"1","name":"a.png","mediaType":"image/png","size":3},{"blob":"2","name":"a.md","mediaType":"text/markdown","size":9},{"blob":"3","name":"a.zip","mediaType":"application/zip","size":2},{"blob":"4","name":"gone","mediaType":"text/plain","size":2}]}
    "#;
    let stored = |file: &transcript::Attachment| match file.blob.as_str() {
        "1" => Some(vec![1, 2, 3]),
        "2" => Some(b"```x```\n".to_vec()),
        "3" => Some(vec![0, 255]),
        _ => None,
    };
    let seen_by = |sees| {
        let files = Files::GoAlong { sees, read: &stored };
        history(&Transcript::replay(&read(log)), &Reader { files, ..reader() })
    };
    let blind = seen_by(false);
    let text = blind[1]["content"].as_str().unwrap();
    expect![[r#"
        see

        [The attached file a.png (image/png, 3 bytes) cannot be shown to this model.]

        The attached file a.md:
        ````
        ```x```
        ````

        [The attached file a.zip (application/zip, 2 bytes) cannot be read by this model.]

        [The attached file gone (text/plain, 2 bytes) is not stored any more.]"#]]
    .assert_eq(text);
    let url = &seen_by(true)[1]["content"][1]["image_url"]["url"];
    assert_eq!(url, &json!("data:image/png;base64,AQID"));
}

#[test]
fn pictures_that_tools_gave_are_shown_after_the_results() {
    let blob = "0a".repeat(32);
    let file =
        |kind: &str| format!(r#"{{"blob":"{blob}","name":"a","mediaType":"{kind}","size":3}}"#);
    let (picture, text) = (file("image/png"), file("text/plain"));
    let log = LOG.replace(r#"{"n":3}"#, &format!(r#"{{"files":[{picture},{text}]}}"#));
    let stored = |_: &transcript::Attachment| Some(vec![1, 2, 3]);
    let seen_by = |sees, cut| {
        let files = Files::GoAlong { sees, read: &stored };
        let messages =
            history(&Transcript::replay(&read(&log)[..cut]), &Reader { files, ..reader() });
        assert_eq!(strict::check(&messages), Ok(()), "cut at {cut}");
        messages
    };
    let n_records = read(&log).len();
    for cut in 0..=n_records {
        seen_by(true, cut);
        check_runs(&Transcript::replay(&read(&log)[..cut]));
        assert!(!json!(seen_by(false, cut)).to_string().contains("base64"));
    }
    let shown = seen_by(true, n_records).iter().map(Value::to_string).collect::<Vec<_>>();
    expect![[r#"
        {"role":"tool","tool_call_id":"qy2ineqiq","content":"{\"files\":[{\"blob\":\"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\",\"name\":\"a\",\"mediaType\":\"image/png\",\"size\":3},{\"blob\":\"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\",\"name\":\"a\",\"mediaType\":\"text/plain\",\"size\":3}]}"}
        {"role":"tool","tool_call_id":"8qfcp0gha","content":"{\"ok\":false,\"error\":{\"code\":\"tool_error\",\"message\":\"no clock\"}}"}
        {"role":"user","content":[{"type":"text","text":"What list gave:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}}]}
        {"role":"assistant","content":"Three files."}"#]].assert_eq(&shown[3..=6].join("\n"));
}
