//! `http_get`: what it may ask, and what it may not.

use std::io::{Read, Write};
use std::net::TcpListener;

use transcript::ErrorCode;

use super::super::What;
use super::bench::{Bench, settings};
use crate::tools::Tools;

/// Answers one request after the other with these, and gives its port.
fn serve(answers: Vec<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = connection.read(&mut request).unwrap();
            connection.write_all(answer.as_bytes()).unwrap();
        }
    });
    port
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn private(bench: &mut Bench) {
    let mut settings = settings();
    settings.http_private = true;
    bench.tools = Tools::built_in(settings);
}

fn url(url: &str) -> String {
    serde_json::json!({ "url": url }).to_string()
}

#[tokio::test]
async fn this_machine_and_its_network_are_refused_however_they_are_written() {
    let bench = Bench::new();
    for address in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::]/",
        "http://0/",
        "http://10.1.2.3/",
        "http://172.16.0.1:8080/",
        "http://192.168.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://１２７.0.0.1/",
    ] {
        let (code, message) = bench.error("http_get", &url(address)).await;
        let is_refused = message.contains("private network");
        // A name that this machine cannot look up is not reached either.
        assert!(
            is_refused || code == ErrorCode::ToolFailed && address.ends_with("./"),
            "{address}: {message}"
        );
    }
    for address in ["file:///etc/passwd", "ftp://example.com/", "http://a:b@example.com/"] {
        bench.refusal("http_get", &url(address)).await;
    }
    let (code, _) = bench.error("http_get", &url("not an address")).await;
    assert_eq!(code, ErrorCode::InvalidArguments);
}

#[tokio::test]
async fn a_text_is_read_and_redirects_are_followed_to_a_point() {
    let mut bench = Bench::new();
    private(&mut bench);
    let moved = answer("302 Found\r\nlocation: /there", "");
    let port = serve(vec![moved.clone(), answer("200 OK\r\ncontent-type: text/plain", "hello")]);
    let result = bench.ok("http_get", &url(&format!("http://127.0.0.1:{port}/here"))).await;
    assert_eq!(result["text"], "hello");
    assert_eq!(result["url"], format!("http://127.0.0.1:{port}/there"));
    let port = serve(vec![moved; 6]);
    let message = bench.refusal("http_get", &url(&format!("http://127.0.0.1:{port}/"))).await;
    assert!(message.contains("more than 5 times"), "{message}");
    let elsewhere = answer("302 Found\r\nlocation: file:///etc/passwd", "");
    let port = serve(vec![elsewhere]);
    bench.refusal("http_get", &url(&format!("http://127.0.0.1:{port}/"))).await;
}

#[tokio::test]
async fn what_is_missing_binary_or_too_large_is_said() {
    let mut bench = Bench::new();
    private(&mut bench);
    let large = "x".repeat((1 << 20) + 1);
    for (reply, words) in [
        (answer("404 Not Found", "no such page"), "no such page"),
        (answer("200 OK", "a\0b"), "not text"),
        (answer("200 OK", &large), "larger than 1 MiB"),
    ] {
        let port = serve(vec![reply]);
        let message = bench.refusal("http_get", &url(&format!("http://127.0.0.1:{port}/"))).await;
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_a_few_times() {
    let mut bench = Bench::new();
    private(&mut bench);
    let broken = answer("503 Service Unavailable", "");
    let port = serve(vec![broken.clone(), broken, answer("200 OK", "well again")]);
    let result = bench.ok("http_get", &url(&format!("http://127.0.0.1:{port}/"))).await;
    assert_eq!(result["text"], "well again");
    let mut attempts = Vec::new();
    while let Ok(news) = bench.news.try_recv() {
        if let What::Retry { attempt, max_attempts, .. } = news.what {
            attempts.push((attempt, max_attempts));
        }
    }
    assert_eq!(attempts, [(2, 3), (3, 3)]);
}
