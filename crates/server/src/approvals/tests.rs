//! What the policy says, and what cannot be smuggled past it.

use super::*;

fn policy(rules: &[(&str, Rule)]) -> Approvals {
    let rules = rules.iter().map(|(name, rule)| {
        let copy = |it: &Vec<Pattern>| it.clone();
        let Rule { deny, ask, allow, otherwise } = rule;
        let rule =
            Rule { deny: copy(deny), ask: copy(ask), allow: copy(allow), otherwise: *otherwise };
        ((*name).to_owned(), rule)
    });
    Approvals { rules: rules.collect(), timeout_ms: 1000 }
}

fn patterns(list: &[&str]) -> Vec<Pattern> {
    list.iter().map(|it| Pattern::new(it)).collect()
}

fn judge(policy: &Approvals, tool: &str, arguments: &Value) -> Verdict {
    let workspace = Path::new("/nowhere/workspace");
    policy.judge(&Proposed { tool, arguments: &arguments.to_string(), workspace, is_judged: false })
}

fn shell(policy: &Approvals, command: &str) -> Verdict {
    judge(policy, "shell", &serde_json::json!({ "command": command }))
}

#[test]
fn a_pattern_fits_as_a_slow_and_simple_one_does() {
    fn simply(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|n| simply(rest, &text[n..])),
            [first, rest @ ..] => {
                text.first().is_some_and(|it| *first == '?' || first == it)
                    && simply(rest, &text[1..])
            }
        }
    }
    let words = |letters: &[char]| {
        let mut words = vec![String::new()];
        for _ in 0..4 {
            let longer =
                words.iter().flat_map(|word| letters.iter().map(move |it| format!("{word}{it}")));
            let longer: Vec<String> = longer.collect();
            words.extend(longer);
        }
        words.sort();
        words.dedup();
        words
    };
    for pattern in words(&['a', 'b', '*', '?']) {
        let letters: Vec<char> = pattern.chars().collect();
        for text in words(&['a', 'b']) {
            let expected = simply(&letters, &text.chars().collect::<Vec<_>>());
            assert_eq!(Pattern::new(&pattern).fits(&text), expected, "{pattern} {text}");
        }
    }
}

#[test]
fn by_default_looking_is_allowed_and_the_rest_is_asked_about() {
    let policy = policy(&[]);
    let nothing = serde_json::json!({});
    let looking = ["time", "list_files", "read_file", "search_files"];
    for tool in looking.into_iter().chain(["agents_list", "agents_message", "callboard_note"]) {
        assert_eq!(judge(&policy, tool, &nothing), Verdict::Allow, "{tool}");
    }
    // An address can carry anything out of the house.
    for tool in ["http_get", "write_file", "edit_file", "shell", "teleport", "server__tool", ""] {
        assert_eq!(judge(&policy, tool, &nothing), Verdict::Ask, "{tool}");
    }
}

#[test]
fn only_plainly_read_only_commands_are_not_asked_about() {
    let policy = policy(&[]);
    for command in
        ["ls", "ls -la src", " pwd ", "cat a.txt b.md", "echo hello you", "date -u", "head -n5 a"]
    {
        assert_eq!(shell(&policy, command), Verdict::Allow, "{command}");
    }
    for command in [
        "",
        "rm a",
        "ls; rm a",
        "ls\nrm a",
        "ls && rm a",
        "ls | sh",
        "ls & rm a",
        "echo $(rm a)",
        "echo `rm a`",
        "echo a > b",
        "cat < /etc/passwd",
        "cat /etc/passwd",
        "cat ../secret",
        "cat a/../../secret",
        "cat ~/.ssh/id_rsa",
        "cat $HOME/x",
        "cat --help=x",
        "date -s 2020-01-01",
        "date --set=x",
        "LS",
        "./ls",
        "X=1 ls",
        "ls \"a\"",
        "git status",
    ] {
        assert_eq!(shell(&policy, command), Verdict::Ask, "{command}");
    }
}

