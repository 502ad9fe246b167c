//! What Codex asks while it works, and how each kind of question is answered.

use serde_json::{Map, Value, json};
use transcript::{CallId, ErrorCode, ErrorInfo, Scope};

use super::items::{call, fields};
use super::speaker::{Outcome, Speaker};
use super::turn::Run;
use super::wire;
use crate::{Effect, Verdict};

/// Codex waits for the answer to a request of its own.
#[derive(Debug)]
pub(super) struct Question {
    /// As Codex wrote it; its numbers are its own.
    pub(super) request_id: Value,
    pub(super) call_id: CallId,
    /// The agent that asks, if it is not Codex itself.
    agent: Option<String>,
    /// The call is the question itself, and ends with the answer. Under this id it is told.
    pub(super) own_item: Option<String>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// A command or a patch.
    Action,
    /// Whether a command that runs may reach a host: another question than whether it may run.
    Network,
    McpTool {
        /// Codex offers to remember the answer.
        can_persist: bool,
    },
    /// A form of an MCP server.
    Elicitation,
    UserInput {
        questions: Value,
    },
    Permissions {
        requested: Value,
    },
}

impl Kind {
    /// None if the request is none that a person could answer.
    pub(super) fn of(method: &str, params: &Value) -> Option<Self> {
        Some(match method {
            "item/commandExecution/requestApproval"
                if !params["networkApprovalContext"].is_null() =>
            {
                Self::Network
            }
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                Self::Action
            }
            "mcpServer/elicitation/request" if is_about_tool(params) => {
                let persist = params["_meta"]["persist"].as_array();
                let can_persist = persist.is_some_and(|it| it.iter().any(|it| it == "session"));
                Self::McpTool { can_persist }
            }
            "mcpServer/elicitation/request" => Self::Elicitation,
            "item/tool/requestUserInput" => {
                Self::UserInput { questions: params["questions"].clone() }
            }
            "item/permissions/requestApproval" => {
                Self::Permissions { requested: params["permissions"].clone() }
            }
            _ => return None,
        })
    }

    /// Questions to a person instead of a yes or no.
    pub(super) fn form(&self, params: &Value) -> Option<Value> {
        match self {
            Self::Elicitation => Some(fields(params, &["message", "requestedSchema", "url"])),
            Self::UserInput { .. } => Some(fields(params, &["questions"])),
            Self::Action | Self::Network | Self::McpTool { .. } | Self::Permissions { .. } => None,
        }
    }

    /// The question as a call, where it is about nothing that is one already.
    pub(super) fn as_call(&self, method: &str, params: &Value, workspace: &str) -> (String, Value) {
        match self {
            Self::Action => {
                let is_command = method.starts_with("item/commandExecution/");
                let kind = if is_command { "commandExecution" } else { "fileChange" };
                let mut item = params.as_object().cloned().unwrap_or_default();
                item.insert("type".to_owned(), json!(kind));
                let (name, mut arguments) =
                    call(&Value::Object(item), workspace).unwrap_or_default();
                let more = fields(params, &["additionalPermissions", "grantRoot"]);
                if let (Some(arguments), Value::Object(more)) = (arguments.as_object_mut(), more) {
                    arguments.extend(more);
                }
                (name, arguments)
            }
            Self::Network => {
                let given = ["networkApprovalContext", "command", "reason"];
                ("network_access".to_owned(), fields(params, &given))
            }
            Self::McpTool { .. } => {
                let name = format!("{}__call", params["serverName"].as_str().unwrap_or_default());
                (name, params["_meta"]["tool_params"].clone())
            }
            Self::Elicitation => {
                ("elicitation".to_owned(), fields(params, &["serverName", "message", "url"]))
            }
            Self::UserInput { .. } => {
                ("request_user_input".to_owned(), fields(params, &["questions"]))
            }
            Self::Permissions { .. } => {
                ("request_permissions".to_owned(), fields(params, &["reason", "permissions"]))
            }
        }
    }

    /// The `result` of the response.
    pub(super) fn answer(&self, verdict: &Verdict) -> Value {
        let (arguments, scope) = match verdict {
            Verdict::Allowed { arguments, scope } => (arguments.as_deref(), *scope),
            Verdict::Denied { .. } | Verdict::TimedOut => return self.refusal(),
        };
        let for_session = scope != Scope::Once;
        match self {
            Self::Action | Self::Network if for_session => {
                json!({ "decision": "acceptForSession" })
            }
            Self::Action | Self::Network => json!({ "decision": "accept" }),
            Self::McpTool { can_persist: true } if for_session => {
                json!({ "action": "accept", "content": {}, "_meta": { "persist": "session" } })
            }
            Self::McpTool { .. } => json!({ "action": "accept", "content": {} }),
            Self::Elicitation => json!({ "action": "accept", "content": answers(arguments) }),
            Self::UserInput { questions } => {
                json!({ "answers": by_question(questions, &answers(arguments)) })
            }
            Self::Permissions { requested } => {
                let scope = if for_session { "session" } else { "turn" };
                json!({ "permissions": requested, "scope": scope })
            }
        }
    }

    pub(super) fn refusal(&self) -> Value {
        match self {
            Self::Action | Self::Network => json!({ "decision": "decline" }),
            Self::McpTool { .. } | Self::Elicitation => {
                json!({ "action": "decline", "content": null })
            }
            Self::UserInput { .. } => json!({ "answers": {} }),
            Self::Permissions { .. } => json!({ "permissions": {} }),
        }
    }

    /// The answer that also ends the turn, where there is one.
    pub(super) fn cancellation(&self) -> Value {
        match self {
            Self::Action | Self::Network => json!({ "decision": "cancel" }),
            Self::McpTool { .. } | Self::Elicitation => {
                json!({ "action": "cancel", "content": null })
            }
            Self::UserInput { .. } | Self::Permissions { .. } => self.refusal(),
        }
    }
}

