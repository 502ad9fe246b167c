//! Decisions about calls, and grants.

use axum::Json;
use axum::extract::State;
use axum::response::NoContent;
use backends::ToolOutcome;
use render::covers;
use runtime::agents::tool_catalog::grant_id;
use runtime::agents::tool_catalog::{failed, tool_error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use transcript::{CallId, GrantScope, Millis, Scope};

use crate::error::{HttpError, RequestCode};
use crate::extract::{CallPath, GrantPath, Input, Segment, SessionPath};
use runtime::Sessions;
use session::{Answered, Approval, Command, Undone};
use store::Store;

/// Name in the log for the person who decides on the page or through the API.
pub(crate) const USER: &str = "user";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DecisionInput {
    decision: DecisionWord,
    /// Scope of an approval: how long it holds; `once` if omitted. A denial holds once.
    scope: Option<Scope>,
    /// Arguments with which an approved tool call runs instead of the proposed ones.
    arguments: Option<EditedArguments>,
    /// Message to the agent about the decision.
    feedback: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DecisionWord {
    Accepted,
    Rejected,
}

/// Edited arguments of a tool call: a text, which is used unchanged, or a JSON object.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum EditedArguments {
    Text(String),
    Object(Map<String, Value>),
}

impl DecisionInput {
    pub(crate) fn into_approval(self, call_id: CallId) -> Approval {
        let Self { decision, scope, arguments, feedback } = self;
        let answer = match decision {
            DecisionWord::Accepted => Answered::Accepted {
                scope: scope.unwrap_or(Scope::Once),
                arguments: arguments.map(EditedArguments::into_text),
            },
            DecisionWord::Rejected => Answered::Rejected,
        };
        let feedback = feedback.filter(|it| !it.trim().is_empty());
        Approval { call_id, answer, feedback, by: USER.to_owned() }
    }
}

impl EditedArguments {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Object(fields) => Value::Object(fields).to_string(),
        }
    }
}

pub(crate) async fn decide(
    State(sessions): State<Sessions>,
    CallPath { session, call }: CallPath,
    Input(input): Input<DecisionInput>,
) -> Result<NoContent, HttpError> {
    let approval = input.into_approval(call);
    sessions.ask(&session, |reply| Command::Approve { approval, reply }).await?;
    Ok(NoContent)
}

/// Result of a tool call that the client ran. Give either `output` or `error`, not both.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResultInput {
    output: Option<Value>,
    /// Error message for the agent, if the tool call failed.
    error: Option<String>,
}

pub(crate) async fn give_result(
    State(sessions): State<Sessions>,
    CallPath { session, call: call_id }: CallPath,
    Input(input): Input<ResultInput>,
) -> Result<NoContent, HttpError> {
    let outcome = match input {
        ResultInput { output, error: None } => {
            ToolOutcome { ok: true, result: output.unwrap_or_default(), error: None }
        }
        ResultInput { output: None, error: Some(why) } => failed(tool_error(why)),
        ResultInput { .. } => {
            return Err(HttpError::invalid("give an 'output' or an 'error', not both"));
        }
    };
    let give = |reply| Command::GiveResult { call_id, outcome, reply };
    sessions.ask(&session, give).await?;
    Ok(NoContent)
}

pub(crate) async fn undo(
    State(sessions): State<Sessions>,
    CallPath { session, call: call_id }: CallPath,
) -> Result<Json<Undone>, HttpError> {
    let undo = |reply| Command::UndoApproval { call_id, by: USER.to_owned(), reply };
    Ok(Json(sessions.ask(&session, undo).await?))
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct GrantList {
    grants: Vec<GrantObject>,
}

/// A grant: a stored approval that covers more than one tool call.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GrantObject {
    id: String,
    tool: String,
    /// Covered tool calls, in the form in which the policy compares them.
    covers: String,
    /// Description of the covered tool calls for people.
    text: String,
    /// Id of the agent whose tool calls are covered. Absent if the grant is inactive.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// Workspace in which tool calls are covered. Absent if the grant is inactive.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// Whether the grant was stored by an earlier version, without agent and workspace. It allows nothing.
    inactive: bool,
    granted_at: Millis,
}

impl GrantObject {
    fn new(id: String, covers: String, granted_at: Millis) -> Self {
        let parsed = GrantScope::parse(&covers);
        let (tool, text) = (covers::tool(&covers), covers::words(&covers));
        let inactive = parsed.is_none();
        let (agent, workspace) = parsed.map(|it| (it.agent, it.workspace)).unzip();
        Self { id, tool, covers, text, agent, workspace, inactive, granted_at }
    }
}

pub(crate) async fn grants(State(store): State<Store>) -> Result<Json<GrantList>, HttpError> {
    let grants = store.grants().await?.into_iter();
    let grants = grants.map(|it| GrantObject::new(it.id, it.covers, it.at));
    Ok(Json(GrantList { grants: grants.collect() }))
}

pub(crate) async fn revoke(
    State(store): State<Store>,
    Segment(id): Segment,
) -> Result<NoContent, HttpError> {
    if store.remove_grant(&id).await? {
        return Ok(NoContent);
    }
    let message = format!("there is no grant {id:?}; GET /api/grants lists all grants");
    Err(HttpError::new(RequestCode::NotFound, message))
}

pub(crate) async fn session_grants(
    State(store): State<Store>,
    SessionPath(session): SessionPath,
) -> Result<Json<GrantList>, HttpError> {
    let found = store.summary(&session).await?;
    let (summary, _) = found.ok_or_else(|| HttpError::no_session(session.as_str()))?;
    let grants = summary.granted.into_iter();
    let grants = grants.map(|(covers, at)| GrantObject::new(grant_id(&covers), covers, at));
    Ok(Json(GrantList { grants: grants.collect() }))
}

pub(crate) async fn revoke_session_grant(
    State(sessions): State<Sessions>,
    GrantPath { session, grant: id }: GrantPath,
) -> Result<NoContent, HttpError> {
    sessions.revoke_grant(&session, id, USER.to_owned()).await?;
    Ok(NoContent)
}
