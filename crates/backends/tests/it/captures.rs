//! Responses that real model services sent.

use expect_test::expect_file;

use crate::model::{Response, converse};
use crate::pages::Session;
use crate::reading::{check_every_chunking, fixtures, outline_file, summary};

/// Returns the body of a capture, without the lines that the recorder put before it.
fn body(capture: &str) -> String {
    match capture.split_once("# ---- body ----\n") {
        Some((_, body)) => body.to_owned(),
        None => capture.split_inclusive('\n').filter(|it| !it.starts_with("# ")).collect(),
    }
}

/// Returns the recorded status. Without one it is 401 if the body is an error, and 200 otherwise.
fn status(capture: &str) -> u16 {
    let status = capture.lines().find_map(|it| it.strip_prefix("# status: "));
    let refused = capture.starts_with(r#"{"error""#);
    status.map_or(if refused { 401 } else { 200 }, |it| it[..3].parse().unwrap())
}

/// Returns the session that each capture gives as the response of a model service.
pub(crate) fn sessions() -> Vec<Session> {
    let session = |(name, capture): (String, String)| {
        let body = body(&capture);
        let is_lost = name.ends_with("killed") || name.ends_with("abort");
        let response = Response { status: status(&capture), body: &body, is_lost };
        Session {
            outline: outline_file(&name),
            records: converse(&response),
            name: format!("openai/{name}"),
            output: body.lines().map(str::to_owned).collect(),
        }
    };
    fixtures("captures").into_iter().map(session).collect()
}

#[test]
fn every_capture_is_read() {
    let mut read = String::new();
    for (name, capture) in fixtures("captures") {
        read += &format!("{name}: {:#}\n", summary(body(&capture).as_bytes()));
    }
    expect_file!["../../fixtures/openai/captures.txt"].assert_eq(&read);
}

#[test]
fn the_chunking_changes_nothing() {
    for (_, capture) in fixtures("captures") {
        check_every_chunking(body(&capture).as_bytes());
    }
}
