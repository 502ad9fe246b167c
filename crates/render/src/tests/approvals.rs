//! Approval requests: their content, their completeness, and the page after a decision.

use serde_json::{Value, json};
use transcript::{Record, SessionId, Transcript};

use crate::page::chrome::Chrome;
use crate::page::conversation::{Reach, messages};
use crate::testing::dom::{Node, element};
use crate::{Bodies, BodyKind, View, export_markdown, whole_body, whole_text};

pub(super) fn transcript(events: &[Value]) -> Transcript {
    replay(Transcript::default(), events)
}

/// Applies a run of these events, one second apart.
pub(super) fn replay(mut transcript: Transcript, events: &[Value]) -> Transcript {
    let start = json!({"type": "run_start", "agent": "demo", "trigger": "user"});
    for (idx, event) in [&start].into_iter().chain(events).enumerate() {
        let mut record = event.clone();
        record["seq"] = json!(idx + 1);
        record["at"] = json!(format!("2026-11-15T10:00:{idx:02}.000Z"));
        record["sessionId"] = json!("s");
        record["responseId"] = json!("r");
        transcript.apply(&serde_json::from_value::<Record>(record).expect("a record"));
    }
    transcript
}

pub(super) fn call(tool: &str, arguments: &Value) -> Vec<Value> {
    vec![
        json!({"type": "tool_call_start", "callId": "r.1", "toolName": tool, "executor": "server"}),
        json!({"type": "tool_arguments_done", "callId": "r.1", "arguments": arguments.to_string(),
               "summary": "as proposed", "validation": "pending"}),
    ]
}

pub(super) fn approval_requested(options: Value) -> Value {
    let mut all = json!({"scopes": ["once", "session", "always"], "canEdit": true});
    all.as_object_mut().unwrap().extend(options.as_object().cloned().unwrap_or_default());
    json!({"type": "tool_approval_requested", "callId": "r.1", "options": all})
}

pub(super) fn result(ok: bool, result: Value) -> Value {
    json!({"type": "tool_result", "callId": "r.1", "toolName": "", "ok": ok, "result": result})
}

fn view() -> View {
    View::new(SessionId::new("s"), Bodies::Cut)
}

/// Returns the texts of the elements of a class, in order.
pub(super) fn texts(page: &Node, class: &str) -> Vec<String> {
    let has_class = |node: &&&Node| {
        node.attribute("class").is_some_and(|it| it.split(' ').any(|it| it == class))
    };
    page.elements().iter().filter(has_class).map(|it| it.text()).collect()
}

pub(super) fn conversation(transcript: &Transcript) -> Node {
    element("page", &messages(&view(), &transcript.messages, Reach::End).to_html())
}

pub(super) fn card(transcript: &Transcript) -> Node {
    element("page", &Chrome::new(&view(), transcript).dock.to_html())
}

fn changed(tool: &str, proposed: &Value, ran: &Value) -> Transcript {
    let mut events = call(tool, proposed);
    events.push(approval_requested(json!({})));
    events.push(json!({"type": "tool_approval_resolved", "callId": "r.1", "decision": "accepted",
                       "scope": "once", "arguments": ran.to_string(), "by": "user"}));
    events.push(result(true, json!(null)));
    transcript(&events)
}

#[test]
fn edited_arguments_replace_the_proposed_ones() {
    let (proposed, ran) = (json!({"command": "rm -r build"}), json!({"command": "ls build"}));
    for tool in ["shell", "other_tool"] {
        let transcript = changed(tool, &proposed, &ran);
        let page = conversation(&transcript);
        for class in ["about", "tooltip"] {
            let shown = texts(&page, class).concat();
            assert!(
                shown.contains("ls build") && !shown.contains("rm -r"),
                "{tool} {class}: {shown}"
            );
        }
        let inside = texts(&page, "inside").concat();
        assert!(inside.contains("ls build") && !inside.contains("rm -r"), "{tool}: {inside}");
        let decision = texts(&page, "decision").concat();
        assert!(decision.contains("see what was proposed") && decision.contains("rm -r build"));

        let markdown = export_markdown(&transcript);
        let (first, rest) = markdown.split_once("proposed was").unwrap();
        assert!(first.contains("ls build") && !first.contains("rm -r"), "{markdown}");
        assert!(rest.contains("rm -r build"), "{markdown}");

        let call = transcript.messages[0].run().unwrap().calls().next().unwrap();
        assert_eq!(whole_text(call, BodyKind::Arguments), ran.to_string());
        assert_eq!(whole_text(call, BodyKind::Proposed), proposed.to_string());
    }
}

