//! The workspace: the folder that file tools are confined to (the sandbox of the file tools).
//!
//! A path is resolved once, when its call is prepared; the policy judges the result. Tools open that file or
//! folder from a handle of the workspace without following a link, so a link that is swapped in meanwhile is
//! an error. The server's own files are refused everywhere, by path and by inode.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FileType;
use transcript::ErrorInfo;

use crate::folder::{Folder, is_link};
use crate::paths::real_path;
use crate::private_files::{Inode, PrivateFiles};
use crate::tool_error;

/// Maximum size in bytes of a workspace file that a tool reads or searches.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// An open workspace folder, through which tools open files and folders inside it.
pub(crate) struct Workspace {
    root: PathBuf,
    folder: Folder,
    private: PrivateFiles,
    /// Inodes of the server's private files, which no tool may open.
    inodes: HashSet<Inode>,
}

/// A path inside the workspace, relative to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilePath {
    /// The path in the workspace as given, normalised, for messages; `.` is the workspace itself.
    pub(crate) given: PathBuf,
    /// The path in the workspace with its links resolved, for opening; empty for the workspace
    /// itself.
    pub(crate) real: PathBuf,
}

/// Reason why a workspace file cannot be read as text.
pub(crate) enum Unreadable {
    TooLarge(u64),
    Binary(u64),
    NotAFile,
    Private,
    Io(io::Error),
}

impl FilePath {
    /// Resolves a path that an agent gave. Fails if it leads out of the workspace or its target is
    /// not certain. The workspace has two absolute paths: as configured, and `root`, its real one.
    pub(crate) fn resolve(path: &Path, workspace: &Path, root: &Path) -> Result<Self, ErrorInfo> {
        let normal = normalize(path);
        let inside = normal.strip_prefix(workspace).or_else(|_| normal.strip_prefix(root));
        let given = inside.unwrap_or(&normal);
        let real = real_path(&root.join(given)).ok_or_else(|| uncertain(path))?;
        let real = real.strip_prefix(root).map_err(|_| outside(path))?.to_owned();
        let given = match given {
            given if given.as_os_str().is_empty() => PathBuf::from("."),
            given if given.is_absolute() => real.clone(),
            given => given.to_owned(),
        };
        Ok(Self { given, real })
    }

    /// Returns the path of an entry of the folder at this path. The entry must be no symbolic link.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Self {
        let is_root = self.given == Path::new(".");
        let given = if is_root { PathBuf::new() } else { self.given.clone() };
        Self { given: given.join(&name), real: self.real.join(&name) }
    }
}

impl Workspace {
    /// Opens a workspace by its real path. Fails if a link was placed there meanwhile.
    pub(crate) fn open(root: &Path, private: &PrivateFiles) -> Result<Self, ErrorInfo> {
        let folder = open_root(root)?;
        let (private, inodes) = (private.clone(), private.inodes());
        Ok(Self { root: root.to_owned(), folder, private, inodes })
    }

    /// Resolves a path that a tool opens besides the one in its arguments. `None` if it leads out
    /// of the workspace or its target is not certain.
    pub(crate) fn resolve(&self, path: &Path) -> Option<FilePath> {
        FilePath::resolve(path, &self.root, &self.root).ok()
    }

    /// Returns an error if a path leads to the server's private files or may lead there.
    pub(crate) fn check(&self, path: &FilePath) -> Result<(), ErrorInfo> {
        let full = self.root.join(&path.given);
        if !self.private.holds(&full) {
            return Ok(());
        }
        Err(if real_path(&full).is_some() { private(&path.given) } else { uncertain(&path.given) })
    }

    pub(crate) fn folder(&self, path: &FilePath) -> Result<Folder, ErrorInfo> {
        let folder = self.folder.folder(&path.real);
        let folder = folder.map_err(|error| self.explain(&error, path, "folder"))?;
        let metadata = folder.metadata();
        let metadata = metadata.map_err(|error| self.explain(&error, path, "folder"))?;
        if self.is_private(&metadata) { Err(private(&path.given)) } else { Ok(folder) }
    }

    /// Returns whether an open file or folder belongs to the server's private files. Checked after
    /// opening, so that swapping it has no effect.
    fn is_private(&self, opened: &Metadata) -> bool {
        self.inodes.contains(&(opened.dev(), opened.ino()))
    }

    pub(crate) fn is_file(&self, path: &FilePath) -> Result<bool, ErrorInfo> {
        let found = self.folder.file_type(&path.real);
        found
            .map(|it| it == FileType::RegularFile)
            .map_err(|error| self.explain(&error, path, "file or folder"))
    }

