//! Requests to every route.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{Method, Request, StatusCode};
use futures_util::StreamExt;
use tower::ServiceExt;

use runtime::live::pulse::Pulses;
use runtime::passes::Passes;
use runtime::{ExchangeLimits, Services};
use tools::mcp::McpServers;
use tools::policy::Policy;
use tools::{ToolSettings, Tools, Web};

use runtime::agents::tool_catalog::ToolCatalog;
use runtime::agents::{AgentCatalog, Agents};
use runtime::live::hub::Hub;
use runtime::metrics::Metrics;
use store::Store;
use tokio::sync::{mpsc, watch};

use super::*;
use crate::auth::{gate, password};
use crate::extract::BODY_MAX;
use crate::routes::routes;

const OURS: &str = "127.0.0.1:4520";

/// Returns the router on a new store in this folder.
async fn router_on(data: &tempfile::TempDir) -> Router {
    router(app_in(data).await)
}

async fn app_in(data: &tempfile::TempDir) -> App {
    let edge = Edge {
        token: "the token".to_owned(),
        listen: OURS.parse().unwrap(),
        public_url: None,
        allowed_origins: vec!["https://friend.example".to_owned()],
        data: data.path().to_owned(),
    };
    let (alive, _) = mpsc::channel(1);
    let (_, stopping) = watch::channel(false);
    App::new(parts_in(data).await, edge, alive, stopping).await.unwrap()
}

/// Returns the parts of a server without agents, on a new store in this folder.
async fn parts_in(data: &tempfile::TempDir) -> Parts {
    let store = Store::open(data.path(), store::Options::default()).unwrap();
    let shipped = data.path().join("shipped");
    let agents = Arc::new(Agents { agents: Vec::new(), shipped });
    let hub = Arc::new(Hub::default());
    let settings = ToolSettings {
        time_limit: Duration::from_secs(60),
        per_minute: 0,
        retries: 0,
        web: Web::public(),
        environment: Vec::new(),
    };
    let tools = Arc::new(Tools::new(settings, McpServers::default()));
    let metrics = Arc::new(Metrics::default());
    let pulses = Arc::new(Pulses::default());
    let policy = Policy {
        rules: Default::default(),
        timeout_ms: Some(1000),
        private: Default::default(),
        search_path: Default::default(),
    };
    let sessions = Services {
        store: store.clone(),
        hub: Arc::clone(&hub),
        agents: Arc::clone(&agents),
        tools: Arc::clone(&tools),
        policy: Arc::new(policy),
        exchange_limits: ExchangeLimits::default(),
        metrics: Arc::clone(&metrics),
        passes: Passes::new(([127, 0, 0, 1], 1).into()),
        pulses: Arc::clone(&pulses),
        keeps_raw: true,
    };
    Parts {
        store,
        hub,
        sessions: sessions.start().await.unwrap(),
        agents: AgentCatalog::new(agents),
        tools: ToolCatalog::new(tools),
        metrics,
        pulses,
        keeps_raw: true,
    }
}

const METHODS: [Method; 8] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::TRACE,
];

#[tokio::test]
async fn only_public_routes_need_no_key() {
    let data = tempfile::tempdir().unwrap();
    let router = router_on(&data).await;
    let paths = routes().into_iter().map(|route| route.path).chain(["/nothing", "/api/%2e%2e/x"]);
    let mut n_requests = 0;
    for path in paths {
        let path = path.replace("{session}", "x").replace("{hash}", "00");
        let path = path.replace("{version}", "00").replace("{file}", "main.js");
        for method in METHODS {
            for origin in [None, Some("http://127.0.0.1:4520")] {
                let mut request = Request::builder().method(&method).uri(&path).header(HOST, OURS);
                if let Some(origin) = origin {
                    request = request.header(ORIGIN, origin);
                }
                let request = request.extension(SocketAddr::from(([127, 0, 0, 1], 1)));
                let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await;
                let status = answer.unwrap().status();
                let is_open_file =
                    path.starts_with(gate::ASSETS) && [Method::GET, Method::HEAD].contains(&method);
                if path == gate::HEALTH || is_open_file {
                    assert!(status != StatusCode::UNAUTHORIZED);
                } else if path == gate::SIGN_IN && method == Method::POST && origin.is_some() {
                    let refused = [StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS];
                    assert!(refused.contains(&status), "no password is set");
                } else {
                    assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path} {origin:?}");
                }
                n_requests += 1;
            }
        }
    }
    assert!(n_requests > 16 * routes().len());
}