#[test]
fn a_link_that_leads_out_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    std::fs::write(workspace.join("a"), "a").unwrap();
    std::os::unix::fs::symlink("../secret", workspace.join("out")).unwrap();
    std::os::unix::fs::symlink("a", workspace.join("in")).unwrap();
    let policy = policy(&[]);
    for (name, expected) in [("a", Verdict::Allow), ("in", Verdict::Allow), ("out", Verdict::Ask)] {
        let arguments = format!("{{\"command\": \"cat {name}\"}}");
        let call = Proposed {
            tool: "shell",
            arguments: &arguments,
            workspace: &workspace,
            is_judged: false,
        };
        assert_eq!(policy.judge(&call), expected, "{name}");
    }
}

#[test]
fn a_star_never_stands_for_a_second_command() {
    let rule = Rule { allow: patterns(&["git *", "make && ls"]), ..Rule::default() };
    let policy = policy(&[("shell", rule)]);
    assert_eq!(shell(&policy, "git status"), Verdict::Allow);
    assert_eq!(shell(&policy, "make && ls"), Verdict::Allow, "to the letter");
    for sign in read_only_signs() {
        let command = format!("git status {sign} rm a");
        assert_eq!(shell(&policy, &command), Verdict::Ask, "{command}");
    }
}

fn read_only_signs() -> Vec<&'static str> {
    vec![";", "&&", "||", "|", "&", "\n", "$(", "`", ">", "<", "(", "{", "#", "\\"]
}

#[test]
fn what_is_denied_is_denied_wherever_it_stands_in_a_line() {
    let rule =
        Rule { deny: patterns(&["rm *"]), otherwise: Some(Verdict::Allow), ..Rule::default() };
    let policy = policy(&[("shell", rule)]);
    assert_eq!(shell(&policy, "ls"), Verdict::Allow);
    for command in ["rm a", "ls; rm a", "ls && rm a", "(rm a)", "ls\nrm a", "echo `rm a`"] {
        assert_eq!(shell(&policy, command), Verdict::Deny, "{command}");
    }
}

#[test]
fn the_strictest_fitting_list_decides_and_detours_do_not_help() {
    let rule = Rule {
        deny: patterns(&["*.env"]),
        ask: patterns(&["docs/*"]),
        allow: patterns(&["*"]),
        otherwise: None,
    };
    let any = Rule { otherwise: Some(Verdict::Deny), ..Rule::default() };
    let policy = policy(&[("write_file", rule), ("*", any)]);
    for (path, expected) in [
        ("a.txt", Verdict::Allow),
        ("docs/a", Verdict::Ask),
        ("./docs/a", Verdict::Ask),
        ("src/../docs/a", Verdict::Ask),
        ("/nowhere/workspace/docs/a", Verdict::Ask),
        ("docs/.env", Verdict::Deny),
        (".env", Verdict::Deny),
        ("./x/../.env", Verdict::Deny),
    ] {
        let arguments = serde_json::json!({ "path": path });
        assert_eq!(judge(&policy, "write_file", &arguments), expected, "{path}");
    }
    assert_eq!(judge(&policy, "time", &serde_json::json!({})), Verdict::Deny, "by the star");
}

/// A folder with a workspace in it, which has links within and out.
fn workspace_with_links() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    for name in ["notes/deep", "src/deep", "../outside"] {
        std::fs::create_dir_all(workspace.join(name)).unwrap();
    }
    std::fs::write(workspace.join("src/main.rs"), "").unwrap();
    for (link, target) in [
        ("notes/file", "../src/main.rs"),
        ("notes/new", "../src/new.rs"),
        ("notes/folder", "../src/deep"),
        ("notes/twice", "folder/../file"),
        ("notes/out", "../../outside"),
        ("notes/self", "self"),
        ("notes/back", "deep/.."),
    ] {
        std::os::unix::fs::symlink(target, workspace.join(link)).unwrap();
    }
    let absolute = workspace.join("src");
    std::os::unix::fs::symlink(absolute, workspace.join("notes/absolute")).unwrap();
    (folder, workspace)
}

