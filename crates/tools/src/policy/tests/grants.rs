//! Scopes of session and "always" decisions: no other call is covered.

use std::collections::HashMap;

use super::super::request::quoted;
use super::*;
use crate::paths::real_path;

fn covers_of(tool: &str, arguments: &Value, place: Place<'_>, asker: Asker) -> Option<GrantScope> {
    let text =
        policy(&[]).covers(&Proposal::new(tool, &arguments.to_string(), place, asker).request())?;
    Some(GrantScope::parse(&text).unwrap())
}

fn granted_calls(tool: &str, arguments: &Value) -> Option<Value> {
    let place = Place { agent: "demo", workspace: Path::new("/w") };
    let covers = covers_of(tool, arguments, place, Asker::Callboard)?;
    assert_eq!((&*covers.agent, &*covers.workspace, &*covers.tool), ("demo", "/w", tool));
    Some(serde_json::to_value(covers.calls).unwrap())
}

pub(super) const PROGRAM: Asker = Asker::Program { is_judged: false };

fn granted_calls_for_program(tool: &str, arguments: &Value, workspace: &Path) -> Option<Value> {
    let covers = covers_of(tool, arguments, Place { agent: "p", workspace }, PROGRAM)?;
    Some(serde_json::to_value(covers.calls).unwrap())
}

#[test]
fn a_grant_covers_exactly_its_scope() {
    let command = |text: &str| json!({ "command": { "text": text } });
    assert_eq!(
        granted_calls("shell", &json!({ "command": " make test " })),
        Some(command(" make test "))
    );
    for (path, folder) in [
        ("a", "."),
        ("./x/../a", "."),
        ("notes/a", "notes"),
        ("/w/notes/b", "notes"),
        ("notes/deep/a", "notes/deep"),
    ] {
        for tool in ["write_file", "edit_file"] {
            let expected = Some(json!({ "folder": folder }));
            assert_eq!(granted_calls(tool, &json!({ "path": path })), expected, "{path}");
        }
    }
    assert_eq!(granted_calls("write_file", &json!({ "path": "../a" })), None);
    assert_eq!(granted_calls("server__tool", &json!({ "a": 1 })), Some(json!("all")));
    for tool in ["network_access", "request_permissions"] {
        assert_eq!(
            granted_calls_for_program(tool, &json!({ "reason": "a" }), Path::new("/w")),
            None
        );
    }
    for (url, origin) in [
        ("HTTPS://Example.com:443/a?b", "https://example.com"),
        ("http://example.com/", "http://example.com"),
        ("http://example.com:8080/", "http://example.com:8080"),
    ] {
        assert_eq!(
            granted_calls("http_get", &json!({ "url": url })),
            Some(json!({ "origin": origin }))
        );
    }
    assert_eq!(granted_calls("http_get", &json!({ "url": "nonsense" })), None);
    let frame = command("").to_string().len();
    for (length, is_remembered) in [(1000 - frame, true), (1001 - frame, false)] {
        let long = json!({ "command": "x".repeat(length) });
        assert_eq!(granted_calls("shell", &long).is_some(), is_remembered);
    }
}

