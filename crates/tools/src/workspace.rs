//! The folder that file tools may see. Nothing outside can be reached through it.
//!
//! Paths are opened relative to a handle of the folder, and the kernel (or cap-std, step by step)
//! refuses every way out at the moment of opening: `..`, links, and links that are put there while
//! we look. The server's own files are refused wherever they are, by path and by inode.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions};
use transcript::ErrorInfo;

use crate::paths::real_path;
use crate::private_files::{Inode, PrivateFiles};
use crate::tool_error;

/// What is larger is neither read nor searched.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

pub(crate) struct Workspace {
    root: PathBuf,
    dir: Dir,
    private: PrivateFiles,
    /// The server's own files, which no tool may open.
    inodes: HashSet<Inode>,
}

/// Why a file's text cannot be had.
pub(crate) enum Unreadable {
    TooLarge(u64),
    Binary(u64),
    NotAFile,
    Private,
    Io(io::Error),
}

impl Workspace {
    pub(crate) fn open(root: &Path, private: &PrivateFiles) -> Result<Self, ErrorInfo> {
        let dir = Dir::open_ambient_dir(root, ambient_authority()).map_err(|error| {
            tool_error(format!("The workspace folder cannot be opened: {error}."))
        })?;
        let (private, inodes) = (private.clone(), private.inodes());
        Ok(Self { root: root.to_owned(), dir, private, inodes })
    }

    /// The path relative to the workspace; `.` is the workspace itself.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf, ErrorInfo> {
        let path = Path::new(path);
        let inside = if path.is_absolute() { self.strip_root(path) } else { Some(path.to_owned()) };
        let plain = plain(&inside.ok_or_else(|| outside(path))?);
        let full = self.root.join(&plain);
        if self.private.holds(&full) {
            return Err(if real_path(&full).is_some() { private(path) } else { uncertain(path) });
        }
        Ok(if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain })
    }

    pub(crate) fn folder(&self, path: &Path) -> Result<Dir, ErrorInfo> {
        let folder =
            self.dir.open_dir(path).map_err(|error| self.explain(&error, path, "folder"))?;
        let metadata = folder.dir_metadata();
        let metadata = metadata.map_err(|error| self.explain(&error, path, "folder"))?;
        if self.is_private(&metadata) { Err(private(path)) } else { Ok(folder) }
    }

    /// Looked at after opening, so that no link that is put there meanwhile helps.
    fn is_private(&self, opened: &Metadata) -> bool {
        self.inodes.contains(&(opened.dev(), opened.ino()))
    }

    pub(crate) fn is_file(&self, path: &Path) -> Result<bool, ErrorInfo> {
        let metadata = self.dir.metadata(path);
        metadata
            .map(|it| it.is_file())
            .map_err(|error| self.explain(&error, path, "file or folder"))
    }

    pub(crate) fn text(&self, path: &Path) -> Result<String, Unreadable> {
        // Asked before opening, because opening a pipe waits for somebody to write into it.
        if !self.dir.metadata(path)?.is_file() {
            return Err(Unreadable::NotAFile);
        }
        let file = self.dir.open(path)?;
        if self.is_private(&file.metadata()?) {
            return Err(Unreadable::Private);
        }
        read_text(&file)
    }

    /// Replaces what the file holds, and makes it and its folders where they are missing. True if there
    /// was no such file.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<bool, ErrorInfo> {
        let is_new = match self.dir.metadata(path) {
            // As in reading, a pipe would make us wait.
            Ok(metadata) if !metadata.is_file() => {
                let name = path.display();
                return Err(tool_error(format!("'{name}' is there already and is not a file.")));
            }
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(self.explain(&error, path, "file")),
        };
        let file = self.open_to_write(path).map_err(|error| self.explain(&error, path, "file"))?;
        let metadata = file.metadata().map_err(|error| self.explain(&error, path, "file"))?;
        if self.is_private(&metadata) {
            return Err(private(path));
        }
        replace(file, text).map_err(|error| self.explain(&error, path, "file")).map(|()| is_new)
    }

    /// With its folders. What it holds stays until it is known which file this is.
    fn open_to_write(&self, path: &Path) -> io::Result<File> {
        if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            self.dir.create_dir_all(parent)?;
        }
        self.dir.open_with(path, OpenOptions::new().write(true).create(true).truncate(false))
    }

    /// What to tell a model about a file or folder that cannot be opened.
    pub(crate) fn explain(&self, error: &io::Error, path: &Path, kind: &str) -> ErrorInfo {
        let name = path.display();
        match error.kind() {
            _ if is_escape(error) => outside(path),
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

    /// The root may be written in two ways, where it leads through a link.
    fn strip_root(&self, path: &Path) -> Option<PathBuf> {
        let real_root = self.root.canonicalize().ok();
        let stripped = path.strip_prefix(&self.root).ok();
        stripped.or_else(|| path.strip_prefix(real_root.as_ref()?).ok()).map(Path::to_owned)
    }

    /// A name in the same folder that may have been meant.
    fn similar(&self, path: &Path) -> Option<String> {
        const MAX_ENTRIES: usize = 1000;
        let wanted = path.file_name()?.to_str()?.to_lowercase();
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = self.dir.open_dir(parent.unwrap_or(Path::new("."))).ok()?;
        let names = folder.entries().ok()?.take(MAX_ENTRIES).flatten().map(|it| it.file_name());
        let close = names.filter_map(|name| {
            let name = name.into_string().ok()?;
            let far = distance(&wanted, &name.to_lowercase());
            (far <= wanted.chars().count() / 3).then_some((far, name))
        });
        let (_, name) = close.min()?;
        Some(parent.map_or(PathBuf::new(), Path::to_owned).join(name).display().to_string())
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The same path without detours, by its letters alone: what is judged is what is opened, also where
/// `link/..` would lead elsewhere. Ways out stay at its beginning, to be refused.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => (),
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// With `/` on every system.
pub(crate) fn display(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|it| it.to_string_lossy()).collect();
    parts.join("/")
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
        "'{}' is one of Callboard's own files, which tools cannot use. Do without it.",
        path.display()
    ))
}

/// The refusal of a path whose target nobody can tell, so that it may be a private file.
fn uncertain(path: &Path) -> ErrorInfo {
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

/// cap-std's own refusal carries no number of the operating system; a file without permission does.
fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// How many letters must change to make one word of the other (Levenshtein).
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
