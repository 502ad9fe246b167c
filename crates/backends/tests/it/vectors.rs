//! Deviations of real model services from the protocol, with the expected results.

use serde_json::Value;

use crate::model::{Response, converse};
use crate::pages::Session;
use crate::reading::{check_every_chunking, fixtures, outline_file, summary};

/// Returns the session that each vector gives as the response of a model service.
pub(crate) fn sessions() -> Vec<Session> {
    let session = |(name, vector): (String, String)| {
        let vector: Value = serde_json::from_str(&vector).unwrap();
        let body = vector["sse"].as_str().unwrap();
        Session {
            outline: outline_file(&format!("vector-{name}")),
            records: converse(&Response { status: 200, body, is_lost: false }),
            name: format!("openai/vector-{name}"),
            output: body.lines().map(str::to_owned).collect(),
        }
    };
    fixtures("vectors").into_iter().map(session).collect()
}

#[test]
fn every_vector_gives_its_expected_summary() {
    let vectors = fixtures("vectors");
    assert_eq!(vectors.len(), 54);
    for (name, vector) in vectors {
        let vector: Value = serde_json::from_str(&vector).unwrap();
        let body = vector["sse"].as_str().unwrap();
        assert_eq!(summary(body.as_bytes()), vector["expected"], "{name}");
    }
}

#[test]
fn the_chunking_changes_nothing() {
    for (_, vector) in fixtures("vectors") {
        let vector: Value = serde_json::from_str(&vector).unwrap();
        check_every_chunking(vector["sse"].as_str().unwrap().as_bytes());
    }
}
