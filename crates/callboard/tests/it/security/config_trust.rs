//! A `callboard.toml` in the working folder is used only after a person has agreed to it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::program::{Home, Server, output};
use crate::support::stand_in::make_executable;
use crate::support::terminal::Terminal;

const CONFIG: &str = "[[agents]]\nid = \"codex\"\nkind = \"codex\"\ncommand = [\"./tool.sh\"]\n\
                      [approvals]\nshell = \"allow\"\n";

/// A foreign repository with a program that leaves a proof when it is run.
fn foreign() -> Home {
    let home = Home::new(CONFIG);
    let tool = home.workspace().join("tool.sh");
    std::fs::write(&tool, "#!/bin/sh\ntouch \"$(dirname \"$0\")/proof\"\necho 1.2.3\n").unwrap();
    make_executable(&tool);
    home
}

fn config(home: &Home) -> PathBuf {
    home.workspace().join("callboard.toml")
}

/// Returns a command without an explicitly named configuration, and with its own configuration
/// folder.
fn command(home: &Home, folder: &Path, args: &[&str]) -> Command {
    let mut command = home.command();
    command
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .env_remove("CALLBOARD_CONFIG")
        .env("XDG_CONFIG_HOME", home.data().join("config"));
    command
}

fn run(home: &Home, args: &[&str]) -> (bool, String, String) {
    output(&mut command(home, &home.workspace(), args))
}

/// Returns whether the foreign program has been run since the last check.
fn was_run(home: &Home) -> bool {
    std::fs::remove_file(home.workspace().join("proof")).is_ok()
}

#[test]
fn an_untrusted_file_is_skipped() {
    let home = foreign();
    let (_, stdout, stderr) = run(&home, &["doctor"]);
    assert!(stderr.contains("skipped") && stderr.contains("callboard trust"), "{stderr}");
    assert!(stdout.contains("is skipped until you agree"), "{stdout}");
    assert!(stdout.contains("none, the defaults are used"), "{stdout}");
    assert!(!was_run(&home));
    let (_, _, stderr) = run(&home, &["send", "demo", "hello"]);
    assert!(stderr.contains("skipped") && !was_run(&home), "{stderr}");
}

#[tokio::test]
async fn a_server_logs_skipped_and_read_files() {
    let home = foreign();
    let server = Server::start(command(&home, &home.workspace(), &["serve"]));
    let agents = server.get("/api/agents").await;
    assert!(!agents.to_string().contains("tool.sh") && !was_run(&home), "{agents}");
    let output = server.stop().join("\n");
    assert!(output.contains("skipped") && output.contains("no configuration file"), "{output}");

    assert!(run(&home, &["trust"]).0);
    let server = Server::start(command(&home, &home.workspace(), &["serve"]));
    let output = server.stop().join("\n");
    assert!(output.contains("configuration read") && output.contains("callboard.toml"), "{output}");
}

#[test]
fn trust_covers_one_content_of_one_file() {
    let home = foreign();
    let (ok, stdout, stderr) = run(&home, &["trust"]);
    assert!(
        ok && stdout.contains("run ./tool.sh (for codex); ./tool.sh is a file"),
        "{stdout}{stderr}"
    );
    assert!(stdout.contains("allow without asking: shell"), "{stdout}");
    assert!(run(&home, &["trust", "--list"]).1.contains("callboard.toml"));
    let (_, stdout, stderr) = run(&home, &["doctor"]);
    assert!(
        stdout.contains(config(&home).to_str().unwrap()) && stderr.is_empty(),
        "{stdout}{stderr}"
    );
    assert!(stdout.contains("Version 1.2.3."), "{stdout}");
    assert!(was_run(&home));

    // Trust covers the same file by another path, but not a copy.
    let link = home.data().join("link");
    std::os::unix::fs::symlink(home.workspace(), &link).unwrap();
    output(&mut command(&home, &link, &["doctor"]));
    assert!(was_run(&home));
    let copy = home.data().join("copy");
    std::fs::create_dir(&copy).unwrap();
    let text = CONFIG.replace("./tool.sh", home.workspace().join("tool.sh").to_str().unwrap());
    std::fs::write(copy.join("callboard.toml"), text).unwrap();
    output(&mut command(&home, &copy, &["doctor"]));
    assert!(!was_run(&home));

    std::fs::write(config(&home), format!("{CONFIG}# changed\n")).unwrap();
    assert!(run(&home, &["trust", "--list"]).1.contains("changed since"));
    run(&home, &["doctor"]);
    assert!(!was_run(&home), "another content");
    std::fs::write(config(&home), CONFIG).unwrap();
    run(&home, &["doctor"]);
    assert!(was_run(&home));
    assert!(run(&home, &["trust", "--revoke"]).0);
    run(&home, &["doctor"]);
    assert!(!was_run(&home), "taken back");
    assert!(!run(&home, &["trust", "--revoke"]).0);
}

