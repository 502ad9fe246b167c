//! Backups: the whole store as one file, of one moment, while everything else goes on.
//!
//! The file is a database like ours: put into an empty folder as `callboard.db`, it can be opened.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Store, lock};

impl Store {
    /// Gives the size of the file, in bytes. One that is there already stays as it is. Until the
    /// backup is whole it has another name, in the same folder.
    pub async fn backup(&self, to: &Path) -> Result<u64, Error> {
        let to = to.to_owned();
        self.off_thread(move |store| store.write_backup(&to)).await
    }

    fn write_backup(&self, to: &Path) -> Result<u64, Error> {
        refuse_existing(to)?;
        let part = part_name(to)?;
        let done = self.write_part(&part).and_then(|size| {
            refuse_existing(to)?;
            fs::rename(&part, to)?;
            sync_folder(to)?;
            Ok(size)
        });
        if done.is_err() {
            // What failed matters more than that this may fail too.
            let _ = fs::remove_file(&part);
        }
        done
    }

    fn write_part(&self, part: &Path) -> Result<u64, Error> {
        // Made here and empty, which SQLite accepts: so nobody else can ever read it.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        lock::private(&mut options);
        let file = options.open(part)?;
        let name = part.to_str().ok_or_else(|| invalid("the file's name is not text"))?;
        self.inner.readers.apart()?.execute("VACUUM INTO ?1", [name])?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

fn refuse_existing(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(_) => Err(Error::Exists(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Beside the file, and like no other backup's.
fn part_name(to: &Path) -> Result<PathBuf, Error> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = to.file_name().ok_or_else(|| invalid("the backup needs the name of a file"))?;
    let (pid, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    Ok(to.with_file_name(format!(".{}.{pid}-{number}.part", name.to_string_lossy())))
}

/// The new name must survive what the file survives.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if cfg!(unix) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            File::open(parent)?.sync_all()
        }
        _ => Ok(()),
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
