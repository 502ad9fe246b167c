//! Structured data of programs: the changes of an edit, and questions to a person.

use serde_json::{Value, json};
use transcript::{Record, Transcript};

use crate::page::chrome::Chrome;
use crate::page::conversation::{Reach, messages};
use crate::testing::dom::{Node, element};
use crate::{Bodies, View};

/// Draws the page of a call to this tool and of further events.
fn page(tool: &str, arguments: &Value, then: &[Value]) -> Node {
    let first = [
        json!({ "type": "run_start", "agent": "claude", "trigger": "user" }),
        json!({ "type": "tool_call_start", "toolName": tool, "executor": "agent" }),
        json!({ "type": "tool_arguments_done", "arguments": arguments.to_string(),
            "validation": "not_required" }),
    ];
    let records = (1_u64..).zip(first.iter().chain(then)).map(|(seq, event)| {
        let mut record = json!({
            "seq": seq, "at": "2026-11-15T09:00:00Z", "sessionId": "s", "responseId": "r", "callId": "c",
        });
        record.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        serde_json::from_value::<Record>(record).unwrap()
    });
    let view = View::new(transcript::SessionId::new("s"), Bodies::Cut);
    let transcript = Transcript::replay(&records.collect::<Vec<_>>());
    let dock = Chrome::new(&view, &transcript).dock;
    let list = messages(&view, &transcript.messages, Reach::End);
    element("page", &format!("{}{}", list.to_html(), dock.to_html()))
}

fn texts(page: &Node, class: &str) -> Vec<String> {
    let is_it = |it: &&Node| {
        it.attribute("class").is_some_and(|it| it.split(' ').any(|word| word == class))
    };
    page.elements().into_iter().filter(is_it).map(Node::text).collect()
}

fn result(tool: &str, result: &Value) -> Value {
    json!({ "type": "tool_result", "toolName": tool, "ok": true, "result": result })
}

#[test]
fn an_edit_shows_reported_hunks_or_its_arguments() {
    let arguments =
        json!({ "file_path": "/w/note.txt", "old_string": "beta", "new_string": "BETA" });
    let hunk = json!({ "oldStart": 7, "oldLines": 3, "newStart": 7, "newLines": 3,
        "lines": [" alpha", "-beta", "+BETA", " gamma"] });
    let reported = json!({ "filePath": "/w/note.txt", "structuredPatch": [hunk] });
    let edit = page("Edit", &arguments, &[result("Edit", &reported)]);
    let shown = texts(&edit, "diff").concat();
    assert!(shown.contains("gamma"), "{shown}");
    assert!(edit.elements().iter().any(|it| it.attribute("data-line") == Some("7")), "numbered");
    for reported in [json!("done"), json!({ "structuredPatch": [{ "lines": 3 }] })] {
        let shown = texts(&page("Edit", &arguments, &[result("Edit", &reported)]), "diff").concat();
        assert!(shown.contains("BETA") && !shown.contains("gamma"), "{shown}");
    }
}

#[test]
fn an_edit_of_pi_shows_context_lines() {
    let arguments =
        json!({ "path": "note.txt", "edits": [{ "oldText": "beta", "newText": "BETA" }] });
    let diff = "   ...\n 11 alpha\n-12 beta\n+12 BETA\n 13 gamma";
    let words = "Successfully replaced 1 block(s) in note.txt.";
    let reported = json!({ "content": words, "details": { "diff": diff, "firstChangedLine": 12 } });
    let edit = page("edit", &arguments, &[result("edit", &reported)]);
    assert!(texts(&edit, "diff").concat().contains("gamma"));
    assert!(edit.elements().iter().any(|it| it.attribute("data-line") == Some("13")), "numbered");
    assert!(!texts(&edit, "body").iter().any(|it| it.trim() == words), "the change says it");
}

#[test]
fn a_new_file_is_shown_whole_and_a_changed_one_as_diff() {
    let arguments = json!({ "file_path": "/w/new", "content": "one line" });
    let made = json!({ "type": "create", "content": "one line", "structuredPatch": [] });
    let drawn = page("Write", &arguments, &[result("Write", &made)]);
    assert_eq!(texts(&drawn, "body").iter().filter(|it| it.trim() == "one line").count(), 1);
    let hunk = json!({ "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1,
        "lines": ["-no line", "+one line"] });
    let changed = json!({ "type": "update", "content": "one line", "structuredPatch": [hunk] });
    let drawn = page("Write", &arguments, &[result("Write", &changed)]);
    assert!(texts(&drawn, "diff").concat().contains("no line"));
}

fn approval_requested(form: &Value) -> Value {
    json!({ "type": "tool_approval_requested",
        "options": { "scopes": ["once"], "canEdit": true, "form": form } })
}

#[test]
fn questions_of_every_program_are_a_form() {
    let questions = json!([
        { "question": "Which <colour>?", "header": "Colour", "multiSelect": false,
          "options": [{ "label": "Red", "description": "warm" }, { "label": "Blue" }] },
        { "question": "Which fruits?", "multiSelect": true, "options": [{ "label": "Plum" }] },
        { "question": "Why?" },
    ]);
    for form in [questions.clone(), json!({ "questions": questions })] {
        let drawn = page("AskUserQuestion", &json!({}), &[approval_requested(&form)]);
        let inputs = |it: &Node| {
            let kinds = it.elements().into_iter().filter_map(|it| it.attribute("type"));
            kinds.map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let fields =
            drawn.elements().into_iter().filter(|it| it.attribute("data-question").is_some());
        let fields: Vec<(String, String)> = fields
            .map(|it| (it.attribute("data-question").unwrap().to_owned(), inputs(it)))
            .collect();
        let expected = [
            ("Which <colour>?", "radio radio text"),
            ("Which fruits?", "checkbox text"),
            ("Why?", "text"),
        ];
        let expected = expected.map(|(question, kinds)| (question.to_owned(), kinds.to_owned()));
        // Once, in the card above the composer.
        assert_eq!(fields, expected);
    }
}

#[test]
fn an_unknown_question_is_drawn_like_any_call() {
    for form in [json!([]), json!({ "message": "Sign in?" }), json!([{ "header": "no words" }])] {
        let drawn = page("AskUserQuestion", &json!({}), &[approval_requested(&form)]);
        assert!(texts(&drawn, "card").concat().contains("Allow once"), "{form}");
    }
}

#[test]
fn answers_are_shown_below_the_call() {
    let answers = json!({ "answers": { "Which colour?": "Blue" } }).to_string();
    let form = json!([{ "question": "Which colour?", "options": [] }]);
    let resolved = json!({ "type": "tool_approval_resolved", "decision": "accepted", "by": "user",
        "arguments": answers });
    let drawn = page("AskUserQuestion", &json!({}), &[approval_requested(&form), resolved]);
    assert_eq!(texts(&drawn, "decision"), ["You answeredWhich colour? Blue"]);
}
