//! Accepted configurations, and the messages for those that are refused.

mod keys;
mod policy;

use std::path::Path;

use expect_test::{Expect, expect};
use tools::mcp::ServerTransport;
use tools::policy::Pattern;

use super::*;
use runtime::agents::{AgentKind, ToolChoice};

fn environment() -> Environment {
    Environment {
        working_dir: std::env::temp_dir(),
        home: Some("/home/me".into()),
        xdg_data_home: None,
        xdg_config_home: None,
        variable: |name| (name == "SET").then(|| "a-secret".to_owned()),
        variables: Vec::new,
    }
}

fn load(text: &str, args: ServeArgs) -> anyhow::Result<Config> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("callboard.toml");
    std::fs::write(&path, text)?;
    let args = ServeArgs { config: Some(path.clone()), ..args };
    Config::load(args, &environment()).map_err(|error| {
        let message = format!("{error:#}").replace(&path.display().to_string(), "callboard.toml");
        anyhow::Error::msg(message)
    })
}

#[track_caller]
fn refuses(text: &str, expect: Expect) {
    let error = load(text, ServeArgs::default()).expect_err("it should be refused");
    expect.assert_eq(&format!("{error}\n"));
}

#[test]
fn no_configuration_gives_the_demo_agent() {
    let config = load("", ServeArgs::default()).unwrap();
    assert_eq!(config.listen.to_string(), DEFAULT_LISTEN);
    assert_eq!(config.agents.default_id(), Some("demo"));
    let in_home = if cfg!(target_os = "macos") {
        "/home/me/Library/Application Support/callboard"
    } else {
        "/home/me/.local/share/callboard"
    };
    assert_eq!(config.data, PathBuf::from(in_home));
}

/// The key accepts the same values as the flag.
#[test]
fn listen_takes_an_address_or_a_port() {
    for (written, listen) in [
        ("\"127.0.0.1:8\"", "127.0.0.1:8"),
        ("\"localhost:8\"", "127.0.0.1:8"),
        ("\"8\"", "127.0.0.1:8"),
        ("8", "127.0.0.1:8"),
    ] {
        let text = format!("[server]\nlisten = {written}");
        assert_eq!(load(&text, ServeArgs::default()).unwrap().listen.to_string(), listen);
    }
    for wrong in ["\"localhost\"", "99999", "-1", "true"] {
        let text = format!("[server]\nlisten = {wrong}");
        let error = load(&text, ServeArgs::default()).unwrap_err().to_string();
        let words = "an address and a port, such as";
        assert!(error.contains("line 2") && error.contains(words), "{wrong}: {error}");
    }
}

#[test]
fn flags_override_the_file() {
    let args = ServeArgs { listen: Some("127.0.0.1:9".parse().unwrap()), ..Default::default() };
    let config = load("[server]\nlisten = \"127.0.0.1:8\"\ndata = \"/tmp/x\"", args).unwrap();
    assert_eq!(config.listen.port(), 9);
    assert_eq!(config.data, PathBuf::from("/tmp/x"));
}

fn ids_of(text: &str) -> Vec<String> {
    let config = load(text, ServeArgs::default()).unwrap();
    config.agents.agents.into_iter().map(|it| it.id).collect()
}

#[test]
fn programs_are_listed_unless_the_file_names_agents() {
    assert_eq!(ids_of(""), ["demo", "claude", "codex", "pi"]);
    assert_eq!(ids_of("[[agents]]\nid = \"mine\"\nkind = \"pi\""), ["mine", "demo"]);
    let config = load("", ServeArgs::default()).unwrap();
    for agent in &config.agents.agents[1..] {
        // The test environment has no PATH to search.
        let problem = agent.problem().unwrap();
        assert!(problem.contains("npm i -g @"), "{problem}");
        assert!(agent.is_optional());
    }
}

