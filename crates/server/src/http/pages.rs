//! The page and its files. Served complete, so that reading works without script.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use render::{ListedSession, Page};
use schemars::json_schema;
use store::Window;
use transcript::{SessionId, Transcript};

use super::App;
use super::error::{HttpError, PageError, no_such_path};
use super::extract::{Named, Segment};
use super::openapi::{Gives, Operation};
use super::read::read_window;

const LISTED: usize = 100;
const MESSAGES: usize = 50;

const FILES: [(&str, &str, &str); 3] = [
    ("page.css", "text/css; charset=utf-8", include_str!("../../../../web/page.css")),
    ("page.js", "text/javascript; charset=utf-8", include_str!("../../../../web/page.js")),
    ("icon.svg", "image/svg+xml", include_str!("../../../../web/icon.svg")),
];

/// Nothing inline, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

pub(super) async fn home(State(app): State<App>) -> Result<Html, PageError> {
    render_page(&app, None)
}

pub(super) async fn session(
    State(app): State<App>,
    named: Result<Named, HttpError>,
) -> Result<Html, PageError> {
    let Named(id) = named?;
    let window = Window { before: None, limit: MESSAGES };
    let (transcript, _) = read_window(&app, id.clone(), window).await?;
    render_page(&app, Some((&id, &transcript)))
}

pub(super) async fn asset(Segment(name): Segment) -> Response {
    let Some((_, kind, text)) = FILES.iter().find(|(file, ..)| *file == name) else {
        return no_such_path().await.into_response();
    };
    let headers =
        [(CONTENT_TYPE, *kind), (CACHE_CONTROL, "no-cache"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, *text).into_response()
}

fn render_page(app: &App, open: Option<(&SessionId, &Transcript)>) -> Result<Html, PageError> {
    let listed = app.store().sessions(Some(false), LISTED, None)?;
    let sessions = listed.into_iter().map(|(id, summary, _)| ListedSession {
        id,
        title: summary.title().to_owned(),
        state: summary.state(),
        agent: summary.agent,
    });
    let html = render::page(&Page {
        sessions: sessions.collect(),
        open,
        default_agent: app.shared.agents.default_id(),
    });
    Ok(Html(html))
}

/// A whole page.
pub(super) struct Html(pub(super) String);

impl IntoResponse for Html {
    fn into_response(self) -> Response {
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-store"),
        ];
        (headers, self.0).into_response()
    }
}

impl Gives for Html {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives(StatusCode::OK, Some(("text/html", json_schema!({ "type": "string" }))));
    }
}
