//! Which shell commands plainly change nothing and look at nothing outside the workspace.
//!
//! Not a judgement of shell scripts: a short list of programs with harmless options, and no sign
//! that means anything to the shell. Everything else is asked about.

use std::path::{Component, Path};

/// Programs that only look, whatever short options they get.
const LOOKING: &[&str] =
    &["ls", "pwd", "cat", "head", "tail", "wc", "echo", "whoami", "uname", "true", "false"];

/// Signs with a meaning of their own in a shell, all the ways to a second command among them.
const SIGNS: &[char] = &[
    ';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '[', ']', '*', '?', '!', '#', '~', '\\',
    '"', '\'', '\n', '\r', '\0',
];

/// Signs after which another command may begin.
const SEPARATORS: &[char] = &[';', '&', '|', '\n', '(', ')', '`', '{', '}'];

pub(super) fn is_single_command(command: &str) -> bool {
    !command.contains(SIGNS)
}

/// The commands that a line may consist of.
pub(super) fn parts(command: &str) -> impl Iterator<Item = &str> {
    command.split(SEPARATORS).map(str::trim).filter(|it| !it.is_empty())
}

pub(super) fn is_read_only(command: &str, workspace: &Path) -> bool {
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else { return false };
    let takes = |word: &str| match program {
        "date" => word.starts_with('+') || word == "-u",
        "echo" => true,
        _ => is_short_option(word) || stays_inside(word, workspace),
    };
    is_single_command(command)
        && (LOOKING.contains(&program) || program == "date")
        && words.all(takes)
}

fn is_short_option(word: &str) -> bool {
    let letters = word.strip_prefix('-');
    letters.is_some_and(|it| it.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// The shell would follow a link that leads out, which the file tools do not.
fn stays_inside(word: &str, workspace: &Path) -> bool {
    let path = Path::new(word);
    let is_plain =
        path.components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    let leads_out = || {
        let root = workspace.canonicalize().ok();
        let target = workspace.join(path).canonicalize().ok();
        root.zip(target).is_some_and(|(root, target)| !target.starts_with(root))
    };
    !word.starts_with('-') && is_plain && !leads_out()
}