/// Arguments with different effects never have the same grant text.
#[test]
fn different_calls_never_share_a_text() {
    let texts = [
        "make",
        "make ",
        "make\u{a0}",
        " make",
        "cd /x && make",
        "shell: make",
        "a: b",
        r#"make","options":{"cwd":"/x"#,
        r#"{"text":"make"}"#,
        "/x",
        "make\n",
        "m\u{200b}ake",
    ];
    let values = [
        json!(true),
        json!(1),
        json!("true"),
        json!("1"),
        json!([]),
        json!({}),
        json!([true]),
        json!({"a": 1}),
    ];
    let names = [
        "dangerouslyDisableSandbox",
        "run_in_background",
        "sandbox",
        "cwd",
        "workdir",
        "with_escalated_permissions",
        "pty",
    ];
    let mut calls = Vec::new();
    for text in texts {
        calls.push(json!({ "command": text }));
        calls.push(json!({ "command": [text] }));
        calls.push(json!({ "command": ["bash", "-lc", text] }));
        calls.push(json!({ "command": ["sh", "-c", text] }));
        calls.push(json!({ "command": ["./bash", "-c", text] }));
        for name in names {
            for value in &values {
                calls.push(json!({ "command": text, name: value }));
                calls.push(json!({ "command": text, name: value, "x": 0 }));
            }
        }
    }
    let mut seen: HashMap<String, String> = HashMap::new();
    for agent in ["a", "b"] {
        for workspace in ["/w", "/w/x"] {
            for tool in ["Bash", "shell"] {
                for call in &calls {
                    let place = Place { agent, workspace: Path::new(workspace) };
                    let call = Proposal::new(tool, &call.to_string(), place, PROGRAM);
                    let call = call.request();
                    let this = format!("{agent} {workspace} {tool} {}", call.arguments());
                    let text = policy(&[]).covers(&call).unwrap();
                    // A folder that is not a string counts as its JSON text.
                    let is_same_folder = this.contains("cwd") || this.contains("workdir");
                    let before = seen.insert(text, this.clone());
                    assert!(before.is_none() || is_same_folder, "{this} {before:?}");
                }
            }
        }
    }
}

#[test]
fn harmless_arguments_do_not_matter() {
    let workspace = Path::new("/w");
    let plain = granted_calls_for_program("Bash", &json!({ "command": "make" }), workspace);
    for (name, value) in [
        ("description", json!("Builds it")),
        ("timeout", json!(5000)),
        ("run_in_background", json!(false)),
        ("dangerouslyDisableSandbox", json!(false)),
        ("cwd", json!("/w/.")),
        ("workdir", json!(null)),
    ] {
        let arguments = json!({ "command": "make", name: value });
        assert_eq!(granted_calls_for_program("Bash", &arguments, workspace), plain, "{name}");
    }
    let odd = json!({ "command": { "make": 1 } });
    assert_eq!(
        granted_calls_for_program("Bash", &odd, workspace),
        None,
        "does not cover every command"
    );
}

/// A rule for a command does not cover the same command with other relevant arguments.
#[test]
fn other_arguments_need_a_person() {
    let rule = Rule { allow: patterns(&["make*"]), ..Rule::default() };
    let policy = policy(&[("shell", rule)]);
    let judge = |arguments: &Value| judge_program(&policy, "Bash", arguments, Path::new("/w"));
    assert_eq!(judge(&json!({ "command": "make", "timeout": 1 })), Verdict::Allow);
    let leaves = json!({ "command": "make", "dangerouslyDisableSandbox": true });
    assert_eq!(judge(&leaves), Verdict::Ask);
}