#[test]
fn at_a_terminal_trust_is_asked_for() {
    let home = foreign();
    let ask = |answer: &str| {
        let mut terminal = Terminal::start(&mut command(&home, &home.workspace(), &["doctor"]));
        let asked = terminal.until("[y/N]");
        assert!(asked.contains("run ./tool.sh (for codex); ./tool.sh is a file"), "{asked}");
        assert!(asked.contains("allow without asking: shell"), "{asked}");
        terminal.type_in(answer);
        terminal.end().1
    };
    for no in ["\n", "n\n", "what?\n"] {
        assert!(ask(no).contains("skipped") && !was_run(&home), "{no:?}");
    }
    assert!(!ask("y\n").contains("skipped") && was_run(&home));
    let again = Terminal::start(&mut command(&home, &home.workspace(), &["doctor"]));
    let shown = again.end().1;
    assert!(!shown.contains("[y/N]") && was_run(&home), "asked once: {shown}");
    std::fs::write(config(&home), format!("{CONFIG}# changed\n")).unwrap();
    assert!(ask("n\n").contains("skipped") && !was_run(&home));
}

#[test]
fn an_explicitly_named_file_needs_no_trust() {
    let home = foreign();
    run(&home, &["doctor", "--config", "callboard.toml"]);
    assert!(was_run(&home));
    let mut by_variable = command(&home, &home.workspace(), &["doctor"]);
    output(by_variable.env("CALLBOARD_CONFIG", config(&home)));
    assert!(was_run(&home));
}

#[test]
fn display_settings_need_no_trust_and_broken_files_are_skipped() {
    let home = Home::new("[demo]\npace = \"instant\"\n");
    let (_, stdout, stderr) = run(&home, &["doctor"]);
    assert!(stderr.is_empty() || !stderr.contains("skipped"), "{stderr}");
    assert!(stdout.contains(config(&home).to_str().unwrap()), "{stdout}");
    let home = Home::new("[[[");
    let (_, stdout, stderr) = run(&home, &["doctor"]);
    assert!(
        stderr.contains("skipped") && stdout.contains("ok      data folder"),
        "{stdout}{stderr}"
    );
}

/// The user's own file is used if the foreign one is skipped.
#[test]
fn the_users_own_file_is_the_fallback() {
    let home = foreign();
    let own = home.data().join("config/callboard");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("callboard.toml"), "[demo]\npace = \"instant\"\n").unwrap();
    let (_, stdout, _) = run(&home, &["doctor"]);
    assert!(stdout.contains(own.join("callboard.toml").to_str().unwrap()), "{stdout}");
    assert!(!was_run(&home));
}

#[test]
fn an_unknown_permission_mode_is_refused() {
    let home = Home::new("[[agents]]\nid = \"c\"\nkind = \"claude\"\npermission_mode = \"yolo\"\n");
    let (ok, stdout, _) = output(home.command().arg("doctor"));
    assert!(!ok && stdout.contains("\"yolo\" is none of: ask, auto"), "{stdout}");
}
