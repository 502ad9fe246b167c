//! The history, the events that add up to it, and the helpers.

mod imports;

use std::collections::HashMap;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::Record;

use super::*;
use crate::tests::logs::{corpus, read, sound_log};
use crate::tests::whole;

const LOG: &str = r#"
    - {"type":"user_message","messageId":"m1","text":"look around"}
    r1 {"type":"run_start","agent":"demo","trigger":"user"}
    r1 {"type":"step_start","index":0}
    r1 {"type":"text_done","partId":"p0","text":"{\"path\":\".\"}"}
    r1 {"type":"tool_call_start","callId":"c1","toolName":"list","executor":"server"}
    r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"path\":\".\"}","summary":"path: '.'","validation":"not_required"}
    r1 {"type":"tool_call_start","callId":"c2","toolName":"time","executor":"server"}
    r1 {"type":"step_finish","index":0,"finishReason":"tool-calls"}
    r1 {"type":"notice","level":"error","text":"no server"}
    r1 {"type":"tool_result","callId":"c2","toolName":"time","ok":false,"error":{"code":"tool_error","message":"no clock"},"durationMs":4}
    r1 {"type":"tool_result","callId":"c1","toolName":"list","ok":true,"result":{"n":3},"durationMs":250}
    r1 {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls"}
    r1 {"type":"step_start","index":1}
    r1 {"type":"text_done","partId":"p4","text":"Three files."}
    r1 {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}
    r1 {"type":"continuation","shouldContinue":false,"stopReason":"steps_limit","resolvedBy":"StepsLimit"}
    r1 {"type":"run_finish","status":"completed"}
"#;

fn history(log: &[Record], statuses: Statuses) -> Vec<Message> {
    let transcript = whole(log);
    transcript.messages.iter().flat_map(|message| messages(message, statuses)).collect()
}

/// The state of one run in a client that follows the events.
#[derive(Default)]
struct Client {
    steps: Vec<Value>,
    /// Calls since the last step ended.
    calls: Vec<Value>,
    tools: HashMap<String, Value>,
    stop: Option<Value>,
    error: Option<String>,
    status: String,
}

impl Client {
    fn take(&mut self, event: &Envelope) {
        let payload = &event.payload;
        match event.kind {
            "agent.tool.started" => {
                let id = payload["tool_call_id"].as_str().unwrap();
                let mut call = json!({ "id": id, "name": payload["tool_name"] });
                // Both always come; the history leaves out what says nothing, or is no object.
                assert!(payload["args_summary"].is_string() && !payload["args"].is_null());
                if payload["args"].as_object().is_some_and(|it| !it.is_empty()) {
                    call["args"] = payload["args"].clone();
                }
                if payload["args_summary"] != "" {
                    call["args_summary"] = payload["args_summary"].clone();
                }
                let known =
                    self.steps.iter_mut().flat_map(|it| it["calls"].as_array_mut().unwrap());
                let mut known = known.chain(&mut self.calls);
                if let Some(known) = known.find(|it| it["id"] == id) {
                    *known = call;
                    return;
                }
                self.calls.push(call);
                // Messages are matched by id: arguments that stream side by side end in any order.
                self.calls.sort_by_key(|it| it["id"].to_string());
                let running = json!({ "tool_call_id": id, "tool_name": payload["tool_name"] });
                assert!(self.tools.insert(id.to_owned(), running).is_none(), "{id} starts twice");
            }
            "agent.tool.completed" => {
                let id = payload["tool_call_id"].as_str().unwrap();
                let tool = self.tools.get_mut(id).expect("a call that started");
                assert!(tool.get("content").is_none(), "{id} ends twice");
                tool["content"] = payload["result_summary"].clone();
                if let Some(ms) = payload.get("duration_ms") {
                    tool["tool_duration_ms"] = ms.clone();
                }
                let one = ["tool_result", "tool_error"].map(|it| payload.get(it).map(|v| (it, v)));
                let [(field, value)] = one.into_iter().flatten().collect::<Vec<_>>()[..] else {
                    panic!("not one of result and error: {payload}");
                };
                assert_eq!(payload["success"], json!(field == "tool_result"));
                tool[field] = value.clone();
            }
            "agent.step.completed" => {
                let calls = std::mem::take(&mut self.calls);
                assert_eq!(payload["has_tool_calls"], json!(!calls.is_empty()));
                let id = format!("{}.step{}", event.execution_id, payload["step_number"]);
                let step = json!({ "id": id, "content": payload["content"], "calls": calls });
                // A step without text and calls has no message.
                if payload["content"] != "" || payload["has_tool_calls"] == true {
                    self.steps.push(step);
                }
            }
            "agent.continuation" => self.stop = Some(payload.clone()),
            "agent.status" => {
                self.status = payload["status"].as_str().unwrap().to_owned();
                self.error = payload["error_message"].as_str().map(str::to_owned);
            }
            other => panic!("unknown event {other}"),
        }
    }

    /// In the words of [`shape`].
    fn messages(&self) -> Vec<Value> {
        let mut messages = Vec::new();
        for step in &self.steps {
            messages.push(step.clone());
            for call in step["calls"].as_array().unwrap() {
                messages.push(self.tools[call["id"].as_str().unwrap()].clone());
            }
        }
        let stop = self.stop.as_ref();
        let stop =
            stop.filter(|it| it["should_continue"] == false && it["stop_reason"] != "completed");
        messages.extend(stop.map(|it| json!({ "stop": it["stop_reason"] })));
        messages.extend(self.error.as_ref().map(|it| json!({ "error": it })));
        messages
    }
}

/// A message of the history without what only the history says.
fn shape(message: &Message) -> Option<Value> {
    let metadata = serde_json::to_value(&message.metadata).unwrap();
    match message.role {
        Role::User => None,
        Role::Assistant => Some(json!({
            "id": message.id,
            "content": message.content,
            "calls": message.metadata.tool_calls,
        })),
        Role::Tool => {
            let mut tool = metadata;
            if tool.get("tool_result").or(tool.get("tool_error")).is_some() {
                tool["content"] = json!(message.content);
            }
            Some(tool)
        }
        Role::Status => match &message.metadata.continuation {
            Some(stop) => Some(json!({ "stop": stop.stop_reason })),
            // Errors that did not end the run are not among the events.
            None => {
                message.id.starts_with("status_error_").then(|| json!({ "error": message.content }))
            }
        },
    }
}

/// The calls of a step, and their messages, by id.
fn in_call_order(mut messages: Vec<Message>) -> Vec<Message> {
    for message in &mut messages {
        message.metadata.tool_calls.sort_by_key(|it| it.id.clone());
        for call in &mut message.metadata.tool_calls {
            call.args = call.args.take().filter(|it| !it.is_empty());
        }
    }
    let runs = messages.chunk_by_mut(|a, b| a.role == b.role);
    runs.filter(|run| run[0].role == Role::Tool)
        .for_each(|run| run.sort_by_key(|it| it.id.clone()));
    messages
}

/// That a text was a call's arguments may show only when its step is over, or with the call of a later step: then
/// it is for the client to put right, from the history, which has no message for a step of nothing else.
fn but_for_leaks(mut messages: Vec<Value>, has_leak: bool) -> Value {
    messages.retain(|it| !(has_leak && it["calls"].as_array().is_some_and(Vec::is_empty)));
    for step in messages.iter_mut().filter(|it| has_leak && it.get("calls").is_some()) {
        step["content"] = Value::Null;
    }
    Value::from(messages)
}

#[track_caller]
fn check_law(log: &[Record]) {
    let mut stream = Stream::default();
    let mut clients: HashMap<String, Client> = HashMap::new();
    for event in log.iter().flat_map(|record| stream.apply(record)) {
        clients.entry(event.execution_id.to_string()).or_default().take(&event);
    }
    let transcript = whole(log);
    for message in transcript.messages.iter().filter(|it| !it.run().is_none_or(|a| a.is_open())) {
        let kept = messages(message, Statuses::Lasting);
        let kept = kept.into_iter().filter(|it| shape(it).is_some()).collect();
        let kept = in_call_order(kept).iter().filter_map(shape).collect::<Vec<_>>();
        let client = &clients[&message.id()];
        let has_leak = message.run().unwrap().texts().any(|(_, text)| text.leaked);
        let (received, kept) =
            (but_for_leaks(client.messages(), has_leak), but_for_leaks(kept, has_leak));
        assert_eq!(received, kept, "{}", message.id());
        assert_ne!(client.status, "processing");
    }
}

#[test]
fn the_events_of_any_conversation_add_up_to_its_history() {
    for (_, log) in corpus() {
        check_law(&log);
    }
    check_law(&read(LOG));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_events_of_a_random_log_add_up_to_its_history(log in sound_log(60)) {
        check_law(&log);
        for statuses in [Statuses::Lasting, Statuses::All] {
            let history = history(&log, statuses);
            let theirs = history.iter().filter(|it| it.role != Role::User);
            let calls = history.iter().flat_map(|it| &it.metadata.tool_calls);
            let calls = calls.filter_map(|it| it.id.as_deref());
            let named: Vec<&str> = theirs.map(|it| it.id.as_str()).chain(calls).collect();
            let ids: std::collections::HashSet<&str> = named.iter().copied().collect();
            prop_assert_eq!(ids.len(), named.len(), "an id twice");
            let transcript = whole(&log);
            for message in &transcript.messages {
                let received = messages(message, Statuses::All);
                prop_assert!(received.is_sorted_by_key(|it| it.timestamp), "out of order");
            }
        }
    }

    /// At every prefix: a tool message stands behind the step that made the call, and
    /// has neither result nor error while it runs, and one of them after.
    #[test]
    fn every_call_has_its_message_from_its_start(log in testkit::logs::any_log(40)) {
        for cut in 0..=log.len() {
            let transcript = whole(&log[..cut]);
            for (message, answer) in transcript.messages.iter().filter_map(|it| Some((it, it.run()?))) {
                let history = messages(message, Statuses::All);
                for call in answer.parts.iter().filter_map(outer_call) {
                let id = format!("tool_{}", call.id);
                let tool = history.iter().find(|it| it.id == id);
                let metadata = &tool.expect("a message for each call").metadata;
                let ends = [metadata.tool_result.is_some(), metadata.tool_error.is_some()];
                let n_ends = ends.into_iter().filter(|it| *it).count();
                prop_assert_eq!(n_ends, usize::from(!call.is_open()));
                prop_assert!(!tool.unwrap().content.contains('\n'));
                }
            }
        }
    }
}

fn outer_call(part: &transcript::Part) -> Option<&transcript::Call> {
    match &part.kind {
        transcript::PartKind::Call(call) if part.parent.is_none() => Some(call),
        _ => None,
    }
}

#[test]
fn a_conversation() {
    let log = read(LOG);
    let lines = |statuses| {
        let lines: Vec<String> =
            history(&log, statuses).iter().map(|it| serde_json::to_string(it).unwrap()).collect();
        lines.join("\n") + "\n"
    };
    expect![[r#"
        {"id":"m1","role":"user","content":"look around","timestamp":"2023-11-14T22:13:20.100Z"}
        {"id":"r1.step1","role":"assistant","content":"","timestamp":"2023-11-14T22:13:20.500Z","metadata":{"tool_calls":[{"id":"c1","name":"list","args":{"path":"."},"args_summary":"path: '.'"},{"id":"c2","name":"time"}]}}
        {"id":"tool_c1","role":"tool","content":"n: 3","timestamp":"2023-11-14T22:13:20.500Z","metadata":{"tool_call_id":"c1","tool_name":"list","tool_result":{"n":3},"tool_duration_ms":250}}
        {"id":"tool_c2","role":"tool","content":"no clock","timestamp":"2023-11-14T22:13:20.700Z","metadata":{"tool_call_id":"c2","tool_name":"time","tool_error":"no clock","tool_duration_ms":4}}
        {"id":"status_r1_problem1","role":"status","content":"no server","timestamp":"2023-11-14T22:13:20.900Z","metadata":{"status_type":"error"}}
        {"id":"r1.step2","role":"assistant","content":"Three files.","timestamp":"2023-11-14T22:13:21.400Z"}
        {"id":"status_cont_r1","role":"status","content":"Agent stopped: steps_limit","timestamp":"2023-11-14T22:13:21.700Z","metadata":{"status_type":"continuation","continuation":{"should_continue":false,"stop_reason":"steps_limit","resolved_by":"StepsLimit"}}}
    "#]].assert_eq(&lines(Statuses::Lasting));
    let (all, lasting) = (lines(Statuses::All), lines(Statuses::Lasting));
    let more: Vec<_> = all.lines().filter(|it| !lasting.contains(it)).collect();
    expect![[r#"
        {"id":"status_call_c1","role":"status","content":"list(path: '.')","timestamp":"2023-11-14T22:13:20.500Z","metadata":{"status_type":"tool_call"}}
        {"id":"status_call_c2","role":"status","content":"time()","timestamp":"2023-11-14T22:13:20.700Z","metadata":{"status_type":"tool_call"}}
        {"id":"status_result_c2","role":"status","content":"time: no clock","timestamp":"2023-11-14T22:13:21.000Z","metadata":{"status_type":"tool_result"}}
        {"id":"status_result_c1","role":"status","content":"list: n: 3","timestamp":"2023-11-14T22:13:21.100Z","metadata":{"status_type":"tool_result"}}
        {"id":"status_r1_goes_on1","role":"status","content":"Agent goes on: tool_calls","timestamp":"2023-11-14T22:13:21.200Z","metadata":{"status_type":"continuation","continuation":{"should_continue":true,"stop_reason":"tool_calls","resolved_by":"ToolCalls"}}}"#]].assert_eq(&more.join("\n"));
}

#[test]
fn what_a_person_changed_is_what_the_summary_is_about() {
    let log = read(
        r#"
        r1 {"type":"run_start","agent":"demo","trigger":"user"}
        r1 {"type":"tool_call_start","callId":"c1","toolName":"shell","executor":"server"}
        r1 {"type":"tool_arguments_done","callId":"c1","arguments":"{\"command\":\"a\"}","summary":"command: 'a'","validation":"pending"}
        r1 {"type":"tool_approval_requested","callId":"c1","options":{"scopes":["once"],"canEdit":true}}
        r1 {"type":"tool_approval_resolved","callId":"c1","decision":"accepted","by":"me","arguments":"{\"command\":\"b\"}"}
        "#,
    );
    let history = history(&log, Statuses::Lasting);
    let info = &history[0].metadata.tool_calls[0];
    assert_eq!(info.args_summary.as_deref(), Some("command: 'b'"));
}

#[test]
fn the_same_as_events() {
    let mut stream = Stream::default();
    let log = read(LOG);
    let events = log.iter().flat_map(|record| stream.apply(record));
    let lines: Vec<String> =
        events.map(|it| format!("{} {} {}", it.seq, it.kind, it.payload)).collect();
    expect![[r#"
        2 agent.status {"status":"processing"}
        6 agent.tool.started {"tool_call_id":"c1","tool_name":"list","args":{"path":"."},"args_summary":"path: '.'"}
        10 agent.tool.started {"tool_call_id":"c2","tool_name":"time","args":{},"args_summary":""}
        10 agent.tool.completed {"tool_call_id":"c2","tool_name":"time","success":false,"tool_error":"no clock","result_summary":"no clock","duration_ms":4}
        11 agent.tool.completed {"tool_call_id":"c1","tool_name":"list","success":true,"result_summary":"n: 3","duration_ms":250,"tool_result":{"n":3}}
        11 agent.step.completed {"step_number":1,"content":"","has_tool_calls":true,"finish_reason":"tool-calls","duration_ms":500}
        12 agent.continuation {"should_continue":true,"stop_reason":"tool_calls","resolved_by":"ToolCalls","evaluations":[]}
        15 agent.step.completed {"step_number":2,"content":"Three files.","has_tool_calls":false,"finish_reason":"stop","usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3},"duration_ms":200}
        16 agent.continuation {"should_continue":false,"stop_reason":"steps_limit","resolved_by":"StepsLimit","evaluations":[]}
        17 agent.status {"status":"completed"}
    "#]].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn the_helpers() {
    let message = |role: &str, content: &str, metadata: Value| -> Message {
        let at = "2026-01-16T10:05:00.000Z";
        let message = json!({ "id": "1", "role": role, "content": content, "timestamp": at, "metadata": metadata });
        serde_json::from_value(message).unwrap()
    };
    let calls = json!({ "tool_calls": [{ "name": "f", "args": { "a": 1 } }, { "name": "g" }] });

    assert!(is_tool_call_message(&message("assistant", "", calls.clone())));
    assert!(!is_tool_call_message(&message("assistant", "", json!({}))));
    assert!(!is_tool_call_message(&message("user", "", calls.clone())));

    assert!(is_tool_result_message(&message("tool", "", json!({ "tool_result": null }))));
    assert!(!is_tool_result_message(&message("assistant", "", calls.clone())));

    assert!(has_tool_error(&message("tool", "", json!({ "tool_error": "no" }))));
    assert!(!has_tool_error(&message("tool", "", json!({ "tool_result": { "error": "no" } }))));
    assert!(!has_tool_error(&message("status", "", json!({ "tool_error": "no" }))));

    let shows = |role: &str, content: &str, metadata: &Value| {
        should_render_assistant_content(&message(role, content, metadata.clone()))
    };
    assert!(shows("assistant", "", &json!({})));
    assert!(shows("assistant", r#"{"a":1}"#, &json!({})));
    assert!(!shows("user", "hello", &json!({})));
    assert!(!shows("tool", "hello", &calls));
    assert!(!shows("assistant", "  ", &calls));
    assert!(!shows("assistant", "{ \"a\" : 1 }", &calls), "a call's own arguments");
    assert!(shows("assistant", r#"{"a":2}"#, &calls), "an answer that is JSON");
    assert!(shows("assistant", "[Note] look", &calls));
    assert!(shows("assistant", "Let me look.", &calls));
}

#[test]
fn the_contracts_own_examples_are_messages() {
    for example in [
        include_str!("../../fixtures/contract/assistant.json"),
        include_str!("../../fixtures/contract/tool.json"),
        include_str!("../../fixtures/contract/continuation.json"),
    ] {
        let message: Message = serde_json::from_str(example).unwrap();
        let again = serde_json::to_value(&message).unwrap();
        let mut parsed: Value = serde_json::from_str(example).unwrap();
        parsed["timestamp"] = again["timestamp"].clone();
        assert_eq!(again, parsed);
    }
}