#[test]
fn a_path_is_judged_by_where_it_leads() {
    let (_folder, workspace) = workspace_with_links();
    let alias = workspace.with_file_name("alias");
    std::os::unix::fs::symlink(&workspace, &alias).unwrap();
    let inside = |path: &str| workspace.join(path).display().to_string();
    for (path, expected) in [
        ("notes/a", "notes/a"),
        ("./notes//a", "notes/a"),
        ("notes/deep/../a", "notes/a"),
        ("missing/../notes/a", "notes/a"),
        ("missing/a", "missing/a"),
        ("notes/file", "src/main.rs"),
        ("notes/new", "src/new.rs"),
        ("notes/folder/a", "src/deep/a"),
        ("notes/folder/../a", "notes/a"),
        ("notes/twice", "src/file"),
        ("notes/absolute/x", "src/x"),
        ("notes/back/a", "notes/a"),
        ("notes/self", "notes/self"),
        ("notes/out/a", "notes/out/a"),
        ("../outside/a", "../outside/a"),
        ("", ""),
        (".", ""),
        (&inside("notes/file"), "src/main.rs"),
        ("/etc/passwd", "/etc/passwd"),
    ] {
        for root in [&workspace, &alias] {
            assert_eq!(place(path, root), expected, "{path}");
        }
    }
    assert_eq!(place(&alias.join("notes/a").display().to_string(), &alias), "notes/a");
}

#[test]
fn an_address_is_judged_however_it_is_written() {
    let rule = Rule {
        allow: patterns(&["https://docs.test/*"]),
        deny: patterns(&["*://evil.test/*"]),
        ..Rule::default()
    };
    let policy = policy(&[("http_get", rule)]);
    for (url, expected) in [
        ("https://docs.test/a", Verdict::Allow),
        ("HTTPS://DOCS.test:443", Verdict::Allow),
        ("http://docs.test/a", Verdict::Ask),
        ("https://docs.test:8443/a", Verdict::Ask),
        ("https://docs.test@other.test/", Verdict::Ask),
        ("https://docs.test.other.test/", Verdict::Ask),
        ("http://EVIL.test", Verdict::Deny),
        ("http://evil.test:80/x", Verdict::Deny),
        ("http:\\\\evil.test\\x", Verdict::Deny),
        ("no address", Verdict::Ask),
    ] {
        let arguments = serde_json::json!({ "url": url });
        assert_eq!(judge(&policy, "http_get", &arguments), expected, "{url}");
    }
}

#[test]
fn links_do_not_lead_past_a_rule() {
    let (_folder, workspace) = workspace_with_links();
    let rule =
        Rule { allow: patterns(&["notes/*"]), deny: patterns(&["src/*"]), ..Rule::default() };
    let policy = policy(&[("write_file", rule)]);
    for (path, expected) in [
        ("notes/a", Verdict::Allow),
        ("notes/folder/../a", Verdict::Allow),
        ("notes/file", Verdict::Deny),
        ("notes/new", Verdict::Deny),
        ("notes/absolute/../src/x", Verdict::Allow),
        ("a", Verdict::Ask),
    ] {
        let arguments = format!("{{\"path\": {path:?}}}");
        let call = Proposed {
            tool: "write_file",
            arguments: &arguments,
            workspace: &workspace,
            is_judged: false,
        };
        assert_eq!(policy.judge(&call), expected, "{path}");
    }
}

#[test]
fn a_rule_may_be_for_many_tools_and_the_closest_counts() {
    let rule = |verdict| Rule { otherwise: Some(verdict), ..Rule::default() };
    let policy = policy(&[
        ("files__*", rule(Verdict::Allow)),
        ("files__delete*", rule(Verdict::Deny)),
        ("files__delete_draft", rule(Verdict::Ask)),
        ("*", rule(Verdict::Deny)),
        ("time", rule(Verdict::Allow)),
    ]);
    let nothing = serde_json::json!({});
    for (tool, expected) in [
        ("files__read", Verdict::Allow),
        ("files__delete_all", Verdict::Deny),
        ("files__delete_draft", Verdict::Ask),
        ("filesystem__read", Verdict::Deny),
        ("time", Verdict::Allow),
        ("read_file", Verdict::Deny),
    ] {
        assert_eq!(judge(&policy, tool, &nothing), expected, "{tool}");
    }
}

