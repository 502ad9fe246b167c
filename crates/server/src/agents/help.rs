//! What an installed program says of itself when it is asked for help.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::time::timeout;

/// One that takes longer is taken for one that can do everything.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was learned from a program's help, until another file is installed in its place.
#[derive(Debug, Default)]
pub(super) struct Learned {
    known: Mutex<Option<(Identity, bool)>>,
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
    /// None if this file was not asked yet.
    pub(super) fn of(&self, file: &Path) -> Option<bool> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, answer) = known.as_ref()?;
        (Some(identity) == Identity::of(file).as_ref()).then_some(*answer)
    }

    /// Asks `file`, unless its answer is known.
    pub(super) async fn ask(
        &self,
        file: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>,
        environment: &[(OsString, OsString)],
        judge: fn(&str) -> bool,
    ) {
        let _asking = self.asking.lock().await;
        let Some(identity) = Identity::of(file).filter(|_| self.of(file).is_none()) else { return };
        let answer = Command::new(file)
            .args(arguments)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .output();
        // What cannot be started says why when it is to work.
        let said = timeout(PATIENCE, answer).await.ok().and_then(Result::ok);
        let answer = said.is_none_or(|it| judge(&String::from_utf8_lossy(&it.stdout)));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((identity, answer));
    }
}
