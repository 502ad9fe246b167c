//! What real servers sent.

use expect_test::expect_file;

use crate::model::{Response, converse};
use crate::pages::Session;
use crate::reading::{check_every_chunking, fixtures, outline_file, summary};

/// The lines before the body are the recorder's own.
fn body(capture: &str) -> String {
    match capture.split_once("# ---- body ----\n") {
        Some((_, body)) => body.to_owned(),
        None => capture.split_inclusive('\n').filter(|it| !it.starts_with("# ")).collect(),
    }
}

/// Where the recorder said nothing of it, all was well but for the connection.
fn status(capture: &str) -> u16 {
    let status = capture.lines().find_map(|it| it.strip_prefix("# status: "));
    let refused = capture.starts_with(r#"{"error""#);
    status.map_or(if refused { 401 } else { 200 }, |it| it[..3].parse().unwrap())
}

/// Each capture as the answer of a model.
pub(crate) fn sessions() -> Vec<Session> {
    let session = |(name, capture): (String, String)| {
        let body = body(&capture);
        let is_lost = name.ends_with("killed") || name.ends_with("abort");
        let response = Response { status: status(&capture), body: &body, is_lost };
        Session {
            outline: outline_file(&name),
            records: converse(&response),
            name: format!("openai/{name}"),
            said: body.lines().map(str::to_owned).collect(),
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
