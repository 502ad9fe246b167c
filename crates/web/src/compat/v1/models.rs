//! `/v1/models`: the available agents, each as a model.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{HttpError, RequestCode};
use crate::extract::Segment;
use crate::openapi::{DescribeInput, Operation};
use crate::refusal::V1Error;
use runtime::agents::AgentCatalog;

/// Model name of the default agent in the OpenAI-compatible API.
pub(super) const DEFAULT: &str = "default";

#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelList {
    object: ListWord,
    data: Vec<Model>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Model {
    /// Id of the agent that the model name refers to, or `default`.
    id: String,
    object: ModelWord,
    /// Creation time, always 0: clients require a time, and agents have none.
    created: u64,
    owned_by: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ListWord {
    List,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModelWord {
    Model,
}

impl Model {
    fn new(id: &str) -> Self {
        Self { id: id.to_owned(), object: ModelWord::Model, created: 0, owned_by: "callboard" }
    }
}

/// Extractor of the model name in the path of a request.
pub(crate) struct ModelPath(String);

impl<S: Send + Sync> FromRequestParts<S> for ModelPath {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, V1Error> {
        let Segment(model) = Segment::from_request_parts(parts, state).await?;
        Ok(Self(model))
    }
}

impl DescribeInput for ModelPath {
    fn describe(operation: &mut Operation<'_>) {
        operation.refuses(&[RequestCode::InvalidRequest, RequestCode::ModelNotFound]);
    }
}

pub(crate) async fn list(State(agents): State<AgentCatalog>) -> Result<Json<ModelList>, V1Error> {
    let able = agents.names().into_iter().filter(|it| agents.check(it).is_ok());
    let default = agents.default_id().filter(|_| !agents.knows(DEFAULT)).map(|_| DEFAULT);
    let data = default.into_iter().chain(able).map(Model::new).collect();
    Ok(Json(ModelList { object: ListWord::List, data }))
}

pub(crate) async fn show(
    State(agents): State<AgentCatalog>,
    ModelPath(model): ModelPath,
) -> Result<Json<Model>, V1Error> {
    agent_of(&agents, &model)?;
    Ok(Json(Model::new(&model)))
}

/// Returns the id of the agent for a model name of the OpenAI-compatible API. An unavailable agent
/// is an error only when it runs.
pub(super) fn agent_of<'a>(agents: &'a AgentCatalog, model: &'a str) -> Result<&'a str, HttpError> {
    if agents.knows(model) {
        return Ok(model);
    }
    let default = agents.default_id().filter(|_| model == DEFAULT);
    default.ok_or_else(|| {
        let known = agents.names().join(", ");
        let message = format!("no agent is called '{model}'; there are: {known}, and {DEFAULT}");
        HttpError::new(RequestCode::ModelNotFound, message).about("model")
    })
}