/// A command in another folder is another command: no default, pattern or grant allows it, and denials still
/// apply. The workspace itself may be named in any way.
#[test]
fn a_command_in_another_folder_is_another_command() {
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("workspace");
    std::fs::create_dir_all(workspace.join("sub")).unwrap();
    std::os::unix::fs::symlink("workspace", home.path().join("link")).unwrap();
    let (here, link) = (workspace.to_str().unwrap(), home.path().join("link"));
    let same = [here.to_owned(), link.to_str().unwrap().to_owned(), ".".into(), "sub/..".into()];
    let others = ["/", "/nowhere", "..", "sub", "a b", "it's", "$HOME", "x; true"];
    let rule = Rule { allow: patterns(&["make*"]), deny: patterns(&["rm *"]), ..Rule::default() };
    let (plain, ruled) = (policy(&[]), policy(&[("shell", rule)]));
    let command = |key: &str, folder: &str, command: &str| {
        let mut arguments = json!({ "command": command });
        arguments[key] = json!(folder);
        arguments
    };
    for tool in ["shell", "bash", "exec_command"] {
        for key in ["cwd", "workdir"] {
            let judge = |policy, folder: &str, it: &str| {
                judge_program(policy, tool, &command(key, folder, it), &workspace)
            };
            let covered = |folder: &str| {
                granted_calls_for_program(tool, &command(key, folder, "make"), &workspace).unwrap()
            };
            // Only a program's `bash` is known to run exactly the given command.
            let looks = if tool == "bash" { Verdict::Allow } else { Verdict::Ask };
            for folder in &same {
                assert_eq!(judge(&plain, folder, "cat a"), looks, "{folder}");
                assert_eq!(judge(&ruled, folder, "make all"), Verdict::Allow, "{folder}");
                assert_eq!(covered(folder), json!({ "command": { "text": "make" } }), "{folder}");
            }
            for folder in others {
                assert_eq!(judge(&plain, folder, "cat a"), Verdict::Ask, "{folder}");
                assert_eq!(judge(&ruled, folder, "make all"), Verdict::Ask, "{folder}");
                assert_eq!(judge(&ruled, folder, "rm a"), Verdict::Deny, "{folder}");
                let real = real_path(&workspace.join(folder));
                assert_eq!(covered(folder)["command"]["options"][key], json!(real), "{folder}");
            }
        }
    }
    assert_eq!(quoted("it's"), r"'it'\''s'");
    let odd = json!({ "command": "cat a", "cwd": 7 });
    assert_eq!(
        judge_program(&plain, "bash", &json!({ "command": "cat a", "cwd": null }), &workspace),
        Verdict::Allow
    );
    assert_eq!(judge_program(&plain, "bash", &odd, &workspace), Verdict::Ask, "unknown folder");
}