/// An agent's text cannot move the command out of view.
#[test]
fn the_command_precedes_the_agent_s_reason() {
    let long = "word ".repeat(2000);
    let mut events = vec![
        json!({"type": "step_start", "index": 0}),
        json!({"type": "text_done", "partId": "r.0", "text": long}),
    ];
    events.extend(call("shell", &json!({"command": "rm -r build"})));
    events.push(approval_requested(json!({"reason": "Need to `clean` up"})));
    let text = card(&transcript(&events)).text();
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words:?} in {text}"));
    assert!(place("rm -r build") < place("Need to clean up"));
    assert!(place("Need to clean up") < place("word word"));
    assert!(place("word word") < place("Allow once"));
}

#[test]
fn a_card_describes_the_scope_of_a_lasting_decision() {
    let covered = |tool: &str, covers: &str| {
        let mut events = call(tool, &json!({}));
        events.push(approval_requested(json!({"covers": covers})));
        texts(&card(&transcript(&events)), "covers").concat()
    };
    let covers = |tool: &str, calls: Value| {
        json!({"agent": "demo", "workspace": "/w", "tool": tool, "calls": calls}).to_string()
    };
    let command = |options: Value| json!({"command": {"text": "rm -r build", "options": options}});
    let both = "“Session” and “Always” apply to";
    for (tool, calls, words) in [
        ("shell", command(json!({})), "exactly this command."),
        (
            "Bash",
            command(json!({"dangerouslyDisableSandbox": true, "cwd": "/x", "pty": 1})),
            "exactly this command, run in /x, outside the sandbox, with pty = 1.",
        ),
        ("write_file", json!({"folder": "src"}), "write_file for any file directly in src/."),
        ("Edit", json!({"folder": "."}), "Edit for any file directly in the workspace folder."),
        (
            "http_get",
            json!({"origin": "https://a.example"}),
            "http_get for any address of https://a.example.",
        ),
        ("Deploy", json!("all"), "every call of Deploy, whatever its arguments."),
    ] {
        assert_eq!(covered(tool, &covers(tool, calls)), format!("{both} {words}"));
    }
    assert!(covered("shell", "shell: rm -r build").contains("earlier version"));
}

