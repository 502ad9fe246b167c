//! Privacy: content and secrets that must not reach the server's own log or an unencrypted
//! connection.

use reqwest::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use reqwest::{Method, StatusCode};
use serde_json::json;
use transcript::Seq;

use crate::security::auth::{cookie_of, plain};
use crate::support::program::{Home, Server, TOKEN};
use crate::support::watcher::{Watcher, is_quiet, watch_until};

const PASSWORD: &str = "correct-horse-battery";

#[tokio::test]
async fn the_server_log_has_no_content_and_no_secret() {
    let home = Home::instant();
    std::fs::write(home.workspace().join("secret.txt"), "the word is xylophone\n").unwrap();
    let (ok, _, stderr) = home.pipe_in(&["password"], &format!("{PASSWORD}\n"));
    assert!(ok, "{stderr}");
    let mut command = home.command();
    command.env("CALLBOARD_LOG", "debug");
    let server = Server::start(command);

    let url = |path: &str| format!("{}{path}", server.base);
    let by_token = plain().get(url(&format!("/?token={TOKEN}"))).send().await.unwrap();
    let sign_in = async |password: &str| {
        let request = plain().post(url("/sign-in")).header(ORIGIN, &server.base);
        request.body(format!("password={password}")).send().await.unwrap()
    };
    assert_eq!(sign_in("tried-and-wrong").await.status(), StatusCode::UNAUTHORIZED);
    let by_password = sign_in(PASSWORD).await;
    let cookies = [&by_token, &by_password].map(|it| cookie_of(it.headers()));
    for cookie in &cookies {
        let page = plain().get(url("/")).header(COOKIE, cookie).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK);
    }
    let session = converse(&server).await;
    server.request(Method::DELETE, &format!("/api/sessions/{session}"), None).await;

    let log = server.stop().join("\n");
    for line in ["path=\"/sign-in\" status=401", "path=\"/ws\" status=101", "path=\"/api/blobs\""] {
        assert!(log.contains(line), "no {line} in\n{log}");
    }
    let values = cookies.iter().map(|it| it.split_once('=').unwrap().1);
    let secrets = [TOKEN, PASSWORD, "tried-and-wrong", "xylophone", "secret.txt", "marmalade"];
    let contents = ["balloon", "attached.txt", "a rare title", "not JSON at all"];
    for secret in secrets.into_iter().chain(contents).chain(values) {
        assert!(!log.contains(secret), "{secret} in\n{log}");
    }
}

/// Uses HTTP and a WebSocket, with a file, a tool call, a title, a search and an invalid frame.
async fn converse(server: &Server) -> String {
    let session = server.create_session().await;
    let (_, put) = server.post("/api/blobs", json!("balloon")).await;
    let attachment = json!({
        "blob": put["blob"], "name": "attached.txt", "mediaType": "text/plain", "size": put["size"],
    });
    let path = format!("/api/sessions/{session}");
    let message = json!({ "text": "read secret.txt", "attachments": [attachment] });
    let (status, _) = server.post(&format!("{path}/messages"), message).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let mut watcher = Watcher::connect(server).await;
    watcher.subscribe(&session, Seq(0), true).await;
    watcher.until("run_finish").await;
    watcher.send(json!("not JSON at all")).await;
    watcher.until("error").await;
    let message = "think about marmalade, break";
    watcher.send(json!({ "type": "send_message", "sessionId": session, "text": message })).await;
    watcher.until("run_finish").await;
    watch_until(server, &session, is_quiet).await;
    let title = Some(json!({ "title": "a rare title" }));
    server.request(Method::PATCH, &path, title).await;
    server.get("/api/search?q=xylophone").await;
    session
}

#[tokio::test]
async fn cookies_of_an_https_address_are_secure() {
    let https = Home::new("[server]\npublic_url = \"https://chat.example\"\n");
    for (home, host, is_secure) in
        [(https, Some("chat.example"), true), (Home::instant(), None, false)]
    {
        let server = home.start();
        let ask = |request: reqwest::RequestBuilder| match host {
            Some(host) => request.header(HOST, host),
            None => request,
        };
        let url = format!("{}/?token={TOKEN}", server.base);
        let opened = ask(plain().get(url)).send().await.unwrap();
        let out = ask(plain().post(format!("{}/sign-out", server.base))).bearer_auth(TOKEN);
        let out = out.send().await.unwrap();
        for answer in [opened, out] {
            assert_eq!(answer.status(), StatusCode::SEE_OTHER);
            let cookie = answer.headers()[SET_COOKIE].to_str().unwrap();
            assert_eq!(cookie.contains("; Secure"), is_secure, "{cookie}");
        }
    }
}