#[test]
fn program_agents_accept_the_keys_of_programs() {
    let agent = |rest: &str| format!("[[agents]]\nid = \"c\"\nkind = \"codex\"\n{rest}");
    let all = "command = [\"bin/codex\", \"-x\"]\nargs = [\"-y\"]\nmodel = \"m\"\nidle_minutes = 3\n\
               env = { A = \"1\", B = \"env:SET\" }\npermission_mode = \"auto\"";
    let config = load(&agent(all), ServeArgs::default()).unwrap();
    let AgentKind::Program(made) = &config.agents.agents[0].kind else { panic!("no program") };
    let folder = std::env::temp_dir();
    assert_eq!(made.command, [folder.join("bin/codex").display().to_string(), "-x".to_owned()]);
    assert_eq!(made.idle_limit.as_secs(), 180);
    assert_eq!(made.which.model(), Some("m"));
    assert!(!made.is_optional);
    let has = |name: &str, value: &str| made.inherited.contains(&(name.into(), value.into()));
    assert!(has("A", "1") && has("B", "a-secret"));
    for (rest, expect) in [
        (
            "command = []",
            expect![[r#"
                callboard.toml, line 4: agent "c": `command`: it is empty: write it like ["codex"]
            "#]],
        ),
        (
            "env = { A = \"env:UNSET\" }",
            expect![[r#"
                callboard.toml, line 4: agent "c": `env`: A refers to UNSET, which is not set
            "#]],
        ),
        (
            "base_url = \"http://x\"",
            expect![[r#"
                callboard.toml, line 4: agent "c": `base_url`: a codex agent has no such key; its keys are id, kind, description, workspace, agents_allow, agents_deny, command, args, model, env, permission_mode, idle_minutes
            "#]],
        ),
    ] {
        refuses(&agent(rest), expect);
    }
    refuses(
        "[[agents]]\nid = \"o\"\nkind = \"openai\"\nargs = []",
        expect![[r#"
            callboard.toml, line 4: agent "o": `args`: it is for agents that are programs
        "#]],
    );
}

#[test]
fn the_demo_agent_is_configurable() {
    assert_eq!(ids_of("demo = false"), ["claude", "codex", "pi"]);
    let config = load(
        "[demo]\npace = \"instant\"\n[[agents]]\nid = \"tour\"\nkind = \"demo\"",
        ServeArgs::default(),
    )
    .unwrap();
    let ids: Vec<_> = config.agents.agents.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["tour", "demo"]);
    assert!(matches!(config.agents.agents[0].kind, AgentKind::Demo { pace: Pace::Instant }));
}

#[test]
fn errors_name_their_line() {
    refuses(
        "[server]\nlisten = \"nowhere\"",
        expect![[r#"
            callboard.toml: TOML parse error at line 2, column 10
              |
            2 | listen = "nowhere"
              |          ^^^^^^^^^
            give an address and a port, such as 127.0.0.1:4520, or a port

        "#]],
    );
    refuses(
        "[server]\nlisen = \"127.0.0.1:1\"",
        expect![[r#"
            callboard.toml: TOML parse error at line 2, column 1
              |
            2 | lisen = "127.0.0.1:1"
              | ^^^^^
            unknown field `lisen`, expected one of `listen`, `data`, `sync`, `public_url`, `allowed_origins`, `raw_days`

        "#]],
    );
    refuses(
        "[[agents]]\nid = \"x\"\nkind = \"magic\"",
        expect![[r#"
            callboard.toml: TOML parse error at line 3, column 8
              |
            3 | kind = "magic"
              |        ^^^^^^^
            unknown variant `magic`, expected one of `demo`, `openai`, `claude`, `codex`, `pi`

        "#]],
    );
    refuses(
        "[[agents]]\nid = \"a b\"\nkind = \"demo\"",
        expect![[r#"
            callboard.toml, line 2: `id`: "a b" is not a valid agent id: use 1 to 64 letters, digits, '-', '_' or '.'
        "#]],
    );
    refuses(
        "[[agents]]\nid = \"a\"\nkind = \"demo\"\n[[agents]]\nid = \"a\"\nkind = \"demo\"",
        expect![[r#"
            callboard.toml, line 4: two agents are called "a": give each its own id
        "#]],
    );
}

#[test]
fn errors_in_an_agent_name_its_line() {
    let agent = |more: &str| {
        format!(
            "# mine\n[[agents]]\nid = \"m\"\nkind = \"openai\"\nmodel = \"x\"\n\
             base_url = \"http://localhost/v1\"\n{more}"
        )
    };
    refuses(
        "[[agents]]\nid = \"m\"\nkind = \"openai\"\nmodel = \"x\"",
        expect![[r#"
            callboard.toml, line 1: agent "m": `base_url`: it is missing: give the URL of the model's API, like "http://127.0.0.1:8080/v1"
        "#]],
    );
    refuses(
        &agent("tools = [\"time\", \"tiem\"]"),
        expect![[r#"
            callboard.toml, line 7: agent "m": `tools`: there is no tool "tiem"; there are time, list_files, read_file, search_files, write_file, edit_file, shell, http_get, agents_list, agents_message, callboard_note, and those of MCP servers, like "server__tool" or "server__*"
        "#]],
    );
    refuses(
        &agent("max_steps = 0"),
        expect![[r#"
            callboard.toml, line 7: agent "m": `max_steps`: it must be at least 1
        "#]],
    );
    refuses(
        &agent("max_step = 1"),
        expect![[r#"
            callboard.toml: TOML parse error at line 7, column 1
              |
            7 | max_step = 1
              | ^^^^^^^^
            unknown field `max_step`, expected one of `id`, `kind`, `description`, `workspace`, `agents_allow`, `agents_deny`, `base_url`, `model`, `api_key_env`, `headers`, `system`, `tools`, `vision`, `max_steps`, `max_tokens`, `max_seconds`, `max_tool_calls`, `parallel_tools`, `retries`, `timeout_seconds`, `temperature`, `top_p`, `seed`, `max_output_tokens`, `extra`, `omit`, `command`, `args`, `env`, `permission_mode`, `idle_minutes`

        "#]],
    );
    refuses(
        &agent("temperature = \"hot\""),
        expect![[r#"
            callboard.toml: TOML parse error at line 7, column 15
              |
            7 | temperature = "hot"
              |               ^^^^^
            invalid type: string "hot", expected a number

        "#]],
    );
    refuses(
        &agent("headers = { \"a b\" = \"1\" }"),
        expect![[r#"
            callboard.toml, line 7: agent "m": `headers`: "a b" is not a valid header
        "#]],
    );
    refuses(
        "[[agents]]\nid = \"d\"\nkind = \"demo\"\nmodel = \"x\"",
        expect![[r#"
            callboard.toml, line 4: agent "d": `model`: a demo agent has no such key; its keys are id, kind, description, workspace, agents_allow, agents_deny
        "#]],
    );
}

#[test]
fn an_agent_with_all_keys() {
    let text = r#"
        [[agents]]
        id = "m"
        kind = "openai"
        base_url = "https://example/v1"
        model = "x"
        api_key_env = "SET"
        headers = { X-Team = "env:SET", X-Other = "plain", X-Missing = "env:UNSET" }
        tools = ["time"]
        max_steps = 3
        max_tokens = 1000
        max_seconds = 60
        max_tool_calls = 9
        parallel_tools = 2
        temperature = 0.5
        top_p = 0.9
        seed = 7
        max_output_tokens = 100
        omit = ["stream_options"]
        [agents.extra]
        reasoning_effort = "low"
    "#;
    let config = load(text, ServeArgs::default()).unwrap();
    let AgentKind::OpenAi(agent) = &config.agents.agents[0].kind else { panic!("another kind") };
    let settings = &agent.settings;
    assert_eq!(settings.api_key.as_deref(), Some("a-secret"));
    let headers: Vec<String> = settings.headers.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(headers, ["x-missing=", "x-other=plain", "x-team=a-secret"]);
    assert_eq!(agent.missing, ["UNSET"]);
    assert_eq!(agent.tools, ToolChoice(Some(vec![Pattern::new("time")])));
    let body = serde_json::Value::Object(settings.body.clone()).to_string();
    expect![[
        r#"{"temperature":0.5,"top_p":0.9,"seed":7,"max_tokens":100,"reasoning_effort":"low"}"#
    ]]
    .assert_eq(&body);
    let shown = format!("{:?}", config.agents);
    assert!(!shown.contains("a-secret"), "{shown}");
}

#[test]
fn mcp_servers_of_both_kinds() {
    let text = r#"
        [tools]
        timeout_seconds = 7
        [[mcp_servers]]
        id = "files"
        command = ["npx", "-y"]
        args = ["server"]
        env = { PLAIN = "p", KEY = "env:SET" }
        [[mcp_servers]]
        id = "web"
        url = "https://example/mcp"
        headers = { X-Team = "ours" }
        headers_env = { Authorization = "SET", X-Gone = "UNSET" }
        timeout_seconds = 9
        [[agents]]
        id = "m"
        kind = "openai"
        base_url = "https://example/v1"
        model = "x"
        tools = ["time", "files__*", "web__search"]
        [approvals]
        "files__*" = "allow"
    "#;
    let config = load(text, ServeArgs::default()).unwrap();
    let [files, web] = &config.mcp_servers[..] else { panic!("two servers") };
    let ServerTransport::Program { command, environment, .. } = &files.transport else {
        panic!("a program")
    };
    assert_eq!(command, &["npx", "-y", "server"]);
    assert_eq!(environment, &[("KEY".into(), "a-secret".into()), ("PLAIN".into(), "p".into())]);
    assert_eq!((files.time_limit.as_secs(), web.time_limit.as_secs()), (7, 9));
    assert_eq!((&files.missing[..], &web.missing[..]), (&[][..], &["UNSET".to_owned()][..]));
    let ServerTransport::Url { url, headers } = &web.transport else { panic!("a service") };
    assert_eq!(url, "https://example/mcp");
    let headers: Vec<String> = headers.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(headers, ["x-team=ours", "authorization=a-secret", "x-gone="]);
    let shown = format!("{:?}", config.mcp_servers);
    assert!(!shown.contains("a-secret"), "{shown}");
}

#[test]
fn errors_in_mcp_servers_name_their_line() {
    refuses(
        "[[mcp_servers]]\nid = \"a\"\ncomand = [\"x\"]",
        expect![[r#"
        callboard.toml: TOML parse error at line 3, column 1
          |
        3 | comand = ["x"]
          | ^^^^^^
        unknown field `comand`, expected one of `id`, `timeout_seconds`, `command`, `args`, `env`, `cwd`, `url`, `headers`, `headers_env`

    "#]],
    );
    refuses(
        "[[mcp_servers]]\nid = \"a__b\"\ncommand = [\"x\"]",
        expect![[r#"
            callboard.toml, line 2: `id`: "a__b" is not a valid server id: use 1 to 32 letters, digits, '-' or '_', without "__" and with no '_' at the end
        "#]],
    );
    refuses(
        "[[mcp_servers]]\nid = \"a\"",
        expect![[r#"
            callboard.toml, line 1: MCP server "a" needs either `command`, to be started, or `url`, where it is served
        "#]],
    );
    refuses(
        "\n[[mcp_servers]]\nid = \"a\"\nurl = \"ftp://x\"",
        expect![[r#"
            callboard.toml, line 4: MCP server "a": `url`: "ftp://x" is not a valid URL: it must begin with http:// or https://
        "#]],
    );
    refuses(
        "[[mcp_servers]]\nid = \"a\"\nurl = \"http://x\"\nenv = { A = \"b\" }",
        expect![[r#"
        callboard.toml, line 1: MCP server "a": `args`, `env` and `cwd` require `command`
    "#]],
    );
    let twice = "[[mcp_servers]]\nid = \"a\"\nurl = \"http://x\"\n".repeat(2);
    refuses(
        &twice,
        expect![[r#"
        callboard.toml, line 4: two MCP servers are called "a": give each its own id
    "#]],
    );
    refuses(
        "[[agents]]\nid = \"m\"\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"x\"\ntools = [\"files__read\"]",
        expect![[r#"
            callboard.toml, line 6: agent "m": `tools`: "files__read" belongs to no MCP server: "files" is not among [[mcp_servers]]
        "#]],
    );
}

#[test]
fn other_addresses_need_a_token() {
    let open = || ServeArgs { listen: Some("0.0.0.0:1".parse().unwrap()), ..Default::default() };
    let error = load("", open()).unwrap_err().to_string();
    assert!(error.contains("CALLBOARD_TOKEN"), "{error}");
    let with_token = ServeArgs { token: Some("a secret of my own, long".into()), ..open() };
    assert!(load("", with_token).is_ok());
    let short = ServeArgs { token: Some("short".into()), ..open() };
    assert!(load("", short).unwrap_err().to_string().contains("16 characters"));
}

#[test]
fn origins_are_written_as_browsers_send_them() {
    let config = load(
        "[server]\npublic_url = \"https://Chat.example/\"\nallowed_origins = [\"http://a:1\"]",
        ServeArgs::default(),
    )
    .unwrap();
    assert_eq!(config.public_url.as_deref(), Some("https://chat.example"));
    assert_eq!(config.allowed_origins, ["http://a:1"]);
    for bad in ["*", "chat.example", "https://", "https://a/b", "https://*.a"] {
        let text = format!("[server]\nallowed_origins = [{bad:?}]");
        assert!(load(&text, ServeArgs::default()).is_err(), "{bad}");
    }
}
