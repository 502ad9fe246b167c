//! Lines folded by a client of version 4 are the message that is kept.

mod imports;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use testkit::logs::any_log;
use transcript::{Record, ResponseId};

use super::*;
use crate::tests::logs::{corpus, read, spoken_log};
use crate::tests::{finished_runs, whole};

/// Folds lines as ai 4.3 does, and panics where that throws.
#[derive(Default)]
struct Client {
    id: Value,
    content: String,
    parts: Vec<Value>,
    annotations: Vec<Value>,
    text: Option<usize>,
    thinking: Option<usize>,
    partial: Map<String, Value>,
    has_ended: bool,
    has_failed: bool,
}

impl Client {
    fn take(&mut self, lines: &[String]) {
        for line in lines {
            let line = line.strip_suffix('\n').expect("a whole line");
            assert!(!line.contains('\n'));
            assert!(!self.has_ended, "nothing after the end: {line}");
            let (code, value) = line.split_once(':').unwrap();
            self.fold(code, &serde_json::from_str(value).unwrap());
        }
    }

    fn fold(&mut self, code: &str, value: &Value) {
        match code {
            "0" => {
                let text = value.as_str().unwrap();
                let idx = *self.text.get_or_insert(self.parts.len());
                if idx == self.parts.len() {
                    self.parts.push(json!({ "type": "text", "text": "" }));
                }
                append(&mut self.parts[idx]["text"], text);
                self.content += text;
            }
            "g" => {
                let text = value.as_str().unwrap();
                let idx = *self.thinking.get_or_insert(self.parts.len());
                if idx == self.parts.len() {
                    let details = json!([{ "type": "text", "text": "" }]);
                    let part = json!({ "type": "reasoning", "reasoning": "", "details": details });
                    self.parts.push(part);
                }
                append(&mut self.parts[idx]["reasoning"], text);
                append(&mut self.parts[idx]["details"][0]["text"], text);
            }
            "b" => {
                let id = value["toolCallId"].as_str().unwrap().to_owned();
                self.partial.insert(id, json!(""));
                let (id, name) = (&value["toolCallId"], &value["toolName"]);
                self.invocation(
                    json!({ "state": "partial-call", "toolCallId": id, "toolName": name }),
                );
            }
            "c" => {
                let id = value["toolCallId"].as_str().unwrap();
                let text = self.partial.get_mut(id).expect("a call that has begun");
                append(text, value["argsTextDelta"].as_str().unwrap());
            }
            "9" => {
                assert!(value["args"].is_object(), "args must be an object: {value}");
                let mut invocation = value.clone();
                invocation["state"] = json!("call");
                self.invocation(invocation);
            }
            "a" => {
                let known = self.parts.iter_mut();
                let known = known.filter_map(|it| it.get_mut("toolInvocation"));
                let mut known = known.filter(|it| it["toolCallId"] == value["toolCallId"]);
                let invocation = known.next().expect("a result is preceded by its call");
                invocation["state"] = json!("result");
                invocation["result"] = value.get("result").expect("a result").clone();
            }
            "8" => self.annotations.extend(value.as_array().unwrap().clone()),
            "f" => self.id = value["messageId"].clone(),
            "e" => {
                check_ending(value);
                if value["isContinued"] != true {
                    self.text = None;
                }
                self.thinking = None;
            }
            "d" => {
                check_ending(value);
                self.has_ended = true;
            }
            "3" => {
                assert!(value.is_string());
                (self.has_ended, self.has_failed) = (true, true);
            }
            "h" => self.parts.push(json!({ "type": "source", "source": value })),
            "k" => {
                let file =
                    json!({ "type": "file", "mimeType": value["mimeType"], "data": value["data"] });
                self.parts.push(file);
            }
            other => panic!("unknown code {other}"),
        }
    }

    fn ask_again(&mut self) {
        (self.text, self.thinking, self.has_ended) = (None, None, false);
    }