    pub(crate) fn text(&self, path: &FilePath) -> Result<String, Unreadable> {
        let file = match self.folder.file(&path.real) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                return Err(Unreadable::NotAFile);
            }
            file => file?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Unreadable::NotAFile);
        }
        if self.is_private(&metadata) {
            return Err(Unreadable::Private);
        }
        read_text(&file)
    }

    /// Replaces the content of a workspace file, creating it and its folders if they are missing.
    /// Returns whether the file is new.
    pub(crate) fn write(&self, path: &FilePath, text: &str) -> Result<bool, ErrorInfo> {
        let explain = |error: io::Error| self.explain(&error, path, "file");
        let is_new = match self.folder.file_type(&path.real) {
            Ok(FileType::RegularFile) => false,
            Ok(FileType::Symlink) => return Err(changed(&path.given)),
            Ok(_) => {
                let name = path.given.display();
                return Err(tool_error(format!("'{name}' is there already and is not a file.")));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(explain(error)),
        };
        let file = self.folder.file_to_write(&path.real).map_err(explain)?;
        // The file may turn out to be private, so it is truncated only then.
        if self.is_private(&file.metadata().map_err(explain)?) {
            return Err(private(&path.given));
        }
        replace(file, text).map_err(explain)?;
        Ok(is_new)
    }

    /// Returns the error, written for a model, about a workspace file or folder that cannot be
    /// opened.
    pub(crate) fn explain(&self, error: &io::Error, path: &FilePath, kind: &str) -> ErrorInfo {
        let name = path.given.display();
        match error.kind() {
            _ if is_link(error) => changed(&path.given),
            io::ErrorKind::NotFound => {
                let hint = self.similar(path).map(|it| format!(" Did you mean '{it}'?"));
                let hint = hint.unwrap_or_default();
                tool_error(format!("There is no {kind} '{name}' in the workspace.{hint}"))
            }
            io::ErrorKind::NotADirectory => tool_error(format!(
                "'{name}' is not a folder, or leads through something that is not."
            )),
            _ => tool_error(format!("'{name}' cannot be opened: {error}.")),
        }
    }

    /// Returns the path of an entry whose name is similar to a missing one in the same folder.
    fn similar(&self, path: &FilePath) -> Option<String> {
        const MAX_ENTRIES: usize = 1000;
        let wanted = path.given.file_name()?.to_str()?.to_lowercase();
        let folder = self.folder.folder(path.real.parent()?).ok()?;
        let names = folder.entries().ok()?.take(MAX_ENTRIES);
        let close = names.filter_map(|(name, _)| {
            let name = name.into_string().ok()?;
            let distance = distance(&wanted, &name.to_lowercase());
            (distance <= wanted.chars().count() / 3).then_some((distance, name))
        });
        let (_, name) = close.min()?;
        Some(path.given.with_file_name(name).display().to_string())
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Normalises a path lexically, so that the path that the policy judges is the one that is opened,
/// even where `link/..` would lead elsewhere. Leading `..` are kept, to be refused.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => (),
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Returns a workspace path as text, with `/` on every system.
pub(crate) fn display(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|it| it.to_string_lossy()).collect();
    parts.join("/")
}

/// Opens the folder of a workspace by its real path. Fails if a link was placed there meanwhile.
pub(crate) fn open_root(root: &Path) -> Result<Folder, ErrorInfo> {
    Folder::open(root).map_err(|error| match is_link(&error) {
        true => changed(root),
        false => tool_error(format!("The workspace folder cannot be opened: {error}.")),
    })
}

fn read_text(file: &File) -> Result<String, Unreadable> {
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    // One byte more than allowed: the file may grow while it is read.
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Unreadable::TooLarge(size));
    }
    if bytes.contains(&0) {
        return Err(Unreadable::Binary(size));
    }
    String::from_utf8(bytes).map_err(|_| Unreadable::Binary(size))
}

fn replace(mut file: File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

pub(crate) fn private(path: &Path) -> ErrorInfo {
    tool_error(format!(
        "'{}' is one of Callboard's own files, which tools cannot use. Continue without it.",
        path.display()
    ))
}

/// Returns the error for a path whose target is not certain, so that it may be a private file.
pub(crate) fn uncertain(path: &Path) -> ErrorInfo {
    tool_error(format!(
        "'{}' cannot be opened: it is not certain where its links lead. Use a direct path.",
        path.display()
    ))
}

fn outside(path: &Path) -> ErrorInfo {
    tool_error(format!(
        "'{}' is outside the workspace folder. Use a path inside it, relative to it.",
        path.display()
    ))
}

/// Returns the error for a path in which a link was placed after the tool call was prepared.
fn changed(path: &Path) -> ErrorInfo {
    tool_error(format!(
        "'{}' leads elsewhere than when the call was checked, so it was not opened. Try again.",
        path.display()
    ))
}

/// Returns the edit distance of two words (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
