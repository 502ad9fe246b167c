//! Disk space reserved for a full disk: a file that is deleted so that the server can start and sessions
//! can be deleted.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files::lock;

const FILE: &str = "callboard.reserve";
/// Size of the reserve in bytes: enough for the WAL index and for several steps of a deletion.
const BYTES: u64 = 1024 * 1024;

pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(crate) fn of(dir: &Path) -> Self {
        Self { path: dir.join(FILE) }
    }

    /// Creates the file of the reserve or extends it to its full size, if there is space for it.
    pub(crate) fn fill(&self) {
        let len = self.len();
        if len >= BYTES {
            return;
        }
        if let Err(error) = self.extend(len) {
            tracing::warn!(%error, "cannot fill the reserve; deletions may fail when the disk is full");
            self.shrink_to(len);
        }
    }

    /// Frees half of the reserve, or all of it if only half is left: a start needs little, and a
    /// deletion after it needs the rest. Returns false if there was no reserve.
    pub(crate) fn release(&self) -> bool {
        let len = self.len();
        if len == 0 {
            return false;
        }
        self.shrink_to(if len > BYTES / 2 { BYTES / 2 } else { 0 });
        tracing::warn!(
            "the disk is full: a part of the reserve was released; delete sessions or free space"
        );
        true
    }

    fn len(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |it| it.len())
    }

    fn shrink_to(&self, len: u64) {
        let done = match len {
            0 => fs::remove_file(&self.path),
            len => OpenOptions::new().write(true).open(&self.path).and_then(|it| it.set_len(len)),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "cannot shrink the reserve");
        }
    }

    fn extend(&self, from: u64) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        lock::private(&mut options);
        let mut file = options.open(&self.path)?;
        // Pseudo-random bytes: some file systems do not store zeros, or compress them.
        let mut state = 0x9e37_79b9_u32;
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        let block: Vec<u8> = (from..BYTES).map(|_| byte()).collect();
        file.write_all(&block)?;
        file.sync_all()
    }
}
