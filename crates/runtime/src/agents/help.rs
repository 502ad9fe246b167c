//! Help texts and versions that installed programs print about themselves.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::time::timeout;

/// Time limit for a program's output; a program that takes longer counts as silent.
const HELP_TIMEOUT: Duration = Duration::from_secs(10);

/// Output of a program about itself, cached until the file of the program changes.
#[derive(Debug, Default)]
pub(super) struct Learned {
    known: Mutex<Option<(Identity, Option<String>)>>,
    /// Held while the program runs, so that it runs once.
    asking: tokio::sync::Mutex<()>,
}

/// Identity of a program's file. An update changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    file: PathBuf,
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Identity {
    fn of(file: &Path) -> Option<Self> {
        let about = file.metadata().ok()?;
        let modified = about.modified().ok();
        Some(Self { file: file.to_owned(), modified, bytes: about.len() })
    }
}

impl Learned {
    /// Returns the output for this file. `None` if the program has not run yet or was silent.
    pub(super) fn of(&self, file: &Path) -> Option<String> {
        self.known_of(file).flatten()
    }

    fn known_of(&self, file: &Path) -> Option<Option<String>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, answer) = known.as_ref()?;
        (Some(identity) == Identity::of(file).as_ref()).then(|| answer.clone())
    }

    /// Replaces the cached output with an empty one, after the program lacked a feature that it had
    /// listed.
    pub(super) fn refute(&self, file: &Path) {
        let identity = Identity::of(file);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = identity.map(|it| (it, Some(String::new())));
    }

    /// Runs `file` and caches its output, unless that is known.
    #[expect(clippy::disallowed_methods, reason = "the process ends with this call")]
    pub(super) async fn ask(
        &self,
        file: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>,
        environment: &[(OsString, OsString)],
    ) {
        let _asking = self.asking.lock().await;
        let Some(identity) = Identity::of(file).filter(|_| self.known_of(file).is_none()) else {
            return;
        };
        let answer = Command::new(file)
            .args(arguments)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .output();
        // A program that cannot be started reports the reason when it is launched.
        let said = timeout(HELP_TIMEOUT, answer).await.ok().and_then(Result::ok);
        // Pi writes to stdout only during a conversation.
        let words = said.and_then(|it| {
            // A program that does not know the option may only report that by its exit code. A
            // wrapper that ignores the option counts as silent.
            let is_answer = !it.status.success() || !it.stdout.is_empty() || !it.stderr.is_empty();
            is_answer.then_some(if it.stdout.is_empty() { it.stderr } else { it.stdout })
        });
        let answer = words.map(|it| String::from_utf8_lossy(&it).into_owned());
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((identity, answer));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    async fn said(script: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let learned = Learned::default();
        learned.ask(&file, ["app-server", "--help"], &[]).await;
        learned.of(&file)
    }

    #[tokio::test]
    async fn silent_programs_have_no_output_unless_they_fail() {
        for (script, expected) in [
            ("echo help", Some("help\n")),
            ("echo help >&2", Some("help\n")),
            ("exit 2", Some("")),
            // For example a wrapper that starts to work and finds no input.
            ("cat", None),
        ] {
            assert_eq!(said(script).await.as_deref(), expected, "{script}");
        }
    }
}
