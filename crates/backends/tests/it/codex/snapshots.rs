//! Snapshots of the events of every recording.

use expect_test::expect_file;

use super::recording::{folder, recordings};

#[test]
fn every_recording_matches_its_event_snapshot() {
    for recording in recordings() {
        let stage = recording.replay().stage;
        let path = folder().join(format!("{}.events.txt", recording.name));
        expect_file![path].assert_eq(&stage.outline);
    }
}
