//! Authentication and limits of the running server: requests as browsers, attackers and slow
//! networks send them.

use futures_util::future::join_all;
use reqwest::StatusCode;
use reqwest::header::{COOKIE, HeaderMap, HeaderValue, LOCATION, ORIGIN, SET_COOKIE};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::program::{Home, Server, TOKEN};
use crate::support::watcher::Watcher;

/// Sends these bytes and returns everything until the server closes the connection.
pub(crate) async fn raw(server: &Server, request: &[u8]) -> String {
    let address = server.base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    // A reset ends the response too. For a stream the head is enough.
    while !is_stream(&answer) && stream.read_buf(&mut answer).await.is_ok_and(|it| it > 0) {}
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns whether the head announces an endless stream.
fn is_stream(answer: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&answer[..answer.len().min(4096)]).into_owned();
    let is_told = head.split_once("\r\n\r\n").is_some();
    is_told && (head.contains("text/event-stream") || head.contains("x-vercel-ai-data-stream"))
}

fn host(server: &Server) -> &str {
    server.base.strip_prefix("http://").unwrap()
}

/// Returns the status of a request with these headers and `Connection: close`.
async fn status(server: &Server, start: &str, headers: &[(&str, &str)]) -> u16 {
    status_of(server, start, &[&[("Connection", "close")], headers].concat()).await
}

