//! Properties of every tool.

use serde_json::{Value, json};
use transcript::ErrorCode;

use super::bench::Bench;
use crate::built_in::{Tool, Work};
use crate::mcp::McpServers;
use crate::{ToolSettings, Tools};

#[test]
fn every_schema_is_a_closed_object() {
    let specs = Bench::new().tools.specs();
    let names: Vec<&str> = specs.iter().map(|it| &*it.name).collect();
    assert_eq!(names, Tools::names());
    for spec in specs {
        assert_eq!(spec.parameters["type"], "object");
        assert_eq!(spec.parameters["additionalProperties"], false);
        assert!(spec.description.ends_with('.'));
    }
}

#[tokio::test]
async fn an_unknown_tool_is_not_found() {
    let (code, message) = Bench::new().error("teleport", "{}").await;
    assert_eq!(code, ErrorCode::ToolNotFound);
    assert_eq!(
        message,
        "There is no tool 'teleport'. There are: time, list_files, read_file, search_files, \
         write_file, edit_file, shell, http_get, agents_list, agents_message, callboard_note."
    );
}

#[tokio::test]
async fn errors_of_arguments_say_how_to_fix_them() {
    let bench = Bench::new();
    for (tool, arguments, why) in [
        ("read_file", "{}", "\"path\" is a required property"),
        ("read_file", r#"{"path": 5}"#, "path: 5 is not of type \"string\""),
        ("read_file", r#"{"path": "a", "line": 3}"#, "'line' was unexpected"),
        (
            "read_file",
            r#"{"path": "a", "from_line": -1}"#,
            "from_line: -1 is less than the minimum of 1",
        ),
        ("read_file", r#"{"path": "a", "from_line": 0}"#, "minimum of 1"),
        ("read_file", r#"{"path": "a", "from_line": 3, "to_line": 2}"#, "lines count from 1"),
        ("read_file", "", "\"path\" is a required property"),
        ("read_file", "not json", "no JSON object"),
        ("read_file", "[]", "not of type \"object\""),
        ("search_files", r#"{"query": ""}"#, "query: \"\" is shorter than 1 character"),
    ] {
        let (code, message) = bench.error(tool, arguments).await;
        assert_eq!(code, ErrorCode::InvalidArguments, "{arguments}");
        assert!(message.contains(why), "{arguments}: {message}");
    }
    let (_, message) = bench.error("read_file", "{}").await;
    assert!(message.ends_with(
        "Send read_file one JSON object with these fields and no others: \
         path (string, required), from_line (integer), to_line (integer)."
    ));
}

#[tokio::test]
async fn a_panic_becomes_an_outcome() {
    const BROKEN: Tool = Tool {
        name: "broken",
        description: "Panics.",
        parameters: || json!({}),
        may_repeat: false,
        work: Work::Blocking(|_, _| -> Result<Value, _> { panic!("as it should") }),
    };
    let tools = Tools::with(&[BROKEN], ToolSettings::for_tests(), McpServers::default());
    let bench = Bench::new();
    let call = tools.prepare("broken", "{}", &bench.context.workspace);
    let outcome = tools.run(&call, bench.context.clone()).await;
    let error = outcome.error.unwrap();
    assert!(!outcome.ok);
    assert_eq!(error.code, ErrorCode::ToolFailed);
}

#[tokio::test]
async fn time_in_any_zone() {
    let bench = Bench::new();
    assert_eq!(
        bench.ok("time", r#"{"zone": "asia/tokyo"}"#).await,
        json!({
            "zone": "Asia/Tokyo",
            "time": "2026-11-15T18:44:28+09:00",
            "text": "Sunday, 15 November 2026, 18:44",
        })
    );
    for arguments in ["{}", "", r#"{"zone": null}"#] {
        assert_eq!(
            bench.ok("time", arguments).await,
            json!({
                "zone": "UTC",
                "time": "2026-11-15T09:44:28+00:00",
                "text": "Sunday, 15 November 2026, 09:44",
            })
        );
    }
    assert_eq!(
        bench.refusal("time", r#"{"zone": "Atlantis"}"#).await,
        "There is no time zone 'Atlantis'. Use an IANA name such as 'Europe/Paris'."
    );
}
