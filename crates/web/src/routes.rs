//! The tables of all routes, which are both the router and the OpenAPI document.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::{Json, Router};
use serde_json::Value;

use crate::api::{
    approvals, blobs, bodies, contract_events, import_export, info, operation, queue, raw, read,
    search, sessions, settings,
};
use crate::app::App;
use crate::auth::{gate, sign_in};
use crate::compat::{agui, chat, v1};
use crate::error::RequestCode::{
    AgentBusy, AgentNotFound, AlreadyDecided, AwaitingDecision, CallNotFound, CannotSteer,
    MessageNotFound, ModelNotFound, NotSupported, NothingToDo, NothingToUndo, QueueFull,
    SessionExists, SessionNotFound, Stopping, Storage, TooManyAttempts, Unauthorized,
};
use crate::pages::{self, assets};
use crate::ws::socket;
use crate::{openapi, refusal};

pub fn router(app: App) -> Router {
    let router = routes()
        .into_iter()
        .fold(Router::new(), |router, route| router.route(route.path, route.handler));
    router
        .fallback(refusal::no_such_path)
        .method_not_allowed_fallback(refusal::no_such_method)
        .layer(from_fn_with_state(Arc::clone(&app.gate), gate::check_access))
        .with_state(app)
}

type Route = openapi::Route<App>;
type Routes = Vec<Route>;

/// Returns all routes of the HTTP server, with the descriptions that do not follow from the
/// handlers' types. All are behind the authorization layer. Their order is that of the OpenAPI
/// document.
pub(crate) fn routes() -> Routes {
    let routes = [
        page_routes(),
        info_routes(),
        session_routes(),
        queue_routes(),
        run_routes(),
        approval_routes(),
        file_routes(),
        compat_routes(),
        server_routes(),
        access_routes(),
    ];
    routes.into_iter().flatten().collect()
}

async fn openapi_document() -> Json<Value> {
    Json(openapi::document(&routes()))
}

/// Routes of pages.
fn page_routes() -> Routes {
    vec![
        Route::get("/", pages::home, "Show the page"),
        Route::get("/s/{session}", pages::session, "Show the page of a session"),
        Route::get(
            "/assets/{version}/{file}",
            assets::asset,
            "Get a file of the page: script, style or icon",
        )
        .gives(StatusCode::OK, "*/*")
        .public(),
    ]
}

/// Routes of the server's description: its API, agents and tools.
fn info_routes() -> Routes {
    vec![
        Route::get("/api/openapi.json", openapi_document, "Get this OpenAPI document"),
        Route::get("/api/agents", info::agents, "List the configured agents"),
        Route::get("/api/tools", info::tools, "List the tools that agents may use"),
        Route::get("/api/mcp", info::mcp_servers, "List the MCP servers and their state"),
    ]
}

/// Routes of sessions, their logs and their messages.
fn session_routes() -> Routes {
    vec![
        Route::get("/api/sessions", sessions::list, "List sessions, most recently changed first"),
        Route::post("/api/sessions", sessions::create, "Create a session").refuses(&[
            AgentNotFound,
            SessionExists,
            Stopping,
            Storage,
        ]),
        Route::get("/api/sessions/{session}", sessions::show, "Get a session"),
        Route::patch("/api/sessions/{session}", sessions::update, "Update a session")
            .refuses(&[AgentBusy, Stopping, Storage]),
        Route::delete(
            "/api/sessions/{session}",
            sessions::delete,
            "Delete a session, immediately or after a delay, and stop its agent",
        )
        .refuses(&[Stopping, Storage]),
        Route::post(
            "/api/sessions/{session}/restore",
            sessions::restore,
            "Cancel the pending deletion of a session",
        )
        .refuses(&[NothingToDo]),
        Route::get("/api/sessions/{session}/events", read::events, "Read the log of a session"),
        Route::get(
            "/api/sessions/{session}/raw",
            raw::lines,
            "Read the raw lines of the agent's program",
        ),
        Route::get(
            "/api/sessions/{session}/messages",
            read::messages,
            "List the messages of a session",
        ),
        Route::post("/api/sessions/{session}/messages", sessions::send, "Send a message")
            .refuses(&[MessageNotFound, AgentBusy, QueueFull, Stopping, Storage]),
        Route::get(
            "/api/sessions/{session}/contract-events",
            contract_events::follow,
            "Stream run events in the contract format",
        )
        .gives(StatusCode::OK, "text/event-stream"),
    ]
}

