//! Decisions about calls, and what was allowed for good.

use axum::Json;
use axum::extract::State;
use axum::response::NoContent;
use backends::ToolOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use transcript::{CallId, Millis, Scope};

use super::App;
use super::error::{HttpError, RequestCode};
use super::extract::{Input, NamedCall, Segment};
use crate::session::{Answered, Approval, Command};
use crate::tools::{failed, tool_error};

#[derive(Deserialize, JsonSchema)]
pub(super) struct DecisionInput {
    decision: DecisionWord,
    /// How long an acceptance holds; once if left out. A rejection holds once.
    scope: Option<Scope>,
    /// To run instead of the proposed ones, if accepted.
    arguments: Option<EditedArguments>,
    /// For the agent to read.
    feedback: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DecisionWord {
    Accepted,
    Rejected,
}

/// As text, which is kept to the letter, or as the object itself.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum EditedArguments {
    Text(String),
    Object(Map<String, Value>),
}

impl DecisionInput {
    pub(super) fn into_approval(self, call_id: CallId) -> Approval {
        let Self { decision, scope, arguments, feedback } = self;
        let answer = match decision {
            DecisionWord::Accepted => Answered::Accepted {
                scope: scope.unwrap_or(Scope::Once),
                arguments: arguments.map(EditedArguments::into_text),
            },
            DecisionWord::Rejected => Answered::Rejected,
        };
        let feedback = feedback.filter(|it| !it.trim().is_empty());
        Approval { call_id, answer, feedback, by: "user".to_owned() }
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

pub(super) async fn decide(
    State(app): State<App>,
    NamedCall { session, call }: NamedCall,
    Input(input): Input<DecisionInput>,
) -> Result<NoContent, HttpError> {
    let approval = input.into_approval(call);
    app.sessions.ask(&session, |reply| Command::Approve { approval, reply }).await?;
    Ok(NoContent)
}

/// One of the two.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResultInput {
    output: Option<Value>,
    /// Why it failed, for the agent to read.
    error: Option<String>,
}

pub(super) async fn give_result(
    State(app): State<App>,
    NamedCall { session, call: call_id }: NamedCall,
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
    app.sessions.ask(&session, give).await?;
    Ok(NoContent)
}

#[derive(Serialize, JsonSchema)]
pub(super) struct GrantList {
    grants: Vec<GrantObject>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GrantObject {
    id: String,
    tool: String,
    /// The tool, or the tool and what exactly it may do.
    covers: String,
    granted_at: Millis,
}

pub(super) async fn grants(State(app): State<App>) -> Result<Json<GrantList>, HttpError> {
    let grants = app.store().grants()?.into_iter().map(|grant| GrantObject {
        id: grant.id,
        tool: grant.covers.split(':').next().unwrap_or_default().to_owned(),
        covers: grant.covers,
        granted_at: grant.at,
    });
    Ok(Json(GrantList { grants: grants.collect() }))
}

pub(super) async fn revoke(
    State(app): State<App>,
    Segment(id): Segment,
) -> Result<NoContent, HttpError> {
    if app.store().remove_grant(&id).await? {
        return Ok(NoContent);
    }
    let message = format!("nothing is granted under {id:?}; GET /api/grants lists what is");
    Err(HttpError::new(RequestCode::NotFound, message))
}
