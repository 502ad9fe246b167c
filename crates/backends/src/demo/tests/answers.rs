//! Final answers of the demo agent, without the steps before them.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use transcript::{ErrorCode, ErrorInfo};

use super::stage::{ask, called, play, play_with, result, succeeded};
use crate::{Pace, ToolOutcome};

#[test]
fn help() {
    check_answer(
        ask("help"),
        expect![[r#"
            I have no model behind me, only rules, but the tools I use are real. Try one of these:

            - `what time is it in Paris and Tokyo`: two calls at once
            - `list the files` or `list files in src`
            - `read README.md`
            - `search for TODO` or `find "some words" in docs`
            - `run ls -l`: all that follows *run* is a command, and you may be asked before it runs
            - `write "some words" to notes.txt`: asks you before it writes
            - `list the agents`: who else is there
            - `note: tea is ready`: puts a note into the conversation
            - `ask claude: what is in this folder?`, or `ask claude in the background: ...`: asks another agent
            - `think about breakfast`: thoughts first, then the answer
            - `tell me a story`: a long answer, good for trying *Stop*
            - `write a report about tea`: headings, a table, a list and code
            - `break`: fails the way a model service does
            - `help`: this list

            You can ask for several things at once, such as `list the files, then read README.md`."#]],
    );
    check_answer(
        ask("make me a sandwich"),
        expect![[r#"
            I did not understand that. I have no model behind me, only rules, but the tools I use are real. Try one of these:

            - `what time is it in Paris and Tokyo`: two calls at once
            - `list the files` or `list files in src`
            - `read README.md`
            - `search for TODO` or `find "some words" in docs`
            - `run ls -l`: all that follows *run* is a command, and you may be asked before it runs
            - `write "some words" to notes.txt`: asks you before it writes
            - `list the agents`: who else is there
            - `note: tea is ready`: puts a note into the conversation
            - `ask claude: what is in this folder?`, or `ask claude in the background: ...`: asks another agent
            - `think about breakfast`: thoughts first, then the answer
            - `tell me a story`: a long answer, good for trying *Stop*
            - `write a report about tea`: headings, a table, a list and code
            - `break`: fails the way a model service does
            - `help`: this list

            You can ask for several things at once, such as `list the files, then read README.md`."#]],
    );
    check_answer(
        ask("what time is it, and fix the bug"),
        expect![[r#"
        It is **Sunday, 15 November 2026, 18:44** (UTC).

        I did not understand “fix the bug”. Say `help` to see what I can do."#]],
    );
}

#[test]
fn stories_and_reports_are_long() {
    for message in ["tell me a story", "write a report", "write a report about tea"] {
        let length = play(ask(message), Pace::Instant).answer().len();
        assert!((2_000..4_000).contains(&length), "{message}: {length}");
    }
}

#[test]
fn a_report_shows_what_markdown_can_do() {
    let played = play(ask("write a report about green tea"), Pace::Instant);
    let report = played.answer();
    let signs = [
        "# Report: green tea\n",
        "\n## ",
        "\n|:--",
        "- [x] ",
        "- [ ] ",
        "```rust\n",
        "**",
        "](https://",
    ];
    for sign in signs {
        assert!(report.contains(sign), "{sign}");
    }
}

#[test]
fn a_resumed_run_uses_finished_calls() {
    let mut history = ask("read notes.txt");
    history.extend([
        json!({"role": "assistant", "tool_calls": [
            called("c1", "read_file", r#"{"path":"notes.txt"}"#),
        ]}),
        result("c1", "cut off in the middle of its JSON"),
    ]);
    check_answer(
        history,
        expect![[r#"
            I'll do it again, from the beginning.

            The tool `read_file` says:

            ```
            cut off in the middle of its JSON
            ```"#]],
    );
}

#[test]
fn break_succeeds_when_the_run_resumes() {
    let mut history = ask("break");
    history.push(json!({"role": "assistant", "content": "All right."}));
    check_answer(
        history,
        expect![
            "I'll do it again, from the beginning. The model service answers again: this time nothing broke."
        ],
    );
}

#[test]
fn unexpected_results_are_shown() {
    for (result, expect) in [
        (
            Value::Null,
            expect![[r#"
            The tool `list_files` says:

            ```
            null
            ```"#]],
        ),
        (
            json!("plain text"),
            expect![[r#"
            The tool `list_files` says:

            ```
            plain text
            ```"#]],
        ),
        (
            json!({"entries": [{}, 5], "total": "many"}),
            expect![[r#"
            The workspace folder has 2 entries:

            - `?`
            - `?`"#]],
        ),
        (json!({"entries": [], "total": 0}), expect!["The workspace folder is empty."]),
    ] {
        let played = play_with(ask("ls"), Pace::Instant, |_, _| succeeded(result.clone()));
        expect.assert_eq(played.answer());
    }
}

#[test]
fn commands_and_files() {
    let ended = |ok: bool, result: Value| {
        let error = (!ok).then(|| ErrorInfo::new(ErrorCode::ToolError, "It went wrong."));
        ToolOutcome { ok, result, error }
    };
    let printed = |code: i64, stdout: &str, stderr: &str| json!({"exitCode": code, "stdout": stdout, "stderr": stderr});
    for (message, outcome, expect) in [
        (
            "run make test",
            ended(true, printed(0, "one\ntwo\n", "careful\n")),
            expect![[r#"
            `make test` went well. It printed:

            ```
            one
            two
            careful
            ```"#]],
        ),
        (
            "run true",
            ended(true, printed(0, "", "")),
            expect!["`true` went well and printed nothing."],
        ),
        (
            "run make",
            ended(false, printed(2, "", "no such target\n")),
            expect![[r#"
            `make` ended with exit code 2. It printed:

            ```
            no such target
            ```"#]],
        ),
        ("run make", ended(false, Value::Null), expect!["I could not run `make`: It went wrong."]),
        (
            "write tea to a.md",
            ended(true, json!({"path": "a.md", "bytes": 3})),
            expect!["I wrote 3 bytes to `a.md`."],
        ),
        (
            "write tea to a.md",
            ended(false, Value::Null),
            expect!["I could not write `a.md`: It went wrong."],
        ),
    ] {
        let played = play_with(ask(message), Pace::Instant, |_, _| outcome.clone());
        expect.assert_eq(played.answer());
    }
}

#[track_caller]
fn check_answer(history: Vec<Value>, expect: Expect) {
    expect.assert_eq(play(history, Pace::Instant).answer());
}