#[test]
fn an_answer_for_more_than_once_holds_for_no_more_than_it_says() {
    let workspace = Path::new("/w");
    let covers = |tool: &str, arguments: &str| {
        Proposed { tool, arguments, workspace, is_judged: false }.covers()
    };
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(covers("shell", r#"{"command": " make test "}"#), is("shell: make test"));
    for (path, folder) in [
        ("a", "./"),
        ("./x/../a", "./"),
        ("notes/a", "notes/"),
        ("/w/notes/b", "notes/"),
        ("notes/deep/a", "notes/deep/"),
    ] {
        for tool in ["write_file", "edit_file"] {
            let arguments = format!("{{\"path\": {path:?}}}");
            assert_eq!(covers(tool, &arguments), is(&format!("{tool}: {folder}")), "{path}");
        }
    }
    assert_eq!(covers("server__tool", r#"{"a": 1}"#), is("server__tool"));
    for (url, origin) in [
        ("HTTPS://Example.com:443/a?b", "https://example.com"),
        ("http://example.com/", "http://example.com"),
        ("http://example.com:8080/", "http://example.com:8080"),
    ] {
        let arguments = format!("{{\"url\": {url:?}}}");
        assert_eq!(covers("http_get", &arguments), is(&format!("http_get: {origin}")), "{url}");
    }
    assert_eq!(covers("http_get", r#"{"url": "nonsense"}"#), None);
    let long = |n: usize| format!("{{\"command\": \"{}\"}}", "x".repeat(n));
    assert!(covers("shell", &long(1000 - "shell: ".len())).is_some());
    assert_eq!(covers("shell", &long(1001 - "shell: ".len())), None);
}

/// A call of a program, through the policy and with what was answered before.
fn judge_program(policy: &Approvals, tool: &str, arguments: &Value, workspace: &Path) -> Verdict {
    let arguments = arguments.to_string();
    let (tool, arguments) = policy.as_known(tool, &arguments, workspace);
    policy.judge(&Proposed { tool: &tool, arguments: &arguments, workspace, is_judged: false })
}

fn covers_for_program(tool: &str, arguments: &Value, workspace: &Path) -> Option<String> {
    let arguments = arguments.to_string();
    let policy = policy(&[]);
    let (tool, arguments) = policy.as_known(tool, &arguments, workspace);
    Proposed { tool: &tool, arguments: &arguments, workspace, is_judged: false }.covers()
}

/// For every way to name a folder: in the workspace's own the command is the command, elsewhere it is
/// another one, which no default, no star and no earlier answer allows, and which is denied as ever.
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
            let covers =
                |folder: &str| covers_for_program(tool, &command(key, folder, "make"), &workspace);
            for folder in &same {
                assert_eq!(judge(&plain, folder, "cat a"), Verdict::Allow, "{folder}");
                assert_eq!(judge(&ruled, folder, "make all"), Verdict::Allow, "{folder}");
                assert_eq!(covers(folder).as_deref(), Some("shell: make"), "{folder}");
            }
            for folder in others {
                assert_eq!(judge(&plain, folder, "cat a"), Verdict::Ask, "{folder}");
                assert_eq!(judge(&ruled, folder, "make all"), Verdict::Ask, "{folder}");
                assert_eq!(judge(&ruled, folder, "rm a"), Verdict::Deny, "{folder}");
                let line = format!("shell: cd {} && make", quoted(folder));
                assert_eq!(covers(folder), Some(line), "{folder}");
            }
        }
    }
    assert_eq!(quoted("it's"), r"'it'\''s'");
    let odd = json!({ "command": "cat a", "cwd": 7 });
    assert_eq!(
        judge_program(&plain, "shell", &json!({ "command": "cat a", "cwd": null }), &workspace),
        Verdict::Allow
    );
    assert_eq!(judge_program(&plain, "shell", &odd, &workspace), Verdict::Ask, "who knows where");
}

/// A program that lets harmless calls pass by itself has a reason to ask.
#[test]
fn what_a_program_has_judged_itself_needs_a_rule_or_a_person() {
    let workspace = Path::new("/nowhere/workspace");
    let rule = Rule { allow: patterns(&["cat *"]), ..Rule::default() };
    for (policy, expected) in
        [(policy(&[]), Verdict::Ask), (policy(&[("shell", rule)]), Verdict::Allow)]
    {
        let arguments = r#"{"command":"cat a"}"#;
        let call = Proposed { tool: "shell", arguments, workspace, is_judged: true };
        assert_eq!(policy.judge(&call), expected);
    }
}