impl Run {
    /// Puts a request of Codex to a person. False if it is none for people.
    pub(super) fn asked(
        &mut self,
        agent: Option<&str>,
        (method, params): (&str, &Value),
        id: &Value,
    ) -> bool {
        if self.questions.iter().any(|it| it.request_id == *id) {
            return true;
        }
        let Some(kind) = Kind::of(method, params) else { return false };
        let form = kind.form(params);
        let Some((speaker, out)) = self.voice(agent) else { return false };
        let asked_item = asked_item(speaker, &kind, params);
        let own_item = asked_item.is_none().then(|| format!("question-{id}"));
        let item = asked_item.or_else(|| own_item.clone()).unwrap_or_default();
        let (name, arguments) = kind.as_call(method, params, &speaker.workspace);
        let Some(call) = speaker.call(&item, &name, out) else { return false };
        call.ask();
        let call_id = call.id.clone();
        speaker.set_arguments(&item, &arguments, out);
        let reason = params["reason"].as_str().filter(|it| !it.trim().is_empty());
        out.push(Effect::Ask {
            call_id: call_id.clone(),
            can_edit: false,
            form,
            reason: reason.map(str::to_owned),
            is_judged: true,
        });
        let (request_id, agent) = (id.clone(), agent.map(str::to_owned));
        self.questions.push(Question { request_id, call_id, agent, own_item, kind });
        true
    }

    /// Whether the command or the patch that it asks about has ended.
    pub(super) fn is_about_ended(&self, agent: Option<&str>, kind: &Kind, params: &Value) -> bool {
        let item = params["itemId"].as_str().filter(|_| matches!(kind, Kind::Action));
        self.speaker(agent).zip(item).is_some_and(|(speaker, item)| speaker.has_ended(item))
    }

    /// Returns the name of the tool that a call asks about, and the agent whose call it is. None if Codex no
    /// longer asks.
    pub(super) fn asked_about(&mut self, call_id: &CallId) -> Option<(String, Option<String>)> {
        let question = self.questions.iter().find(|it| it.call_id == *call_id)?;
        let agent = question.agent.clone();
        let (speaker, _) = self.voice(agent.as_deref())?;
        let call = speaker.open_calls().iter().find(|it| it.id == *call_id)?;
        Some((call.name.clone(), agent))
    }

    /// Answers what Codex asked about the call.
    pub(super) fn decided(&mut self, call_id: &CallId, verdict: &Verdict) {
        let is_meant = |it: &Question| it.call_id == *call_id;
        let Some(idx) = self.questions.iter().position(is_meant) else { return };
        let question = self.questions.remove(idx);
        let answer = question.kind.answer(verdict);
        self.out.write(wire::answer(&question.request_id, &answer));
        let Some((speaker, out)) = self.voice(question.agent.as_deref()) else { return };
        let mut calls = speaker.open_calls().iter_mut();
        let Some(call) = calls.find(|it| it.id == *call_id) else { return };
        let item = call.item.clone();
        let refusal = refusal(verdict);
        let ok = refusal.is_none();
        call.refusal = refusal;
        if question.own_item.is_some() {
            let result = ok.then_some(answer);
            let outcome = Outcome { ok, result, error: None, duration_ms: None };
            speaker.finish_call(&item, outcome, out);
        } else if ok {
            speaker.running(&item, out);
        }
    }

