//! The loop of a model agent, driven by hand: its effects, their order, and how it ends.

mod resuming;
mod steering;

use std::collections::VecDeque;
use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};
use transcript::{
    CallId, Event, Millis, Record, ResponseId, RunMessage, RunStatus, Seq, SessionId,
};

use super::{Decoder, Limits, OpenAi, Settings};
use crate::{
    Ending, HowLost, Lost, ModelBackend, ModelEffect, ModelInput, ReadyCall, ResponsePart,
    RunEffect, RunInput, ToolOutcome,
};

fn settings() -> Settings {
    Settings {
        base_url: "http://model/v1/".to_owned(),
        model: "m".to_owned(),
        api_key: Some("secret-key-1".to_owned()),
        api_key_env: Some("THE_KEY".to_owned()),
        headers: vec![("x-team".to_owned(), "ours".to_owned())],
        body: Map::from_iter([("temperature".to_owned(), json!(0.5))]),
        omit: Vec::new(),
        limits: Limits { steps: Some(5), ..Limits::default() },
        parallel_tools: 2,
        retries: 2,
        idle_timeout_ms: 1000,
    }
}

fn tool(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name } })
}

/// A backend with a clock, its effects and the log of its run.
#[derive(Debug)]
struct Stage {
    backend: OpenAi,
    settings: Arc<Settings>,
    now: Millis,
    events: Vec<Event>,
    /// Events of the backend and of the server, which adds the results of tools.
    log: Vec<(Millis, Event)>,
    /// Calls that were handed over and have no result.
    open: VecDeque<CallId>,
    /// Effects other than events, as text.
    asked: Vec<String>,
    requests: Vec<Value>,
    wake_at: Option<Millis>,
    ending: Option<Ending>,
}

impl Stage {
    fn start(settings: Settings) -> Self {
        let mut stage = Self::new(Arc::new(settings));
        stage.give(ModelInput::Tools(vec![tool("time")]));
        let history = vec![json!({ "role": "user", "content": "hi" })];
        stage.give(RunInput::Start { response_id: ResponseId::new("r"), history });
        stage
    }

    fn new(settings: Arc<Settings>) -> Self {
        Self {
            backend: OpenAi::new(Arc::clone(&settings)),
            settings,
            now: Millis(1_000_000),
            events: Vec::new(),
            log: Vec::new(),
            open: VecDeque::new(),
            asked: Vec::new(),
            requests: Vec::new(),
            wake_at: None,
            ending: None,
        }
    }

    fn give(&mut self, input: impl Into<ModelInput>) {
        assert!(self.ending.is_none(), "nothing is called after the end");
        for effect in self.backend.on(self.now, input.into()) {
            assert!(self.ending.is_none(), "nothing comes after the end: {effect:?}");
            match effect {
                ModelEffect::Run(RunEffect::Emit(event)) => {
                    self.log.push((self.now, event.clone()));
                    self.events.push(event);
                }
                ModelEffect::RunTool(ReadyCall { call_id, tool_name, arguments }) => {
                    self.open.push_back(call_id.clone());
                    self.asked.push(format!("run {call_id} {tool_name} {arguments}"));
                }
                ModelEffect::ReadHistory => self.asked.push("read".to_owned()),
                ModelEffect::Request(request) => {
                    self.asked.push(format!("{} {}", request.method, request.url));
                    self.requests.push(serde_json::from_str(&request.body).unwrap());
                }
                ModelEffect::Run(RunEffect::WakeAt(at)) => self.wake_at = Some(at),
                ModelEffect::Run(RunEffect::CannotSteer(id)) => {
                    self.asked.push(format!("cannot steer {id}"))
                }
                ModelEffect::Run(RunEffect::End(ending)) => self.ending = Some(ending),
            }
        }
    }

    fn head(&mut self, status: u16, headers: &[(&str, &str)]) {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        self.give(ResponsePart::Head { status, headers });
    }

    fn say(&mut self, delta: Value) {
        let chunk = json!({ "choices": [{ "delta": delta }] });
        self.give(ResponsePart::Bytes(format!("data: {chunk}\n\n").into_bytes()));
    }

