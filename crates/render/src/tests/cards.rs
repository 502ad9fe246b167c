//! A card shows everything that will run: every argument, both ends of every text, and no character that
//! cannot be seen.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::approvals::{approval_requested, call, card, conversation, result, texts, transcript};
use crate::{export_markdown, is_invisible};

fn question(tool: &str, arguments: &Value, options: Value) -> String {
    let mut events = call(tool, arguments);
    events.push(approval_requested(options));
    card(&transcript(&events)).text()
}

const TOOLS: [&str; 34] = [
    "shell",
    "Bash",
    "bash",
    "exec_command",
    "evil__shell",
    "mcp__evil__Bash",
    "read_file",
    "Read",
    "list_files",
    "LS",
    "edit_file",
    "Edit",
    "MultiEdit",
    "edit",
    "apply_patch",
    "evil__edit_file",
    "write_file",
    "Write",
    "write",
    "NotebookEdit",
    "evil__write_file",
    "search_files",
    "Grep",
    "Glob",
    "http_get",
    "WebFetch",
    "WebSearch",
    "evil__http_get",
    "TodoWrite",
    "update_plan",
    "Task",
    "agents_message",
    "agents_list",
    "somebody_elses",
];

const NAMES: [&str; 40] = [
    "command",
    "cmd",
    "then",
    "cwd",
    "workdir",
    "workspace",
    "path",
    "file_path",
    "filePath",
    "notebook_path",
    "dir",
    "content",
    "text",
    "new_source",
    "old_string",
    "new_string",
    "oldText",
    "newText",
    "edits",
    "patch",
    "input",
    "diff",
    "replace_all",
    "url",
    "query",
    "body",
    "prompt",
    "pattern",
    "glob",
    "todos",
    "plan",
    "items",
    "agent",
    "description",
    "subagent_type",
    "message",
    "run_in_background",
    "dangerouslyDisableSandbox",
    "timeout",
    "limit",
];

/// Generates a value in which each text and number is unique.
fn values() -> impl Strategy<Value = Value> {
    let word = "w[a-z]{10}".prop_map(Value::from);
    let leaf = prop_oneof![4 => word, 1 => (100_000..999_999_u32).prop_map(Value::from)];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let name = prop_oneof![
            prop::sample::select(&["oldText", "newText", "content", "status", "text"][..])
                .prop_map(str::to_owned),
            "x[a-z]{8}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Value::Array),
            prop::collection::hash_map(name, inner, 1..3)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        4 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned),
        1 => "x[a-z]{8}",
    ];
    prop::collection::vec((name, values()), 0..6)
        .prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>()))
}

/// Collects all texts and numbers of a value.
fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|it| leaves(it, found)),
        Value::Object(fields) => fields.values().for_each(|it| leaves(it, found)),
        other => found.push(other.to_string()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_argument_is_shown(tool in prop::sample::select(&TOOLS[..]), arguments in arguments()) {
        let shown = question(tool, &arguments, json!({}));
        let mut all = Vec::new();
        leaves(&arguments, &mut all);
        for leaf in all {
            let number = leaf.parse::<u64>().is_ok();
            // Lines are shown as a range.
            let is_shown = shown.contains(&leaf) || number && shown.contains("lines ");
            prop_assert!(is_shown, "{leaf} of {tool} {arguments} is not in {shown}");
        }
        for name in arguments.as_object().into_iter().flatten().map(|it| it.0) {
            let is_known = NAMES.contains(&name.as_str());
            prop_assert!(is_known || shown.contains(name), "{name} of {tool} is not in {shown}");
        }
    }

    #[test]
    fn no_invisible_character_reaches_a_card(
        tool in prop::sample::select(&TOOLS[..]),
        name in prop::sample::select(&NAMES[..]),
        letter in any::<char>(),
    ) {
        let text = format!("a{letter}b");
        let mut arguments = json!({"path": text, "url": text, "command": text, "content": text, "prompt": text,
            "old_string": "c", "new_string": text, "pattern": text});
        arguments[name] = json!(text);
        arguments[&*text] = json!(text);
        let options = json!({"covers": format!("shell: {text}"), "target": {"path": text, "size": 1, "text": text}});
        for options in [json!({}), options] {
            let shown = question(tool, &arguments, options);
            let is_hidden = |it: char| is_invisible(it) && !matches!(it, '\n' | '\t');
            prop_assert!(!shown.contains(is_hidden), "{letter:?}: {shown}");
        }
    }
}

