//! Codex's requests to a person, and the answer to each kind.

use serde_json::{Map, Value, json};
use transcript::{CallId, ErrorCode, ErrorInfo, Scope};

use super::author::{Author, Outcome};
use super::items::{call, fields};
use super::turn::Run;
use super::{Cx, wire};
use crate::program::Ask;
use crate::{ProgramEffect, Verdict};

/// A request of Codex for a person's decision or answer, which waits for its response.
#[derive(Debug)]
pub(super) struct Request {
    /// JSON-RPC id of the request, from Codex's own numbering.
    id: Value,
    /// Thread of the sub-agent that makes the request. `None` for Codex itself.
    pub(super) agent: Option<String>,
    /// Made-up item under which the request is shown as a tool call. `None` if it is about an
    /// existing call.
    own_item: Option<String>,
    kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Approval of a command or a patch.
    Action,
    /// Approval of a running command's access to a host.
    Network,
    McpTool {
        /// Whether Codex offers to remember the approval for the session.
        can_persist: bool,
    },
    /// A form that an MCP server wants a person to fill in.
    Elicitation,
    UserInput {
        questions: Value,
    },
    Permissions {
        requested: Value,
    },
}

impl Kind {
    /// Returns the kind of a request of Codex. `None` for a method that no person can answer.
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

    /// Returns the form that a person fills in. `None` if the request is an approval.
    pub(super) fn form(&self, params: &Value) -> Option<Value> {
        match self {
            Self::Elicitation => Some(fields(params, &["message", "requestedSchema", "url"])),
            Self::UserInput { .. } => Some(fields(params, &["questions"])),
            Self::Action | Self::Network | Self::McpTool { .. } | Self::Permissions { .. } => None,
        }
    }

    /// Returns the tool name and the arguments of the tool call that shows a request, if the
    /// request is about no existing call.
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

    /// Returns the `result` of the JSON-RPC response that tells Codex the decision.
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

    /// Returns the `result` that cancels the request and also ends the turn, or that refuses the
    /// request if its kind has no such answer.
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
    /// Asks a person about a request of Codex. Returns false if no person can answer the request.
    pub(super) fn ask(
        &mut self,
        agent: Option<&str>,
        (method, params): (&str, &Value),
        id: &Value,
        cx: &mut Cx,
    ) -> bool {
        if cx.approvals.is_asked(|_, it| it.id == *id) {
            return true;
        }
        let Some(kind) = Kind::of(method, params) else { return false };
        let form = kind.form(params);
        let Some(author) = self.author_mut(agent) else { return false };
        let asked_item = asked_item(author, &kind, params);
        let own_item = asked_item.is_none().then(|| format!("question-{id}"));
        let item = asked_item.or_else(|| own_item.clone()).unwrap_or_default();
        let (name, arguments) = kind.as_call(method, params, &author.workspace);
        let Some(call) = author.call(&item, &name, &mut cx.out) else { return false };
        call.ask();
        let call_id = call.id.clone();
        author.set_arguments(&item, &arguments, &mut cx.out);
        let reason = params["reason"].as_str().filter(|it| !it.trim().is_empty());
        let reason = reason.map(str::to_owned);
        let ask = Ask { can_edit: false, form, reason, is_judged: true };
        let (id, agent) = (id.clone(), agent.map(str::to_owned));
        cx.approvals.ask(call_id, Request { id, agent, own_item, kind }, ask, &mut cx.out);
        true
    }

    /// Returns whether the command or the patch that an approval request is about has ended.
    pub(super) fn is_about_ended(&self, agent: Option<&str>, kind: &Kind, params: &Value) -> bool {
        let item = params["itemId"].as_str().filter(|_| matches!(kind, Kind::Action));
        self.author(agent).zip(item).is_some_and(|(author, item)| author.has_ended(item))
    }