/// Routes of the queue of a session.
fn queue_routes() -> Routes {
    vec![
        Route::get("/api/sessions/{session}/queue", queue::show, "List the queued messages"),
        Route::delete("/api/sessions/{session}/queue", queue::clear, "Clear the queue")
            .refuses(&[Stopping, Storage]),
        Route::post(
            "/api/sessions/{session}/queue/release",
            queue::release,
            "Release the held queue",
        )
        .refuses(&[Stopping, Storage]),
        Route::patch(
            "/api/sessions/{session}/queue/{message}",
            queue::change,
            "Edit or move a queued message",
        )
        .refuses(&[Stopping, Storage]),
        Route::delete(
            "/api/sessions/{session}/queue/{message}",
            queue::remove,
            "Remove a queued message",
        )
        .refuses(&[Stopping, Storage]),
        Route::post(
            "/api/sessions/{session}/queue/{message}/steer",
            queue::steer,
            "Steer the active run with a queued message",
        )
        .refuses(&[CannotSteer, Stopping, Storage]),
    ]
}

/// Routes of runs, and the texts that a page fetches on demand.
fn run_routes() -> Routes {
    vec![
        Route::post(
            "/api/sessions/{session}/cancel",
            sessions::cancel,
            "Cancel the active run and wait until it has ended",
        )
        .refuses(&[AwaitingDecision, Stopping, Storage]),
        Route::post(
            "/api/sessions/{session}/continue",
            sessions::go_on,
            "Continue after the last run",
        )
        .refuses(&[AgentBusy, NothingToDo, Stopping, Storage]),
        Route::post(
            "/api/sessions/{session}/retry",
            sessions::retry,
            "Run the last message again and replace its answer",
        )
        .refuses(&[AgentBusy, NothingToDo, Stopping, Storage]),
        Route::get(
            "/api/sessions/{session}/calls/{call}/output",
            bodies::output,
            "Get the complete arguments, output or result of a tool call",
        )
        .gives(StatusCode::OK, "*/*"),
        Route::get(
            "/api/sessions/{session}/texts",
            bodies::text,
            "Get the complete text of a long message or part",
        )
        .gives(StatusCode::OK, "*/*")
        .refuses(&[MessageNotFound]),
        Route::get(
            "/api/sessions/{session}/answers/{answer}",
            bodies::answer,
            "Get an answer as HTML or as text",
        )
        .gives(StatusCode::OK, "*/*"),
    ]
}

/// Routes of decisions about calls, and grants.
fn approval_routes() -> Routes {
    vec![
        Route::post(
            "/api/sessions/{session}/calls/{call}/approval",
            approvals::decide,
            "Approve or deny a tool call",
        )
        .refuses(&[CallNotFound, AlreadyDecided, Stopping, Storage]),
        Route::post(
            "/api/sessions/{session}/calls/{call}/approval/undo",
            approvals::undo,
            "Revoke the grant that an approval created",
        )
        .refuses(&[CallNotFound, NothingToUndo, Stopping, Storage]),
        Route::get(
            "/api/sessions/{session}/grants",
            approvals::session_grants,
            "List the grants of a session",
        ),
        Route::delete(
            "/api/sessions/{session}/grants/{grant}",
            approvals::revoke_session_grant,
            "Revoke a grant of a session",
        )
        .refuses(&[Stopping, Storage]),
        Route::post(
            "/api/sessions/{session}/calls/{call}/result",
            approvals::give_result,
            "Submit the result of a tool call that the client ran",
        )
        .refuses(&[CallNotFound, Stopping, Storage]),
        Route::get("/api/grants", approvals::grants, "List the grants for all sessions"),
        Route::delete("/api/grants/{grant}", approvals::revoke, "Revoke a grant for all sessions")
            .refuses(&[Storage]),
    ]
}

/// Routes of exported and imported files.
fn file_routes() -> Routes {
    vec![
        Route::get(
            "/api/sessions/{session}/export",
            import_export::export,
            "Export a session as a file",
        )
        .gives(StatusCode::OK, "*/*"),
        Route::post("/api/sessions/import", import_export::import, "Import a session from a file")
            .refuses(&[AgentNotFound, SessionExists, Stopping, Storage]),
    ]
}