    /// All that Codex still asks is answered so that it ends.
    pub(super) fn cancel_questions(&mut self) {
        for question in std::mem::take(&mut self.questions) {
            let answer = question.kind.cancellation();
            self.out.write(wire::answer(&question.request_id, &answer));
            let speaker = self.voice(question.agent.as_deref()).map(|it| it.0);
            let mut calls = speaker.into_iter().flat_map(|it| it.open_calls());
            if let Some(call) = calls.find(|it| it.id == question.call_id) {
                let why = "It was interrupted before it could run.";
                call.refusal = Some(ErrorInfo::new(ErrorCode::ToolInterrupted, why));
            }
            self.out.push(Effect::Withdraw(question.call_id));
        }
    }

    /// The call has ended, so that nothing is left to ask about it.
    pub(super) fn withdraw_about(&mut self, agent: Option<&str>, item: &str) {
        let call = self.voice(agent).and_then(|(speaker, _)| speaker.open_call(item));
        let Some(call_id) = call.map(|it| it.id.clone()) else { return };
        for question in self.questions.extract_if(.., |it| it.call_id == call_id) {
            self.out.push(Effect::Withdraw(question.call_id));
        }
    }

    /// Codex has its answer from elsewhere, or wants none any more.
    pub(super) fn withdraw(&mut self, request_id: &Value) {
        let is_it = |it: &Question| it.request_id == *request_id;
        let Some(idx) = self.questions.iter().position(is_it) else { return };
        let question = self.questions.remove(idx);
        self.out.push(Effect::Withdraw(question.call_id));
        let voice = self.voice(question.agent.as_deref());
        if let (Some(item), Some((speaker, out))) = (question.own_item, voice) {
            let why = "Codex no longer asks.";
            let error = Some(ErrorInfo::new(ErrorCode::ToolInterrupted, why));
            let outcome = Outcome { ok: false, result: None, error, duration_ms: None };
            speaker.finish_call(&item, outcome, out);
        }
    }
}

/// The open call that the question is about. One that was asked about before has had its answer.
fn asked_item(speaker: &mut Speaker, kind: &Kind, params: &Value) -> Option<String> {
    let calls = speaker.open_calls();
    let found = match kind {
        // More than the call itself: it is a question of its own, which shows all of it.
        Kind::Action
            if ["additionalPermissions", "grantRoot"].iter().any(|it| !params[it].is_null()) =>
        {
            None
        }
        Kind::Action => {
            let item = params["itemId"].as_str()?;
            calls.iter().find(|it| it.item == item && !it.was_asked)
        }
        Kind::McpTool { .. } => {
            let prefix = format!("{}__", params["serverName"].as_str()?);
            let arguments = params["_meta"]["tool_params"].to_string();
            let may_be = || calls.iter().filter(|it| !it.was_asked && it.name.starts_with(&prefix));
            let same = may_be().find(|it| it.arguments.as_ref() == Some(&arguments));
            same.or_else(|| may_be().next())
        }
        Kind::Network | Kind::Elicitation | Kind::UserInput { .. } | Kind::Permissions { .. } => {
            None
        }
    };
    found.map(|it| it.item.clone())
}

/// Why the call did not run.
fn refusal(verdict: &Verdict) -> Option<ErrorInfo> {
    let (code, message) = match verdict {
        Verdict::Allowed { .. } => return None,
        Verdict::Denied { feedback: Some(feedback) } => {
            (ErrorCode::ToolDenied, format!("It was declined; nothing ran: {feedback}"))
        }
        Verdict::Denied { feedback: None } => {
            (ErrorCode::ToolDenied, "It was declined; nothing ran.".to_owned())
        }
        Verdict::TimedOut => {
            (ErrorCode::ApprovalTimeout, "Nobody decided in time; nothing ran.".to_owned())
        }
    };
    Some(ErrorInfo::new(code, message))
}

fn is_about_tool(params: &Value) -> bool {
    params["_meta"]["codex_approval_kind"] == "mcp_tool_call"
}

/// A form's answers are the edited arguments: `{"answers": {...}}`, or the object alone.
fn answers(arguments: Option<&str>) -> Map<String, Value> {
    let edited: Value = arguments.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let answers = edited.get("answers").unwrap_or(&edited);
    answers.as_object().cloned().unwrap_or_default()
}

/// Answers may be given by a question's id or by its words, one or several.
fn by_question(questions: &Value, answers: &Map<String, Value>) -> Map<String, Value> {
    let questions = questions.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut by_id = Map::new();
    for question in questions {
        let Some(id) = question["id"].as_str() else { continue };
        let words = question["question"].as_str().unwrap_or_default();
        let given = match answers.get(id).or_else(|| answers.get(words)) {
            Some(Value::Array(several)) => several.clone(),
            Some(one) => vec![one.clone()],
            None => continue,
        };
        by_id.insert(id.to_owned(), json!({ "answers": given }));
    }
    by_id
}
