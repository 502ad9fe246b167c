//! One-line summaries of the results of calls.

use serde_json::{Value, json};
use transcript::*;

/// Returns the outcome of a call that ended with this `tool_result`, as `transcript` keeps it.
pub(crate) fn outcome_in(
    mut transcript: Transcript,
    result: &Value,
    printed: &str,
    error: Option<ErrorInfo>,
) -> CallOutcome {
    let run = ResponseId::new("r");
    let event = Event::ToolResult {
        call_id: CallId::new("c"),
        tool_name: "tool".to_owned(),
        ok: error.is_none(),
        result: Some(result.clone()),
        output: Some(printed.to_owned()),
        error,
        summary: None,
        duration_ms: None,
        truncated: None,
    };
    let session = SessionId::new("s");
    transcript.apply(&Record::new(Seq(1), Millis(1), session, Some(run.clone()), event));
    let answer = transcript.message(run.as_str()).and_then(Message::run).unwrap();
    answer.calls().next().unwrap().outcome.clone().unwrap()
}

#[track_caller]
fn check(result: Value, printed: &str, summary: &str) {
    let outcome = outcome_in(Transcript::default(), &result, printed, None);
    assert_eq!(outcome.summary, summary, "{result}");
}

#[test]
fn counts_lists_by_their_name() {
    check(json!({"entities": [1, 2, 3]}), "", "Found 3 entities");
    check(json!({"entities": [1], "truncated": false}), "", "Found 1 entity");
    check(json!({"matches": [{}]}), "", "Found 1 match");
    check(json!({"open_files": []}), "", "Found 0 open files");
    check(json!([1, 2]), "", "Found 2 items");
    check(json!({"a b": [1], "n": 2}), "", "a b: [1], n: 2");
}

#[test]
fn text_is_one_line_or_a_line_count() {
    check(json!("done"), "", "done");
    check(json!("one\ntwo\n"), "", "2 lines");
    check(json!({"path": "a", "text": "one\ntwo\nthree", "lines": 3}), "", "3 lines");
    check(json!({"exitCode": 0}), "one\ntwo\n", "2 lines");
    check(json!({"exitCode": 0}), "  fine \n", "fine");
    check(json!("x".repeat(121)), "", &format!("{}...", "x".repeat(120)));
}

#[test]
fn exit_code_appears_only_on_failure() {
    check(json!({"exitCode": 1}), "one\ntwo\n", "exit 1");
    check(json!({"exitCode": 0}), "", "(no output)");
    check(json!(null), "", "(no output)");
    check(json!(""), "", "(no output)");
}

#[test]
fn other_values_are_written_plainly() {
    check(json!({"zone": "Asia/Tokyo", "ok": true}), "", "zone: 'Asia/Tokyo', ok: true");
    check(json!(42), "", "42");
    check(json!({}), "", "(no output)");
}

#[test]
fn a_failed_call_gives_the_reason() {
    let failed = |result: Value, message: &str| {
        let error = ErrorInfo::new(ErrorCode::ToolError, message);
        outcome_in(Transcript::default(), &result, "", Some(error)).summary
    };
    assert_eq!(failed(json!(null), "\nNo such file\nat line 3"), "No such file");
    let code = json!({"exitCode": 2});
    assert_eq!(failed(code.clone(), "\nNo such file\nat line 3"), "exit 2: No such file");
    assert_eq!(failed(code, "The command ended with exit code 2."), "exit 2");
}
