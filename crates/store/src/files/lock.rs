//! The lock of the data folder: a locked file that names the process.
//!
//! The lock is the operating system's and goes with the process, so a crash leaves none behind. What
//! the file says is for people and for programs that look for a running server.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use transcript::Millis;

use crate::OpenError;

const FILE: &str = "callboard.lock";

/// The process that has locked a data folder, as its lock file names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Holder {
    /// Process id; zero if the lock file could not be read.
    pub pid: u32,
    /// Command of the process, such as `callboard serve`.
    pub command: String,
    /// Time at which the process opened the data folder.
    pub since: Millis,
    /// Address at which the process can be reached; `None` if it has not set one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The file may be half written at this moment; the lock itself is certain.
        if self.pid == 0 {
            return f.write_str("another process");
        }
        write!(f, "`{}` (process {}, since {}", self.command, self.pid, self.since)?;
        if let Some(address) = &self.address {
            write!(f, ", at {address}")?;
        }
        f.write_str(")")
    }
}

/// Returns the process that has locked a data folder; `None` if none has. Changes nothing.
pub fn holder_of(dir: &Path) -> Option<Holder> {
    let path = dir.join(FILE);
    let file = File::open(&path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(holder(&path)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

pub(crate) struct Lock {
    held: Mutex<Option<(File, Holder)>>,
}

impl Lock {
    pub(crate) fn take(dir: &Path, command: String, since: Millis) -> Result<Self, OpenError> {
        let path = dir.join(FILE);
        let failed = |error| OpenError::Io { path: path.clone(), error };
        let file = open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Held { dir: dir.to_owned(), by: holder(&path) });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }

        let holder = Holder { pid: std::process::id(), command, since, address: None };
        match write(&file, &holder) {
            // The lock is held regardless of the file's content.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                tracing::warn!(%error, "the lock file does not say who holds it");
            }
            written => written.map_err(failed)?,
        }
        Ok(Self { held: Mutex::new(Some((file, holder))) })
    }

    pub(crate) fn set_address(&self, address: &str) -> io::Result<()> {
        match &mut *self.held() {
            Some((file, holder)) => {
                holder.address = Some(address.to_owned());
                match write(file, holder) {
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                        tracing::warn!(%error, "the lock file does not say where the server is");
                        Ok(())
                    }
                    written => written,
                }
            }
            None => Ok(()),
        }
    }

    pub(crate) fn release(&self) {
        // The words go first: a file without a lock should not name anybody.
        if let Some((file, _)) = self.held().take() {
            let _ = file.set_len(0);
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<(File, Holder)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    private(&mut options);
    options.open(path)
}

/// Restricts files that are created with these options to their owner.
pub(crate) fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

fn write(mut file: &File, holder: &Holder) -> io::Result<()> {
    let text = serde_json::to_string(holder)? + "\n";
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

fn holder(path: &Path) -> Holder {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}