    fn finish(&mut self, reason: &str) {
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
        let chunk = json!({ "choices": [{ "finish_reason": reason }], "usage": usage });
        self.give(ResponsePart::Bytes(format!("data: {chunk}\n\ndata: [DONE]\n\n").into_bytes()));
    }

    fn call(&mut self, n: u32) {
        let function = json!({ "name": "time", "arguments": "{}" });
        self.say(
            json!({ "tool_calls": [{ "index": n, "id": format!("c{n}"), "function": function }] }),
        );
    }

    /// Feeds a step in which the model makes that many calls.
    fn step_with_calls(&mut self, n_calls: u32) {
        self.head(200, &[]);
        (0..n_calls).for_each(|n| self.call(n));
        self.finish("tool_calls");
    }

    fn result(&mut self, call: &str) {
        let outcome = ToolOutcome { ok: true, result: json!(1), error: None };
        let call_id = CallId::new(call);
        self.open.retain(|it| *it != call_id);
        let result =
            json!({ "type": "tool_result", "callId": call, "toolName": "time", "ok": true });
        self.log.push((self.now, serde_json::from_value(result).unwrap()));
        self.give(ModelInput::ToolResult { call_id, outcome });
    }

    fn history(&mut self) {
        self.give(ModelInput::History(vec![json!({ "role": "user", "content": "hi" })]));
    }

    fn refuse(&mut self, status: u16, headers: &[(&str, &str)], body: &str) {
        self.head(status, headers);
        self.give(ResponsePart::Bytes(body.as_bytes().to_vec()));
        self.give(ResponsePart::Ended(Ok(())));
    }

    fn wake(&mut self) {
        self.now = self.wake_at.take().expect("it wants to be woken");
        self.give(RunInput::Wake);
    }

    fn error(&self) -> String {
        let ending = self.ending.as_ref().expect("it has ended");
        let error = ending.error.as_ref().expect("it has failed");
        format!("{}: {}", error.code, error.message)
    }

    fn decisions(&self) -> Vec<String> {
        let decision = |it: &Event| match it {
            Event::Continuation { should_continue, stop_reason, resolved_by, .. } => {
                Some(format!("{should_continue} {stop_reason} {resolved_by}"))
            }
            _ => None,
        };
        self.events.iter().filter_map(decision).collect()
    }
}

#[test]
fn waiting_calls_do_not_block_others() {
    let mut stage = Stage::start(settings());
    stage.head(200, &[]);
    (0..4).for_each(|n| stage.call(n));
    stage.finish("tool_calls");
    assert_eq!(stage.asked[1..], ["run r.1 time {}", "run r.2 time {}"], "two at a time");
    stage.give(ModelInput::ToolWaits(CallId::new("r.1")));
    stage.give(ModelInput::ToolWaits(CallId::new("r.1")));
    assert_eq!(stage.asked[3..], ["run r.3 time {}"]);
    stage.result("r.1");
    assert_eq!(stage.asked.len(), 4, "two are running");
    stage.give(ModelInput::ToolWaits(CallId::new("r.2")));
    assert_eq!(stage.asked[4..], ["run r.4 time {}"]);
    stage.result("r.3");
    stage.result("r.4");
    assert_eq!(stage.asked.len(), 5, "one is still waited for");
    stage.result("r.2");
    assert_eq!(stage.asked[5..], ["read"]);
}

#[track_caller]
fn check_events(stage: &Stage, expect: Expect) {
    let lines = stage.events.iter().map(|it| serde_json::to_string(it).unwrap() + "\n");
    expect.assert_eq(&lines.collect::<String>());
}

