//! What a search found: its lines by file, with those around them.

use serde_json::{Value, json};
use transcript::{Record, Transcript};

use crate::conversation::{Reach, messages};
use crate::dom::{Node, element};
use crate::{Bodies, View};

/// The lines of each file, as they are shown.
fn shown(result: &Value) -> Vec<String> {
    let call = |seq: u64, event: Value| {
        let mut record = json!({
            "seq": seq, "at": "2026-11-15T09:00:00Z", "sessionId": "s", "responseId": "r", "callId": "c",
        });
        record.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        serde_json::from_value::<Record>(record).unwrap()
    };
    let arguments = json!({ "query": "x" }).to_string();
    let records = [
        call(
            1,
            json!({ "type": "tool_call_start", "toolName": "search_files", "executor": "server" }),
        ),
        call(
            2,
            json!({ "type": "tool_arguments_done", "arguments": arguments, "validation": "not_required" }),
        ),
        call(
            3,
            json!({ "type": "tool_result", "toolName": "search_files", "ok": true, "result": result }),
        ),
    ];
    let view = View::new(transcript::SessionId::new("s"), Bodies::Cut);
    let page = element(
        "page",
        &messages(&view, &Transcript::replay(&records).messages, Reach::End).to_html(),
    );
    let is_file = |node: &Node| node.attribute("class").is_some_and(|it| it.contains("matches"));
    let lines = |file: &Node| {
        let lines: Vec<String> = file.children().iter().map(|it| it.text()).collect();
        lines.join("|")
    };
    page.elements().into_iter().filter(|it| is_file(it)).map(lines).collect()
}

#[test]
fn matches_stand_under_their_file() {
    let found = |path: &str, line: u64| json!({ "path": path, "line": line, "text": " x" });
    let result = json!({ "matches": [found("a", 1), found("a", 9), found("b", 2)] });
    assert_eq!(shown(&result), ["1 x|9 x", "2 x"]);
}

#[test]
fn lines_around_a_match_have_their_numbers() {
    let result = json!({ "matches": [
        { "path": "a", "line": 3, "text": "x", "before": ["one", "two"], "after": ["four"] },
        { "path": "a", "line": 9, "text": "x", "before": ["eight"] },
    ] });
    assert_eq!(shown(&result), ["1one|2two|3x|4four|⋯|8eight|9x"]);
}
