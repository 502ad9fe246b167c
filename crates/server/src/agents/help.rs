//! What an installed program says of itself when it is asked for help, or for its version.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::time::timeout;

/// One that takes longer has said nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a program has answered, until another file is installed in its place.
#[derive(Debug, Default)]
pub(super) struct Learned {
    known: Mutex<Option<(Identity, Option<String>)>>,
    /// Held while it is asked, so that it is asked once.
    asking: tokio::sync::Mutex<()>,
}

/// An update changes the file.
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
    /// None if this file was not asked yet, or has said nothing.
    pub(super) fn of(&self, file: &Path) -> Option<String> {
        self.known_of(file).flatten()
    }

    fn known_of(&self, file: &Path) -> Option<Option<String>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, answer) = known.as_ref()?;
        (Some(identity) == Identity::of(file).as_ref()).then(|| answer.clone())
    }

    /// What it has said was not true: it is as if it had said that it can do nothing.
    pub(super) fn refute(&self, file: &Path) {
        let identity = Identity::of(file);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = identity.map(|it| (it, Some(String::new())));
    }

    /// Asks `file`, unless its answer is known.
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
        // What cannot be started says why when it is to work.
        let said = timeout(PATIENCE, answer).await.ok().and_then(Result::ok);
        // Pi keeps its stdout for its conversation.
        let words = said.and_then(|it| {
            // One that does not know the question may say so by its exit code alone; one that does
            // something else with it, such as a wrapper, has said nothing.
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
    async fn silence_is_no_answer_unless_it_is_a_refusal() {
        for (script, expected) in [
            ("echo help", Some("help\n")),
            ("echo help >&2", Some("help\n")),
            ("exit 2", Some("")),
            // Such as a wrapper that begins to work and finds nothing to do.
            ("cat", None),
        ] {
            assert_eq!(said(script).await.as_deref(), expected, "{script}");
        }
    }
}