#[test]
fn a_conversation_with_tools() {
    let mut stage = Stage::start(settings());
    assert_eq!(stage.asked, ["POST http://model/v1/chat/completions"]);
    expect![[r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"time"}}],"stream":true,"stream_options":{"include_usage":true},"temperature":0.5}"#]]
        .assert_eq(&stage.requests[0].to_string());
    stage.head(200, &[]);
    stage.say(json!({ "reasoning": "hm" }));
    stage.say(json!({ "content": "\n\n" }));
    stage.say(json!({ "content": "Let me look." }));
    for n in 0..3 {
        stage.call(n);
    }
    stage.finish("stop");
    assert_eq!(stage.asked[1..], ["run r.3 time {}", "run r.4 time {}"], "two at a time");
    stage.result("r.4");
    assert_eq!(stage.asked[3..], ["run r.5 time {}"]);
    stage.result("r.5");
    assert_eq!(stage.asked.len(), 4, "one is still running");
    stage.result("r.3");
    assert_eq!(stage.asked[4..], ["read"]);
    stage.history();
    stage.head(200, &[]);
    stage.say(json!({ "content": "It is noon." }));
    stage.finish("stop");
    let usage = stage.ending.as_ref().unwrap().usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (20, 10));
    assert_eq!(stage.ending.as_ref().unwrap().status, RunStatus::Completed);
    check_events(
        &stage,
        expect![[r#"
        {"type":"step_start","index":0}
        {"type":"thinking_start","partId":"r.1"}
        {"type":"thinking_delta","partId":"r.1","delta":"hm"}
        {"type":"thinking_done","partId":"r.1","text":"hm"}
        {"type":"text_start","partId":"r.2"}
        {"type":"text_delta","partId":"r.2","delta":"Let me look."}
        {"type":"text_done","partId":"r.2","text":"Let me look."}
        {"type":"tool_call_start","callId":"r.3","providerCallId":"c0","toolName":"time","executor":"server"}
        {"type":"tool_arguments_delta","callId":"r.3","delta":"{}"}
        {"type":"tool_call_start","callId":"r.4","providerCallId":"c1","toolName":"time","executor":"server"}
        {"type":"tool_arguments_delta","callId":"r.4","delta":"{}"}
        {"type":"tool_call_start","callId":"r.5","providerCallId":"c2","toolName":"time","executor":"server"}
        {"type":"tool_arguments_delta","callId":"r.5","delta":"{}"}
        {"type":"tool_arguments_done","callId":"r.3","arguments":"{}","summary":"","validation":"not_required"}
        {"type":"tool_arguments_done","callId":"r.4","arguments":"{}","summary":"","validation":"not_required"}
        {"type":"tool_arguments_done","callId":"r.5","arguments":"{}","summary":"","validation":"not_required"}
        {"type":"step_finish","index":0,"finishReason":"tool-calls","usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}
        {"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls","evaluations":[{"criterion":"StepsLimit","decision":"continue","reason":"1 of 5 steps"}]}
        {"type":"step_start","index":1}
        {"type":"text_start","partId":"r.6"}
        {"type":"text_delta","partId":"r.6","delta":"It is noon."}
        {"type":"text_done","partId":"r.6","text":"It is noon."}
        {"type":"step_finish","index":1,"finishReason":"stop","usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}
        {"type":"continuation","shouldContinue":false,"stopReason":"completed","resolvedBy":"NoToolCalls"}
    "#]],
    );
}

#[test]
fn each_step_sends_the_current_tools() {
    let mut stage = Stage::start(settings());
    for names in [vec!["time", "new"], vec!["new"], vec![]] {
        stage.step_with_calls(1);
        let call = stage.asked.iter().rev().find_map(|it| it.strip_prefix("run ")).unwrap();
        let call = call.split(' ').next().unwrap().to_owned();
        stage.result(&call);
        let tools: Vec<Value> = names.into_iter().map(tool).collect();
        stage.give(ModelInput::Tools(tools.clone()));
        stage.history();
        let sent = stage.requests.last().unwrap().get("tools").cloned();
        assert_eq!(sent, (!tools.is_empty()).then_some(Value::Array(tools)));
    }
}

#[test]
fn limits_end_the_run_as_completed() {
    let limited = |limits: Limits| Stage::start(Settings { limits, ..settings() });
    let one_step = |mut stage: Stage| {
        stage.step_with_calls(2);
        stage.now = stage.now.plus(5000);
        for call in stage.asked.clone() {
            if let Some(call) = call.strip_prefix("run ") {
                stage.result(call.split(' ').next().unwrap());
            }
        }
        stage
    };
    for (limits, decision) in [
        (Limits { steps: Some(1), ..Limits::default() }, "false steps_limit StepsLimit"),
        (Limits { tokens: Some(15), ..Limits::default() }, "false token_limit TokenLimit"),
        (Limits { seconds: Some(5), ..Limits::default() }, "false time_limit TimeLimit"),
        (Limits { tool_calls: Some(1), ..Limits::default() }, "false tool_limit ToolLimit"),
        (Limits { tool_calls: Some(0), ..Limits::default() }, "false tool_limit ToolLimit"),
        (Limits { tool_calls: Some(2), ..Limits::default() }, "true tool_calls ToolCalls"),
        (Limits::default(), "true tool_calls ToolCalls"),
    ] {
        let stage = one_step(limited(limits));
        assert_eq!(stage.decisions(), [decision], "{limits:?}");
        assert_eq!(stage.ending.is_none(), decision.starts_with("true"));
        assert!(stage.ending.is_none_or(|it| it.status == RunStatus::Completed));
    }
}

#[test]
fn continuation_lists_every_checked_limit() {
    let limits =
        Limits { steps: Some(2), tokens: Some(99), seconds: Some(60), tool_calls: Some(3) };
    let mut stage = Stage::start(Settings { limits, ..settings() });
    stage.step_with_calls(1);
    stage.result("r.1");
    let last = serde_json::to_string(stage.events.last().unwrap()).unwrap();
    expect![[r#"{"type":"continuation","shouldContinue":true,"stopReason":"tool_calls","resolvedBy":"ToolCalls","evaluations":[{"criterion":"TimeLimit","decision":"continue","reason":"0 of 60 seconds"},{"criterion":"StepsLimit","decision":"continue","reason":"1 of 2 steps"},{"criterion":"TokenLimit","decision":"continue","reason":"15 of 99 tokens"},{"criterion":"ToolLimit","decision":"continue","reason":"1 of 3 tool calls"}]}"#]].assert_eq(&last);
}

#[test]
fn time_limit_ends_an_endless_answer() {
    let limits = Limits { seconds: Some(7), ..Limits::default() };
    let mut stage = Stage::start(Settings { limits, ..settings() });
    stage.head(200, &[]);
    stage.say(json!({ "content": "on and on" }));
    stage.wake();
    assert_eq!(stage.decisions(), ["false time_limit TimeLimit"]);
}

#[test]
fn output_limit_refuses_the_incomplete_call() {
    let mut stage = Stage::start(settings());
    stage.head(200, &[]);
    stage.call(0);
    let function = json!({ "name": "time", "arguments": "{\"zo" });
    stage.say(json!({ "tool_calls": [{ "index": 1, "id": "c1", "function": function }] }));
    stage.finish("length");
    assert_eq!(stage.asked[1..], ["run r.1 time {}"]);
    stage.result("r.1");
    assert_eq!(stage.decisions(), ["false token_limit OutputLimit"]);
    let is_refused = |it: &&Event| matches!(it, Event::ToolResult { ok: false, .. });
    assert_eq!(stage.events.iter().filter(is_refused).count(), 1);
}

#[test]
fn temporary_failures_are_retried() {
    let mut stage = Stage::start(settings());
    stage.refuse(429, &[("retry-after", "3")], r#"{"error":{"message":"slow down"}}"#);
    assert_eq!(stage.wake_at, Some(stage.now.plus(3000)));
    stage.wake();
    let at = stage.now.plus(2000);
    assert_eq!(Millis::parse_http_date("Thu, 01 Jan 1970 00:16:45 GMT"), Some(at));
    stage.refuse(503, &[("retry-after", "Thu, 01 Jan 1970 00:16:45 GMT")], "busy");
    assert_eq!(stage.wake_at, Some(at));
    stage.wake();
    stage.head(200, &[]);
    stage.say(json!({ "content": "here" }));
    stage.finish("stop");
    assert_eq!(stage.ending.as_ref().unwrap().status, RunStatus::Completed);
    assert_eq!(stage.requests.len(), 3);
    assert!(
        stage.requests.iter().all(|it| it == &stage.requests[0]),
        "the same request is sent again"
    );
    let notices = stage.events.iter().filter_map(|it| match it {
        Event::Notice { text, .. } => Some(text.as_str()),
        _ => None,
    });
    expect![[r#"
        The model service at http://model/v1 asks us to slow down (429: slow down). Trying again in 3.0 s (attempt 2 of 3).
        The model service at http://model/v1 failed (503: busy). Trying again in 2.0 s (attempt 3 of 3)."#]].assert_eq(&notices.collect::<Vec<_>>().join("\n"));
}

#[test]
fn too_long_retry_after_ends_the_run() {
    let mut stage = Stage::start(settings());
    stage.refuse(429, &[("retry-after", "120")], "");
    assert_eq!(stage.wake_at, Some(stage.now.plus(120_000)));
    let mut stage = Stage::start(settings());
    stage.refuse(429, &[("retry-after", "121")], "");
    assert!(stage.ending.is_some());
}

#[test]
fn endless_event_fails_at_the_size_limit() {
    let mut decoder = Decoder::default();
    let line = format!("data: {}\n", "x".repeat(1 << 20));
    let mut n_lines = 0;
    while !decoder.is_over() && n_lines < 100 {
        decoder.feed(line.as_bytes());
        n_lines += 1;
    }
    assert_eq!(n_lines, 32);
    let (said, outcome) = decoder.finish();
    assert!(said.is_empty());
    assert_eq!(outcome.error.unwrap().message, "it sent more than 32 MiB in one piece");
}

#[test]
fn usage_is_kept_over_a_step_without_usage() {
    let mut stage = Stage::start(settings());
    stage.step_with_calls(1);
    stage.result("r.1");
    stage.history();
    stage.head(200, &[]);
    stage.give(ResponsePart::Bytes(
        b"data: {\"choices\":[{\"finish_reason\":\"content_filter\"}]}\n\ndata: [DONE]\n\n"
            .to_vec(),
    ));
    assert_eq!(stage.ending.as_ref().unwrap().usage.unwrap().total_tokens, 15);
    assert_eq!(stage.decisions().last().unwrap(), "false unknown ContentFilter");
}

#[test]
fn retries_back_off_and_end() {
    let mut stage = Stage::start(settings());
    let refused = Lost { how: HowLost::NeverConnected, message: "refused".to_owned() };
    for longest in [500, 1000] {
        stage.give(ResponsePart::Ended(Err(refused.clone())));
        let pause = stage.wake_at.unwrap().since(stage.now);
        assert!((longest / 2..=longest).contains(&pause), "{pause}");
        stage.wake();
    }
    stage.give(ResponsePart::Ended(Err(refused)));
    assert_eq!(stage.decisions(), ["false retry_limit RetryLimit"]);
    expect!["upstream_error: The model service at http://model/v1 cannot be reached: refused. Is it running, and is base_url right?"].assert_eq(&stage.error());
}

#[test]
fn errors_say_what_to_do() {
    for (status, headers, body, expect) in [
        (
            401,
            [("", "")],
            r#"{"error":{"message":"no: secret-key-1 is bad"}}"#,
            expect![
                "upstream_auth: The model service at http://model/v1 refused the key (401: no: … is bad). Check that the variable THE_KEY holds a valid key."
            ],
        ),
        (
            404,
            [("", "")],
            r#"{"error":{"message":"model 'm' not found"}}"#,
            expect![
                "upstream_error: The model service at http://model/v1 does not know the model 'm' (404: model 'm' not found). Choose another."
            ],
        ),
        (
            400,
            [("", "")],
            r#"{"error":{"message":"too big","type":"exceed_context_size_error"}}"#,
            expect![
                "context_too_long: The conversation no longer fits into the model's context (400: too big). Start a new session, or use a model with a larger context."
            ],
        ),
        (
            429,
            [("retry-after", "3600")],
            "",
            expect![
                "rate_limit_upstream: The model service at http://model/v1 asks us to slow down (429). It asks to wait 3600.0 s."
            ],
        ),
        (
            429,
            [("", "")],
            r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
            expect![
                "rate_limit_upstream: The model service at http://model/v1 says that the quota is used up (429: pay)."
            ],
        ),
        (
            307,
            [("location", "http://other/")],
            "",
            expect![
                "upstream_error: The model service at http://model/v1 redirects to http://other/. Redirects are not followed, to protect the key: set base_url to the right address."
            ],
        ),
        (
            422,
            [("", "")],
            "<html>no</html>",
            expect![
                "upstream_error: The model service at http://model/v1 refused the request (422: <html>no</html>)."
            ],
        ),
    ] {
        let mut stage = Stage::start(settings());
        stage.refuse(status, &headers, body);
        expect.assert_eq(&stage.error());
    }
}

#[test]
fn no_retry_after_the_first_output() {
    let ends: [fn(&mut Stage); 4] = [
        |stage| stage.give(ResponsePart::Ended(Ok(()))),
        |stage| {
            let lost = Lost { how: HowLost::BrokeOff, message: "reset".to_owned() };
            stage.give(ResponsePart::Ended(Err(lost)));
        },
        |stage| stage.give(ResponsePart::Bytes(b"data: {\"error\":\"overloaded\"}\n\n".to_vec())),
        |stage| {
            let lost = Lost { how: HowLost::TimedOut, message: "silent".to_owned() };
            stage.give(ResponsePart::Ended(Err(lost)));
        },
    ];
    let mut errors = String::new();
    for end in ends {
        let mut stage = Stage::start(settings());
        stage.head(200, &[]);
        stage.say(json!({ "content": "half a" }));
        end(&mut stage);
        assert_eq!(stage.requests.len(), 1);
        errors += &(stage.error() + "\n");
        // The same failure before the first output is retried.
        let mut stage = Stage::start(settings());
        stage.head(200, &[]);
        end(&mut stage);
        assert!(stage.ending.is_none() && stage.wake_at.is_some());
    }
    expect![[r#"
        upstream_error: The model service at http://model/v1 failed (the answer broke off).
        upstream_error: The connection to the model service at http://model/v1 broke off: reset.
        upstream_error: The model service at http://model/v1 failed (overloaded).
        upstream_timeout: The model service at http://model/v1 did not answer in time: silent.
    "#]]
    .assert_eq(&errors);
}

/// After an interrupt, the log has all text received so far, and closing the run is enough.
#[test]
fn interrupt_is_handled_after_any_input() {
    let inputs: [fn(&mut Stage); 10] = [
        |it| it.head(200, &[]),
        |it| it.say(json!({ "content": "<think" })),
        |it| it.say(json!({ "content": ">hm</think>Let me" })),
        |it| it.call(0),
        |it| it.call(1),
        |it| it.finish("tool_calls"),
        |it| it.result("r.3"),
        |it| it.result("r.4"),
        |it| it.history(),
        |it| it.refuse(429, &[], ""),
    ];
    for n in 0..=inputs.len() {
        let mut stage = Stage::start(settings());
        inputs[..n].iter().for_each(|it| it(&mut stage));
        stage.give(RunInput::Interrupt);
        assert_eq!(stage.ending.as_ref().unwrap().status, RunStatus::Cancelled);
        assert_eq!(stage.decisions().last().unwrap(), "false user_requested UserCancel");
        let run = ResponseId::new("r");
        let record = |(seq, event): (u64, &Event)| {
            Record::new(Seq(seq), Millis(0), SessionId::new("s"), Some(run.clone()), event.clone())
        };
        let records: Vec<Record> = (1..).zip(&stage.events).map(record).collect();
        let answer = RunMessage::replay(&run, &records);
        let texts: Vec<&str> = answer.texts().map(|(_, it)| it.text.as_str()).collect();
        let expected: &[&str] = match n {
            0 | 1 => &[],
            2 => &["<think"],
            _ => &["Let me"],
        };
        assert_eq!(texts, expected, "stopped after {n}");
        assert_eq!(answer.calls().count(), n.saturating_sub(3).min(2));
    }
}

/// Inputs at the wrong time are ignored.
#[test]
fn late_inputs_change_nothing() {
    let mut stage = Stage::start(settings());
    stage.step_with_calls(1);
    let n_events = stage.events.len();
    stage.say(json!({ "content": "late" }));
    stage.give(ResponsePart::Ended(Ok(())));
    stage.history();
    stage.give(RunInput::Wake);
    stage.result("r.99");
    assert_eq!(stage.events.len(), n_events);
    stage.result("r.1");
    assert_eq!(stage.asked.last().unwrap(), "read");
}