/// Returns the status of a request with these headers, without reading the rest.
async fn status_of(server: &Server, start: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = format!("{start} HTTP/1.1\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(host(server)).await.unwrap();
    stream.write_all((request + "\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') && stream.read_buf(&mut answer).await.is_ok_and(|it| it > 0) {}
    let line = String::from_utf8_lossy(&answer).into_owned();
    line.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// A client that follows no redirects and stores no cookies.
pub(crate) fn plain() -> reqwest::Client {
    tools::http_client_builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

pub(crate) async fn cookie_by_token(server: &Server) -> String {
    let url = format!("{}/?token={TOKEN}", server.base);
    cookie_of(plain().get(url).send().await.unwrap().headers())
}

pub(crate) fn cookie_of(headers: &HeaderMap<HeaderValue>) -> String {
    headers[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn requests_from_other_sites_are_refused() {
    let home = Home::instant();
    let server = home.start();
    let ours = host(&server);
    let port = ours.rsplit(':').next().unwrap();
    let cookie = &cookie_by_token(&server).await;
    let bearer = &format!("Bearer {TOKEN}");
    let evil_host = &format!("evil.example:{port}");
    let evil_origin = &format!("http://evil.example:{port}");
    let (origin, other_port) = (&format!("http://{ours}"), "http://127.0.0.1:1");

    let get = "GET /api/agents";
    let post = "POST /api/sessions/x/cancel";
    let upgrade = [
        ("Connection", "upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    let with = |more: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        more.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    let cases = [
        ("our page reads", get, with(&[("Host", ours), ("Cookie", cookie)]), 200),
        (
            "our page changes",
            post,
            with(&[("Host", ours), ("Cookie", cookie), ("Origin", origin)]),
            404,
        ),
        ("a program changes", post, with(&[("Host", ours), ("Authorization", bearer)]), 404),
        (
            "localhost is ours",
            get,
            with(&[("Host", &format!("localhost:{port}")), ("Cookie", cookie)]),
            200,
        ),
        ("no key", get, with(&[("Host", ours)]), 401),
        ("a wrong token", get, with(&[("Host", ours), ("Authorization", "Bearer wrong")]), 401),
        (
            "a made-up cookie",
            get,
            with(&[("Host", ours), ("Cookie", &format!("callboard_{port}=1"))]),
            401,
        ),
        (
            "the token in the wrong place",
            "GET /api/agents?token=token-of-the-tests",
            with(&[("Host", ours)]),
            401,
        ),
        ("no host", get, with(&[("Cookie", cookie)]), 403),
        ("a name pointed here", get, with(&[("Host", evil_host), ("Cookie", cookie)]), 403),
        (
            "a name pointed here, with its origin",
            post,
            with(&[("Host", evil_host), ("Cookie", cookie), ("Origin", evil_origin)]),
            403,
        ),
        (
            "a name pointed here, even with the token",
            get,
            with(&[("Host", evil_host), ("Authorization", bearer)]),
            403,
        ),
        (
            "a foreign origin",
            get,
            with(&[("Host", ours), ("Cookie", cookie), ("Origin", "https://evil.example")]),
            403,
        ),
        (
            "no origin to speak of",
            post,
            with(&[("Host", ours), ("Cookie", cookie), ("Origin", "null")]),
            403,
        ),
        (
            "another port",
            post,
            with(&[("Host", ours), ("Cookie", cookie), ("Origin", other_port)]),
            403,
        ),
        (
            "cross-site without origin",
            get,
            with(&[("Host", ours), ("Cookie", cookie), ("Sec-Fetch-Site", "cross-site")]),
            403,
        ),
        (
            "same site is not same origin",
            get,
            with(&[("Host", ours), ("Cookie", cookie), ("Sec-Fetch-Site", "same-site")]),
            403,
        ),
        (
            "typed by hand",
            get,
            with(&[("Host", ours), ("Cookie", cookie), ("Sec-Fetch-Site", "none")]),
            200,
        ),
        ("a change without origin", post, with(&[("Host", ours), ("Cookie", cookie)]), 401),
        ("healthz under a foreign name", "GET /healthz", with(&[("Host", evil_host)]), 403),
    ];
    for (what, start, headers, expected) in cases {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        assert_eq!(status(&server, start, &headers).await, expected, "{what}");
    }
    for (what, origin, expected) in [
        ("a foreign page", Some("https://evil.example"), 403),
        ("a sandboxed page", Some("null"), 403),
        ("a cookie without origin", None, 401),
    ] {
        let mut headers = vec![("Host", ours), ("Cookie", cookie.as_str())];
        headers.extend(upgrade);
        headers.extend(origin.map(|it| ("Origin", it)));
        assert_eq!(status(&server, "GET /ws", &headers).await, expected, "WebSocket: {what}");
    }
}

#[tokio::test]
async fn a_password_signs_in_until_sign_out() {
    let home = Home::instant();
    let (ok, stdout, stderr) = home.pipe_in(&["password"], "correct horse\n");
    assert!(ok && stdout.contains("The password is set"), "{stdout}{stderr}");
    let server = home.start();
    let client = plain();
    let url = |path: &str| format!("{}{path}", server.base);
    let form = client.get(url("/")).send().await.unwrap();
    assert_eq!(form.status(), StatusCode::UNAUTHORIZED);
    assert!(form.text().await.unwrap().contains("type=\"password\""));

    let sign_in = async |password: &str| {
        let request = client.post(url("/sign-in")).header(ORIGIN, &server.base);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(format!("password={password}")).send().await.unwrap()
    };
    let refused = sign_in("wrong+horse").await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.text().await.unwrap().contains("The password is wrong."));
    let signed_in = sign_in("correct+horse").await;
    assert_eq!(
        (signed_in.status(), &signed_in.headers()[LOCATION]),
        (StatusCode::SEE_OTHER, &HeaderValue::from_static("/"))
    );
    let cookie = cookie_of(signed_in.headers());
    let opens = async |server: &Server, cookie: &str| {
        let request = plain().get(format!("{}/", server.base)).header(COOKIE, cookie);
        request.send().await.unwrap().status() == StatusCode::OK
    };
    assert!(opens(&server, &cookie).await);

    // Further attempts are rate limited, even with the right password.
    let mut last = StatusCode::OK;
    for _ in 0..8 {
        last = sign_in("guess").await.status();
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(sign_in("correct+horse").await.status(), StatusCode::TOO_MANY_REQUESTS);

    let out = client.post(url("/sign-out")).header(COOKIE, &cookie).header(ORIGIN, &server.base);
    assert_eq!(out.send().await.unwrap().status(), StatusCode::SEE_OTHER);
    assert!(!opens(&server, &cookie).await, "the cookie is worth nothing any more");
}

/// A browser gets help about the address, a program about the header to send.
#[tokio::test]
async fn an_invalid_token_is_reported() {
    let home = Home::instant();
    let server = home.start();
    let refusal = async |path: &str| {
        let answer = plain().get(format!("{}{path}", server.base)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
        answer.text().await.unwrap()
    };
    let what_to_do = "Open the address that the server printed when it started.";
    for path in ["/?token=wrong", "/s/x?token=wrong", "/?q=1&token="] {
        let page = refusal(path).await;
        let is_told = page.contains("The token in this address is not valid. ");
        assert!(is_told && page.contains(what_to_do) && !page.contains("Bearer"), "{path}: {page}");
    }
    let page = refusal("/").await;
    assert!(page.contains(what_to_do) && !page.contains("not valid"), "{page}");
    assert!(refusal("/api/sessions").await.contains("Authorization: Bearer TOKEN"));
}

#[tokio::test]
async fn sign_in_and_sign_out_survive_a_restart() {
    let home = Home::instant();
    let server = home.start();
    let port = host(&server).rsplit(':').next().unwrap().to_owned();
    let (kept, left) = (cookie_by_token(&server).await, cookie_by_token(&server).await);
    let out = plain().post(format!("{}/sign-out", server.base)).header(COOKIE, &left);
    out.header(ORIGIN, &server.base).send().await.unwrap();
    server.stop();

    let mut command = home.command();
    command.env("CALLBOARD_LISTEN", format!("127.0.0.1:{port}"));
    let server = Server::start(command);
    for (cookie, expected) in [(kept, StatusCode::OK), (left, StatusCode::UNAUTHORIZED)] {
        let page = plain().get(format!("{}/", server.base)).header(COOKIE, cookie);
        assert_eq!(page.send().await.unwrap().status(), expected);
    }
}

#[tokio::test]
async fn too_large_or_too_slow_requests_are_refused() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let ours = host(&server);
    let start = format!(
        "POST /api/sessions/{session}/messages HTTP/1.1\r\nHost: {ours}\r\n\
         Authorization: Bearer {TOKEN}\r\nContent-Length: "
    );
    let too_large = format!("{start}{}\r\n\r\n", 9 << 20);
    let flood =
        format!("GET / HTTP/1.1\r\nHost: {ours}\r\n{}\r\n", "X-Flood: 1\r\n".repeat(20_000));
    let huge_header =
        format!("GET / HTTP/1.1\r\nHost: {ours}\r\nX: {}\r\n\r\n", "x".repeat(200_000));
    let slow_headers = format!("GET / HTTP/1.1\r\nHost: {ours}\r\nX-Slow: ");
    let slow_body = format!("{start}100\r\n\r\n{{\"text\":");
    let cases = [
        (too_large, "413"),
        (flood, "431"),
        (huge_header, "431"),
        // A connection that sends no complete request is closed without a response.
        (slow_headers, ""),
        (slow_body, "408"),
    ];
    let answers = cases.iter().map(|(request, _)| raw(&server, request.as_bytes()));
    for (answer, (request, code)) in join_all(answers).await.into_iter().zip(&cases) {
        let start: String = request.chars().take(40).collect();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code}")) || code.is_empty(),
            "{start}: {answer}"
        );
    }

    let mut watcher = Watcher::connect(&server).await;
    watcher.send(json!({ "type": "ping", "padding": "x".repeat(9 << 20) })).await;
    assert_eq!(watcher.until("error").await["code"], "too_large");
    assert_eq!(server.get("/healthz").await, "ok");
}

/// A browser gets a page, and a program gets JSON.
#[tokio::test]
async fn an_unknown_address_gets_a_page_or_json() {
    let home = Home::instant();
    let server = home.start();
    let client = tools::http_client();
    for (path, words) in [
        ("/nonsense", "Page not found"),
        ("/s/nope", "There is no such session"),
        ("/?before=nonsense", "That did not work"),
    ] {
        let request = client.get(format!("{}{path}", server.base)).bearer_auth(TOKEN);
        let answer = request.header("accept", "text/html,*/*;q=0.8").send().await.unwrap();
        assert!(answer.status().is_client_error(), "{path}");
        let page = answer.text().await.unwrap();
        assert!(page.contains(words) && !page.contains("/api/"), "{path}: {page}");
    }
    let (status, body) = server.request(reqwest::Method::GET, "/nonsense", None).await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (404, &serde_json::json!("not_found")));
}

/// Browsers send a cookie to every port of a host.
#[tokio::test]
async fn an_allowed_origin_needs_the_token_instead_of_a_cookie() {
    let friend = "http://localhost:5173";
    let home = Home::new(&format!("[server]\nallowed_origins = [\"{friend}\"]\n"));
    let server = home.start();
    let (ours, cookie) = (host(&server), &cookie_by_token(&server).await);
    let own = &format!("http://{ours}");
    let bearer = &format!("Bearer {TOKEN}");
    let upgrade = [
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    for (start, more, accepted) in [
        ("GET /api/agents", &[][..], 200),
        ("POST /api/sessions/x/cancel", &[][..], 404),
        ("GET /ws", &upgrade[..], 101),
    ] {
        for (origin, key, expected) in [
            (own.as_str(), ("Cookie", cookie.as_str()), accepted),
            (friend, ("Cookie", cookie), 401),
            (friend, ("Authorization", bearer), accepted),
        ] {
            let connection = if more.is_empty() { "close" } else { "upgrade" };
            let headers = [("Host", ours), ("Origin", origin), key, ("Connection", connection)];
            let headers = [&headers[..], more].concat();
            assert_eq!(
                status_of(&server, start, &headers).await,
                expected,
                "{start} {origin} {key:?}"
            );
        }
    }
}