    /// Returns the parts that the client's next request shows it to have.
    fn known(&self) -> crate::incoming::Known {
        let message = json!({ "role": "assistant", "content": self.content, "parts": self.parts });
        request(&json!({ "messages": [message] })).unwrap().known
    }

    fn invocation(&mut self, invocation: Value) {
        let is_same = |it: &Value| it["toolInvocation"]["toolCallId"] == invocation["toolCallId"];
        let part = json!({ "type": "tool-invocation", "toolInvocation": invocation });
        match self.parts.iter().position(is_same) {
            Some(idx) => self.parts[idx] = part,
            None => self.parts.push(part),
        }
    }

    /// The last annotation about a thing counts, in the place of the first.
    fn annotations(&self) -> Vec<Value> {
        let mut last: Vec<Value> = Vec::new();
        let key = |it: &Value| {
            json!([it["toolCallId"], it["messageId"], it["type"], it["id"]]).to_string()
        };
        for annotation in &self.annotations {
            match last.iter().position(|it| key(it) == key(annotation)) {
                Some(idx) => last[idx] = annotation.clone(),
                None => last.push(annotation.clone()),
            }
        }
        last
    }
}

fn append(value: &mut Value, text: &str) {
    *value = json!(value.as_str().unwrap().to_owned() + text);
}

fn check_ending(value: &Value) {
    let known = ["stop", "length", "content-filter", "tool-calls", "error", "other", "unknown"];
    assert!(known.contains(&value["finishReason"].as_str().unwrap()), "{value}");
    if let Some(usage) = value.get("usage") {
        assert!(usage["promptTokens"].is_u64() && usage["completionTokens"].is_u64());
    }
}

fn kept(log: &[Record], run: &str) -> Value {
    let file_url = |file: &transcript::Attachment| format!("/api/blobs/{}", file.blob);
    message(whole(log).message(run).unwrap(), &file_url).unwrap()
}

/// The client asks again whenever it is its turn, so many records later.
fn folded(log: &[Record], cut: usize, run: &ResponseId, later: usize) -> Client {
    let mut stream = Stream::new(run.clone());
    let mut client = Client::default();
    client.take(&stream.replay(&log[..cut]));
    let mut n_sent = cut;
    while n_sent < log.len() && !client.has_failed {
        let n_more = if stream.is_over() { 1 + later } else { 1 };
        let until = log.len().min(n_sent + n_more);
        let lines = match stream.is_over() {
            false => stream.replay(&log[n_sent..until]),
            true => {
                client.ask_again();
                stream = Stream::new(run.clone());
                stream.replay_unknown(&log[..until], &client.known())
            }
        };
        client.take(&lines);
        n_sent = until;
    }
    client
}

fn by_id(mut annotations: Vec<Value>) -> Value {
    annotations.sort_by_key(Value::to_string);
    Value::from(annotations)
}

/// Returns whether a run contains texts that were discarded, which the client still has.
fn has_discarded(answer: &RunMessage) -> bool {
    answer.parts.iter().any(|part| match &part.kind {
        PartKind::Text(text) => text.role == TextRole::Discarded,
        PartKind::Thinking(thinking) => thinking.discarded,
        _ => false,
    })
}

fn check_law(log: &[Record], cuts: impl Iterator<Item = usize> + Clone) {
    for (run, answer) in finished_runs(log).into_iter().filter(|(_, it)| !has_discarded(it)) {
        let kept = kept(log, run.as_str());
        for cut in cuts.clone() {
            let client = folded(log, cut, &run, cut % 4);
            assert_eq!(client.id, kept["id"]);
            assert_eq!(Value::from(client.parts.clone()), kept["parts"], "{run} cut at {cut}");
            let annotations = kept["annotations"].as_array().unwrap().clone();
            assert_eq!(by_id(client.annotations()), by_id(annotations), "{run} cut at {cut}");
            assert!(client.has_ended);
            assert!(answer.content().is_empty() || !client.content.is_empty());
        }
    }
}

