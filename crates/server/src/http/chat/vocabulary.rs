//! How runs are told to AI SDK clients: server-sent events for versions 5 to 7, lines for version 4.

use axum::body::Body;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use formats::ui::Profile;
use formats::{ui, ui_v4};
use serde_json::{Value, json};
use transcript::{CallId, Record, ResponseId};

use crate::http::error::HttpError;
use crate::http::guest::{Spoken, UNBUFFERED, Vocabulary, Voice};

pub(super) struct Ui(pub(super) Profile);

pub(super) struct UiV4;

const DONE: &str = "data: [DONE]\n\n";

impl Spoken for Ui {
    fn response(body: Body) -> Response {
        let headers = [
            (CONTENT_TYPE, "text/event-stream"),
            (CACHE_CONTROL, "no-cache"),
            (HeaderName::from_static("x-vercel-ai-ui-message-stream"), "v1"),
            UNBUFFERED,
        ];
        (headers, body).into_response()
    }
}

impl Vocabulary for Ui {
    async fn voice(&self, run: ResponseId) -> Result<Box<dyn Voice>, HttpError> {
        Ok(Box::new(ui::Stream::new(run, self.0)))
    }

    fn failure(&self, why: &str) -> String {
        event(&json!({ "type": "error", "errorText": why })) + DONE
    }

    fn sign_of_life(&self) -> &'static str {
        ": still there\n\n"
    }
}

impl Voice for ui::Stream {
    fn tell(&mut self, records: &[Record]) -> String {
        let was_over = self.is_over();
        let mut events: String = self.replay(records).iter().map(event).collect();
        if self.is_over() && !was_over {
            events.push_str(DONE);
        }
        events
    }

    fn is_over(&self) -> bool {
        self.is_over()
    }

    fn waits_for(&self) -> Vec<CallId> {
        self.waits_for()
    }

    fn next_response(&mut self) {
        self.next_response();
    }
}

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

impl Spoken for UiV4 {
    fn response(body: Body) -> Response {
        let headers = [
            (CONTENT_TYPE, "text/plain; charset=utf-8"),
            (CACHE_CONTROL, "no-cache"),
            (HeaderName::from_static("x-vercel-ai-data-stream"), "v1"),
            UNBUFFERED,
        ];
        (headers, body).into_response()
    }
}

impl Vocabulary for UiV4 {
    async fn voice(&self, run: ResponseId) -> Result<Box<dyn Voice>, HttpError> {
        Ok(Box::new(ui_v4::Stream::new(run)))
    }

    fn failure(&self, why: &str) -> String {
        format!("3:{}\n", json!(why))
    }

    fn sign_of_life(&self) -> &'static str {
        "\n"
    }
}

impl Voice for ui_v4::Stream {
    fn tell(&mut self, records: &[Record]) -> String {
        self.replay(records).concat()
    }

    fn is_over(&self) -> bool {
        self.is_over()
    }

    fn waits_for(&self) -> Vec<CallId> {
        self.waits_for()
    }

    fn next_response(&mut self) {
        self.next_response();
    }
}
