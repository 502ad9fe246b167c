//! The policy splits commands as the shell does, for every character of Unicode.

use std::io::Write;
use std::process::{Command, Stdio};

use super::super::command::{is_plain, is_plain_character, is_single, readings, words};
use super::*;

fn every_character() -> impl Iterator<Item = char> {
    // A command cannot contain a zero byte.
    ('\u{1}'..=char::MAX).filter(|it| *it != '\0')
}

/// Returns the words into which `sh` splits each text.
#[expect(clippy::disallowed_methods, reason = "the shell ends with its input")]
fn words_of_shell(texts: &[String]) -> Vec<Vec<String>> {
    let script: String = texts.iter().map(|it| format!("show {it}\n")).collect();
    let show = "show() { printf '%s\\001' \"$@\"; printf '\\002'; }\n";
    let mut shell = Command::new("/bin/sh");
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    let writing =
        std::thread::spawn(move || stdin.write_all((show.to_owned() + &script).as_bytes()));
    let output = shell.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.split_terminator('\u{2}');
    lines.map(|it| it.split_terminator('\u{1}').map(str::to_owned).collect()).collect()
}

/// The shell splits a command with any plain character into the same words as the policy.
#[test]
fn words_are_those_of_the_shell() {
    let special = ";&|<>$`(){}[]*?!#~\\\"'\n";
    let plain = every_character().filter(|it| is_plain_character(*it) && !special.contains(*it));
    let texts: Vec<String> = plain.map(|it| format!("a{it}b {it} c{it}")).collect();
    assert!(texts.len() > 100_000, "{}", texts.len());
    let seen = words_of_shell(&texts);
    assert_eq!(seen.len(), texts.len());
    for (text, seen) in texts.iter().zip(seen) {
        assert_eq!(words(text).collect::<Vec<_>>(), seen, "{text:?}");
    }
}

/// A command with such a character anywhere is never a single command, and rules against the command without
/// the character still apply.
#[test]
fn no_other_blank_or_invisible_character_passes() {
    for character in every_character().filter(|it| !is_plain_character(*it)) {
        let command = format!("cat{character}x");
        assert!(!is_single(&command) && !is_plain(&command), "{command:?}");
        for command in [format!("rm{character}a"), format!("r{character}m a")] {
            assert!(readings(&command).iter().any(|it| it == "rm a"), "{command:?}");
        }
    }
    let blanks =
        "\u{b}\u{c}\r\u{85}\u{a0}\u{1680}\u{2003}\u{2028}\u{202e}\u{200b}\u{2066}\u{3000}\u{feff}";
    let unseen = "\u{ad}\u{34f}\u{115f}\u{2800}\u{3164}\u{fe0f}\u{ffa0}\u{e0041}\u{1b}\u{7f}";
    for character in blanks.chars().chain(unseen.chars()) {
        assert!(!is_plain_character(character), "{character:?}");
    }
}

/// Checks verdicts for the blocks that contain such characters.
#[test]
fn commands_with_invisible_characters_need_an_approval() {
    let rule = Rule {
        allow: patterns(&["git *", "cat*"]),
        deny: patterns(&["rm *"]),
        otherwise: Some(Verdict::Allow),
        ..Rule::default()
    };
    let (plain, ruled) = (policy(&[]), policy(&[("shell", rule)]));
    let blocks = [
        '\u{1}'..='\u{ff}',
        '\u{1680}'..='\u{1680}',
        '\u{180b}'..='\u{180f}',
        '\u{2000}'..='\u{20ff}',
        '\u{3000}'..='\u{303f}',
        '\u{fe00}'..='\u{ffff}',
        '\u{e0000}'..='\u{e01ff}',
    ];
    for character in blocks.into_iter().flatten().filter(|it| !is_plain_character(*it)) {
        for command in [
            format!("cat{character}x/evil"),
            format!("cat notes{character}"),
            format!("{character}ls"),
            format!("echo a{character}b"),
        ] {
            assert_eq!(shell(&plain, &command), Verdict::Ask, "{command:?}");
            assert_eq!(shell(&ruled, &command), Verdict::Ask, "{command:?}");
        }
        assert_eq!(shell(&ruled, &format!("rm{character}a")), Verdict::Deny, "{character:?}");
    }
}

/// The shell's own blanks do not evade a rule either.
#[test]
fn denied_commands_are_denied_with_any_blank() {
    let rule = Rule { deny: patterns(&["git push*"]), ..Rule::default() };
    let policy = policy(&[("shell", rule)]);
    for command in
        ["git push", "git  push", "git\tpush", "ls;git \t push x", " git push", "ls\n\tgit push"]
    {
        assert_eq!(shell(&policy, command), Verdict::Deny, "{command:?}");
    }
    assert!(readings("a;\u{a0}b").contains(&"b".to_owned()));
}

