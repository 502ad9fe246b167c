//! `[approvals]` and what commands see of the environment.

use serde_json::{Value, json};

use super::*;
use crate::approvals::{Proposed, Verdict};

fn judge(config: &Config, tool: &str, arguments: &Value) -> Verdict {
    let workspace = Path::new("/nowhere");
    config.approvals.judge(&Proposed { tool, arguments: &arguments.to_string(), workspace })
}

#[test]
fn a_rule_is_a_word_or_lists_of_patterns() {
    let config = load(
        r#"
        [approvals]
        time = "deny"
        write_file = "allow"
        read_file = "ask"
        "server__tool" = "allow"
        "*" = "deny"
        [approvals.shell]
        allow = ["make *"]
        ask = ["make install*"]
        deny = ["make love*"]
        otherwise = "deny"
        [approvals.edit_file]
        allow = ["notes/*"]
        "#,
        ServeArgs::default(),
    )
    .unwrap();
    let shell = |command: &str| judge(&config, "shell", &json!({ "command": command }));
    for (command, expected) in [
        ("make test", Verdict::Allow),
        ("make install x", Verdict::Ask),
        ("make love", Verdict::Deny),
        ("ls", Verdict::Deny),
    ] {
        assert_eq!(shell(command), expected, "{command}");
    }
    let edit = |path: &str| judge(&config, "edit_file", &json!({ "path": path }));
    assert_eq!((edit("notes/a"), edit("a")), (Verdict::Allow, Verdict::Ask), "else its default");
    for (tool, expected) in [
        ("time", Verdict::Deny),
        ("write_file", Verdict::Allow),
        ("read_file", Verdict::Ask),
        ("server__tool", Verdict::Allow),
        ("server__other", Verdict::Deny),
        ("http_get", Verdict::Deny),
    ] {
        assert_eq!(judge(&config, tool, &json!({})), expected, "{tool}");
    }
}

#[test]
fn mistakes_in_rules_say_what_is_right() {
    for (text, words) in [
        ("shel = \"ask\"", "there is no tool \"shel\"; there are time, "),
        ("shell = \"maybe\"", "a rule is \"allow\", \"ask\" or \"deny\", or a table"),
        ("shell = true", "a rule is"),
        ("shell = { alow = [] }", "a rule is"),
        ("shell = { allow = \"ls\" }", "a rule is"),
        ("shell = { otherwise = \"never\" }", "a rule is"),
        ("timeout_seconds = 0", "[approvals] `timeout_seconds` must be at least 1"),
        ("timeout_seconds = \"long\"", "invalid type"),
    ] {
        let error = load(&format!("[approvals]\n{text}"), ServeArgs::default()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(words) && error.contains("callboard.toml"), "{text}: {error}");
    }
    for text in ["[tools]\ntimeout_seconds = 0", "[tools]\nretries = -1", "demo = \"no\""] {
        let error = load(text, ServeArgs::default()).unwrap_err().to_string();
        assert!(error.contains("callboard.toml"), "{text}: {error}");
    }
}

#[test]
fn commands_see_no_keys() {
    let variables = || {
        let names = [
            "PATH",
            "HOME",
            "LANG",
            "SET",
            "TEAM",
            "CALLBOARD_DATA",
            "OPENAI_API_KEY",
            "my_token",
            "AWS_SECRET",
            "DB_PASSWORD",
            "GOOGLE_CREDENTIALS",
            "MONKEY",
        ];
        names.iter().map(|it| (OsString::from(it), OsString::from("value"))).collect()
    };
    let around = Surroundings { variables, ..around() };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("callboard.toml");
    let text = "[[agents]]\nid = \"m\"\nkind = \"openai\"\nmodel = \"x\"\nbase_url = \"http://h\"\n\
                api_key_env = \"SET\"\nheaders = { x-team = \"env:TEAM\" }\n";
    std::fs::write(&path, text).unwrap();
    let args = ServeArgs { config: Some(path), ..ServeArgs::default() };
    let config = Config::load(args, &around).unwrap();
    let names: Vec<&str> =
        config.tools.environment.iter().map(|(name, _)| name.to_str().unwrap()).collect();
    assert_eq!(names, ["PATH", "HOME", "LANG"], "better one too few than one too many");
}
