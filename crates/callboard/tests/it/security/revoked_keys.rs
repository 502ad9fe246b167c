//! Revoked credentials: sign-ins end, along with their connections and streams.

use futures_util::StreamExt;
use reqwest::header::{COOKIE, ORIGIN};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use transcript::{Event, Record, Seq};

use crate::security::auth::{cookie_by_token, plain, raw};
use crate::support::program::{BEARER, Home, Server};
use crate::support::terminal::Terminal;
use crate::support::watcher::Watcher;

type Socket = WebSocketStream<TcpStream>;

async fn opens(server: &Server, cookie: &str) -> bool {
    let request = plain().get(format!("{}/", server.base)).header(COOKIE, cookie);
    request.send().await.unwrap().status() == StatusCode::OK
}

async fn socket_with(server: &Server, cookie: &str) -> Socket {
    Watcher::connect_by_cookie(server, cookie, None).await.socket
}

/// Returns the code with which the server closes the WebSocket.
async fn closed(mut socket: Socket) -> Option<u16> {
    while let Some(message) = socket.next().await {
        if let Ok(Message::Close(close)) = message {
            return close.map(|it| it.code.into());
        }
    }
    None
}

async fn post(server: &Server, path: &str, cookie: &str) -> StatusCode {
    let request = plain().post(format!("{}{path}", server.base)).header(COOKIE, cookie);
    request.header(ORIGIN, &server.base).send().await.unwrap().status()
}

#[tokio::test]
async fn signing_out_closes_the_sockets_of_that_sign_in() {
    let home = Home::instant();
    let server = home.start();
    let (one, other) = (cookie_by_token(&server).await, cookie_by_token(&server).await);
    let (ours, theirs) = (socket_with(&server, &one).await, socket_with(&server, &other).await);
    assert_eq!(post(&server, "/sign-out", &one).await, StatusCode::SEE_OTHER);
    assert_eq!(closed(ours).await, Some(4401));
    assert!(!opens(&server, &one).await && opens(&server, &other).await);
    let mut theirs = Watcher { socket: theirs };
    theirs.send(json!({ "type": "ping" })).await;
    assert_eq!(theirs.next().await.unwrap()["type"], "pong");
}

#[tokio::test]
async fn signing_out_everywhere_ends_all_sign_ins_sockets_and_streams() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let cookies = [cookie_by_token(&server).await, cookie_by_token(&server).await];
    let sockets =
        [socket_with(&server, &cookies[0]).await, socket_with(&server, &cookies[1]).await];
    let url = format!("{}/api/sessions/{session}/contract-events", server.base);
    let stream = plain().get(url).header(COOKIE, &cookies[0]).send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    assert_eq!(
        post(&server, "/api/sign-out-everywhere", &cookies[0]).await,
        StatusCode::NO_CONTENT
    );
    for socket in sockets {
        assert_eq!(closed(socket).await, Some(4401));
    }
    let _ = stream.bytes().await;
    for cookie in &cookies {
        assert!(!opens(&server, cookie).await);
    }
    assert!(opens(&server, &cookie_by_token(&server).await).await, "signs in again");
}

/// Records that wait for a slow client are not sent after it has signed out.
#[tokio::test]
async fn records_that_wait_are_not_sent_after_signing_out() {
    const N_MESSAGES: usize = 6;
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    for _ in 0..N_MESSAGES {
        server.send(&session, &"word ".repeat(600_000)).await;
    }
    let cookie = cookie_by_token(&server).await;
    let mut slow = Watcher::connect_by_cookie(&server, &cookie, Some(4096)).await;
    slow.subscribe(&session, Seq(0), false).await;
    slow.until("user_message").await;
    // More records are in flight, and the client does not read them.
    slow.socket.get_ref().readable().await.unwrap();
    assert_eq!(post(&server, "/sign-out", &cookie).await, StatusCode::SEE_OTHER);
    while metric(&server, "callboard_watchers").await != 0 {
        tokio::task::yield_now().await;
    }
    let cut_off = metric(&server, "callboard_watchers_cut_off_total").await;
    assert_eq!(cut_off, 0, "the server went on sending until it lost patience");
    let mut n_messages = 1;
    while let Some(frame) = slow.next().await {
        n_messages += usize::from(frame["type"] == "user_message");
    }
    assert!(n_messages < N_MESSAGES, "all {n_messages} messages were sent");
}

async fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.get("/metrics").await;
    let line = metrics.as_str().unwrap().lines().find(|it| it.starts_with(&format!("{name} ")));
    line.unwrap()[name.len() + 1..].parse().unwrap()
}

/// The media type of the AI SDK 4 stream is plain text.
#[tokio::test]
async fn signing_out_ends_a_stream_of_the_data_stream_protocol() {
    let home = Home::instant();
    let server = home.start();
    let cookie = cookie_by_token(&server).await;
    let message = json!({ "role": "user", "content": "run touch f" });
    let request = plain().post(format!("{}/api/chat/v4/demo", server.base));
    let request = request.header(COOKIE, &cookie).header(ORIGIN, &server.base);
    let body = json!({ "id": "c", "messages": [message] });
    let mut stream = request.json(&body).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    assert_eq!(post(&server, "/sign-out", &cookie).await, StatusCode::SEE_OTHER);
    while let Ok(Some(_)) = stream.chunk().await {}
    let is_end = |it: &Record| matches!(it.event, Event::RunFinish { .. });
    assert!(!server.log("c").await.iter().any(is_end), "the run itself goes on");
}

