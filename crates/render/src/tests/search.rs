//! Results of search tools: lines by file, with context lines.

use serde_json::{Value, json};
use transcript::{Record, Transcript};

use crate::page::conversation::{Reach, messages};
use crate::testing::dom::{Node, element};
use crate::{Bodies, View};

/// Draws the page of a search with this result.
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

/// Returns the shown lines of each file.
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
fn matches_are_grouped_by_file() {
    let found = |path: &str, line: u64| json!({ "path": path, "line": line, "text": " x" });
    let result = json!({ "matches": [found("a", 1), found("a", 9), found("b", 2)] });
    assert_eq!(shown(&result), ["1 x|9 x", "2 x"]);
}

#[test]
fn context_lines_have_their_numbers() {
    let result = json!({ "matches": [
        { "path": "a", "line": 3, "text": "x", "before": ["one", "two"], "after": ["four"] },
        { "path": "a", "line": 9, "text": "x", "before": ["eight"] },
    ] });
    assert_eq!(shown(&result), ["1one|2two|3x|4four|⋯|8eight|9x"]);
}

/// Output of Claude Code and Pi.
#[test]
fn lines_of_grep_are_grouped_by_file() {
    let output = "src/b.rs:1:let x = 3;\nsrc/b.rs-2-other: 7:\n--\nnote.txt:1:let x\n--\n\
        src/a-2-b.rs-1-fn main() {}\nsrc/a-2-b.rs:2:let x = 1;\nsrc/a-2-b.rs-3-let y = 2;";
    let lines = ["1let x = 3;|2other: 7:", "1let x", "1fn main() {}|2let x = 1;|3let y = 2;"];
    let content = json!({ "mode": "content", "numFiles": 0, "filenames": [], "content": output });
    assert_eq!(shown(&content), lines);
    assert_eq!(shown(&json!(output)), lines);
    assert!(page(&content).text().contains("3 matches"));
    assert_eq!(shown(&json!({ "mode": "content", "content": "2:x = 1;\n7:x" })), ["2x = 1;|7x"]);
    assert_eq!(shown(&json!("No matches found")), [""; 0]);
    let none = json!({ "mode": "content", "filenames": [], "content": "" });
    assert!(page(&none).text().contains("0 matches"));
}

#[test]
fn found_files_are_listed() {
    let found =
        json!({ "mode": "files_with_matches", "filenames": ["note.txt", "a.rs"], "numFiles": 2 });
    let glob = json!({ "filenames": ["note.txt", "a.rs"], "durationMs": 21, "numFiles": 2, "totalMatches": 2 });
    for result in [found, glob] {
        let text = page(&result).text();
        assert!(text.contains("2 filesnote.txta.rs"), "{text}");
    }
}

/// No word is lost at any cut.
#[test]
fn every_prefix_of_grep_output_shows_its_words() {
    let output = "src/b.rs:1:let x\nsrc/b.rs-2-other\n--\nnote.txt:1:let x\n12:3:4\nno line";
    for end in 1..=output.len() {
        let page = page(&json!({ "content": &output[..end] }));
        let is_result = |it: &&Node| it.attribute("id").is_some_and(|it| it.ends_with("-told"));
        let text = page.elements().into_iter().find(is_result).unwrap().text();
        for word in output[..end].split(['\n', ':', '-']) {
            assert!(text.contains(word), "{word} of {:?}", &output[..end]);
        }
    }
}
