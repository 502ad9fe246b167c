//! A run of a model agent with a recorded response. Every tool runs and has the same result.

use std::sync::Arc;

use backends::openai::{Limits, Settings};
use backends::{
    HowLost, Lost, ModelBackend, ModelEffect, ModelInput, OpenAi, ReadyCall, ResponsePart,
    RunEffect, RunInput, ToolOutcome,
};
use serde_json::{Map, Value, json};
use transcript::{CallId, Event, Millis, Record, ResponseId};

use crate::log::Log;

/// A response of a model service.
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a str,
    /// Whether the connection was lost after the body.
    pub(crate) is_lost: bool,
}

/// The model's final response after the results of its tools.
const FAREWELL: &str = r#"data: {"choices":[{"delta":{"content":"That is all."},"finish_reason":"stop"}]}

data: [DONE]

"#;

/// Returns the log of a run in which the service sends this response, and a final one to every
/// further request.
pub(crate) fn converse(response: &Response<'_>) -> Vec<Record> {
    let mut stage = Stage::new();
    let response_id = ResponseId::new("r1");
    let text = json!("go");
    stage.log.start(&response_id, &text);
    stage.give(ModelInput::Tools(Vec::new()));
    let history = vec![json!({ "role": "user", "content": text })];
    stage.give(RunInput::Start { response_id, history });
    stage.receive(response);
    while !stage.has_ended {
        stage.receive(&Response { status: 200, body: FAREWELL, is_lost: false });
    }
    stage.log.records
}

pub(crate) fn settings() -> Settings {
    Settings {
        base_url: "http://model/v1".to_owned(),
        model: "m".to_owned(),
        api_key: None,
        api_key_env: None,
        headers: Vec::new(),
        body: Map::new(),
        omit: Vec::new(),
        limits: Limits::default(),
        parallel_tools: 4,
        retries: 1,
        idle_timeout_ms: 1000,
    }
}

struct Stage {
    backend: OpenAi,
    log: Log,
    now: Millis,
    wake_at: Option<Millis>,
    has_ended: bool,
    requests: u32,
}

impl Stage {
    fn new() -> Self {
        Self {
            backend: OpenAi::new(Arc::new(settings())),
            log: Log::new("model"),
            now: Millis(0),
            wake_at: None,
            has_ended: false,
            requests: 0,
        }
    }

    fn receive(&mut self, response: &Response<'_>) {
        if let Some(at) = self.wake_at.take() {
            self.now = at;
            self.give(RunInput::Wake);
        }
        let lost = Lost { how: HowLost::BrokeOff, message: "connection closed".to_owned() };
        let head = ResponsePart::Head { status: response.status, headers: Vec::new() };
        let events = response.body.split_inclusive("\n\n");
        let bytes = events.map(|it| ResponsePart::Bytes(it.as_bytes().to_vec()));
        let ended = ResponsePart::Ended(if response.is_lost { Err(lost) } else { Ok(()) });
        let request = self.requests;
        for input in std::iter::once(head).chain(bytes).chain([ended]) {
            // The next request cuts this response off.
            if self.requests == request {
                self.give(input);
            }
        }
    }

    fn give(&mut self, input: impl Into<ModelInput>) {
        if self.has_ended {
            return;
        }
        self.now = self.now.plus(10);
        self.log.set_now(self.now);
        let mut next = Vec::new();
        for effect in self.backend.on(self.now, input.into()) {
            if let ModelEffect::Run(effect) = &effect {
                self.log.carry_out_on_run(effect);
            }
            match effect {
                ModelEffect::RunTool(ReadyCall { call_id, tool_name, .. }) => {
                    next.push(self.run_tool(call_id, tool_name));
                }
                ModelEffect::ReadHistory => {
                    next.push(ModelInput::History(vec![
                        json!({ "role": "user", "content": "go" }),
                    ]));
                }
                ModelEffect::Request(_) => self.requests += 1,
                ModelEffect::Run(RunEffect::WakeAt(at)) => self.wake_at = Some(at),
                ModelEffect::Run(RunEffect::End(_)) => self.has_ended = true,
                ModelEffect::Run(RunEffect::Emit(_) | RunEffect::CannotSteer(_)) => (),
            }
        }
        next.into_iter().for_each(|it| self.give(it));
    }

    fn run_tool(&mut self, call_id: CallId, tool_name: String) -> ModelInput {
        self.log.emit(Event::ToolRunning { call_id: call_id.clone() });
        let result = Value::from("a result");
        self.log.emit(Event::ToolResult {
            call_id: call_id.clone(),
            tool_name,
            ok: true,
            result: Some(result.clone()),
            output: None,
            error: None,
            summary: None,
            duration_ms: Some(0),
            truncated: None,
        });
        ModelInput::ToolResult { call_id, outcome: ToolOutcome { ok: true, result, error: None } }
    }
}
