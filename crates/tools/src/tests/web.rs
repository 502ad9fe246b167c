//! `http_get`: allowed and refused addresses, redirects, and retries.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use reqwest::Url;
use transcript::ErrorCode;

use super::bench::Bench;
use crate::built_in::http_get::stays_with_host;
use crate::{ToolEvent, ToolSettings, Tools, Web};

/// Starts a server that sends these responses one after the other. Returns its port.
fn serve(answers: Vec<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    serve_on(listener, answers);
    port
}

fn serve_on(listener: TcpListener, answers: Vec<String>) {
    std::thread::spawn(move || {
        for answer in answers {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = connection.read(&mut request).unwrap();
            connection.write_all(answer.as_bytes()).unwrap();
        }
    });
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn private(bench: &mut Bench) {
    let mut settings = ToolSettings::for_tests();
    settings.web = Web::with_private();
    bench.tools = Tools::built_in(settings);
}

fn url(url: &str) -> String {
    serde_json::json!({ "url": url }).to_string()
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_notation() {
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
        "http://127。0。0。1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://ｌｏｃａｌｈｏｓｔ/",
        "http://ⓛocalhost/",
        "http://loc\u{ad}alhost/",
    ] {
        let (code, message) = bench.error("http_get", &url(address)).await;
        let is_refused = message.contains("private network");
        // A name that this machine cannot resolve fails too.
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
async fn international_names_are_resolved_in_ascii_form() {
    let mut bench = Bench::new();
    let resolved = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&resolved);
    let look_up = move |name: String| {
        seen.lock().unwrap().push(name);
        Box::pin(async { Ok(vec![IpAddr::from(HERE)]) })
            as BoxFuture<'static, io::Result<Vec<IpAddr>>>
    };
    let mut settings = ToolSettings::for_tests();
    settings.web = Web { look_up: Arc::new(look_up), ..Web::public() };
    bench.tools = Tools::built_in(settings);
    for name in ["bücher.example", "BÜCHER.example", "xn--bcher-kva.example", "例え.テスト"]
    {
        let message = bench.refusal("http_get", &url(&format!("http://{name}/"))).await;
        assert!(message.contains("private network"), "{name}: {message}");
    }
    let bucher = "xn--bcher-kva.example";
    assert_eq!(*resolved.lock().unwrap(), [bucher, bucher, bucher, "xn--r8jz45g.xn--zckzah"]);
}

#[tokio::test]
async fn redirects_are_followed_up_to_a_limit() {
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
    for elsewhere in [
        "file:///etc/passwd",
        "http://localhost:1/",
        "http://127.0.0.1:1/",
        "https://127.0.0.1/",
        "//127.0.0.2/",
    ] {
        let port = serve(vec![answer(&format!("302 Found\r\nlocation: {elsewhere}"), "")]);
        let message = bench.refusal("http_get", &url(&format!("http://127.0.0.1:{port}/"))).await;
        assert!(message.contains("which is another host"), "{elsewhere}: {message}");
    }
}

/// Makes 127.0.0.2 the internet and 127.0.0.1 private; each lookup of a name returns the next of these lists.
fn changing(bench: &mut Bench, answers: &[&[[u8; 4]]]) {
    let answers: VecDeque<Vec<IpAddr>> =
        answers.iter().map(|it| it.iter().map(|it| IpAddr::from(*it)).collect()).collect();
    let answers = Arc::new(Mutex::new(answers));
    let look_up = move |name: String| {
        let found = answers.lock().unwrap().pop_front();
        let found = found.ok_or_else(|| io::Error::other(format!("{name} is asked for again")));
        Box::pin(async { found }) as BoxFuture<'static, io::Result<Vec<IpAddr>>>
    };
    let mut settings = ToolSettings::for_tests();
    settings.retries = 0;
    settings.web =
        Web { look_up: Arc::new(look_up), may_contact: |it| it == IpAddr::from(INTERNET) };
    bench.tools = Tools::built_in(settings);
}

const INTERNET: [u8; 4] = [127, 0, 0, 2];
const HERE: [u8; 4] = [127, 0, 0, 1];

/// Starts a public server, and a private listener on the same port, which must not be reached.
fn two_servers(answers: impl FnOnce(u16) -> Vec<String>) -> (u16, TcpListener) {
    loop {
        let out_there = TcpListener::bind((Ipv4Addr::from(INTERNET), 0)).unwrap();
        let port = out_there.local_addr().unwrap().port();
        if let Ok(here) = TcpListener::bind((Ipv4Addr::from(HERE), port)) {
            here.set_nonblocking(true).unwrap();
            serve_on(out_there, answers(port));
            return (port, here);
        }
    }
}

#[tokio::test]
async fn the_connection_uses_the_checked_address() {
    for name in ["rebind.test", "rebind.test.", "REBIND.test", "r\u{e9}bind.test"] {
        let mut bench = Bench::new();
        let (port, here) = two_servers(|_| vec![answer("200 OK", "from the internet")]);
        // A second lookup would return the private address, and a third is an error.
        changing(&mut bench, &[&[INTERNET], &[HERE]]);
        let result = bench.ok("http_get", &url(&format!("http://{name}:{port}/"))).await;
        assert_eq!(result["text"], "from the internet", "{name}");
        assert!(here.accept().is_err(), "{name}: nobody came here");
    }
}

#[tokio::test]
async fn one_private_address_is_enough_to_refuse() {
    for addresses in [[INTERNET, HERE], [HERE, INTERNET]] {
        let mut bench = Bench::new();
        let (port, here) = two_servers(|_| vec![]);
        changing(&mut bench, &[&addresses]);
        let address = url(&format!("http://both.test:{port}/"));
        assert!(bench.refusal("http_get", &address).await.contains("private network"));
        assert!(here.accept().is_err());
    }
    let mut bench = Bench::new();
    changing(&mut bench, &[&[]]);
    let (code, message) = bench.error("http_get", &url("http://none.test/")).await;
    assert_eq!((code, message.contains("has no address")), (ErrorCode::ToolFailed, true));
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    let redirect = |to: &str| answer(&format!("302 Found\r\nlocation: {to}"), "");
    // The name has another address when it is resolved for the second hop.
    let mut bench = Bench::new();
    let (port, here) = two_servers(|_| vec![redirect("/again")]);
    changing(&mut bench, &[&[INTERNET], &[HERE]]);
    let address = url(&format!("http://rebind.test:{port}/"));
    assert!(bench.refusal("http_get", &address).await.contains("private network"));
    assert!(here.accept().is_err());

    for host in ["127.0.0.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "other.test"] {
        let mut bench = Bench::new();
        let (port, here) = two_servers(|port| vec![redirect(&format!("http://{host}:{port}/"))]);
        changing(&mut bench, &[&[INTERNET], &[HERE]]);
        bench.refusal("http_get", &url(&format!("http://public.test:{port}/"))).await;
        assert!(here.accept().is_err(), "{host}");
    }
}

#[test]
fn a_redirect_may_upgrade_but_never_downgrade() {
    for (from, to, stays) in [
        ("http://a.test/x", "http://a.test/y", true),
        ("http://a.test/", "https://a.test/", true),
        ("http://a.test/", "https://A.TEST/", true),
        ("https://a.test/", "http://a.test/", false),
        ("http://a.test/", "http://a.test:8080/", false),
        ("http://a.test/", "https://a.test:8443/", false),
        ("http://a.test:8080/", "https://a.test/", false),
        ("https://a.test/", "https://www.a.test/", false),
        ("https://a.test/", "https://b.test/", false),
        ("https://a.test/", "ftp://a.test/", false),
    ] {
        let (from, to) = (Url::parse(from).unwrap(), Url::parse(to).unwrap());
        assert_eq!(stays_with_host(&from, &to), stays, "{from} {to}");
    }
}

#[tokio::test]
async fn missing_binary_and_large_content_is_an_error() {
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
async fn transient_failures_are_retried() {
    let mut bench = Bench::new();
    private(&mut bench);
    let broken = answer("503 Service Unavailable", "");
    let port = serve(vec![broken.clone(), broken, answer("200 OK", "recovered")]);
    let result = bench.ok("http_get", &url(&format!("http://127.0.0.1:{port}/"))).await;
    assert_eq!(result["text"], "recovered");
    let mut attempts = Vec::new();
    while let Ok(news) = bench.news.try_recv() {
        if let ToolEvent::Retry { attempt, max_attempts, .. } = news.event {
            attempts.push((attempt, max_attempts));
        }
    }
    assert_eq!(attempts, [(2, 3), (3, 3)]);
}
