//! A program is talked to for days. What hears it forgets what is over, and does not keep what is said.

use serde_json::json;

use super::stage::Stage;
use super::talk::{TURN, command, in_turn};

/// One turn: a command that is asked about, its output, words, and something that nobody knows.
fn play(stage: &mut Stage, turn: &str, round: u64) {
    let (call, text) = (format!("c{round:05}"), format!("m{round:05}"));
    let message = json!({ "type": "agentMessage", "id": text, "text": "Done." });
    stage.notify("item/started", json!({ "turnId": turn, "item": command(&call, "inProgress") }));
    let asked = json!({ "turnId": turn, "itemId": call });
    stage.ask(round, "item/commandExecution/requestApproval", asked);
    stage.allow();
    for _ in 0..20 {
        let delta = json!({ "turnId": turn, "itemId": call, "delta": "a line of output\n" });
        stage.notify("item/commandExecution/outputDelta", delta);
    }
    stage.notify("item/completed", json!({ "turnId": turn, "item": command(&call, "completed") }));
    let delta = json!({ "turnId": turn, "itemId": text, "delta": "Done." });
    stage.notify("item/agentMessage/delta", delta);
    stage.notify("item/completed", json!({ "turnId": turn, "item": message }));
    stage.notify(&format!("news/{round}"), json!({ "turnId": turn }));
}

#[test]
fn what_is_over_is_forgotten() {
    let mut stage = in_turn();
    let mut sizes = Vec::new();
    let mut turn = TURN.to_owned();
    for round in 0..300 {
        play(&mut stage, &turn, round);
        stage.notify("turn/completed", json!({ "turn": { "id": turn, "status": "completed" } }));
        assert!(!stage.is_running(), "after turn {round}");
        sizes.push(stage.size());
        stage.start("go");
        turn = format!("turn-of-{round}");
        stage.respond("turn/start", json!({ "turn": { "id": turn } }));
    }
    assert!(sizes[299] <= sizes[99] + 400, "{}, then {}", sizes[99], sizes[299]);
}

/// A turn of many hours.
#[test]
fn what_a_turn_remembers_of_its_calls_is_bounded() {
    let mut stage = in_turn();
    (0..2500).for_each(|round| play(&mut stage, TURN, round));
    let before = stage.size();
    (2500..3500).for_each(|round| play(&mut stage, TURN, round));
    let after = stage.size();
    assert!(after <= before + 400, "{before}, then {after}");
}
