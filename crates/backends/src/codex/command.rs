//! Unwraps shell commands: Codex runs `git status` as `/bin/bash -lc 'git status'`. People, and rules about
//! commands, want the script inside.

use std::borrow::Cow;

/// Shells whose `-c` and `-lc` are unwrapped. A file with such a name in another folder may be any
/// program.
const SHELLS: [&str; 9] = [
    "bash",
    "sh",
    "zsh",
    "/bin/bash",
    "/bin/sh",
    "/bin/zsh",
    "/usr/bin/bash",
    "/usr/bin/sh",
    "/usr/bin/zsh",
];

/// Returns the script of a command that is a shell running a script. Any other command is returned
/// unchanged.
pub(super) fn script(command: &str) -> Cow<'_, str> {
    inner(command).map_or(Cow::Borrowed(command), Cow::Owned)
}

fn inner(command: &str) -> Option<String> {
    let (shell, rest) = command.split_once(' ')?;
    let (flag, quoted) = rest.split_once(' ')?;
    let runs_script = SHELLS.contains(&shell) && matches!(flag, "-lc" | "-c");
    if !runs_script {
        return None;
    }
    one_word(quoted)
}

/// Removes shell quoting from a text. `None` unless the text is one word without expansions.
fn one_word(text: &str) -> Option<String> {
    let mut word = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => loop {
                match letters.next()? {
                    '\'' => break,
                    inside => word.push(inside),
                }
            },
            '"' => loop {
                match letters.next()? {
                    '"' => break,
                    '\\' => match letters.next()? {
                        escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                        other => word.extend(['\\', other]),
                    },
                    '$' | '`' => return None,
                    inside => word.push(inside),
                }
            },
            '\\' => word.push(letters.next().filter(|it| *it != '\n')?),
            plain if plain.is_ascii_alphanumeric() || "_-./:=@%+,".contains(plain) => {
                word.push(plain);
            }
            _ => return None,
        }
    }
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::script;

    #[test]
    fn shell_wrappers_are_stripped() {
        for (command, expected) in [
            ("/bin/bash -lc 'touch approved.txt'", "touch approved.txt"),
            ("bash -c ls", "ls"),
            ("/usr/bin/zsh -lc \"echo \\\"it's\\\" \\$HOME\"", "echo \"it's\" $HOME"),
            (r"/bin/sh -c 'it'\''s'", "it's"),
            ("/bin/bash -lc 'a\nb'", "a\nb"),
        ] {
            assert_eq!(script(command), expected);
        }
    }

    #[test]
    fn other_commands_are_unchanged() {
        for command in [
            "",
            "ls",
            "git status",
            "/bin/bash -lc",
            "/bin/bash -lc ",
            "/bin/bash script.sh",
            "/bin/bash -x 'ls'",
            "/bin/bash -lc 'ls' extra",
            "/bin/bash -lc 'ls'; rm x",
            "/bin/bash -lc \"$(rm x)\"",
            "/bin/bash -lc 'open",
            "/bin/bash -lc $HOME",
            "rm -c 'x'",
            "./bash -c 'ls'",
            "/tmp/bash -lc 'ls'",
            "x/sh -c ls",
        ] {
            assert_eq!(script(command), command);
        }
    }

    proptest! {
        #[test]
        fn quoted_scripts_round_trip(inside in "[^\u{0}]{1,40}") {
            let quoted = inside.replace('\'', r"'\''");
            let command = format!("/bin/bash -lc '{quoted}'");
            prop_assert_eq!(script(&command), inside);
        }
    }
}