#[tokio::test]
async fn a_new_password_ends_all_sign_ins_of_a_running_server() {
    let home = Home::instant();
    assert!(home.pipe_in(&["password"], "correct horse\n").0);
    let server = home.start();
    let cookie = cookie_by_token(&server).await;
    let socket = socket_with(&server, &cookie).await;
    assert!(opens(&server, &cookie).await);
    assert!(home.pipe_in(&["password"], "another horse\n").0);
    assert!(!opens(&server, &cookie).await, "from the next request on");
    assert_eq!(closed(socket).await, Some(4401));
    // Setting the old password again does not restore the sign-in.
    assert!(home.pipe_in(&["password"], "correct horse\n").0);
    assert!(!opens(&server, &cookie).await);
}

/// Covers changes while the server is off.
#[tokio::test]
async fn a_new_token_or_password_ends_sign_ins_across_a_restart() {
    for change in ["token", "password", "nothing"] {
        let home = Home::instant();
        let server = home.start();
        let port = server.base.rsplit(':').next().unwrap().to_owned();
        let cookie = cookie_by_token(&server).await;
        server.stop();
        let mut command = home.command();
        command.env("CALLBOARD_LISTEN", format!("127.0.0.1:{port}"));
        match change {
            "token" => drop(command.env("CALLBOARD_TOKEN", "another token of the tests")),
            "password" => assert!(home.pipe_in(&["password"], "correct horse\n").0),
            _ => (),
        }
        let server = Server::start(command);
        assert_eq!(opens(&server, &cookie).await, change == "nothing", "{change}");
    }
}

/// A GET shows a page with a button and changes nothing.
#[tokio::test]
async fn sign_out_can_be_opened_as_an_address() {
    let home = Home::instant();
    let server = home.start();
    let cookie = cookie_by_token(&server).await;
    let page = plain().get(format!("{}/sign-out", server.base)).header(COOKIE, &cookie);
    let page = page.header("accept", "text/html").send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    assert!(page.text().await.unwrap().contains("action=\"/sign-out\""));
    assert!(opens(&server, &cookie).await);
}

#[tokio::test]
async fn the_sign_in_page_mentions_a_configured_password() {
    let home = Home::instant();
    let server = home.start();
    let page = async || {
        let answer = plain().get(format!("{}/", server.base)).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let without = page().await;
    assert!(without.contains("the server printed") && without.contains("class=\"primary\""));
    assert!(home.pipe_in(&["password"], "correct horse\n").0);
    let with = page().await;
    assert!(
        with.contains("Enter the password, or use the token.") && !with.contains("role=\"alert\"")
    );
}

#[test]
fn a_password_is_asked_for_twice() {
    let home = Home::instant();
    let set = |first: &str, second: &str| {
        // The password is read from the terminal that controls the process.
        let mut command = std::process::Command::new("setsid");
        home.prepare(&mut command);
        command.args(["-c", "-w", env!("CARGO_BIN_EXE_callboard"), "password"]);
        let mut terminal = Terminal::start(&mut command);
        terminal.until("New password: ");
        terminal.type_in(&format!("{first}\n"));
        terminal.until("The same again: ");
        terminal.type_in(&format!("{second}\n"));
        terminal.end()
    };
    let (code, shown) = set("correct horse", "correct hores");
    assert!(code != Some(0) && shown.contains("nothing was changed"), "{shown}");
    assert!(!home.data().join("password").exists());
    let (code, shown) = set("correct horse", "correct horse");
    assert!(code == Some(0) && shown.contains("The password is set"), "{shown}");
}

#[tokio::test]
async fn a_second_host_header_is_refused() {
    let home = Home::instant();
    let server = home.start();
    let host = server.base.strip_prefix("http://").unwrap();
    for other in [host, "evil.example"] {
        let request = format!(
            "GET /api/sessions HTTP/1.1\r\nHost: {host}\r\nHost: {other}\r\nAuthorization: {BEARER}\r\n\
             Connection: close\r\n\r\n"
        );
        let answer = raw(&server, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
}

/// A client that reads only after sending the whole body gets the response.
#[tokio::test]
async fn a_body_that_is_too_large_is_read_and_refused() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    let host = server.base.strip_prefix("http://").unwrap();
    let body = vec![b'x'; 40 << 20];
    let mut request = format!(
        "POST /api/sessions/{session}/messages HTTP/1.1\r\nHost: {host}\r\nAuthorization: {BEARER}\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend(body);
    let answer = raw(&server, &request).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("8 MiB"), "{answer}");
}

#[tokio::test]
async fn a_lone_surrogate_becomes_a_replacement_character() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    for (text, expected) in [
        (r"a\ud800", "a\u{fffd}"),
        (r"\udc00b", "\u{fffd}b"),
        (r"\ud83d\ude00 \ud83d!", "\u{1f600} \u{fffd}!"),
        (r"\\ud800", r"\ud800"),
    ] {
        let url = format!("{}/api/sessions/{session}/messages", server.base);
        let request = plain().request(Method::POST, url).header("authorization", BEARER);
        let answer = request.body(format!(r#"{{"text":"{text}"}}"#)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::ACCEPTED, "{text}");
        let log = server.log(&session).await;
        let is_logged = log.iter().any(|it| it.to_json().contains(&json!(expected).to_string()));
        assert!(is_logged, "{text}");
    }
}
