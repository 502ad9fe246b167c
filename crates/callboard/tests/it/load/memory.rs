//! Memory is released after use, and clients cannot make the server need much of it.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, ORIGIN};

use crate::support::program::{Home, Server, resident_memory};

const FORM: &str = "application/x-www-form-urlencoded";
/// Memory of one password check: 19 MiB, Argon2's default.
const CHECK: u64 = 19 * 1024 * 1024;

/// Returns the peak of resident memory, in bytes.
fn highest_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"));
    let status = status.unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Sends an attempt and does not wait for the response.
fn give_up(server: &Server) {
    let address = server.base.strip_prefix("http://").unwrap();
    let body = "password=wrong";
    let request = format!(
        "POST /sign-in HTTP/1.1\r\nHost: {address}\r\nOrigin: {}\r\nContent-Type: {FORM}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.base,
        body.len()
    );
    TcpStream::connect(address).unwrap().write_all(request.as_bytes()).unwrap();
}

/// Holds for clients that wait and for clients that disconnect early.
#[tokio::test]
async fn wrong_passwords_are_checked_one_at_a_time_and_take_no_memory() {
    let home = Home::instant();
    home.pipe_in(&["password"], "correct horse\n");
    let server = home.start();
    let before = resident_memory(server.pid());
    (0..4).for_each(|_| give_up(&server));
    let request = tools::http_client().post(format!("{}/sign-in", server.base));
    let request = request.header(ORIGIN, &server.base).header(CONTENT_TYPE, FORM);
    let last = request.body("password=wrong").send().await.unwrap();
    assert_eq!(last.status(), StatusCode::UNAUTHORIZED, "it is the last that one address has");
    let grown = highest_memory(server.pid()).saturating_sub(before);
    assert!(grown < CHECK * 5 / 2, "{} MB were needed in parallel", grown / 1_000_000);
}