/// A rule that does not look at the command cannot be misled by it.
#[test]
fn a_rule_that_allows_everything_takes_any_character() {
    let rule = Rule { otherwise: Some(Verdict::Allow), ..Rule::default() };
    let policy = policy(&[("shell", rule)]);
    assert_eq!(shell(&policy, "git commit -m 'a\u{a0}b'"), Verdict::Allow);
}

#[test]
fn each_ascii_character_in_a_read_only_command() {
    let policy = policy(&[]);
    for character in (1..=127u8).map(char::from) {
        let harmless = character.is_ascii_alphanumeric() || " \t%+,-./:=@^_".contains(character);
        let expected = if harmless { Verdict::Allow } else { Verdict::Ask };
        assert_eq!(shell(&policy, &format!("cat a{character}b")), expected, "{character:?}");
    }
}

#[test]
fn only_listed_options_are_harmless() {
    let policy = policy(&[]);
    for command in [
        "ls -LR",
        "ls -L",
        "ls -R",
        "ls -H",
        "ls -lR .",
        "ls -l -R",
        "tail -f a",
        "cat -",
        "pwd -x",
    ] {
        assert_eq!(shell(&policy, command), Verdict::Ask, "{command}");
    }
    for command in
        ["ls -la", "cat -n a", "head -n 5 a", "tail -c10 a", "wc -l a", "uname -a", "date +%s"]
    {
        assert_eq!(shell(&policy, command), Verdict::Allow, "{command}");
    }
    let letters = |it: &str| it.chars().map(|it| format!("ls -{it}")).collect::<Vec<_>>();
    for command in letters("BCDEGHIJKLMNOPQRTUVWXYZbcefgjkmnoquvwxyz") {
        assert_eq!(shell(&policy, &command), Verdict::Ask, "{command}");
    }
}

/// A list of words is a script only for a known shell; otherwise its words are quoted.
#[test]
fn argument_lists_are_quoted() {
    let rule = Rule { allow: patterns(&["make*"]), deny: patterns(&["rm *"]), ..Rule::default() };
    let policy = policy(&[("shell", rule)]);
    let judge = |words: &[&str]| {
        let arguments = json!({ "command": words });
        judge_program(&policy, "shell", &arguments, Path::new("/nowhere/workspace"))
    };
    for shell in ["sh", "bash", "/bin/bash", "/usr/bin/zsh"] {
        assert_eq!(judge(&[shell, "-lc", "rm a"]), Verdict::Deny, "{shell}");
    }
    for other in ["./bash", "x/sh", "/tmp/bash", "python", "bash2", "BASH"] {
        assert_eq!(judge(&[other, "-c", "make"]), Verdict::Ask, "{other}");
    }
    assert_eq!(judge(&["make all; touch x"]), Verdict::Ask);
    assert_eq!(judge(&["rm", "a b"]), Verdict::Deny);
}

/// A read-only command needs an approval if `PATH` finds its program in the workspace.
#[cfg(unix)]
#[test]
fn a_program_in_the_workspace_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("ws");
    let (inside, outside) = (workspace.join("bin"), folder.path().join("bin"));
    for (bin, mode) in [(&inside, 0o755), (&outside, 0o644)] {
        std::fs::create_dir_all(bin).unwrap();
        std::fs::write(bin.join("cat"), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(bin.join("cat"), PermissionsExt::from_mode(mode)).unwrap();
    }
    std::fs::write(workspace.join("notes"), "").unwrap();
    let judged = |search_path: &str| {
        let search_path = search_path.replace("IN", inside.to_str().unwrap());
        let search_path = search_path.replace("OUT", outside.to_str().unwrap()).into();
        let policy = Policy { search_path, ..policy(&[]) };
        judge_in(&policy, "shell", &json!({ "command": "cat notes" }), &workspace)
    };
    assert_eq!(judged("/usr/bin:/bin"), Verdict::Allow);
    assert_eq!(judged("/usr/bin:/bin:IN"), Verdict::Allow);
    // The shell skips a file that is not executable.
    for path in ["IN:/usr/bin", "OUT:IN:/usr/bin", ".:/usr/bin", ":/usr/bin", "bin:/usr/bin", ""] {
        assert_eq!(judged(path), Verdict::Ask, "{path}");
    }
}