/// Generates lines of patches, and lines that only look like them.
fn patch_lines() -> impl Strategy<Value = Vec<String>> {
    const BEGINNINGS: [&str; 22] = [
        "",
        " ",
        "+",
        "-",
        "+++ ",
        "--- ",
        "+++ b/",
        "--- a/",
        "@@",
        "@@ ",
        "@@ -1,9 +1,9 @@ ",
        "@@ -1 +1 @@",
        "index ",
        "diff --git ",
        "\\ No newline",
        "\\",
        "*** ",
        "*** Begin Patch",
        "*** End Patch",
        "*** Move to: ",
        "*** Update File: ",
        "rename from ",
    ];
    let ending = prop_oneof![Just(""), Just("\r"), Just("\u{202e}"), Just("\u{200b}\r")];
    let line = (prop::sample::select(&BEGINNINGS[..]), "[a-z;/ \t]{0,12}", ending)
        .prop_map(|(beginning, words, ending)| format!("{beginning}{words}{ending}"));
    prop::collection::vec(line, 1..12)
}

/// Returns a text as a card writes it.
fn written_out(text: &str) -> String {
    let is_marked = |it: char| is_invisible(it) && !matches!(it, '\n' | '\t');
    let letters = text.chars().map(|it| match is_marked(it) {
        true => format!("U+{:04X}", u32::from(it)),
        false => it.to_string(),
    });
    letters.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_line_of_a_patch_is_shown(mut lines in patch_lines(), is_envelope in any::<bool>()) {
        let start = if is_envelope { "*** Begin Patch" } else { "@@ -1 +1 @@\n-a\n+b" };
        lines.insert(0, start.to_owned());
        let patch = lines.join("\n") + "\n";
        let shown = question("x__edit", &json!({ "patch": patch }), json!({}));
        let mut rest = shown.as_str();
        for line in patch.lines().map(written_out) {
            let found = rest.find(&line);
            prop_assert!(found.is_some(), "{line:?} of {patch:?} is not in {rest}");
            rest = &rest[found.unwrap() + line.len()..];
        }
    }

    #[test]
    fn every_invisible_character_of_an_edit_is_marked(
        old in "[ab\n\u{200b}]{0,12}",
        new in "[cd\r\n\u{202e}]{1,12}",
    ) {
        let target = json!({"target": {"path": "p", "size": 1, "text": old}});
        for (tool, arguments, options) in [
            ("Edit", json!({"file_path": "p", "old_string": old, "new_string": new}), json!({})),
            ("write_file", json!({"path": "p", "text": new}), target),
        ] {
            let shown = question(tool, &arguments, options);
            let expected = new.matches(['\r', '\u{202e}']).count();
            let marked = shown.matches("U+202E").count() + shown.matches("U+000D").count();
            prop_assert!(marked >= expected, "{marked} of {expected} in {shown}");
        }
    }
}

