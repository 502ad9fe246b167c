//! A program is talked to for days. What hears it forgets what is over, and does not keep what is said.

use serde_json::json;

use super::stage::Stage;

/// One answer with a call, and what follows it.
fn play(stage: &mut Stage, round: u32) {
    stage.start("go");
    stage.answer_states();
    stage.say(json!({ "type": "agent_start" }));
    let id = format!("c{round:05}");
    let call = json!({ "type": "toolCall", "id": id, "name": "bash", "arguments": {} });
    let message =
        |content, stop| json!({ "role": "assistant", "content": [content], "stopReason": stop });
    stage.say(json!({ "type": "message_start", "message": { "role": "assistant" } }));
    stage.say(json!({ "type": "message_end", "message": message(call, "toolUse") }));
    let run =
        |kind: &str| json!({ "type": kind, "toolCallId": id, "toolName": "bash", "args": {} });
    stage.say(run("tool_execution_start"));
    let mut end = run("tool_execution_end");
    end["result"] = json!({ "content": [{ "type": "text", "text": "out" }] });
    stage.say(end);
    stage.say(json!({ "type": "message_start", "message": { "role": "assistant" } }));
    let text = json!({ "type": "text", "text": "Done." });
    stage.say(json!({ "type": "message_end", "message": message(text, "stop") }));
    stage.say(json!({ "type": format!("news_{round}") }));
    stage.say(json!({ "type": "agent_end", "messages": [] }));
    for _ in 0..4 {
        stage.wake();
        stage.answer_states();
    }
}

#[test]
fn what_is_over_is_forgotten() {
    let mut stage = Stage::new(false);
    let mut sizes = Vec::new();
    for round in 0..300 {
        play(&mut stage, round);
        assert!(stage.is_idle());
        sizes.push(stage.size());
    }
    assert!(sizes[299] <= sizes[99] + 400, "{}, then {}", sizes[99], sizes[299]);
}
