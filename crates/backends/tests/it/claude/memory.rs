//! A program is talked to for days. What hears it forgets what is over, and does not keep what is said.

use serde_json::json;

use super::recording::{Step, recordings};
use super::stage::Stage;

const FEW: usize = 40;
const MANY: usize = 80;

/// The same with ids of their own, as in another turn.
fn in_round(line: &str, round: usize) -> String {
    let mark = format!("_{round:04}");
    ["toolu", "msg", "req"].iter().fold(line.to_owned(), |line, kind| {
        line.replace(&format!("{kind}_"), &format!("{kind}{mark}_"))
    })
}

/// One turn; false if the program would not go on after it.
fn play(stage: &mut Stage, said: &[String], round: usize) -> bool {
    stage.start(&json!({ "role": "user", "content": "go" }));
    for line in said {
        stage.line(&in_round(line, round));
    }
    if stage.run.is_some() {
        stage.interrupt();
    }
    for _ in 0..8 {
        stage.wake();
    }
    stage.run.is_none() && !stage.has_quit
}

#[test]
fn what_is_over_is_forgotten() {
    let mut compared = 0;
    for recording in recordings() {
        let said = recording.steps.iter().filter_map(|it| match it {
            Step::Said(line) => Some(line.clone()),
            _ => None,
        });
        let said: Vec<String> = said.collect();
        let mut stage = Stage::new();
        let mut sizes = Vec::new();
        while sizes.len() < MANY && play(&mut stage, &said, sizes.len()) {
            sizes.push(stage.size());
        }
        if sizes.len() == MANY {
            let (few, many) = (sizes[FEW], sizes[MANY - 1]);
            assert!(many <= few + few / 20, "{}: {few}, then {many}", recording.name);
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared} recordings");
}
