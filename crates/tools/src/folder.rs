//! A handle of a folder, from which everything below it is opened without following a link.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, statat};
use rustix::io::Errno;

/// Flags with which a folder is opened as a handle, from which its entries are then opened.
#[cfg(any(target_os = "linux", target_os = "android"))]
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const HANDLE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Flags with which a file is opened: links are not followed, and opening a named pipe does not
/// block.
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Permissions of a new folder, restricted by the umask of the process.
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o777);
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);

/// Handle of an open folder. Entries at relative paths are opened without following a symbolic
/// link.
pub(crate) struct Folder(File);

impl Folder {
    /// Opens a folder by its absolute path, without following a symbolic link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let below = path.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
        Self(openat(CWD, "/", HANDLE, Mode::empty())?.into()).folder(below)
    }

    /// Opens the folder at a path relative to this folder, without following a symbolic link.
    pub(crate) fn folder(&self, path: &Path) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?);
        for name in names(path) {
            folder = folder.child(name?)?;
        }
        Ok(folder)
    }

    /// Opens the folder at a path relative to this folder, and creates the folders that are
    /// missing.
    fn folder_to_write(&self, path: &Path) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?);
        for name in names(path) {
            let name = name?;
            match mkdirat(&folder.0, name, NEW_FOLDER) {
                Ok(()) | Err(Errno::EXIST) => folder = folder.child(name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(folder)
    }

    /// Opens the file at a path relative to this folder for reading, without following a symbolic
    /// link.
    pub(crate) fn file(&self, path: &Path) -> io::Result<File> {
        let (folder, name) = split(path)?;
        let folder = self.folder(folder)?;
        Ok(openat(&folder.0, name, FILE | OFlags::RDONLY, Mode::empty())?.into())
    }

    /// Opens the file at a path relative to this folder for writing, without truncating it. Creates
    /// the file and its folders if they are missing.
    pub(crate) fn file_to_write(&self, path: &Path) -> io::Result<File> {
        let (folder, name) = split(path)?;
        let folder = self.folder_to_write(folder)?;
        Ok(openat(&folder.0, name, FILE | OFlags::WRONLY | OFlags::CREATE, NEW_FILE)?.into())
    }

    /// Returns the type of the entry at a path relative to this folder. A symbolic link is not
    /// followed.
    pub(crate) fn file_type(&self, path: &Path) -> io::Result<FileType> {
        match split(path) {
            Ok((folder, name)) => self.folder(folder)?.type_of(name),
            Err(_) => Ok(FileType::Directory),
        }
    }

    /// Returns the size in bytes of an entry of this folder.
    pub(crate) fn size_of(&self, name: &OsStr) -> io::Result<u64> {
        let status = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(status.st_size.try_into().unwrap_or_default())
    }

    /// Iterates over the names and types of the entries of this folder, without `.` and `..`.
    pub(crate) fn entries(&self) -> io::Result<impl Iterator<Item = (OsString, FileType)>> {
        let readable = openat(&self.0, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let entries = Dir::new(readable)?.flatten().map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            (name, entry.file_type())
        });
        Ok(entries.filter(|(name, _)| name != "." && name != "..").filter_map(|(name, kind)| {
            // Not every file system lists the types. An entry that was removed meanwhile has none.
            let kind = if kind == FileType::Unknown { self.type_of(&name).ok()? } else { kind };
            Some((name, kind))
        }))
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    fn child(&self, name: &OsStr) -> io::Result<Self> {
        match openat(&self.0, name, HANDLE | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(folder) => Ok(Self(folder.into())),
            Err(Errno::NOTDIR) if self.type_of(name)? == FileType::Symlink => {
                Err(Errno::LOOP.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn type_of(&self, name: &OsStr) -> io::Result<FileType> {
        let status = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(status.st_mode))
    }
}

/// Returns whether an I/O error means that the path contains a symbolic link.
pub(crate) fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Splits a relative path into the path of its folder and its file name.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(|| io::ErrorKind::IsADirectory.into())
}

/// Iterates over the components of a relative path. A `..` or an absolute path is an error.
fn names(path: &Path) -> impl Iterator<Item = io::Result<&OsStr>> {
    path.components().filter(|it| *it != Component::CurDir).map(|it| match it {
        Component::Normal(name) => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A link anywhere in a path is an error, also one that leads to a file in the same folder.
    #[test]
    fn no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/file"), "text").unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        symlink("b", dir.path().join("a/link")).unwrap();
        symlink("file", dir.path().join("a/b/link")).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        assert!(folder.file(Path::new("a/b/file")).is_ok());
        for path in ["link/b/file", "a/link/file", "a/b/link", "link/b/new", "a/b/link/new"] {
            let path = Path::new(path);
            let found = [
                folder.file(path).map(drop),
                folder.file_to_write(path).map(drop),
                folder.folder(path).map(drop),
            ];
            assert!(found.iter().all(|it| it.as_ref().is_err_and(is_link)), "{path:?}: {found:?}");
        }
        for path in ["..", "a/../a/b/file", "/etc/passwd"] {
            let path = Path::new(path);
            assert!(folder.file(path).is_err() && folder.folder(path).is_err(), "{path:?}");
            assert!(folder.file_to_write(path).is_err(), "{path:?}");
        }
    }
}