/// OpenAI's clients cannot read other forms.
#[tokio::test]
async fn errors_under_v1_have_the_form_of_openai() {
    let data = tempfile::tempdir().unwrap();
    let router = router_on(&data).await;
    let paths = ["/v1/models", "/v1/models/nobody", "/v1/chat/completions", "/v1/nothing", "/v1/"];
    let keys = ["Bearer the token", "Bearer another"];
    for (path, method) in paths.iter().flat_map(|path| METHODS.map(|method| (path, method))) {
        for (host, key) in
            [OURS, "evil.example"].into_iter().flat_map(|it| keys.map(|key| (it, key)))
        {
            let request = Request::builder().method(&method).uri(*path).header(HOST, host);
            let request = request.header(AUTHORIZATION, key).header("accept", "text/html");
            let answer =
                router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            let status = answer.status();
            let body = axum::body::to_bytes(answer.into_body(), BODY_MAX).await.unwrap();
            if status.is_success() || method == Method::HEAD {
                continue;
            }
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let error = body["error"].as_object().unwrap();
            let fields: Vec<&str> = error.keys().map(String::as_str).collect();
            assert_eq!(fields, ["message", "type", "param", "code"], "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_document_has_exactly_the_routes() {
    let data = tempfile::tempdir().unwrap();
    let router = router_on(&data).await;
    let document = openapi::document(&routes());
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 20);
    for (path, operations) in paths {
        let url = path.replace(['{', '}'], "");
        for method in METHODS {
            let request = Request::builder().method(&method).uri(&url).header(HOST, OURS);
            let request = request
                .header(AUTHORIZATION, "Bearer the token")
                .extension(SocketAddr::from(([127, 0, 0, 1], 1)));
            let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await;
            let is_taken = answer.unwrap().status() != StatusCode::METHOD_NOT_ALLOWED;
            let described = if method == Method::HEAD { Method::GET } else { method.clone() };
            let is_described = operations.get(described.as_str().to_lowercase()).is_some();
            assert_eq!(is_taken, is_described, "{method} {path}");
        }
    }
    for route in routes() {
        let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
        let answers = operation["responses"].as_object().unwrap();
        assert!(
            answers.keys().any(|it| it.as_str() < "400"),
            "{} has no successful response",
            route.id()
        );
    }
}

/// Requests and responses have separate schemas, whose names must be unambiguous.
#[test]
fn schema_names_are_unambiguous() {
    let (read, written) = openapi::named_schemas(&routes());
    for (name, schema) in &read {
        assert!(written.get(name).is_none_or(|it| it == schema), "{name}");
    }
    assert!(read.contains_key("ClientFrame") && written.contains_key("ServerFrame"));
}

#[tokio::test]
async fn an_allowed_origin_needs_the_token() {
    let data = tempfile::tempdir().unwrap();
    let router = router_on(&data).await;
    let ask = async |origin: &str| {
        let request = Request::get("/api/agents").header(HOST, OURS).header(ORIGIN, origin);
        let request = request.header(AUTHORIZATION, "Bearer the token").body(Body::empty());
        router.clone().oneshot(request.unwrap()).await.unwrap()
    };
    let allowed = ask("https://friend.example").await;
    assert_eq!(allowed.status(), StatusCode::OK);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://friend.example");
    assert!(!allowed.headers().contains_key("access-control-allow-credentials"));
    for other in ["https://friend.example.evil.example", "http://friend.example", "null"] {
        let answer = ask(other).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{other}");
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
    }

    let preflight = Request::options("/api/agents")
        .header(HOST, OURS)
        .header(ORIGIN, "https://friend.example")
        .header("access-control-request-method", "POST")
        .body(Body::empty());
    let answer = router.clone().oneshot(preflight.unwrap()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    let allowed = answer.headers()["access-control-allow-headers"].to_str().unwrap();
    assert_eq!(
        allowed, "authorization, *",
        "the wildcard does not include the header of the token"
    );
}

#[tokio::test]
async fn every_response_has_security_headers() {
    let data = tempfile::tempdir().unwrap();
    let router = router_on(&data).await;
    for (path, key) in [("/", true), ("/", false), ("/api/agents", true), ("/nothing", true)] {
        let mut request = Request::get(path).header(HOST, OURS);
        if key {
            request = request.header(AUTHORIZATION, "Bearer the token");
        }
        let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(path == "/" || policy.ends_with("sandbox"), "{policy}");
    }
}

/// The size is checked against `Content-Length`, and again while the body is read.
#[tokio::test]
async fn errors_for_large_files_name_the_limit() {
    let data = tempfile::tempdir().unwrap();
    let router = router_on(&data).await;
    for announced in [true, false] {
        let request = Request::post("/api/blobs").header(HOST, OURS);
        let request = request.header(AUTHORIZATION, "Bearer the token");
        let request = match announced {
            true => request.header("content-length", BODY_MAX + 1).body(Body::empty()),
            false => request.body(Body::from(vec![0; BODY_MAX + 1])),
        };
        let answer = router.clone().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let body = axum::body::to_bytes(answer.into_body(), BODY_MAX).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let words = "the file is larger than 8 MiB, which is the limit";
        assert_eq!(body["error"]["message"], words, "announced: {announced}");
    }
}

/// A client that sends slowly cannot hold a connection with a body that is refused anyway.
#[tokio::test(start_paused = true)]
async fn a_refused_body_is_read_for_a_limited_time() {
    let data = tempfile::tempdir().unwrap();
    let router = router_on(&data).await;
    for announced in [true, false] {
        let mut request = Request::post("/api/blobs").header(HOST, OURS);
        request = request.header(AUTHORIZATION, "Bearer the token");
        if announced {
            request = request.header("content-length", u64::MAX);
        }
        let first = std::iter::once(vec![0; if announced { 1 } else { BODY_MAX + 1 }]);
        let endless = first.chain(std::iter::repeat_with(|| vec![0]));
        let trickle = futures_util::stream::iter(endless).then(async |piece| {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok::<_, Infallible>(piece)
        });
        let answer = router.clone().oneshot(request.body(Body::from_stream(trickle)).unwrap());
        // The test clock is paused and advances only when nothing else can happen.
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        let status = answer.expect("the body is refused before it is complete").unwrap().status();
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "announced: {announced}");
    }
}

/// A correct password is refused if it is changed before its check has ended.
#[tokio::test]
async fn a_password_changed_during_its_check_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let app = app_in(&data).await;
    let (router, password_check) = (router(app.clone()), Arc::clone(&app.attempts.password_check));
    for new_password in [None, Some("another horse")] {
        password::set(data.path(), "correct horse").unwrap();
        let request = Request::post(gate::SIGN_IN)
            .header(HOST, OURS)
            .header(ORIGIN, "http://127.0.0.1:4520")
            .extension(SocketAddr::from(([127, 0, 0, 1], 1)))
            .body(Body::from("password=correct+horse"));
        let checks_wait = Arc::clone(&password_check).lock_owned().await;
        let mut answer = std::pin::pin!(router.clone().oneshot(request.unwrap()));
        assert!(futures_util::poll!(&mut answer).is_pending(), "the check waits for its turn");
        if let Some(password) = new_password {
            password::set(data.path(), password).unwrap();
        }
        drop(checks_wait);
        let answer = answer.await.unwrap();
        let is_in = answer.headers().contains_key("set-cookie");
        assert_eq!(is_in, new_password.is_none(), "{}", answer.status());
    }
}
