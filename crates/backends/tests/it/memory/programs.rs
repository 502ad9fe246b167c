//! The recorded lines of each agent, and its responses to requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use backends::{Claude, Launch, OpenAi, Pi, ProgramInput, ResponsePart};
use serde_json::{Value, json};

use super::driver::{Backend, Input};
use crate::pages::Session;

/// Placeholder for the round in an id.
const ROUND: &str = "§";
/// Placeholder for the run in the id of a turn.
const RUN: &str = "¤";
/// Id of Codex's thread in all recordings.
const THREAD: &str = "thread-1";

/// Line that stands for the head of a model service's response.
const HEAD: &str = "the head";
const ENDED: &str = "the end";

type Make = Arc<dyn Fn() -> Backend>;

pub(super) struct Program {
    pub(super) recordings: Vec<Recording>,
    /// Returns the program's responses to a line.
    pub(super) answer: fn(&Value) -> Vec<String>,
    /// Checks whether a line may end the run.
    pub(super) ends_run: fn(&str) -> bool,
    pub(super) inputs_of: fn(Vec<String>) -> Vec<Input>,
    pub(super) has_many_runs: bool,
    /// Other lines that the program may write.
    pub(super) odd: &'static [&'static str],
}

pub(super) struct Recording {
    pub(super) name: String,
    pub(super) output: Vec<String>,
    pub(super) backend: Make,
}

impl Program {
    pub(super) fn backend(&self) -> Backend {
        (self.recordings[0].backend)()
    }
}

pub(super) fn in_round(line: &str, round: usize, run: usize) -> String {
    line.replace(ROUND, &format!("-{round:04}")).replace(RUN, &format!("-{run:04}"))
}

