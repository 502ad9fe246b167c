//! Runs in OpenAI's protocol: streamed in chunks, or whole.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use formats::openai::{Chunks, Completion, Options, failure};
use transcript::ResponseId;

use crate::compat::{Protocol, RunResponse};
use crate::error::HttpError;

pub(super) struct OpenAi(pub(super) Options);

impl Protocol for OpenAi {
    type Encoder = Chunks;

    async fn encoder(&self, run: ResponseId) -> Result<Chunks, HttpError> {
        Ok(Chunks::new(run, self.0.clone()))
    }
}

/// Response header that prevents automatic retries after a server error, which would repeat the
/// agent's actions.
const NO_RETRY: (&str, &str) = ("x-should-retry", "false");

/// Waits until the answer has ended and responds with all of it in one JSON body.
pub(super) async fn respond_whole(response: RunResponse<OpenAi>) -> Response {
    let completion = match response.finish().await {
        Ok(chunks) => chunks.completion(),
        Err(why) => Some(Completion::Failed(failure(&why, None))),
    };
    match completion {
        Some(Completion::Answer(answer)) => Json(answer).into_response(),
        Some(Completion::Failed(error)) => {
            (StatusCode::BAD_GATEWAY, [NO_RETRY], Json(error)).into_response()
        }
        // A response ends only after its run has begun.
        None => Json(()).into_response(),
    }
}
