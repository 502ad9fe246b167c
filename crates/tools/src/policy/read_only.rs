//! Read-only commands: shell commands that change nothing and read nothing outside the workspace.
//!
//! An allowlist of programs with harmless options, without any special character of the shell. It does not
//! analyse scripts; everything else needs an approval.

use std::ffi::OsStr;
use std::path::{Component, Path};

use super::command;
use crate::paths::{leads_into, real_path};
use crate::processes::is_executable;

/// Read-only shell programs with the allowed letters of their options. None of these options
/// follows links during a traversal, waits for more input, or names a file.
const READ_ONLY: &[(&str, &str)] = &[
    ("ls", "aAlh1dFprtSsi"),
    ("cat", "nbsETAvet"),
    ("head", "ncqv0123456789"),
    ("tail", "ncqv0123456789"),
    ("wc", "lwcmL"),
    ("pwd", "LP"),
    ("uname", "asnrvmpio"),
    ("date", "u"),
    ("whoami", ""),
    ("true", ""),
    ("false", ""),
    ("echo", ""),
];

/// Returns whether a shell command is read-only and stays inside the workspace. `search_path` is
/// the `PATH` of the command.
pub(super) fn is_read_only(text: &str, workspace: &Path, search_path: &OsStr) -> bool {
    let mut words = command::words(text);
    let program = words.next();
    let Some((program, letters)) = READ_ONLY.iter().find(|(name, _)| Some(*name) == program) else {
        return false;
    };
    let takes = |word: &str| match *program {
        "echo" => true,
        "date" => word.starts_with('+') || is_option(word, letters),
        _ => is_option(word, letters) || stays_inside(word, workspace),
    };
    command::is_single(text) && words.all(takes) && is_installed(program, workspace, search_path)
}

/// Returns whether the shell finds a program outside the workspace, or has it built in. A program
/// of the same name in the workspace, or in a relative folder of `PATH`, may do anything.
fn is_installed(program: &str, workspace: &Path, search_path: &OsStr) -> bool {
    for folder in std::env::split_paths(search_path) {
        let file = folder.join(program);
        if !folder.is_absolute() {
            return false;
        }
        if is_executable(&file) {
            return real_path(&file).is_some() && !leads_into(&file, workspace);
        }
    }
    true
}

fn is_option(word: &str, letters: &str) -> bool {
    let given = word.strip_prefix('-').filter(|it| !it.is_empty());
    given.is_some_and(|it| it.chars().all(|it| letters.contains(it)))
}

/// Returns whether a path in a shell command stays inside the workspace, with its links resolved.
/// Unlike the file tools, the shell would follow a link that leads out.
fn stays_inside(word: &str, workspace: &Path) -> bool {
    let path = Path::new(word);
    let is_plain =
        path.components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    !word.starts_with('-') && is_plain && leads_into(&workspace.join(path), workspace)
}