pub(super) fn claude() -> Program {
    let backend: Make =
        Arc::new(|| Backend::Program(Box::new(Claude::new(Arc::default(), &Launch::default()))));
    Program {
        recordings: recordings(crate::claude::sessions(), &backend),
        answer: |written| {
            let (id, request) = (&written["request_id"], &written["request"]);
            if request["subtype"] != "interrupt" {
                return Vec::new();
            }
            let response = json!({ "subtype": "success", "request_id": id });
            let result = json!({ "type": "result", "subtype": "error_during_execution",
                "terminal_reason": "aborted_streaming" });
            vec![
                json!({ "type": "control_response", "response": response }).to_string(),
                result.to_string(),
            ]
        },
        ends_run: |line| line.contains(r#""type":"result""#),
        inputs_of: lines,
        has_many_runs: true,
        odd: &[
            r#"{"type":"news§"}"#,
            r#"{"type":"system","subtype":"news§"}"#,
            r#"{"type":"system","subtype":"task_started","task_id":"t§","tool_use_id":"u§","task_type":"local_agent"}"#,
            r#"{"type":"assistant","message":{"id":"m§","content":[{"type":"tool_use","id":"c§","name":"Bash","input":{}}]}}"#,
            r#"{"type":"assistant","parent_tool_use_id":"p§","message":{"id":"m§","content":"hi"}}"#,
            r#"{"type":"control_request","request_id":"q§","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}"#,
        ],
    }
}

pub(super) fn codex() -> Program {
    codex_driven_by(true)
}

pub(super) fn codex_exec() -> Program {
    Program {
        // The process of `codex exec` ends with the run.
        has_many_runs: false,
        odd: &[
            r#"{"type":"news§"}"#,
            r#"{"type":"item.started","item":{"type":"command_execution","id":"c§","command":"ls"}}"#,
            r#"{"type":"item.started","item":{"type":"reasoning","id":"t§","text":""}}"#,
            r#"{"type":"error","message":"e§"}"#,
        ],
        ends_run: |_| false,
        ..codex_driven_by(false)
    }
}

fn codex_driven_by(app_server: bool) -> Program {
    let settings = backends::codex::Settings { app_server, ..Default::default() };
    let settings = Arc::new(settings);
    let backend: Make = Arc::new(move || {
        Backend::Program(backends::codex::backend(Arc::clone(&settings), &Launch::default()))
    });
    let mut sessions = crate::codex::sessions();
    sessions.retain(|it| {
        it.name.starts_with("codex/exec") != app_server && it.name != "codex/app-bigout"
    });
    sessions.iter_mut().for_each(|it| name_alike(&mut it.output));
    Program {
        recordings: recordings(sessions, &backend),
        answer: |written| {
            let result = match written["method"].as_str() {
                Some("initialize") => json!({}),
                Some("thread/start" | "thread/resume") => json!({ "thread": { "id": THREAD } }),
                Some("turn/start") => json!({ "turn": { "id": format!("turn-0{RUN}") } }),
                Some("turn/interrupt") => {
                    let turn =
                        json!({ "id": written["params"]["turnId"], "status": "interrupted" });
                    let params = json!({ "threadId": THREAD, "turn": turn });
                    let end = json!({ "method": "turn/completed", "params": params });
                    return vec![
                        json!({ "id": written["id"], "result": {} }).to_string(),
                        end.to_string(),
                    ];
                }
                Some(_) if !written["id"].is_null() => json!({}),
                _ => return Vec::new(),
            };
            vec![json!({ "id": written["id"], "result": result }).to_string()]
        },
        ends_run: |line| line.contains(r#""turn/completed""#) && line.contains(THREAD),
        inputs_of: lines,
        has_many_runs: true,
        odd: &[
            r#"{"method":"news§","params":{"threadId":"thread-1"}}"#,
            r#"{"method":"item/started","params":{"threadId":"thread-1","item":{"type":"commandExecution","id":"c§","command":"ls"}}}"#,
            r#"{"method":"item/agentMessage/delta","params":{"threadId":"thread-1","itemId":"m§","delta":"hi"}}"#,
            r#"{"method":"turn/started","params":{"threadId":"agent§","turn":{"id":"a§","rootTurnId":"turn-0¤"}}}"#,
            r#"{"id":"q§","method":"item/tool/requestUserInput","params":{"threadId":"thread-1","questions":[]}}"#,
        ],
    }
}

pub(super) fn pi() -> Program {
    let backend = |permission_mode: &str| -> Make {
        let permission_mode = Some(permission_mode.to_owned());
        let settings = Arc::new(backends::pi::Settings { permission_mode, ..Default::default() });
        Arc::new(move || {
            Backend::Program(Box::new(Pi::new(Arc::clone(&settings), &Launch::default())))
        })
    };
    let (asking, silent) = (backend("ask"), backend("auto"));
    let mut sessions = crate::pi::sessions();
    sessions.retain(|it| it.name != "pi/1.5/bigout");
    for session in &mut sessions {
        // Responses have the recorder's ids.
        session.output.retain(|it| !it.contains(r#""type":"response""#));
    }
    let mut recordings = recordings(sessions, &asking);
    for recording in &mut recordings {
        if !recording.output.iter().any(|it| it.contains("callboard:tool_call")) {
            recording.backend = Arc::clone(&silent);
        }
    }
    Program {
        recordings,
        answer: |written| {
            let (id, command) = (&written["id"], &written["type"]);
            let state = json!({ "sessionId": "s", "isStreaming": false, "isCompacting": false });
            let response = json!({ "id": id, "type": "response", "command": command,
                "success": true, "data": state });
            match command.as_str() {
                Some("get_state" | "prompt" | "steer") => {
                    vec![crate::pi::ANNOUNCEMENT.to_owned(), response.to_string()]
                }
                Some("abort") => {
                    let end = json!({ "type": "agent_end", "messages": [] });
                    vec![response.to_string(), end.to_string()]
                }
                _ => Vec::new(),
            }
        },
        ends_run: |line| {
            ["agent_end", "agent_settled"]
                .iter()
                .any(|it| line.contains(&format!(r#""type":"{it}""#)))
        },
        inputs_of: lines,
        has_many_runs: true,
        odd: &[
            r#"{"type":"news§"}"#,
            r#"{"type":"tool_execution_start","toolCallId":"c§","toolName":"bash","args":{}}"#,
            r#"{"type":"extension_ui_request","id":"d§","method":"confirm","title":"t"}"#,
            r#"{"type":"message_update","assistantMessageEvent":{"type":"toolcall_delta","contentIndex":7,"delta":"x"}}"#,
        ],
    }
}

pub(super) fn openai() -> Program {
    let settings = Arc::new(crate::model::settings());
    let backend: Make =
        Arc::new(move || Backend::Model(Box::new(OpenAi::new(Arc::clone(&settings)))));
    let sessions = crate::captures::sessions().into_iter().chain(crate::vectors::sessions());
    let sessions = sessions.map(|mut session| {
        session.output.insert(0, HEAD.to_owned());
        session.output.push(ENDED.to_owned());
        session
    });
    Program {
        recordings: recordings(sessions.collect(), &backend),
        answer: |_| Vec::new(),
        ends_run: |_| false,
        inputs_of: |output| {
            let input = |line: String| match line.as_str() {
                HEAD => ResponsePart::Head { status: 200, headers: Vec::new() },
                ENDED => ResponsePart::Ended(Ok(())),
                _ => ResponsePart::Bytes(format!("{line}\n").into_bytes()),
            };
            output.into_iter().map(|it| Input::Model(input(it).into())).collect()
        },
        has_many_runs: true,
        odd: &[
            r#"data: {"news":"§"}"#,
            "data: {",
            "event: error",
            r#"data: {"choices":[{"delta":{"tool_calls":[{"id":"c§","function":{"name":"t","arguments":"{"}}]}}]}"#,
        ],
    }
}

fn lines(output: Vec<String>) -> Vec<Input> {
    output.into_iter().map(|it| Input::Program(ProgramInput::Line(it))).collect()
}

/// Returns the recordings with placeholders for the round in their ids.
fn recordings(sessions: Vec<Session>, backend: &Make) -> Vec<Recording> {
    let recording = |(idx, session): (usize, Session)| Recording {
        output: with_round(&session.output, idx),
        name: session.name,
        backend: Arc::clone(backend),
    };
    sessions.into_iter().enumerate().map(recording).collect()
}

/// Returns the lines with ids that differ by round and recording, except the thread's id.
fn with_round(output: &[String], recording: usize) -> Vec<String> {
    let mut ids = BTreeSet::new();
    for line in output {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        collect_ids(&serde_json::from_str(line).unwrap_or_default(), &mut ids);
    }
    let in_round = |line: &String| {
        ids.iter().fold(line.clone(), |line, id| {
            let name = format!("{id}-{recording}{ROUND}");
            let line = line.replace(&format!("\"{id}\""), &format!("\"{name}\""));
            line.replace(&format!("\\\"{id}\\\""), &format!("\\\"{name}\\\""))
        })
    };
    output.iter().map(in_round).collect()
}

fn collect_ids(value: &Value, ids: &mut BTreeSet<String>) {
    let fields = value.as_object().into_iter().flatten();
    for (name, value) in fields {
        let name = name.to_lowercase();
        let (one, many) = (value.as_str(), value.as_array().into_iter().flatten());
        if ["id", "ids", "uuid"].iter().any(|it| name.ends_with(it)) {
            let all = one.into_iter().chain(many.filter_map(Value::as_str));
            let fixed = |it: &&str| it.is_empty() || *it == THREAD || it.contains(RUN);
            ids.extend(all.filter(|it| !fixed(it)).map(str::to_owned));
        }
        collect_ids(value, ids);
    }
    value.as_array().into_iter().flatten().for_each(|it| collect_ids(it, ids));
}

/// Gives Codex's thread and turns the same ids in all recordings, and removes its responses.
fn name_alike(output: &mut Vec<String>) {
    let read = |line: &String| serde_json::from_str::<Value>(line).unwrap_or_default();
    let threads = output.iter().map(|it| read(it)["result"]["thread"]["id"].clone());
    let thread = threads.filter_map(|it| it.as_str().map(str::to_owned)).next();
    let thread = thread.unwrap_or_default();
    let begun = output.iter().map(read).filter(|it| it["method"] == "turn/started");
    let ours = begun.filter(|it| it["params"]["threadId"] == *thread);
    let turns: Vec<String> =
        ours.filter_map(|it| it["params"]["turn"]["id"].as_str().map(str::to_owned)).collect();
    output.retain(|it| {
        let message = read(it);
        message["id"].is_null() || !message["method"].is_null()
    });
    for line in output {
        if !thread.is_empty() {
            *line = line.replace(&thread, THREAD);
        }
        for (idx, turn) in turns.iter().enumerate() {
            *line = line.replace(turn, &format!("turn-{idx}{RUN}"));
        }
    }
}
