//! Help texts and versions that installed programs print about themselves.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::time::timeout;

use crate::sync::lock;

/// Time limit for a program to print its help text or version. A program that takes longer counts
/// as one without output.
const HELP_TIMEOUT: Duration = Duration::from_secs(10);

/// Cache of the help text or version that a program prints, valid until the program's file changes.
#[derive(Debug, Default)]
pub(super) struct HelpCache {
    cached: Mutex<Option<(Identity, Option<String>)>>,
    /// Lock that is held while the program runs, so that concurrent callers run it once.
    running: tokio::sync::Mutex<()>,
}

/// Identity of a program's file, which changes when the program is updated.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    file: PathBuf,
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Identity {
    fn of(file: &Path) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        let modified = metadata.modified().ok();
        Some(Self { file: file.to_owned(), modified, bytes: metadata.len() })
    }
}

impl HelpCache {
    /// Returns the cached help text or version of the program in this file. `None` if the program
    /// has not run or printed nothing.
    pub(super) fn get(&self, file: &Path) -> Option<String> {
        self.cached_for(file).flatten()
    }

    fn cached_for(&self, file: &Path) -> Option<Option<String>> {
        let cached = lock(&self.cached);
        let (identity, text) = cached.as_ref()?;
        (Some(identity) == Identity::of(file).as_ref()).then(|| text.clone())
    }

    /// Replaces the cached help text by an empty one, because the program lacks a feature that its
    /// help text lists.
    pub(super) fn invalidate(&self, file: &Path) {
        let identity = Identity::of(file);
        let mut cached = lock(&self.cached);
        *cached = identity.map(|it| (it, Some(String::new())));
    }

    /// Runs the program in `file` with these arguments and caches its output, unless it is cached
    /// already.
    #[expect(clippy::disallowed_methods, reason = "the process ends with this call")]
    pub(super) async fn fill(
        &self,
        file: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>,
        environment: &[(OsString, OsString)],
    ) {
        let _running = self.running.lock().await;
        let Some(identity) = Identity::of(file).filter(|_| self.cached_for(file).is_none()) else {
            return;
        };
        let output = Command::new(file)
            .args(arguments)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .output();
        // A program that cannot be started reports the reason when it is launched.
        let output = timeout(HELP_TIMEOUT, output).await.ok().and_then(Result::ok);
        // Pi writes to stdout only during a conversation.
        let bytes = output.and_then(|it| {
            // A program that does not know the option may report that only by its exit code. A
            // wrapper that ignores the option prints nothing and succeeds.
            let is_help = !it.status.success() || !it.stdout.is_empty() || !it.stderr.is_empty();
            is_help.then_some(if it.stdout.is_empty() { it.stderr } else { it.stdout })
        });
        let text = bytes.map(|it| String::from_utf8_lossy(&it).into_owned());
        *lock(&self.cached) = Some((identity, text));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    async fn help_of(script: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let cache = HelpCache::default();
        cache.fill(&file, ["app-server", "--help"], &[]).await;
        cache.get(&file)
    }

    #[tokio::test]
    async fn programs_without_output_have_no_help_unless_they_fail() {
        for (script, expected) in [
            ("echo help", Some("help\n")),
            ("echo help >&2", Some("help\n")),
            ("exit 2", Some("")),
            // For example a wrapper that ignores the option and reads its empty input.
            ("cat", None),
        ] {
            assert_eq!(help_of(script).await.as_deref(), expected, "{script}");
        }
    }
}
