//! Each key of the file: its effect, its default and the values that it refuses.

use std::collections::BTreeSet;

use super::*;
use runtime::agents::OpenAiAgent;

/// Function that describes the effect of a configuration.
type Describe = fn(&Config) -> String;

/// Section, key, a value that is not the default, and the visible effect without and with it.
const KEYS: &[(&str, &str, &str, Describe, [&str; 2])] = &[
    (
        "server",
        "listen",
        "\"127.0.0.1:8\"",
        |it| it.listen.to_string(),
        ["127.0.0.1:4520", "127.0.0.1:8"],
    ),
    (
        "server",
        "data",
        "\"/tmp/x\"",
        |it| (it.data == Path::new("/tmp/x")).to_string(),
        ["false", "true"],
    ),
    ("server", "sync", "\"normal\"", |it| format!("{:?}", it.sync), ["Full", "Normal"]),
    (
        "server",
        "public_url",
        "\"https://a.example\"",
        |it| format!("{:?}", it.public_url),
        ["None", "Some(\"https://a.example\")"],
    ),
    (
        "server",
        "allowed_origins",
        "[\"http://a:1\"]",
        |it| it.allowed_origins.join(" "),
        ["", "http://a:1"],
    ),
    ("server", "raw_days", "0", |it| it.raw_days.to_string(), ["30", "0"]),
    (
        "demo",
        "pace",
        "\"instant\"",
        |it| format!("{:?}", it.agents.agents[0].kind),
        ["Demo { pace: Natural }", "Demo { pace: Instant }"],
    ),
    ("tools", "timeout_seconds", "7", |it| it.tools.time_limit.as_secs().to_string(), ["120", "7"]),
    ("tools", "per_minute", "0", |it| it.tools.per_minute.to_string(), ["30", "0"]),
    ("tools", "retries", "0", |it| it.tools.retries.to_string(), ["2", "0"]),
    (
        "tools",
        "http_private",
        "true",
        |it| format!("{:?}", it.tools.web),
        ["Web { private: false, .. }", "Web { private: true, .. }"],
    ),
    ("exchanges", "max_depth", "2", |it| it.exchanges.depth.to_string(), ["8", "2"]),
    ("exchanges", "max_per_run", "2", |it| it.exchanges.per_run.to_string(), ["20", "2"]),
    ("exchanges", "max_queued", "2", |it| it.exchanges.queued.to_string(), ["20", "2"]),
    (
        "exchanges",
        "session",
        "\"latest-or-new\"",
        |it| format!("{:?}", it.exchanges.session),
        ["New", "LatestOrNew"],
    ),
    (
        "exchanges",
        "timeout_seconds",
        "7",
        |it| it.exchanges.timeout.as_secs().to_string(),
        ["300", "7"],
    ),
    (
        "approvals",
        "timeout_seconds",
        "7",
        |it| format!("{:?}", it.approvals.timeout_ms),
        ["None", "Some(7000)"],
    ),
];

#[test]
fn every_key_has_its_effect() {
    for (section, key, value, describe, [without, with]) in KEYS {
        let config = load("", ServeArgs::default()).unwrap();
        assert_eq!(describe(&config), *without, "[{section}] without {key}");
        let config = load(&format!("[{section}]\n{key} = {value}"), ServeArgs::default()).unwrap();
        assert_eq!(describe(&config), *with, "[{section}] {key} = {value}");
    }
}

#[test]
fn no_key_takes_a_value_of_another_kind() {
    for (section, key, ..) in KEYS {
        for wrong in ["{ a = 1 }", "-1", "\"\\u0000\"", "[[1]]", "1.5"] {
            let text = format!("# mine\n\n[{section}]\n{key} = {wrong}");
            // Every text is a valid folder name.
            if *key == "data" && wrong.starts_with('"') {
                continue;
            }
            let error = load(&text, ServeArgs::default()).unwrap_err().to_string();
            assert!(
                error.contains("callboard.toml") && error.contains("line 4"),
                "{text}: {error}"
            );
            for word in
                ["u16", "u32", "u64", "usize", "i64", "f64", "a sequence", "a map", "socket"]
            {
                assert!(!error.contains(word), "not {word}: {error}");
            }
        }
    }
}

