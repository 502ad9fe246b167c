//! `[approvals]`, and the environment variables that commands get.

use std::ffi::OsString;

use serde_json::{Value, json};
use tools::ParsedCall;
use tools::policy::{Asker, Request, Verdict};

use super::*;

fn judge(config: &Config, tool: &str, arguments: &Value) -> Verdict {
    let call = &ParsedCall::new(tool, &arguments.to_string(), Path::new("/nowhere"));
    let asker = Asker::Callboard;
    config.approvals.judge(&Request { call, agent: "demo", search_path: None, asker })
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
fn errors_in_rules_name_the_allowed_values() {
    for (text, words) in [
        ("shel = \"ask\"", "`shel`: there is no such tool; the tools are time, "),
        ("shell = \"maybe\"", "expected \"allow\", \"ask\" or \"deny\", or a table"),
        ("shell = true", "expected \"allow\", \"ask\" or \"deny\", or a table"),
        ("shell = { alow = [] }", "unknown field `alow`, expected one of `allow`, `ask`"),
        ("shell = { allow = \"ls\" }", "expected a list in [ ]"),
        ("shell = { otherwise = \"never\" }", "expected one of `allow`, `ask`, `deny`"),
        ("timeout_seconds = 0", "`timeout_seconds`: it must be at least 1"),
        ("timeout_seconds = \"long\"", "expected a whole number, 0 or more"),
    ] {
        let text = format!("[approvals]\ntime = \"allow\"\n{text}");
        let error = load(&text, ServeArgs::default()).unwrap_err().to_string();
        let is_there = error.contains("callboard.toml") && error.contains("line 3");
        assert!(error.contains(words) && is_there, "{text}: {error}");
    }
    for (text, words) in [
        ("[tools]\ntimeout_seconds = 0", "line 2: `timeout_seconds`: it must be at least 1"),
        ("[tools]\nretries = -1", "expected a whole number, 0 or more"),
        ("\ndemo = \"no\"", "expected false, true or a table with `pace`"),
        ("[demo]\npace = \"slow\"", "expected `natural` or `instant`"),
        ("[exchanges]\ntimeout_seconds = 0", "line 2: `timeout_seconds`: it must be at least 1"),
        ("\n[agents]\nid = \"m\"", "expected [[agents]], in two brackets, for each"),
        ("\n[mcp_servers]\nid = \"m\"", "expected [[mcp_servers]], in two brackets, for each"),
    ] {
        let error = load(text, ServeArgs::default()).unwrap_err().to_string();
        let is_there = error.contains("callboard.toml") && error.contains("line 2");
        assert!(error.contains(words) && is_there, "{text}: {error}");
    }
}

#[test]
fn commands_inherit_no_keys() {
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
            "SMTP_PASS",
            "PGPASS",
            "SSH_PASSPHRASE",
            "OF_A_PROGRAM",
            "OF_A_SERVER",
            "OF_A_SERVERS_HEADER",
            "COMPASS_ROSE",
        ];
        names.iter().map(|it| (OsString::from(it), OsString::from("value"))).collect()
    };
    let variable = |name: &str| (name != "UNSET").then(|| "value".to_owned());
    let environment = Environment { variable, variables, ..environment() };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("callboard.toml");
    let text = "[[agents]]\nid = \"m\"\nkind = \"openai\"\nmodel = \"x\"\nbase_url = \"http://h\"\n\
                api_key_env = \"SET\"\nheaders = { x-team = \"env:TEAM\" }\n\
                [[agents]]\nid = \"c\"\nkind = \"claude\"\nenv = { A = \"env:OF_A_PROGRAM\" }\n\
                [[mcp_servers]]\nid = \"s\"\ncommand = [\"s\"]\nenv = { B = \"env:OF_A_SERVER\" }\n\
                [[mcp_servers]]\nid = \"w\"\nurl = \"http://h\"\n\
                headers = { C = \"env:OF_A_SERVERS_HEADER\" }\n";
    std::fs::write(&path, text).unwrap();
    let args = ServeArgs { config: Some(path), ..ServeArgs::default() };
    let config = Config::load(args, &environment).unwrap();
    let names: Vec<&str> =
        config.tools.environment.iter().map(|(name, _)| name.to_str().unwrap()).collect();
    assert_eq!(
        names,
        ["PATH", "HOME", "LANG", "COMPASS_ROSE"],
        "names that look like secrets are not inherited"
    );
}
