//! What real servers sent.

use expect_test::expect_file;

use crate::reading::{check_every_chunking, fixtures, summary};

/// The lines before the body are the recorder's own.
fn body(capture: &str) -> String {
    match capture.split_once("# ---- body ----\n") {
        Some((_, body)) => body.to_owned(),
        None => capture.split_inclusive('\n').filter(|it| !it.starts_with("# ")).collect(),
    }
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
