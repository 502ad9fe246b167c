//! Backups: the whole store as one file, of one moment, while everything else goes on.
//!
//! The file is a database like ours: put into an empty folder as `callboard.db`, it can be opened.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;

use crate::files::lock;
use crate::sql::{Db, params};
use crate::writer::Job;
use crate::{Error, Store};

/// First bytes of every SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";

impl Store {
    /// Writes a backup of the whole store to a new file and returns its size in bytes. Fails if the
    /// file exists. Until the backup is complete it has another name in the same folder.
    pub async fn backup(&self, to: &Path) -> Result<u64, Error> {
        let to = to.to_owned();
        self.on_reader_thread(move |store| store.write_backup(&to)).await
    }

    fn write_backup(&self, to: &Path) -> Result<u64, Error> {
        if self.readers().dir().is_none() {
            return Err(Error::OnServer);
        }
        refuse_existing(to)?;
        remove_dead_parts(to.parent().unwrap_or(Path::new("")));
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
        // While this lock is held, no other process treats the file as left behind.
        file.lock()?;
        match self.check_files() {
            Ok(()) => copy(&self.readers().apart()?, part)?,
            // A new connection would open another file, or none.
            Err(_) => self.rescue(part)?,
        }
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }

    fn rescue(&self, to: &Path) -> Result<(), Error> {
        let (done, answer) = oneshot::channel();
        self.send(Job::Rescue { to: to.to_owned(), done });
        answer.blocking_recv().unwrap_or(Err(Error::Closed))
    }
}

/// Copies a database to an empty file.
pub(crate) fn copy(db: &Db, to: &Path) -> Result<(), Error> {
    let name = to.to_str().ok_or_else(|| invalid("the file's name is not text"))?;
    db.execute("VACUUM INTO ?1", params![name]).map(drop)
}

/// Removes the unfinished files that killed backups have left in a folder. A backup in progress
/// holds a lock on its file; files of versions without that lock are kept while a process with
/// their pid lives.
pub(crate) fn remove_dead_parts(folder: &Path) {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(pid_of_part) else { continue };
        let path = entry.path();
        if is_dead(pid) && is_unfinished_backup(&path) {
            match fs::remove_file(&path) {
                Ok(()) => tracing::info!(file = %path.display(), "removed an unfinished backup"),
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "an unfinished backup stays");
                }
            }
        }
    }
}

/// Returns the pid in the name of an unfinished backup, see [`part_name`]; `None` for other names.
fn pid_of_part(name: &str) -> Option<u32> {
    let (_, made_by) = name.strip_prefix('.')?.strip_suffix(".part")?.rsplit_once('.')?;
    let (pid, number) = made_by.split_once('-')?;
    number.parse::<u64>().ok()?;
    pid.parse().ok()
}

fn is_dead(pid: u32) -> bool {
    // This process locks its own files. Without /proc no process is known to be dead.
    pid == std::process::id()
        || Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

/// Returns whether a file can be an unfinished backup: an SQLite file or an empty one, and not
/// locked.
fn is_unfinished_backup(path: &Path) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let mut magic = Vec::new();
    let read = Read::by_ref(&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic);
    read.is_ok() && (magic.is_empty() || magic == MAGIC) && file.try_lock().is_ok()
}

fn refuse_existing(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(_) => Err(Error::Exists(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the name of a backup until it is complete: in the same folder, and different from that
/// of any other backup.
fn part_name(to: &Path) -> Result<PathBuf, Error> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = to.file_name().ok_or_else(|| invalid("the backup needs the name of a file"))?;
    let (pid, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    Ok(to.with_file_name(format!(".{}.{pid}-{number}.part", name.to_string_lossy())))
}

/// Syncs the folder of a file to disk, so that the file's new name survives a power loss.
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
