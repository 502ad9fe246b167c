//! PROVISIONAL: just enough of Claude Code's protocol to try the driver.

use std::sync::Arc;

use serde_json::{Value, json};
use transcript::*;

use crate::{Backend, Effect, Ending, Input, Launch, Program, Verdict};

#[derive(Debug, Clone)]
pub struct Settings {
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub model: Option<String>,
    pub env: Vec<(String, String)>,
    pub permission_mode: String,
    pub system: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { command: vec!["claude".to_owned()], args: vec![], model: None, env: vec![], permission_mode: "ask".to_owned(), system: None }
    }
}

pub fn program(settings: &Settings, launch: &Launch) -> Program {
    let mut command = settings.command.clone();
    command.push("-p".to_owned());
    if let Some(it) = &launch.resume { command.extend(["--resume".to_owned(), it.clone()]); }
    command.extend(settings.args.iter().cloned());
    Program { command, env: settings.env.clone() }
}

pub struct Claude { run: Option<ResponseId>, spare: Option<ResponseId>, n: u32, asks: Vec<(String, CallId, Value)>, calls: Vec<(String, CallId, String)>, stopping: bool }

impl Claude {
    pub fn new(_: Arc<Settings>, _: &Launch) -> Self { Self { run: None, spare: None, n: 0, asks: vec![], calls: vec![], stopping: false } }
    fn id(&mut self) -> String { self.n += 1; format!("{}.{}", self.run.as_ref().map_or("", |it| it.as_str()), self.n) }
    fn end(&mut self, status: RunStatus, error: Option<ErrorInfo>) -> Effect { self.run = None; self.asks.clear(); self.calls.clear(); Effect::End(Ending { status, error, usage: None }) }
    fn line(&mut self, line: &str) -> Vec<Effect> {
        let unknown = || vec![Effect::Emit(Event::Unrecognized { source: "claude".into(), raw: line.to_owned() })];
        let Ok(v) = serde_json::from_str::<Value>(line) else { return if self.run.is_some() { unknown() } else { vec![] } };
        let mut out = vec![];
        match (v["type"].as_str().unwrap_or(""), v["subtype"].as_str().unwrap_or("")) {
            ("system", "init") => {
                if self.run.is_none() { self.run = self.spare.take(); self.n = 0; out.push(Effect::Begin); }
                out.push(Effect::Emit(Event::AgentLinked { cli_session_id: v["session_id"].as_str().unwrap_or("").into(), cwd: None, version: v["claude_code_version"].as_str().map(Into::into) }));
            }
            ("assistant", _) if self.run.is_some() => for block in v["message"]["content"].as_array().into_iter().flatten() {
                if block["type"] == "text" {
                    let part_id = PartId::new(self.id());
                    out.push(Effect::Emit(Event::TextStart { part_id: part_id.clone(), parent_call_id: None }));
                    out.push(Effect::Emit(Event::TextDone { part_id, parent_call_id: None, text: block["text"].as_str().unwrap_or("").into(), phase: None, discarded: false }));
                } else if block["type"] == "tool_use" {
                    let call_id = CallId::new(self.id());
                    let name = block["name"].as_str().unwrap_or("").to_owned();
                    self.calls.push((block["id"].as_str().unwrap_or("").into(), call_id.clone(), name.clone()));
                    out.push(Effect::Emit(Event::ToolCallStart { call_id: call_id.clone(), provider_call_id: None, tool_name: name, arguments: None, parent_call_id: None, executor: Executor::Agent }));
                    out.push(Effect::Emit(Event::ToolArgumentsDone { call_id, arguments: block["input"].to_string(), summary: String::new(), incomplete: false, validation: Validation::NotRequired, provider_data: None }));
                }
            },
            ("control_request", _) if v["request"]["subtype"] == "can_use_tool" => {
                let id = v["request"]["tool_use_id"].as_str().unwrap_or("");
                if let Some((_, call_id, _)) = self.calls.iter().find(|it| it.0 == id) {
                    let form = (v["request"]["tool_name"] == "AskUserQuestion").then(|| v["request"]["input"].clone());
                    out.push(Effect::Ask { call_id: call_id.clone(), can_edit: true, form });
                    self.asks.push((v["request_id"].as_str().unwrap_or("").into(), call_id.clone(), v["request"]["input"].clone()));
                }
            }
            ("control_cancel_request", _) => {
                let id = v["request_id"].as_str().unwrap_or("");
                if let Some(n) = self.asks.iter().position(|it| it.0 == id) { out.push(Effect::Withdraw(self.asks.remove(n).1)); }
            }
            ("user", _) => for block in v["message"]["content"].as_array().into_iter().flatten() {
                let Some(n) = self.calls.iter().position(|it| block["tool_use_id"] == it.0.as_str()) else { continue };
                let (_, call_id, tool_name) = self.calls.remove(n);
                let ok = block["is_error"] != true;
                out.push(Effect::Emit(Event::ToolResult { call_id, tool_name, ok, result: Some(block["content"].clone()), output: None, error: (!ok).then(|| ErrorInfo::new(ErrorCode::ToolError, block["content"].as_str().unwrap_or(""))), duration_ms: 0, truncated: None }));
            },
            ("result", _) if self.run.is_some() => { let status = if self.stopping { RunStatus::Cancelled } else { RunStatus::Completed }; out.push(self.end(status, None)); }
            ("control_response", _) => (),
            _ if self.run.is_some() => out = unknown(),
            _ => (),
        }
        out
    }
}

impl Backend for Claude {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        match input {
            Input::Start { response_id, history } => {
                self.run = Some(response_id); self.n = 0; self.stopping = false;
                let said = history.iter().rev().find(|it| it["role"] == "user").cloned().unwrap_or_default();
                let content = match &said["content"] { Value::String(s) => json!([{"type":"text","text":s}]), other => other.clone() };
                vec![Effect::Write(json!({"type":"user","message":{"role":"user","content":content}}).to_string())]
            }
            Input::Spare(id) => { self.spare = Some(id); vec![] }
            Input::Line(line) => self.line(&line),
            Input::Decided { call_id, verdict } => {
                let Some(n) = self.asks.iter().position(|it| it.1 == call_id) else { return vec![] };
                let (id, _, input) = self.asks.remove(n);
                let response = match verdict {
                    Verdict::Allowed { arguments, .. } => json!({"behavior":"allow","updatedInput": arguments.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or(input)}),
                    Verdict::Denied { feedback } => json!({"behavior":"deny","message":feedback.unwrap_or("no".into())}),
                    Verdict::TimedOut => json!({"behavior":"deny","message":"Nobody decided in time."}),
                };
                vec![Effect::Write(json!({"type":"control_response","response":{"subtype":"success","request_id":id,"response":response}}).to_string())]
            }
            Input::Interrupt if self.run.is_some() => { self.stopping = true; vec![Effect::Write(json!({"type":"control_request","request_id":"i1","request":{"subtype":"interrupt"}}).to_string()), Effect::WakeAt(now.plus(5000))] }
            Input::Wake if self.run.is_some() && self.stopping => vec![Effect::Quit],
            Input::Exited(exit) if self.run.is_some() => {
                let error = ErrorInfo::new(ErrorCode::AgentExited, format!("Claude Code ended: {:?} {}", exit.code, exit.stderr));
                let end = if self.stopping { self.end(RunStatus::Cancelled, None) } else { self.end(RunStatus::Failed, Some(error)) };
                vec![end]
            }
            _ => vec![],
        }
    }
}
