//! How runs are told to AI SDK clients: server-sent events for versions 5 to 7, lines for version 4.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use formats::incoming::Known;
use formats::ui::Profile;
use formats::{ui, ui_v4};
use serde_json::json;
use transcript::{Record, ResponseId};

use crate::http::door::DATA_STREAM;
use crate::http::error::HttpError;
use crate::http::guest::events::{self, DONE, event};
use crate::http::guest::{Spoken, Vocabulary, Voice, growing};

pub(super) struct Ui(pub(super) Profile);

pub(super) struct UiV4;

impl Spoken for Ui {
    fn response(body: Body) -> Response {
        let mark = [("x-vercel-ai-ui-message-stream", "v1")];
        (mark, growing(events::CONTENT_TYPE, body)).into_response()
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
        events::SIGN_OF_LIFE
    }
}

impl Voice for ui::Stream {
    fn tell(&mut self, records: &[Record]) -> String {
        let was_over = self.is_over();
        let chunks = self.replay(records);
        events::all(&chunks, self.is_over() && !was_over)
    }

    fn go_on(&mut self, records: &[Record], known: &Known) -> String {
        let chunks = self.go_on(records, known);
        events::all(&chunks, self.is_over())
    }

    fn is_over(&self) -> bool {
        self.is_over()
    }
}

impl Spoken for UiV4 {
    fn response(body: Body) -> Response {
        let mark = [(DATA_STREAM, "v1")];
        (mark, growing("text/plain; charset=utf-8", body)).into_response()
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

    fn go_on(&mut self, records: &[Record], known: &Known) -> String {
        self.go_on(records, known).concat()
    }

    fn is_over(&self) -> bool {
        self.is_over()
    }
}