#[test]
fn a_card_shows_every_header_line_of_a_patch() {
    let patch =
        "index ; rm -rf ~\n--- a/old.txt\n+++ b/new.txt\n@@ -1 +1 @@ rm\n-a\n+b\n\\ rm -rf /\n";
    let shown = question("x__edit", &json!({ "patch": patch }), json!({}));
    for line in patch.lines() {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
}

#[test]
fn arguments_without_a_view_are_listed() {
    for (tool, arguments, expected) in [
        ("evil__shell", json!({"command": "git status", "then": "rm -rf ~"}), "then = rm -rf ~"),
        ("evil__http_get", json!({"url": "https://a.example", "body": "secret"}), "body = secret"),
        ("evil__write_file", json!({"path": "a", "content": "b", "run": "rm"}), "run = rm"),
        (
            "edit_file",
            json!({"path": "a", "old_string": "b", "new_string": "c", "replace_all": true}),
            "replace_all = true",
        ),
        (
            "WebFetch",
            json!({"url": "https://a.example", "prompt": "what is it"}),
            "prompt = what is it",
        ),
        (
            "Bash",
            json!({"command": "npm test", "dangerouslyDisableSandbox": true}),
            "dangerouslyDisableSandbox = true",
        ),
        (
            "Bash",
            json!({"command": "npm test", "run_in_background": true}),
            "run_in_background = true",
        ),
        ("shell", json!({"command": ["/tmp/bash", "-c", "ls"]}), "$ /tmp/bash -c ls"),
        ("shell", json!({"command": ["rm", "a b"]}), "$ rm 'a b'"),
    ] {
        let shown = question(tool, &arguments, json!({}));
        assert!(shown.contains(expected), "{expected} is not in {shown}");
    }
    let of = |tool: &str| {
        question(
            tool,
            &json!({"path": "notes.txt", "file_path": "/etc/passwd", "old_string": "a", "new_string": "b"}),
            json!({}),
        )
    };
    assert!(of("Edit").starts_with("Edit /etc/passwd") && of("Edit").contains("path = notes.txt"));
    assert!(
        of("edit_file").starts_with("Edit notes.txt")
            && of("edit_file").contains("file_path = /etc/passwd")
    );
}

#[test]
fn a_headline_describes_the_call() {
    let target = |size: Value| json!({"target": {"path": "/w/project/note.txt", "size": size}});
    for (tool, arguments, options, expected) in [
        ("shell", json!({"command": "ls"}), json!({}), "Run a command in project/"),
        (
            "exec_command",
            json!({"cmd": "ls", "workdir": "/tmp"}),
            json!({}),
            "Run a command in /tmp/",
        ),
        (
            "write_file",
            json!({"path": "note.txt", "text": ""}),
            target(json!(3)),
            "Overwrite note.txt",
        ),
        (
            "write_file",
            json!({"path": "note.txt", "text": ""}),
            target(Value::Null),
            "Create note.txt",
        ),
        (
            "Write",
            json!({"file_path": "/w/project/a.txt", "content": ""}),
            json!({}),
            "Write a.txt",
        ),
        (
            "Edit",
            json!({"file_path": "/etc/hosts", "old_string": "a", "new_string": "b"}),
            json!({}),
            "Edit /etc/hosts",
        ),
        ("apply_patch", json!({"patch": "*** Begin Patch"}), json!({}), "Edit files"),
        ("http_get", json!({"url": "https://a.example/b"}), json!({}), "Fetch https://a.example/b"),
        ("evil__shell", json!({"command": "ls"}), json!({}), "Use shell of evil"),
        ("mcp__github__search", json!({}), json!({}), "Use search of github"),
        ("deploy", json!({}), json!({}), "Use deploy"),
        (
            "apply_patch",
            json!({"path": "/w/project/a", "patch": "--- /w/project/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-last\n"}),
            json!({}),
            "Delete a",
        ),
        (
            "apply_patch",
            json!({"path": "/w/project/a", "patch": "--- /w/project/a\n+++ /w/b\n@@ -1 +1 @@\n-a\n+b\n"}),
            json!({}),
            "Move a to /w/b",
        ),
        (
            "apply_patch",
            json!({"path": "/w/project/a", "patch": "--- /w/project/a\n+++ /w/project/a\n@@ -1 +1 @@\n-a\n+b\n"}),
            json!({}),
            "Edit a",
        ),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
            json!({}),
            "Delete a",
        ),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-a\n+b\n*** End Patch"}),
            json!({}),
            "Move a to b",
        ),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Delete File: a\n*** Delete File: b\n*** End Patch"}),
            json!({}),
            "Edit files",
        ),
        ("ExitPlanMode", json!({"plan": "1."}), json!({}), "Leave plan mode and start to work"),
        (
            "network_access",
            json!({"networkApprovalContext": {"host": "a.example", "protocol": "https"}}),
            json!({}),
            "Allow network access to a.example",
        ),
        ("network_access", json!({"command": "ls"}), json!({}), "Allow network access"),
        ("request_permissions", json!({"permissions": {}}), json!({}), "Grant more permissions"),
    ] {
        let mut events = vec![
            json!({"type": "session_created", "agent": "demo", "workspace": "/w/project", "workspaceConfirmed": true, "title": ""}),
        ];
        events.extend(call(tool, &arguments));
        events.push(approval_requested(options));
        let headlines = texts(&card(&transcript(&events)), "card-head").join("");
        // The count is hidden if there is one card.
        let headline = headlines.strip_suffix("1 of 1Next").unwrap_or(&headlines);
        assert_eq!(headline, expected, "{tool} {arguments}");
    }
}

