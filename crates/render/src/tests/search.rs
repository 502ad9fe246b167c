//! What a search found: its lines by file, with those around them.

use serde_json::{Value, json};
use transcript::{Record, Transcript};

use crate::page::conversation::{Reach, messages};
use crate::testing::dom::{Node, element};
use crate::{Bodies, View};

/// The page of a search with this result.
fn page(result: &Value) -> Node {
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
    element("page", &messages(&view, &Transcript::replay(&records).messages, Reach::End).to_html())
}

/// The lines of each file, as they are shown.
fn shown(result: &Value) -> Vec<String> {
    let page = page(result);
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

/// As Claude Code and Pi were seen to tell it.
#[test]
fn lines_as_grep_prints_them_stand_under_their_file() {
    let said = "src/b.rs:1:let x = 3;\nsrc/b.rs-2-other: 7:\n--\nnote.txt:1:let x\n--\n\
        src/a-2-b.rs-1-fn main() {}\nsrc/a-2-b.rs:2:let x = 1;\nsrc/a-2-b.rs-3-let y = 2;";
    let lines = ["1let x = 3;|2other: 7:", "1let x", "1fn main() {}|2let x = 1;|3let y = 2;"];
    let content = json!({ "mode": "content", "numFiles": 0, "filenames": [], "content": said });
    assert_eq!(shown(&content), lines);
    assert_eq!(shown(&json!(said)), lines);
    assert!(page(&content).text().contains("3 matches"));
    assert_eq!(shown(&json!({ "mode": "content", "content": "2:x = 1;\n7:x" })), ["2x = 1;|7x"]);
    assert_eq!(shown(&json!("No matches found")), [""; 0]);
    let none = json!({ "mode": "content", "filenames": [], "content": "" });
    assert!(page(&none).text().contains("0 matches"));
}

#[test]
fn files_that_were_found_are_listed() {
    let found =
        json!({ "mode": "files_with_matches", "filenames": ["note.txt", "a.rs"], "numFiles": 2 });
    let glob = json!({ "filenames": ["note.txt", "a.rs"], "durationMs": 21, "numFiles": 2, "totalMatches": 2 });
    for result in [found, glob] {
        let text = page(&result).text();
        assert!(text.contains("2 filesnote.txta.rs"), "{text}");
    }
}

/// However its lines are made, no word is lost.
#[test]
fn every_beginning_of_what_grep_prints_shows_its_words() {
    let said = "src/b.rs:1:let x\nsrc/b.rs-2-other\n--\nnote.txt:1:let x\n12:3:4\nno line";
    for end in 1..=said.len() {
        let page = page(&json!({ "content": &said[..end] }));
        let is_told = |it: &&Node| it.attribute("id").is_some_and(|it| it.ends_with("-told"));
        let text = page.elements().into_iter().find(is_told).unwrap().text();
        for word in said[..end].split(['\n', ':', '-']) {
            assert!(text.contains(word), "{word} of {:?}", &said[..end]);
        }
    }
}
