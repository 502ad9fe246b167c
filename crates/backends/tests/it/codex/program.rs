//! Command lines of Codex, and the parameters of a new thread.

use std::sync::Arc;

use backends::codex::{Settings, backend, program};
use backends::{Launch, ResumeId, ToolServer};
use expect_test::expect;
use serde_json::json;

use super::stage::Stage;

fn launch() -> Launch {
    let tools = ToolServer { url: "http://127.0.0.1:1/mcp".to_owned(), token: "secret".to_owned() };
    Launch { workspace: "/w".to_owned(), tools: Some(tools), ..Launch::default() }
}

fn settings(permission_mode: &str) -> Settings {
    Settings {
        args: vec!["-c".to_owned(), "a=1".to_owned()],
        model: Some("m".to_owned()),
        permission_mode: permission_mode.to_owned(),
        ..Settings::default()
    }
}

#[test]
fn the_app_server_gets_its_settings_with_the_thread() {
    let settings = settings("ask");
    let program = program(&settings, &launch());
    assert_eq!(program.command, ["codex", "app-server", "-c", "a=1"]);
    assert!(program.env.is_empty());
    let mut stage = Stage::new(backend(Arc::new(settings), &launch()));
    stage.start("go");
    stage.respond("initialize", json!({}));
    expect![[r#"
        {
          "cwd": "/w",
          "approvalPolicy": "on-request",
          "sandbox": "workspace-write",
          "model": "m",
          "config": {
            "mcp_servers": {
              "callboard": {
                "url": "http://127.0.0.1:1/mcp",
                "http_headers": {
                  "Authorization": "Bearer secret"
                },
                "default_tools_approval_mode": "approve",
                "tool_timeout_sec": 86400
              }
            }
          }
        }"#]]
    .assert_eq(&format!("{:#}", stage.request("thread/start")["params"]));
}

#[test]
fn exec_gets_its_settings_as_arguments_but_no_secret() {
    let settings = Settings { app_server: false, ..settings("auto") };
    let resume = ResumeId::parse("0199e09f-40e5-7493-a575-de63127bb063");
    let program = program(&settings, &Launch { resume, ..launch() });
    expect![[r#"
        codex
        exec
        resume
        --json
        --skip-git-repo-check
        -c
        sandbox_mode="workspace-write"
        -c
        model_reasoning_summary="auto"
        -c
        model="m"
        -c
        mcp_servers.callboard.url="http://127.0.0.1:1/mcp"
        -c
        mcp_servers.callboard.bearer_token_env_var="CALLBOARD_TOOLS_TOKEN"
        -c
        mcp_servers.callboard.default_tools_approval_mode="approve"
        -c
        mcp_servers.callboard.tool_timeout_sec=86400
        -c
        a=1
        --
        0199e09f-40e5-7493-a575-de63127bb063
        -"#]]
    .assert_eq(&program.command.join("\n"));
    assert_eq!(program.env, [("CALLBOARD_TOOLS_TOKEN".to_owned(), "secret".to_owned())]);
}

#[test]
fn a_permission_mode_sets_the_policy_and_the_sandbox() {
    for (mode, expected) in [
        ("ask", ["on-request", "workspace-write"]),
        ("untrusted", ["untrusted", "workspace-write"]),
        ("auto", ["never", "workspace-write"]),
        ("on-request", ["on-request", "workspace-write"]),
        ("read-only", ["on-request", "read-only"]),
        ("danger-full-access", ["never", "danger-full-access"]),
    ] {
        let mut stage = Stage::new(backend(Arc::new(settings(mode)), &launch()));
        stage.start("go");
        stage.respond("initialize", json!({}));
        let params = &stage.request("thread/start")["params"];
        assert_eq!(json!([params["approvalPolicy"], params["sandbox"]]), json!(expected));
    }
}