/// Returns the keys of a section, as its error message lists them.
fn keys_of(section: &str) -> BTreeSet<String> {
    let text = format!("[{section}]\nno_such_key = 1");
    let error = load(&text, ServeArgs::default()).unwrap_err().to_string();
    let (_, expected) = error.split_once("expected").unwrap();
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_key_is_tested() {
    for section in ["server", "tools", "exchanges"] {
        let known = KEYS.iter().filter(|it| it.0 == section).map(|it| it.1.to_owned());
        assert_eq!(known.collect::<BTreeSet<_>>(), keys_of(section), "[{section}]");
    }
}

/// Returns a file with one agent that has these keys instead of the usual ones.
fn agent(keys: &[(&str, &str)]) -> String {
    let usual =
        [("id", "\"m\""), ("kind", "\"openai\""), ("model", "\"x\""), ("base_url", "\"http://h\"")];
    let is_replaced = |name: &str| keys.iter().any(|it| it.0 == name);
    let usual = usual.iter().filter(|it| !is_replaced(it.0));
    let lines = usual.chain(keys).map(|(name, value)| format!("{name} = {value}\n"));
    format!("[[agents]]\n{}", lines.collect::<String>())
}

fn model(config: &Config) -> &OpenAiAgent {
    match &config.agents.agents[0].kind {
        AgentKind::OpenAi(agent) => agent,
        other => panic!("another kind: {other:?}"),
    }
}

/// Returns which of some agents the first one may message.
fn reach(config: &Config) -> String {
    let reached = ["a", "demo"].into_iter().filter(|it| config.agents.may_message("m", it));
    reached.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_key_of_a_model_has_its_effect() {
    let cases: &[(&str, &str, Describe, [&str; 2])] = &[
        ("model", "\"y\"", |it| model(it).settings.model.clone(), ["x", "y"]),
        (
            "base_url",
            "\"https://i\"",
            |it| model(it).settings.base_url.clone(),
            ["http://h", "https://i"],
        ),
        (
            "api_key_env",
            "\"SET\"",
            |it| format!("{:?}", model(it).settings.api_key),
            ["None", "Some(\"a-secret\")"],
        ),
        (
            "system",
            "\"Be kind.\"",
            |it| format!("{:?}", model(it).system),
            ["None", "Some(\"Be kind.\")"],
        ),
        ("tools", "[]", |it| model(it).tools.takes("time").to_string(), ["true", "false"]),
        ("agents_allow", "[\"a*\"]", |it| reach(it), ["a demo", "a"]),
        ("agents_deny", "[\"demo\"]", |it| reach(it), ["a demo", "a"]),
        ("vision", "false", |it| model(it).sees.to_string(), ["true", "false"]),
        (
            "max_steps",
            "3",
            |it| format!("{:?}", model(it).settings.limits.steps),
            ["Some(30)", "Some(3)"],
        ),
        (
            "max_tokens",
            "3",
            |it| format!("{:?}", model(it).settings.limits.tokens),
            ["None", "Some(3)"],
        ),
        (
            "max_seconds",
            "3",
            |it| format!("{:?}", model(it).settings.limits.seconds),
            ["None", "Some(3)"],
        ),
        (
            "max_tool_calls",
            "3",
            |it| format!("{:?}", model(it).settings.limits.tool_calls),
            ["None", "Some(3)"],
        ),
        ("parallel_tools", "3", |it| model(it).settings.parallel_tools.to_string(), ["8", "3"]),
        ("retries", "0", |it| model(it).settings.retries.to_string(), ["4", "0"]),
        (
            "timeout_seconds",
            "3",
            |it| model(it).settings.idle_timeout_ms.to_string(),
            ["300000", "3000"],
        ),
        ("omit", "[\"stream\"]", |it| model(it).settings.omit.join(" "), ["", "stream"]),
    ];
    for (key, value, describe, [without, with]) in cases {
        let config = load(&agent(&[]), ServeArgs::default()).unwrap();
        assert_eq!(describe(&config), *without, "without {key}");
        let config = load(&agent(&[(key, value)]), ServeArgs::default()).unwrap();
        assert_eq!(describe(&config), *with, "{key} = {value}");
    }
}

#[test]
fn errors_in_a_model_name_the_allowed_values() {
    for (keys, words) in [
        (vec![("id", "\"\"")], "use 1 to 64 letters"),
        (vec![("workspace", "\"/no/such/folder\"")], "/no/such/folder is not a folder"),
        (vec![("base_url", "\"h\"")], "it must begin with http:// or https://"),
        (vec![("base_url", "\"http://me:secret@h\"")], "use `api_key_env` or `headers`"),
        (vec![("parallel_tools", "0")], "`parallel_tools`: it must be at least 1"),
        (vec![("timeout_seconds", "0")], "`timeout_seconds`: it must be at least 1"),
        (vec![("extra", "{ messages = [] }")], "the messages are made from the conversation"),
        (vec![("headers", "{ a = \"b\\nc\" }")], "is not a valid header"),
        (vec![("max_tokens", "-1")], "expected a whole number, 0 or more"),
        (vec![("max_steps", "\"3\"")], "expected a whole number, 0 or more"),
        (vec![("temperature", "\"hot\"")], "expected a number"),
        (vec![("tools", "\"time\"")], "expected a list in [ ]"),
        (vec![("command", "[\"x\"]")], "it is for agents that are programs"),
    ] {
        let text = agent(&keys);
        let error = load(&text, ServeArgs::default()).unwrap_err().to_string();
        let line = 1 + text.lines().position(|it| it.starts_with(keys[0].0)).unwrap();
        let is_there = error.contains(&format!("line {line}"));
        assert!(error.contains(words) && is_there, "{keys:?}: {error}");
    }
    let config = load(&agent(&[("workspace", "\"..\"")]), ServeArgs::default()).unwrap();
    assert!(config.agents.agents[0].workspace.ends_with(".."), "from the working folder on");
}
