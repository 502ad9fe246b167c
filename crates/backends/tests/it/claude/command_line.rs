//! Command lines that settings lead to.

use backends::claude::{Settings, program};
use backends::{Launch, ResumeId, ToolServer};
use expect_test::{Expect, expect};

const ID: &str = "0199e09f-40e5-7493-a575-de63127bb063";

fn check(settings: &Settings, launch: &Launch, expect: Expect) {
    expect.assert_eq(&program(settings, launch).command.join("\n"));
}

#[test]
fn command_line_with_default_settings() {
    let expect = expect![[r#"
        claude
        -p
        --input-format
        stream-json
        --output-format
        stream-json
        --verbose
        --include-partial-messages
        --permission-prompt-tool
        stdio
        --permission-mode
        default"#]];
    check(&Settings::default(), &Launch::default(), expect);
}

#[test]
fn command_line_with_all_settings() {
    let settings = Settings {
        command: vec!["npx".to_owned(), "claude".to_owned()],
        args: vec!["--max-turns".to_owned(), "9".to_owned()],
        model: Some("sonnet".to_owned()),
        env: vec![("A".to_owned(), "b".to_owned())],
        permission_mode: "auto".to_owned(),
        system: Some("Be brief.".to_owned()),
    };
    let tools = ToolServer { url: "http://127.0.0.1:4520/mcp".into(), token: "secret".into() };
    let launch = Launch {
        resume: ResumeId::parse(ID),
        tools: Some(tools),
        private: Some("/home/me/data".to_owned()),
        ..Launch::default()
    };
    let expect = expect![[r#"
        npx
        claude
        -p
        --input-format
        stream-json
        --output-format
        stream-json
        --verbose
        --include-partial-messages
        --permission-prompt-tool
        stdio
        --mcp-config
        {"mcpServers":{"callboard":{"type":"http","url":"http://127.0.0.1:4520/mcp","headers":{"Authorization":"Bearer ${CALLBOARD_TOOLS_TOKEN}"},"timeout":86400000,"alwaysLoad":true}}}
        --allowedTools
        mcp__callboard
        --permission-mode
        bypassPermissions
        --model
        sonnet
        --append-system-prompt
        Be brief.
        --settings
        {"permissions":{"ask":["Read(//home/me/data/**)","Edit(//home/me/data/**)"]}}
        --resume=0199e09f-40e5-7493-a575-de63127bb063
        --max-turns
        9"#]];
    check(&settings, &launch, expect);
    let env = program(&settings, &launch).env;
    let token = ("CALLBOARD_TOOLS_TOKEN".to_owned(), "secret".to_owned());
    assert_eq!(env, [settings.env[0].clone(), token], "not where everybody can read it");
}

#[test]
fn a_permission_mode_of_claude_is_passed_through() {
    let settings = Settings { permission_mode: "acceptEdits".to_owned(), ..Settings::default() };
    let command = program(&settings, &Launch::default()).command;
    assert!(command.windows(2).any(|it| it == ["--permission-mode", "acceptEdits"]));
}