#[test]
fn a_call_allowed_by_a_grant_names_the_grant() {
    let covers = json!({"agent": "demo", "workspace": "/w", "tool": "shell", "calls": {"command": {"text": "make"}}});
    for (scope, words) in [("session", "for this session"), ("always", "always")] {
        let mut events = call("shell", &json!({"command": "make"}));
        events.push(json!({"type": "tool_granted", "callId": "r.1", "scope": scope, "covers": covers.to_string()}));
        let text = conversation(&transcript(&events)).text();
        let line = format!("Allowed by your rule: {words}, exactly this command");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn a_card_shows_the_file_that_would_be_overwritten() {
    let question = |target: Value| {
        let mut events = call("write_file", &json!({"path": "a.txt", "text": "one\ntwo\n"}));
        events.push(approval_requested(json!({ "target": target })));
        card(&transcript(&events))
    };
    let new = question(json!({"path": "/w/a.txt"}));
    assert!(new.text().contains("Create /w/a.txt") && new.text().contains("A new file, 2 lines"));
    let there = question(json!({"path": "/w/a.txt", "size": 9, "text": "one\nthree\n"}));
    assert!(there.text().contains("Overwrite /w/a.txt"), "{}", there.text());
    assert!(there.text().contains("Overwrites the existing file"));
    assert_eq!(texts(&there, "diff-removed").concat(), "-three");
    assert_eq!(texts(&there, "diff-added").concat(), "+two");
    let long = question(json!({"path": "/w/a.txt", "size": 3_400_000}));
    assert!(long.text().contains("(3.4 MB) with 2 lines"), "{}", long.text());
}

#[test]
fn a_denied_call_counts_as_denied_without_waiting_time() {
    let mut events = call("shell", &json!({"command": "ls"}));
    events.push(approval_requested(json!({})));
    events.push(json!({"type": "tool_approval_resolved", "callId": "r.1", "decision": "rejected", "by": "user"}));
    events.push(json!({"type": "tool_result", "callId": "r.1", "toolName": "shell", "ok": false,
                       "error": {"code": "tool_denied", "message": "no"}}));
    events.push(json!({"type": "run_finish", "status": "completed", "durationMs": 3200}));
    let page = conversation(&transcript(&events));
    assert_eq!(texts(&page, "words"), ["1 call denied · 2.2s · waited 1.0s for you"]);
    assert!(texts(&page, "failed").is_empty());
}

#[test]
fn a_long_file_can_be_opened_from_its_view() {
    let content = "a line of the file\n".repeat(2000);
    let mut events = call("read_file", &json!({"path": "long.txt"}));
    events.push(result(true, json!({ "content": content })));
    let page = conversation(&transcript(&events));
    let links = page.elements().into_iter().filter(|it| it.name() == "a");
    let link = links.into_iter().find(|it| it.text().starts_with("Show all (")).unwrap();
    let address = link.attribute("href").unwrap();
    assert!(address.contains("stream=told"), "{address}");

    let whole = replay(Transcript::whole(), &events);
    let call = whole.messages[0].run().unwrap().calls().next().unwrap();
    assert_eq!(whole_text(call, BodyKind::ResultView), content);
}

#[test]
fn a_listed_folder_shows_its_entries() {
    let entries =
        json!([{"name": "src", "kind": "folder"}, {"name": "a.txt", "kind": "file", "size": 12}]);
    let mut events = call("list_files", &json!({}));
    events.push(result(true, json!({"path": ".", "entries": entries, "total": 2})));
    let shown = texts(&conversation(&transcript(&events)), "listed").concat();
    assert_eq!(shown, "src/a.txt12 B");
}

/// Long arguments show beginning and end, and can be seen and edited completely.
#[test]
fn long_arguments_can_be_seen_completely() {
    for n in [10, 1500, 5000] {
        let text: String = (0..n).map(|it| format!("line {it} of it;\n")).collect();
        let last = format!("line {} of it;", n - 1);
        let over = json!({"target": {"path": "/w/a.txt", "size": 4, "text": "old\n"}});
        let long = json!({"target": {"path": "/w/a.txt", "size": 4_000_000}});
        let proposed_calls = [
            ("shell", json!({"command": text}), json!({})),
            ("write_file", json!({"path": "a.txt", "text": text}), over),
            ("write_file", json!({"path": "a.txt", "text": text}), long),
            (
                "write_file",
                json!({"path": "a.txt", "text": text}),
                json!({"target": {"path": "/w/a.txt"}}),
            ),
            (
                "Edit",
                json!({"file_path": "a.txt", "old_string": "x", "new_string": text}),
                json!({}),
            ),
            ("other_tool", json!({"query": text}), json!({})),
        ];
        for (tool, arguments, options) in proposed_calls {
            let mut events = call(tool, &arguments);
            events.push(approval_requested(options));
            let page = card(&transcript(&events));
            let when = format!("{tool}, {n} lines");
            assert!(page.text().contains("line 3 of it;"), "{when}");
            assert!(page.text().contains(&last), "{when}: the end is in view");
            let links = page.elements().into_iter().filter(|it| it.has_class("show-all"));
            let cut = links.filter_map(|it| it.attribute("href")).collect::<Vec<_>>();
            assert_eq!(cut.is_empty(), n == 10, "{when}");

            let whole = replay(Transcript::whole(), &events);
            let message = &whole.messages[0];
            let call = message.run().unwrap().calls().next().unwrap();
            let body = |kind| element("b", &whole_body(&SessionId::new("s"), message, call, kind));
            for link in cut {
                let kind = [BodyKind::Approval, BodyKind::Proposed];
                let kind = kind.into_iter().find(|it| link.ends_with(it.as_str())).unwrap();
                assert!(body(kind).text().contains(&last), "{when}: {link}");
            }
            let changed: Value = serde_json::from_str(&body(BodyKind::Edit).text()).unwrap();
            assert_eq!(changed, arguments, "{when}");
        }
    }
}

#[test]
fn an_overwritten_long_file_shows_its_diff() {
    let old: String = (0..1000).map(|it| format!("line {it} of the file\n")).collect();
    let new = old.replace("line 500 ", "a line ");
    let mut events = call("write_file", &json!({"path": "a.txt", "text": new}));
    events.push(approval_requested(
        json!({"target": {"path": "/w/a.txt", "size": old.len(), "text": old}}),
    ));
    let page = card(&transcript(&events));
    assert!(page.text().contains("Overwrites the existing file"));
    assert_eq!(texts(&page, "diff-removed"), ["-line 500 of the file"]);
    assert_eq!(texts(&page, "diff-added"), ["+a line of the file"]);
    assert_eq!(texts(&page, "show-all"), [""; 0]);
}

/// The last notice explains the wait, until text follows it.
#[test]
fn the_status_line_shows_the_last_notice() {
    let now = |events: &[Value]| {
        let now = Chrome::new(&view(), &transcript(events)).now.to_html();
        texts(&element("page", &now), "words").concat()
    };
    let retry =
        "The model service failed (429). Claude Code tries again in 5.0 s (attempt 1 of 10).";
    let events = [
        json!({"type": "step_start", "index": 0}),
        json!({"type": "notice", "level": "info", "text": retry}),
        json!({"type": "text_start", "partId": "r.1"}),
    ];
    assert_eq!(now(&events[..1]), "Waiting for demo");
    assert_eq!(now(&events[..2]), format!("Waiting for demo · {retry}"));
    assert_eq!(now(&events), "Writing");
}

#[test]
fn a_retried_call_shows_error_and_duration() {
    let mut events = call("SearchEntities", &json!({"q": "lamp"}));
    let error = json!({"code": "tool_error", "message": "the index is busy"});
    events.push(json!({"type": "tool_retry", "callId": "r.1", "attempt": 2, "maxAttempts": 3, "error": error}));
    let page = conversation(&transcript(&events));
    // In the activity line and in the block.
    assert_eq!(texts(&page, "retrying"), ["⟳ Retrying (2/3)"; 2]);
    assert_eq!(texts(&page, "attempts"), ["Before attempt 2 of 3: the index is busy tool_error"]);
    let mut result = result(true, json!("found"));
    result["durationMs"] = json!(250);
    events.push(result);
    let page = conversation(&transcript(&events));
    assert_eq!(texts(&page, "called"), ["SearchEntities (250ms)"]);
    assert_eq!(texts(&page, "attempts").len(), 1, "also after its end");
}

pub(super) fn attributes<'a>(page: &'a Node, name: &str) -> Vec<&'a str> {
    page.elements().iter().filter_map(|it| it.attribute(name)).collect()
}