#[test]
fn a_conversation_streamed_is_the_conversation_kept() {
    for (_, log) in corpus().into_iter().filter(|(name, _)| *name != "odd") {
        check_law(&log, 0..=log.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_random_run_streamed_is_the_run_kept(log in spoken_log(60)) {
        check_law(&log, (0..=log.len()).step_by(7));
    }

    #[test]
    fn the_client_takes_any_log(log in any_log(60)) {
        for run in ["r1", "r2"].map(ResponseId::new) {
            for cut in (0..=log.len()).step_by(9) {
                folded(&log, cut, &run, cut % 4);
            }
        }
    }

    /// A page has as many messages of users and final answers as were asked for, or all there are.
    #[test]
    fn placeholders_do_not_count(log in any_log(60), limit in 1..5usize) {
        let transcript = whole(&log);
        let messages: Vec<&Message> = transcript.messages.iter().collect();
        let start = page_start(&messages, limit);
        let counted = |messages: &[&Message]| messages.iter().filter(|it| match &it.content {
            Content::User(message) => message.role == MessageRole::User,
            Content::Run(answer) => !answer.content().trim().is_empty(),
            Content::Aside(_) => false,
        }).count();
        let all = counted(&messages);
        prop_assert_eq!(start.is_some(), all >= limit);
        prop_assert_eq!(counted(&messages[start.unwrap_or(0)..]), all.min(limit));
    }
}

/// The client of these tests may refuse more than the real one; what it takes, that takes, and makes
/// the same message of it.
#[test]
fn the_client_of_these_tests_is_like_the_real_one() {
    let mut taken = String::new();
    for line in include_str!("../../fixtures/ui_v4/folded.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (name, body) = (case["name"].as_str().unwrap(), case["body"].as_str().unwrap());
        let lines: Vec<String> = body.split_inclusive('\n').map(str::to_owned).collect();
        let folded = std::panic::catch_unwind(move || {
            let mut client = Client::default();
            client.take(&lines);
            client
        });
        let Ok(client) = folded else { continue };
        let real = &case["assistant"][0];
        let mut parts = real["parts"].as_array().unwrap().clone();
        parts.retain(|it| it["type"] != "step-start");
        for part in &mut parts {
            if let Some(invocation) = part.get_mut("toolInvocation") {
                invocation.as_object_mut().unwrap().shift_remove("step");
            }
        }
        assert_eq!(client.parts, parts, "{name}");
        assert_eq!(json!(client.content), real["content"]);
        taken += &format!("{name}: {}\n", case["status"].as_str().unwrap());
    }
    expect![[r#"
        v4-continued-step: ready
        v4-error: error
        v4-finish-no-usage: ready
        v4-tool-streamed: ready
    "#]]
    .assert_eq(&taken);
}

const LOG: &str = r#"
    - {"type":"user_message","messageId":"m1","text":"look"}
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"thinking_done","partId":"p9","text":"Hm."}
    r1 {"type":"text_done","partId":"p0","text":"Let me look."}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"list","executor":"server"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"path\":\".\"}","validation":"pending"}
    r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
    r1 {"type":"tool_approval_resolved","callId":"c1","decision":"accepted","by":"user"}
    r1 {"type":"tool_result","callId":"c1","toolName":"list","ok":false,"error":{"code":"tool_error","message":"no such folder"}}
    r1 {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}
    r1 {"type":"step_start","index":1}
    r1 {"type":"text_done","partId":"p1","text":"There is none."}
    r1 {"type":"step_finish","index":1,"finishReason":"stop"}
    r1 {"type":"run_finish","status":"completed"}
"#;

#[test]
fn a_conversation() {
    let log = read(LOG);
    let mut stream = Stream::new(ResponseId::new("r1"));
    let lines: String = log.iter().flat_map(|record| stream.apply(record)).collect();
    expect![[r#"
        f:{"messageId":"r1"}
        g:"Hm."
        0:"Let me look."
        b:{"toolCallId":"c1","toolName":"list"}
        c:{"toolCallId":"c1","argsTextDelta":"{\"path\":\".\"}"}
        9:{"toolCallId":"c1","toolName":"list","args":{"path":"."}}
        8:[{"toolCallId":"c1","validated":"pending","isComplete":false,"toolState":"awaiting_approval"}]
        8:[{"toolCallId":"c1","validated":"pending","isComplete":false,"toolState":"awaiting_approval"}]
        8:[{"toolCallId":"c1","validated":"accepted","isComplete":false,"toolState":"queued"}]
        a:{"toolCallId":"c1","result":{"error":{"code":"tool_error","message":"no such folder"}}}
        8:[{"toolCallId":"c1","validated":"accepted","isComplete":true,"toolState":"failed"}]
        e:{"finishReason":"tool-calls","usage":{"promptTokens":1,"completionTokens":2},"isContinued":false}
        f:{"messageId":"r1"}
        0:"There is none."
        e:{"finishReason":"stop","isContinued":false}
        8:[{"messageId":"r1","isComplete":true}]
        d:{"finishReason":"stop","usage":{"promptTokens":1,"completionTokens":2}}
    "#]].assert_eq(&lines);
    expect![[r#"
        {"id":"m1","role":"user","content":"look","parts":[{"type":"text","text":"look"}],"createdAt":"2023-11-14T22:13:20.100Z"}
        {"id":"r1","role":"assistant","content":"There is none.","parts":[{"type":"reasoning","reasoning":"Hm.","details":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Let me look."},{"type":"tool-invocation","toolInvocation":{"toolCallId":"c1","toolName":"list","args":{"path":"."},"result":{"error":{"code":"tool_error","message":"no such folder"}},"state":"result"}},{"type":"text","text":"There is none."}],"annotations":[{"toolCallId":"c1","validated":"accepted","isComplete":true,"toolState":"failed"},{"messageId":"r1","isComplete":true}],"createdAt":"2023-11-14T22:13:21.300Z"}
    "#]].assert_eq(&format!("{}\n{}\n", kept(&log, "m1"), kept(&log, "r1")));
    let placeholder = kept(&log[..8], "r1");
    expect![[r#"
        {"id":"r1","role":"assistant","content":"","parts":[{"type":"reasoning","reasoning":"Hm.","details":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Let me look."},{"type":"tool-invocation","toolInvocation":{"toolCallId":"c1","toolName":"list","args":{"path":"."},"state":"call"}}],"annotations":[{"toolCallId":"c1","validated":"pending","isComplete":false,"toolState":"awaiting_approval"}],"createdAt":"2023-11-14T22:13:20.600Z"}
    "#]].assert_eq(&format!("{placeholder}\n"));
}

#[test]
fn what_clients_send() {
    let read = |messages: Value| request(&json!({ "id": "chat", "messages": messages }));
    let file =
        json!({ "name": "a.png", "contentType": "image/png", "url": "data:image/png;base64,AA==" });
    let message = json!({ "role": "user", "content": "look", "parts": [], "experimental_attachments": [file] });
    let invocation =
        json!({ "state": "result", "toolCallId": "c1", "toolName": "t", "args": {}, "result": 0 });
    let result = json!({ "role": "assistant", "content": "", "parts": [{ "type": "tool-invocation", "toolInvocation": invocation }] });
    let read_well = [json!([message]), json!([result]), json!([result, message])].map(|it| {
        let read = read(it).unwrap();
        format!("{:?} {:?}", read.message, read.decided)
    });
    expect![[r#"
        Some(IncomingMessage { id: None, text: "look", files: [File { media_type: "image/png", name: Some("a.png"), url: "data:image/png;base64,AA==" }], sent: None }) []
        None [Output { call: "c1", output: Number(0) }]
        Some(IncomingMessage { id: None, text: "look", files: [File { media_type: "image/png", name: Some("a.png"), url: "data:image/png;base64,AA==" }], sent: None }) [Output { call: "c1", output: Number(0) }]"#]]
    .assert_eq(&read_well.join("\n"));
    let bad = [
        request(&json!([])),
        request(&json!({})),
        read(json!({})),
        read(json!([])),
        read(json!([{ "role": "robot" }])),
        read(json!([{ "role": "user", "content": 7 }])),
        read(json!([{ "role": "user", "content": " " }])),
        read(json!([{ "role": "user", "content": "x", "experimental_attachments": [{}] }])),
    ];
    let whys: Vec<String> = bad.into_iter().map(|it| it.unwrap_err().to_string()).collect();
    expect![[r#"
        The body is no JSON object.
        `messages` is missing.
        `messages` is no array.
        There is no message to answer.
        `messages[0].role` is no role of a message.
        `messages[0].content` is no text.
        `messages[0]` has neither text nor files.
        `messages[0].experimental_attachments[0].contentType` is no text.
    "#]]
    .assert_eq(&(whys.join("\n") + "\n"));
}

/// The client runs its tools; a question is answered elsewhere, and is waited for.
#[test]
fn a_response_ends_at_tools_of_the_client_and_not_at_questions() {
    let log = read(
        r#"
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"step_start","index":0}
        r1 {"type":"tool_call_start","callId":"c1","toolName":"rm","executor":"server"}
        r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{}","validation":"pending"}
        r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
        r1 {"type":"tool_approval_resolved","callId":"c1","decision":"accepted","by":"user"}
        r1 {"type":"tool_result","callId":"c1","toolName":"rm","ok":true,"result":1}
        r1 {"type":"step_finish","index":0,"finishReason":"tool_calls"}
        r1 {"type":"step_start","index":1}
        r1 {"type":"tool_call_start","callId":"c2","toolName":"pick","executor":"client"}
        r1 {"type":"tool_arguments_done","callId":"c2","arguments":"{}","validation":"not_required"}
        r1 {"type":"tool_running","callId":"c2"}
        r1 {"type":"tool_result","callId":"c2","toolName":"pick","ok":true,"result":"red"}
        r1 {"type":"step_finish","index":1,"finishReason":"tool_calls"}
        r1 {"type":"run_finish","status":"completed"}
    "#,
    );
    let mut stream = Stream::new(ResponseId::new("r1"));
    let mut received: String =
        log.iter().take(12).flat_map(|record| stream.apply(record)).collect();
    assert!(stream.is_over());
    let mut client = Client::default();
    client.take(&received.lines().map(|it| format!("{it}\n")).collect::<Vec<_>>());
    stream = Stream::new(ResponseId::new("r1"));
    received += "--\n";
    received += &stream.replay_unknown(&log, &client.known()).concat();
    expect![[r#"
        f:{"messageId":"r1"}
        b:{"toolCallId":"c1","toolName":"rm"}
        c:{"toolCallId":"c1","argsTextDelta":"{}"}
        9:{"toolCallId":"c1","toolName":"rm","args":{}}
        8:[{"toolCallId":"c1","validated":"pending","isComplete":false,"toolState":"awaiting_approval"}]
        8:[{"toolCallId":"c1","validated":"pending","isComplete":false,"toolState":"awaiting_approval"}]
        8:[{"toolCallId":"c1","validated":"accepted","isComplete":false,"toolState":"queued"}]
        a:{"toolCallId":"c1","result":1}
        8:[{"toolCallId":"c1","validated":"accepted","isComplete":true,"toolState":"succeeded"}]
        e:{"finishReason":"tool-calls","isContinued":false}
        f:{"messageId":"r1"}
        b:{"toolCallId":"c2","toolName":"pick"}
        c:{"toolCallId":"c2","argsTextDelta":"{}"}
        9:{"toolCallId":"c2","toolName":"pick","args":{}}
        8:[{"toolCallId":"c2","validated":"not_required","isComplete":false,"toolState":"queued"}]
        e:{"finishReason":"unknown","isContinued":false}
        d:{"finishReason":"tool-calls"}
        --
        a:{"toolCallId":"c2","result":"red"}
        8:[{"toolCallId":"c2","validated":"not_required","isComplete":true,"toolState":"succeeded"}]
        f:{"messageId":"r1"}
        e:{"finishReason":"unknown","isContinued":false}
        d:{"finishReason":"tool-calls"}
    "#]].assert_eq(&received);
}