    /// Returns the tool name of the open tool call with this id. `None` if the call has ended.
    pub(super) fn asked_tool(&mut self, call_id: &CallId, agent: Option<&str>) -> Option<String> {
        let author = self.author_mut(agent)?;
        let call = author.open_calls().iter().find(|it| it.id == *call_id)?;
        Some(call.name.clone())
    }

    /// Sends Codex the decision about a request, and updates the tool call that shows it.
    pub(super) fn decide(
        &mut self,
        call_id: &CallId,
        request: &Request,
        verdict: &Verdict,
        cx: &mut Cx,
    ) {
        let answer = request.kind.answer(verdict);
        cx.out.write(wire::answer(&request.id, &answer));
        let Some(author) = self.author_mut(request.agent.as_deref()) else { return };
        let mut calls = author.open_calls().iter_mut();
        let Some(call) = calls.find(|it| it.id == *call_id) else { return };
        let item = call.item.clone();
        let refusal = refusal(verdict);
        let ok = refusal.is_none();
        call.refusal = refusal;
        if request.own_item.is_some() {
            let result = ok.then_some(answer);
            let outcome = Outcome { ok, result, error: None, duration_ms: None };
            author.finish_call(&item, outcome, &mut cx.out);
        } else if ok {
            author.running(&item, &mut cx.out);
        }
    }

    /// Answers every open request of Codex with a cancellation, which ends the turn.
    pub(super) fn cancel_questions(&mut self, cx: &mut Cx) {
        for (call_id, request) in cx.approvals.take_all() {
            let answer = request.kind.cancellation();
            cx.out.write(wire::answer(&request.id, &answer));
            let author = self.author_mut(request.agent.as_deref());
            let mut calls = author.into_iter().flat_map(|it| it.open_calls());
            if let Some(call) = calls.find(|it| it.id == call_id) {
                let why = "It was interrupted before it could run.";
                call.refusal = Some(ErrorInfo::new(ErrorCode::ToolInterrupted, why));
            }
            cx.out.push(ProgramEffect::Withdraw(call_id));
        }
    }

    /// Withdraws the request for a decision about an item that has ended.
    pub(super) fn withdraw_about(&mut self, agent: Option<&str>, item: &str, cx: &mut Cx) {
        let call = self.author_mut(agent).and_then(|it| it.open_call(item));
        let Some(call_id) = call.map(|it| it.id.clone()) else { return };
        cx.approvals.withdraw(|it, _| *it == call_id, &mut cx.out);
    }

    /// Withdraws a request for a decision that Codex has resolved without Callboard's answer.
    pub(super) fn withdraw(&mut self, request_id: &Value, cx: &mut Cx) {
        let withdrawn = cx.approvals.withdraw(|_, it| it.id == *request_id, &mut cx.out);
        let Some((_, Request { agent, own_item: Some(item), .. })) = withdrawn else { return };
        if let Some(author) = self.author_mut(agent.as_deref()) {
            let why = "Codex withdrew the request.";
            let error = Some(ErrorInfo::new(ErrorCode::ToolInterrupted, why));
            let outcome = Outcome { ok: false, result: None, error, duration_ms: None };
            author.finish_call(&item, outcome, &mut cx.out);
        }
    }
}

/// Returns the item of the open tool call that a request of Codex is about. Calls that a person was
/// asked about before are skipped.
fn asked_item(author: &mut Author, kind: &Kind, params: &Value) -> Option<String> {
    let calls = author.open_calls();
    let found = match kind {
        // The request is about more than the call: it is shown as a call of its own.
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

/// Returns the error of a tool call that was not allowed. `None` if it was allowed.
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

/// Returns the answers to a form from the edited arguments: the object in `answers`, or else the
/// whole object.
fn answers(arguments: Option<&str>) -> Map<String, Value> {
    let edited: Value = arguments.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let answers = edited.get("answers").unwrap_or(&edited);
    answers.as_object().cloned().unwrap_or_default()
}

/// Returns the answers to a form by the ids of the questions, as Codex expects them. `answers` may
/// be keyed by id or by the question's text.
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