/// A program that allows harmless calls by itself has a reason to ask.
#[test]
fn calls_judged_by_a_program_need_a_rule_or_approval() {
    let place = Place { agent: "p", workspace: Path::new("/nowhere/workspace") };
    let rule = Rule { allow: patterns(&["cat *"]), ..Rule::default() };
    for (policy, expected) in
        [(policy(&[]), Verdict::Ask), (policy(&[("shell", rule)]), Verdict::Allow)]
    {
        let asker = Asker::Program { is_judged: true };
        let call = Proposal::new("shell", r#"{"command":"cat a"}"#, place, asker);
        let call = call.request();
        assert_eq!(policy.judge(&call), expected);
    }
}

/// A program's tool with the name of one of ours is another tool.
#[test]
fn tools_of_programs_are_not_ours() {
    let workspace = Path::new("/nowhere/workspace");
    for tool in ["time", "read_file", "agents_message", "http_get"] {
        assert_eq!(
            judge_program(&policy(&[]), tool, &json!({}), workspace),
            Verdict::Ask,
            "{tool}"
        );
    }
}

#[test]
fn file_tools_of_programs_are_granted_by_folder() {
    let (folder, workspace) = workspace_with_links();
    let (root, outside) =
        (real_path(&workspace).unwrap(), real_path(folder.path()).unwrap().join("outside"));
    let at = |path: &str| root.join(path).display().to_string();
    let away = outside.display().to_string();
    let folder_of =
        |tool: &str, arguments: Value| granted_calls_for_program(tool, &arguments, &workspace);
    let is = |folder: &str| Some(json!({ "folder": folder }));
    for (tool, key) in [
        ("Write", "file_path"),
        ("Edit", "file_path"),
        ("MultiEdit", "file_path"),
        ("NotebookEdit", "notebook_path"),
    ] {
        for (path, expected) in [
            (at("a.txt"), is(".")),
            (at("notes/a"), is("notes")),
            (at("notes/file"), is("src")),
            (at("notes/out/a"), is(&away)),
            (format!("{away}/b"), is(&away)),
            ("a.txt".to_owned(), None),
            (at("notes/../a"), None),
            (at("a\u{a0}b"), None),
        ] {
            assert_eq!(folder_of(tool, json!({ key: path })), expected, "{tool} {path}");
            let other = if key == "file_path" { "path" } else { "file_path" };
            let both = json!({ key: path, other: "/etc/passwd" });
            assert_eq!(folder_of(tool, both), None, "an unknown argument");
        }
    }
    for (path, expected) in
        [("a", is(".")), ("notes/a", is("notes")), ("~/a", None), ("@a", None), ("../a", None)]
    {
        for tool in ["write", "edit"] {
            assert_eq!(folder_of(tool, json!({ "path": path })), expected, "{tool} {path}");
        }
    }
    let patch = |old: &str, new: &str| json!({ "path": at("src/a"), "patch": format!("--- {old}\n+++ {new}\n@@") });
    let (a, moved) = (at("src/a"), at("b"));
    assert_eq!(folder_of("apply_patch", patch(&a, &a)), is("src"));
    assert_eq!(folder_of("apply_patch", patch("/dev/null", &a)), is("src"));
    assert_eq!(folder_of("apply_patch", patch(&a, &moved)), None, "it leaves the folder");
    assert_eq!(folder_of("apply_patch", json!({ "patch": "--- a\n+++ a\n" })), None);
}

/// Calls that may reach the server's own files need an approval each time.
#[test]
fn private_files_need_an_approval_each_time() {
    let home = tempfile::tempdir().unwrap();
    let home = real_path(home.path()).unwrap();
    let (data, workspace) = (home.join("data/callboard"), home.join("work"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(data.join("server.json"), "token").unwrap();
    std::fs::hard_link(data.join("server.json"), workspace.join("hard")).unwrap();
    let rule = |otherwise| Rule { otherwise, allow: patterns(&["cat *"]), ..Rule::default() };
    let mut plain = policy(&[]);
    let mut ruled = policy(&[("shell", rule(Some(Verdict::Allow)))]);
    let mut denied = policy(&[("shell", rule(Some(Verdict::Deny)))]);
    for it in [&mut plain, &mut ruled, &mut denied] {
        it.private = PrivateFiles::new(&data, Some(&home));
    }
    let call = |command: &str, folder: &Path| {
        let place = Place { agent: "demo", workspace: folder };
        let arguments = json!({ "command": command });
        let shell = Proposal::new("shell", &arguments.to_string(), place, Asker::Callboard);
        let shell = shell.request();
        (plain.judge(&shell), ruled.judge(&shell), plain.covers(&shell).is_some())
    };
    for command in ["cat hard", "cat ../data/callboard/server.json", "make ~/data/callboard"] {
        assert_eq!(call(command, &workspace), (Verdict::Ask, Verdict::Ask, false), "{command}");
    }
    assert_eq!(call("make", &workspace), (Verdict::Ask, Verdict::Allow, true));
    assert_eq!(call("cat a", &workspace), (Verdict::Allow, Verdict::Allow, true));
    assert_eq!(call("make", &home), (Verdict::Ask, Verdict::Ask, false), "may reach them");
    assert_eq!(call("cat a", &home), (Verdict::Allow, Verdict::Allow, true), "does not reach them");
    assert_eq!(call("cat data/callboard/x", &home), (Verdict::Ask, Verdict::Ask, false));
    let tool = |name: &str, arguments: Value, folder: &Path| {
        let place = Place { agent: "demo", workspace: folder };
        let call = Proposal::new(name, &arguments.to_string(), place, PROGRAM);
        let call = call.request();
        plain.covers(&call).is_some()
    };
    let (inside, elsewhere) = (data.join("x"), home.join("a"));
    assert!(!tool("Write", json!({ "file_path": inside, "content": "" }), &home));
    assert!(tool("Write", json!({ "file_path": elsewhere, "content": "" }), &home));
    assert!(!tool("mcp__x__y", json!({ "a": [{ "b": inside }] }), &workspace));
    assert!(!tool("mcp__x__y", json!({}), &home), "its reach is unknown");
    assert!(tool("mcp__x__y", json!({}), &workspace));
}

/// Pi requests a verdict for its read-only tools, so that private files need an approval.
#[test]
fn pi_needs_an_approval_to_read_near_private_files() {
    let home = tempfile::tempdir().unwrap();
    let home = real_path(home.path()).unwrap();
    let (data, workspace) = (home.join("data/callboard"), home.join("work"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir_all(&workspace).unwrap();
    let mut policy = policy(&[]);
    policy.private = PrivateFiles::new(&data, Some(&home));
    let judge = |tool: &str, arguments: Value, workspace: &Path| {
        let place = Place { agent: "pi", workspace };
        let asker = Asker::Program { is_judged: false };
        policy.judge(&Proposal::new(tool, &arguments.to_string(), place, asker).request())
    };
    for (tool, arguments) in [
        ("read", json!({ "path": "a" })),
        ("read", json!({ "path": "/etc/hosts" })),
        ("ls", json!({})),
        ("grep", json!({ "pattern": "x" })),
        ("find", json!({ "pattern": "*.rs", "path": "src" })),
    ] {
        assert_eq!(
            judge(tool, arguments.clone(), &workspace),
            Verdict::Allow,
            "{tool} {arguments}"
        );
    }
    for (tool, arguments) in [
        ("read", json!({ "path": "~/data/callboard/server.json" })),
        ("read", json!({ "path": "@../data/callboard/server.json" })),
        ("grep", json!({ "pattern": "token", "path": ".." })),
        ("grep", json!({ "pattern": "token", "path": data })),
        ("find", json!({ "pattern": "*", "path": "/" })),
        ("ls", json!({ "path": data })),
    ] {
        assert_eq!(judge(tool, arguments.clone(), &workspace), Verdict::Ask, "{tool} {arguments}");
    }
    // In a workspace that contains them, one file can be read, but not all files searched.
    assert_eq!(judge("read", json!({ "path": "a" }), &home), Verdict::Allow);
    assert_eq!(judge("grep", json!({ "pattern": "x" }), &home), Verdict::Ask);
}

/// Files of the workspace can change the commands of Pi's shell.
#[test]
fn pi_with_workspace_settings_needs_approvals() {
    let workspace = tempfile::tempdir().unwrap();
    let judge = || {
        let place = Place { agent: "pi", workspace: workspace.path() };
        let asker = Asker::Program { is_judged: false };
        policy(&[]).judge(&Proposal::new("bash", r#"{"command": "ls"}"#, place, asker).request())
    };
    assert_eq!(judge(), Verdict::Allow);
    std::fs::create_dir(workspace.path().join(".pi")).unwrap();
    assert_eq!(judge(), Verdict::Ask);
}

/// A tool may work in another folder than the one that its call names.
#[test]
fn a_named_folder_does_not_hide_private_files() {
    let home = tempfile::tempdir().unwrap();
    let home = real_path(home.path()).unwrap();
    std::fs::create_dir_all(home.join("data")).unwrap();
    let mut policy =
        policy(&[("shell", Rule { otherwise: Some(Verdict::Allow), ..Rule::default() })]);
    policy.private = PrivateFiles::new(&home.join("data"), None);
    let arguments = json!({ "command": "tar c .", "cwd": "/tmp" }).to_string();
    let place = Place { agent: "pi", workspace: &home };
    let call = Proposal::new("bash", &arguments, place, Asker::Program { is_judged: false });
    let call = call.request();
    assert_eq!((policy.judge(&call), policy.covers(&call)), (Verdict::Ask, None));
}

/// One call of such a tool does not predict the next one.
#[test]
fn unrestricted_tools_are_allowed_only_once() {
    let workspace = Path::new("/nowhere/workspace");
    let covers = |tool: &str, arguments: Value| {
        let place = Place { agent: "p", workspace };
        let asker = Asker::Program { is_judged: true };
        policy(&[]).covers(&Proposal::new(tool, &arguments.to_string(), place, asker).request())
    };
    for (tool, arguments) in [
        ("network_access", json!({ "host": "a" })),
        ("request_permissions", json!({})),
        ("files__call", json!({})),
        ("Monitor", json!({ "command": "ls" })),
        ("PowerShell", json!({ "script": "ls" })),
    ] {
        assert_eq!(covers(tool, arguments), None, "{tool}");
    }
    assert!(covers("WebSearch", json!({ "query": "a" })).is_some());
    assert!(covers("mcp__x__y", json!({ "command": "a" })).is_some(), "a tool of one server");
}