/// Neither line breaks nor a long line move the end out of view.
#[test]
fn the_end_of_a_long_command_is_visible() {
    let breaks = format!("git status{}rm -rf ~", "\n".repeat(1100));
    let long = format!("git status {} ; rm -rf ~", "x".repeat(100_000));
    let wide = format!("git status {} ; rm -rf ~", " ".repeat(5000));
    for (command, hidden) in
        [(breaks, "1,083 lines hidden"), (long, "most of 100 KB hidden"), (wide, "3 KB hidden")]
    {
        let shown = question("shell", &json!({ "command": command }), json!({}));
        for part in ["git status", "rm -rf ~", hidden, "Show all"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
    }
}

#[test]
fn unreadable_arguments_show_both_ends() {
    for arguments in
        ["{\"command\": ".to_owned(), format!("[\"start\",{} \"the end\"]", "1,".repeat(20_000))]
    {
        let mut events = call("shell", &json!({}));
        events[1]["arguments"] = json!(arguments);
        events.push(approval_requested(json!({})));
        let shown = card(&transcript(&events)).text();
        assert!(shown.contains(&arguments[..8]), "{shown}");
        assert!(arguments.len() < 100 || shown.contains("\"the end\"]"), "{shown}");
    }
}

#[test]
fn the_block_links_to_the_card() {
    let mut events = call("shell", &json!({"command": "ls"}));
    events.push(approval_requested(json!({})));
    let waiting = transcript(&events);
    assert_eq!(texts(&conversation(&waiting), "approval"), [" Waiting for your decisionShow"]);
    assert!(texts(&conversation(&waiting), "buttons").is_empty());
}

#[test]
fn form_answers_are_shown_as_text() {
    let mut events = call("AskUserQuestion", &json!({"questions": []}));
    let form = json!([{"question": "Which colour?", "options": [{"label": "Blue"}]}]);
    events.push(approval_requested(json!({ "form": form })));
    let answers = json!({"answers": {"Which colour?": "Blue"}}).to_string();
    events.push(json!({"type": "tool_approval_resolved", "callId": "r.1", "decision": "accepted", "scope": "once",
                       "arguments": answers, "by": "user"}));
    events.push(result(true, json!(null)));
    let transcript = transcript(&events);
    assert_eq!(texts(&conversation(&transcript), "answered"), ["You answeredWhich colour? Blue"]);
    let markdown = export_markdown(&transcript);
    assert!(markdown.contains("Answered:\n\n- Which colour? **Blue**"), "{markdown}");
    assert!(!markdown.contains("proposed was"), "{markdown}");
}

#[test]
fn calls_that_never_ran_have_no_duration() {
    let mut events = call("shell", &json!({"command": "ls"}));
    events.push(approval_requested(json!({})));
    events.push(json!({"type": "tool_approval_resolved", "callId": "r.1", "decision": "withdrawn", "by": "run"}));
    events.push(json!({"type": "tool_result", "callId": "r.1", "toolName": "shell", "ok": false,
                       "error": {"code": "tool_interrupted", "message": "stopped"}}));
    events.push(json!({"type": "run_finish", "status": "cancelled", "durationMs": 3200}));
    let transcript = transcript(&events);
    assert_eq!(texts(&conversation(&transcript), "called"), ["shell "]);
    assert!(!export_markdown(&transcript).contains("0ms"));
}

/// A symbolic link is shown with the file that will be written.
#[test]
fn the_target_of_a_symbolic_link_is_named() {
    let target = json!({"target": {"path": "/home/me/.bashrc", "size": 3}});
    for (tool, arguments, headline) in [
        (
            "Write",
            json!({"file_path": "/w/project/a", "content": "x"}),
            "Overwrite /home/me/.bashrc",
        ),
        ("write", json!({"path": "./a", "content": "x"}), "Overwrite /home/me/.bashrc"),
        (
            "Edit",
            json!({"file_path": "/w/project/a", "old_string": "b", "new_string": "c"}),
            "Edit /home/me/.bashrc",
        ),
    ] {
        let text = question(tool, &arguments, target.clone());
        assert!(text.contains(headline) && text.contains("leads to /home/me/.bashrc"), "{text}");
    }
    let same = json!({"target": {"path": "/w/project/a", "size": 3}});
    let text = question("write", &json!({"path": "./a", "content": "x"}), same);
    assert!(!text.contains("leads to"), "{text}");
}

/// A shell without a folder argument ignores one of that name.
#[test]
fn an_ignored_folder_is_not_in_the_headline() {
    for tool in ["bash", "Bash"] {
        let text = question(tool, &json!({"command": "ls", "cwd": "/tmp"}), json!({}));
        assert!(text.starts_with("Run a command1") && text.contains("cwd = /tmp"), "{text}");
    }
}