/// Routes of the compatibility APIs.
fn compat_routes() -> Routes {
    vec![
        chat_route("/api/chat"),
        chat_route("/api/chat/{agent}"),
        resume_route("/api/chat/{session}/stream"),
        resume_route("/api/chat/{agent}/{session}/stream"),
        chat_v4_route("/api/chat/v4"),
        chat_v4_route("/api/chat/v4/{agent}"),
        resume_v4_route("/api/chat/v4"),
        resume_v4_route("/api/chat/v4/{agent}"),
        agui_route("/api/agui"),
        agui_route("/api/agui/{agent}"),
        Route::post("/v1/chat/completions", v1::complete, "Create a chat completion (OpenAI)")
            .refuses(&[
                ModelNotFound,
                SessionNotFound,
                NothingToDo,
                AgentBusy,
                QueueFull,
                Stopping,
                Storage,
            ]),
        Route::get("/v1/models", v1::list, "List the available agents as models (OpenAI)"),
        Route::get("/v1/models/{model}", v1::show, "Get an agent as a model (OpenAI)"),
    ]
}

/// Routes of settings, search, files, operation and the WebSocket.
fn server_routes() -> Routes {
    vec![
        Route::get("/api/settings", settings::show, "Get the page settings"),
        Route::patch("/api/settings", settings::update, "Update the page settings")
            .refuses(&[Storage]),
        Route::get("/api/search", search::search, "Search titles, messages, tool calls and output")
            .refuses(&[SessionNotFound]),
        Route::post("/api/blobs", blobs::put, "Upload a file to attach to a message")
            .refuses(&[Storage]),
        Route::get(
            "/api/blobs/{hash}",
            blobs::show,
            "Get a file; images inline, others as a download",
        )
        .gives(StatusCode::OK, "*/*"),
        Route::get("/api/sizes", operation::sizes, "Get the disk usage by session"),
        Route::post("/api/backup", operation::backup, "Write a backup on the server's machine"),
        Route::get("/metrics", operation::metrics, "Get metrics for Prometheus")
            .gives(StatusCode::OK, "application/openmetrics-text"),
        Route::get("/ws", socket::open, "Open the WebSocket")
            .gives(StatusCode::SWITCHING_PROTOCOLS, ""),
    ]
}

/// Routes of signing in and out, and the health check.
fn access_routes() -> Routes {
    vec![
        Route::post(gate::SIGN_IN, sign_in::sign_in, "Sign in with the password and get a cookie")
            .refuses(&[Unauthorized, TooManyAttempts, Storage])
            .public(),
        Route::get("/sign-out", sign_in::sign_out_page, "Show the sign-out page")
            .gives(StatusCode::OK, "text/html"),
        Route::post("/sign-out", sign_in::sign_out, "Sign out").refuses(&[Storage]),
        Route::post(
            "/api/sign-out-everywhere",
            sign_in::sign_out_everywhere,
            "End all sign-ins and close all WebSockets",
        )
        .refuses(&[Storage]),
        Route::get(gate::HEALTH, info::healthz, "Check that the server runs and can write")
            .gives(StatusCode::OK, "text/plain")
            .refuses(&[Storage])
            .public(),
    ]
}

fn chat_route(path: &'static str) -> Route {
    Route::post(path, chat::send, "Send a message (AI SDK 5 to 7) and stream the answer")
        .gives(StatusCode::OK, "text/event-stream")
        .refuses(&[
            AgentNotFound,
            SessionNotFound,
            MessageNotFound,
            NothingToDo,
            NotSupported,
            AgentBusy,
            QueueFull,
            Stopping,
            Storage,
        ])
}

fn agui_route(path: &'static str) -> Route {
    Route::post(path, agui::run, "Send a message or resume a run (AG-UI)")
        .gives(StatusCode::OK, "text/event-stream")
        .refuses(&[AgentNotFound, SessionNotFound, NothingToDo, QueueFull, Stopping, Storage])
}

fn chat_v4_route(path: &'static str) -> Route {
    Route::post(path, chat::send_v4, "Send a message (AI SDK 4) and stream the answer")
        .gives(StatusCode::OK, "text/plain")
        .refuses(&[
            AgentNotFound,
            SessionNotFound,
            NothingToDo,
            NotSupported,
            AgentBusy,
            QueueFull,
            Stopping,
            Storage,
        ])
}

fn resume_route(path: &'static str) -> Route {
    Route::get(path, chat::resume, "Stream the active run from its beginning (AI SDK 5 to 7)")
        .gives(StatusCode::OK, "text/event-stream")
        .gives(StatusCode::NO_CONTENT, "")
}

fn resume_v4_route(path: &'static str) -> Route {
    Route::get(path, chat::resume_v4, "Stream the active run from its beginning (AI SDK 4)")
        .gives(StatusCode::OK, "text/plain")
}