#[test]
fn uneditable_calls_can_be_denied_with_a_correction() {
    for can_edit in [true, false] {
        let mut events = call("shell", &json!({"command": "ls"}));
        events.push(approval_requested(json!({"canEdit": can_edit})));
        let page = card(&transcript(&events));
        let actions = attributes(&page, "data-action");
        assert_eq!(actions.contains(&"correct"), !can_edit);
        let title = if can_edit { "Edit before running" } else { "Suggest a correction" };
        assert!(texts(&page, "edit")[0].starts_with(title));
        assert_eq!(texts(&page, "edited").len(), 1);
    }
}

#[test]
fn a_server_s_schema_becomes_a_form() {
    let schema = json!({"type": "object", "required": ["name", "colour"], "properties": {
        "name": {"type": "string", "title": "Your <name>", "description": "As on the door"},
        "mail": {"type": "string", "format": "email"},
        "age": {"type": "integer", "default": 7},
        "colour": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["Mo", "Tu"]}},
        "sure": {"type": "boolean", "default": true},
    }});
    let form = json!({"message": "Who are you?", "requestedSchema": schema});
    let mut events = call("elicitation", &json!({"serverName": "door"}));
    events.push(approval_requested(json!({"canEdit": false, "form": form})));
    let page = card(&transcript(&events));
    let fields = attributes(&page, "data-question");
    assert_eq!(fields, ["name", "mail", "age", "colour", "size", "days", "sure"]);
    let kinds = attributes(&page, "data-kind");
    assert_eq!(kinds, ["string", "string", "number", "string", "string", "array", "boolean"]);
    assert_eq!(attributes(&page, "data-optional").len(), 5);
    assert_eq!(texts(&page, "why"), ["Who are you?"]);
    for words in ["Your <name>", "As on the door", "Red", "Small", "Tu", "Yes"] {
        assert!(page.text().contains(words), "{words}");
    }
    assert!(attributes(&page, "data-action").contains(&"answer"));
}

/// Only web addresses become links, and the message is escaped.
#[test]
fn a_server_s_url_is_a_link_only_to_the_web() {
    for (url, is_link) in [("https://a.example/<b>", true), ("javascript:alert(1)", false)] {
        let mut events = call("elicitation", &json!({}));
        events.push(approval_requested(json!({"form": {"message": "Sign in", "url": url}})));
        let page = card(&transcript(&events));
        assert_eq!(attributes(&page, "href").contains(&url), is_link, "{url}");
        assert!(page.text().contains(url));
    }
}
