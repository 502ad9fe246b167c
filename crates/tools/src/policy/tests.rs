//! Verdicts of the policy, and attempts to evade it.

mod commands;
mod grants;

use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;
use crate::ParsedCall;

fn policy(rules: &[(&str, Rule)]) -> Policy {
    let rules = rules.iter().map(|(name, rule)| {
        let copy = |it: &Vec<Pattern>| it.clone();
        let Rule { deny, ask, allow, otherwise } = rule;
        let rule =
            Rule { deny: copy(deny), ask: copy(ask), allow: copy(allow), otherwise: *otherwise };
        ((*name).to_owned(), rule)
    });
    let (private, search_path) = (PrivateFiles::default(), "/usr/bin:/bin".into());
    Policy { rules: rules.collect(), timeout_ms: None, private, search_path }
}

fn patterns(list: &[&str]) -> Vec<Pattern> {
    list.iter().map(|it| Pattern::new(it)).collect()
}

fn judge(policy: &Policy, tool: &str, arguments: &Value) -> Verdict {
    judge_in(policy, tool, arguments, Path::new("/nowhere/workspace"))
}

/// The agent and the workspace of a call.
#[derive(Clone, Copy)]
struct Place<'a> {
    agent: &'a str,
    workspace: &'a Path,
}

/// A call with what the policy is told about it.
struct Proposal<'a> {
    call: ParsedCall,
    agent: &'a str,
    asker: Asker,
}

impl<'a> Proposal<'a> {
    fn new(tool: &str, arguments: &str, place: Place<'a>, asker: Asker) -> Self {
        let call = ParsedCall::new(tool, arguments, place.workspace);
        Self { call, agent: place.agent, asker }
    }

    fn request(&self) -> Request<'_> {
        let Self { call, agent, asker } = self;
        Request { call, agent, search_path: None, asker: *asker }
    }
}

fn judge_in(policy: &Policy, tool: &str, arguments: &Value, workspace: &Path) -> Verdict {
    let place = Place { agent: "demo", workspace };
    policy.judge(&Proposal::new(tool, &arguments.to_string(), place, Asker::Callboard).request())
}

fn shell(policy: &Policy, command: &str) -> Verdict {
    judge(policy, "shell", &serde_json::json!({ "command": command }))
}

#[test]
fn patterns_agree_with_a_simple_implementation() {
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
fn read_only_tools_are_allowed_by_default() {
    let policy = policy(&[]);
    let nothing = serde_json::json!({});
    let looking = ["time", "list_files", "read_file", "search_files"];
    for tool in looking.into_iter().chain(["agents_list", "agents_message", "callboard_note"]) {
        assert_eq!(judge(&policy, tool, &nothing), Verdict::Allow, "{tool}");
    }
    // A URL can leak any data.
    for tool in ["http_get", "write_file", "edit_file", "shell", "teleport", "server__tool", ""] {
        assert_eq!(judge(&policy, tool, &nothing), Verdict::Ask, "{tool}");
    }
}

#[test]
fn only_read_only_commands_are_allowed_by_default() {
    let policy = policy(&[]);
    for command in [
        "ls",
        "ls -la src",
        " pwd ",
        "cat a.txt b.md",
        "echo hello you",
        "date -u",
        "head -n5 a",
        "ls\t-l",
        "cat \u{e9}t\u{e9}.md",
    ] {
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
fn a_link_to_the_outside_needs_an_approval() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    std::fs::write(workspace.join("a"), "a").unwrap();
    std::os::unix::fs::symlink("../secret", workspace.join("out")).unwrap();
    std::os::unix::fs::symlink("a", workspace.join("in")).unwrap();
    let policy = policy(&[]);
    for (name, expected) in [("a", Verdict::Allow), ("in", Verdict::Allow), ("out", Verdict::Ask)] {
        let arguments = json!({ "command": format!("cat {name}") });
        assert_eq!(judge_in(&policy, "shell", &arguments, &workspace), expected, "{name}");
    }
}

#[test]
fn a_star_never_matches_a_second_command() {
    let rule = Rule { allow: patterns(&["git *", "make && ls"]), ..Rule::default() };
    let policy = policy(&[("shell", rule)]);
    assert_eq!(shell(&policy, "git status"), Verdict::Allow);
    assert_eq!(shell(&policy, "make && ls"), Verdict::Allow, "literally");
    for sign in read_only_signs() {
        let command = format!("git status {sign} rm a");
        assert_eq!(shell(&policy, &command), Verdict::Ask, "{command}");
    }
}

fn read_only_signs() -> Vec<&'static str> {
    vec![";", "&&", "||", "|", "&", "\n", "$(", "`", ">", "<", "(", "{", "#", "\\"]
}

#[test]
fn a_denied_command_is_denied_anywhere_in_a_line() {
    let rule =
        Rule { deny: patterns(&["rm *"]), otherwise: Some(Verdict::Allow), ..Rule::default() };
    let policy = policy(&[("shell", rule)]);
    assert_eq!(shell(&policy, "ls"), Verdict::Allow);
    for command in ["rm a", "ls; rm a", "ls && rm a", "(rm a)", "ls\nrm a", "echo `rm a`"] {
        assert_eq!(shell(&policy, command), Verdict::Deny, "{command}");
    }
}

#[test]
fn the_strictest_list_decides_for_normalised_paths() {
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
    assert_eq!(judge(&policy, "time", &serde_json::json!({})), Verdict::Deny, "by the rule for *");
}

/// Creates a workspace with links to the inside and to the outside.
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
fn a_path_is_judged_by_its_target() {
    let (_folder, workspace) = workspace_with_links();
    let alias = workspace.with_file_name("alias");
    std::os::unix::fs::symlink(&workspace, &alias).unwrap();
    let inside = |path: &str| workspace.join(path).display().to_string();
    let subject = |path: &str, root: &Path| {
        let arguments = json!({ "path": path }).to_string();
        ParsedCall::new("read_file", &arguments, root).subject_path()
    };
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
            assert_eq!(subject(path, root), expected, "{path}");
        }
    }
    assert_eq!(subject(&alias.join("notes/a").display().to_string(), &alias), "notes/a");
}

#[test]
fn a_url_is_judged_in_every_notation() {
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
fn links_do_not_evade_a_rule() {
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
        let arguments = json!({ "path": path });
        assert_eq!(judge_in(&policy, "write_file", &arguments, &workspace), expected, "{path}");
    }
}

#[test]
fn the_most_specific_rule_for_a_tool_counts() {
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

/// Judges a call that a program runs and has not judged itself.
fn judge_program(policy: &Policy, tool: &str, arguments: &Value, workspace: &Path) -> Verdict {
    let place = Place { agent: "p", workspace };
    policy.judge(&Proposal::new(tool, &arguments.to_string(), place, grants::PROGRAM).request())
}
