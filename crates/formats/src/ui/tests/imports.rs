//! Exported conversations can be imported again.

use expect_test::expect;
use serde_json::{Value, json};
use transcript::{Record, Seq, SessionId, Transcript};

use crate::import::tests::{lines, setting};
use crate::ui::{self, Profile};

#[test]
fn messages_of_other_programs_are_imported() {
    let messages = json!([
        { "id": "u1", "role": "user", "parts": [{ "type": "text", "text": "hi" }, { "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA==" }] },
        { "id": "a1", "role": "assistant", "parts": [
            { "type": "step-start" },
            { "type": "source-url", "sourceId": "s1", "url": "https://e.com" },
            { "type": "dynamic-tool", "toolName": "mcp_x", "toolCallId": "c1", "state": "input-available", "input": { "k": 1 } },
        ] },
    ]);
    expect![[r#"
        - {"type":"user_message","messageId":"u1","text":"hi","sent":{"parts":[{"type":"text","text":"hi"}]}}
        - {"type":"notice","level":"info","text":"Files that did not come along: 1"}
        a1 {"type":"run_start","agent":"demo","trigger":"user"}
        a1 {"type":"step_start","index":0}
        a1 {"type":"unrecognized","source":"part","raw":"{\"type\":\"source-url\",\"sourceId\":\"s1\",\"url\":\"https://e.com\"}"}
        a1 {"type":"tool_call_start","callId":"c1","providerCallId":"c1","toolName":"mcp_x","arguments":"{\"k\":1}","executor":"agent"}
        a1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"k\":1}","summary":"","validation":"not_required"}
        a1 {"type":"part_extras","partId":"c1","fields":{"type":"dynamic-tool","toolName":"mcp_x"}}
        a1 {"type":"tool_result","callId":"c1","toolName":"mcp_x","ok":false,"error":{"code":"tool_interrupted","message":"The call had no result when the conversation was written down."}}
        a1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
        a1 {"type":"run_finish","status":"completed"}
    "#]].assert_eq(&lines(&ui::import(&messages, &setting())));
}

/// Each with all that it can have; the questions about calls have names of ours.
#[test]
fn foreign_parts_survive_a_round_trip() {
    let signed = json!({ "anthropic": { "signature": "s" } });
    let call = json!({
        "type": "tool-search", "toolCallId": "c1", "state": "output-available", "input": { "q": 1 },
        "output": [1], "title": "Search", "providerExecuted": true, "toolMetadata": { "by": "x" },
        "callProviderMetadata": signed, "resultProviderMetadata": signed,
    });
    let dynamic = json!({
        "type": "dynamic-tool", "toolName": "mcp_x", "toolCallId": "c2", "state": "output-error",
        "input": {}, "errorText": "no", "providerExecuted": false,
    });
    let decided = |id: &str, state: &str, approved: bool| {
        let approval = json!({ "id": format!("approval_{id}"), "approved": approved });
        json!({ "type": "tool-rm", "toolCallId": id, "state": state, "input": {}, "approval": approval })
    };
    let mut refused = decided("c3", "output-denied", false);
    refused["approval"]["reason"] = json!("No.");
    let mut allowed = decided("c4", "output-available", true);
    allowed["output"] = json!("gone");
    let of_all = [
        json!({ "type": "step-start" }),
        json!({ "type": "reasoning", "id": "t1", "text": "Hm.", "state": "done", "providerMetadata": signed }),
        json!({ "type": "text", "text": "Hi.", "state": "done", "providerMetadata": signed }),
        call,
        dynamic,
        json!({ "type": "source-url", "sourceId": "s1", "url": "https://e.com", "providerMetadata": signed }),
        json!({ "type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:,", "providerMetadata": signed }),
        json!({ "type": "data-x", "id": "d", "data": null }),
    ];
    let asked = [refused, allowed];
    let new = [
        json!({ "type": "custom", "kind": "openai.compaction", "providerMetadata": signed }),
        json!({ "type": "reasoning-file", "mediaType": "image/png", "url": "data:," }),
    ];
    let end =
        [json!({ "type": "step-start" }), json!({ "type": "text", "text": "", "state": "done" })];
    let parts: Vec<Value> = [&of_all[..], &asked, &new, &end].concat();
    let imported = json!([{ "id": "a1", "role": "assistant", "parts": parts }]);
    let entries = ui::import(&imported, &setting());
    let records: Vec<Record> = (1..)
        .zip(entries)
        .map(|(seq, it)| {
            Record::new(Seq(seq), it.at, SessionId::new("s"), it.response_id, it.event)
        })
        .collect();
    let transcript = Transcript::replay(&records);
    let shown = |profile| {
        let shown = ui::message(&transcript.messages[0], profile, &|_| String::new()).unwrap();
        shown["parts"].as_array().unwrap().clone()
    };
    assert_eq!(json!(shown(Profile::V7)), json!(parts));
    let kinds = |profile| -> Vec<String> {
        shown(profile).iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect()
    };
    for profile in [Profile::V5, Profile::V6] {
        let n_new = kinds(profile).iter().filter(|it| *it == "data-unrecognized").count();
        assert_eq!(n_new, new.len(), "older ones do not know these");
        assert_eq!(shown(profile)[..of_all.len()], of_all);
    }
}

#[test]
fn invalid_extras_are_dropped() {
    let parts = json!([
        { "type": "text", "text": "a", "state": "done", "providerMetadata": { "x": 1 }, "citations": null },
        { "type": "tool-t", "toolCallId": "c1", "state": "output-available", "input": {}, "output": 1, "providerExecuted": "yes" },
        { "type": "file", "mediaType": "image/png", "url": "data:,", "filename": null },
    ]);
    let imported = json!([{ "id": "a1", "role": "assistant", "parts": parts }]);
    let received = lines(&ui::import(&imported, &setting()));
    assert!(!received.contains("part_extras"), "{received}");
    let file = transcript::PartKind::Unrecognized {
        source: "part".into(),
        raw: parts[2].to_string(),
        lines: 1,
    };
    assert_eq!(ui::foreign::part(&file, Profile::V7), None);
}
