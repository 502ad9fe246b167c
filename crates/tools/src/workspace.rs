//! The workspace: the folder that file tools are confined to (the sandbox of the file tools).
//!
//! Paths are opened relative to a handle of the folder, and the kernel (or cap-std, component by component)
//! refuses every escape at the moment of opening: `..`, links, and links that are swapped in concurrently.
//! The server's own files are refused everywhere, by path and by inode.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions};
use transcript::ErrorInfo;

use crate::paths::real_path;
use crate::private_files::{Inode, PrivateFiles};
use crate::tool_error;

/// Maximum size in bytes of a file that is read or searched.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// An open workspace folder.
pub(crate) struct Workspace {
    root: PathBuf,
    dir: Dir,
    private: PrivateFiles,
    /// The server's own files, which no tool may open.
    inodes: HashSet<Inode>,
}

/// Reason why a file cannot be read as text.
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

    /// Returns the path relative to the workspace; `.` is the workspace itself.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf, ErrorInfo> {
        let path = Path::new(path);
        let inside = if path.is_absolute() { self.strip_root(path) } else { Some(path.to_owned()) };
        let normal = normalize(&inside.ok_or_else(|| outside(path))?);
        let full = self.root.join(&normal);
        if self.private.holds(&full) {
            return Err(if real_path(&full).is_some() { private(path) } else { uncertain(path) });
        }
        Ok(if normal.as_os_str().is_empty() { PathBuf::from(".") } else { normal })
    }

    pub(crate) fn folder(&self, path: &Path) -> Result<Dir, ErrorInfo> {
        let folder =
            self.dir.open_dir(path).map_err(|error| self.explain(&error, path, "folder"))?;
        let metadata = folder.dir_metadata();
        let metadata = metadata.map_err(|error| self.explain(&error, path, "folder"))?;
        if self.is_private(&metadata) { Err(private(path)) } else { Ok(folder) }
    }

    /// Returns whether an open file is private. Checked after opening, so that swapping in a link has no
    /// effect.
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
        // Checked before opening, because opening a pipe blocks until it has a writer.
        if !self.dir.metadata(path)?.is_file() {
            return Err(Unreadable::NotAFile);
        }
        let file = self.dir.open(path)?;
        if self.is_private(&file.metadata()?) {
            return Err(Unreadable::Private);
        }
        read_text(&file)
    }

    /// Replaces the content of a file, creating it and its folders if they are missing. Returns whether the
    /// file is new.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<bool, ErrorInfo> {
        let is_new = match self.dir.metadata(path) {
            // As in reading, opening a pipe would block.
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

    /// Opens a file for writing and creates its folders. Does not truncate it, because it may turn out to be
    /// private.
    fn open_to_write(&self, path: &Path) -> io::Result<File> {
        if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            self.dir.create_dir_all(parent)?;
        }
        self.dir.open_with(path, OpenOptions::new().write(true).create(true).truncate(false))
    }

    /// Returns the error, for a model, of a file or folder that cannot be opened.
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

    /// Strips the root from an absolute path, as configured or as its real path.
    fn strip_root(&self, path: &Path) -> Option<PathBuf> {
        let real_root = self.root.canonicalize().ok();
        let stripped = path.strip_prefix(&self.root).ok();
        stripped.or_else(|| path.strip_prefix(real_root.as_ref()?).ok()).map(Path::to_owned)
    }

    /// Returns the path of an entry in the same folder with a similar name.
    fn similar(&self, path: &Path) -> Option<String> {
        const MAX_ENTRIES: usize = 1000;
        let wanted = path.file_name()?.to_str()?.to_lowercase();
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = self.dir.open_dir(parent.unwrap_or(Path::new("."))).ok()?;
        let names = folder.entries().ok()?.take(MAX_ENTRIES).flatten().map(|it| it.file_name());
        let close = names.filter_map(|name| {
            let name = name.into_string().ok()?;
            let distance = distance(&wanted, &name.to_lowercase());
            (distance <= wanted.chars().count() / 3).then_some((distance, name))
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

/// Normalises a path lexically, so that the judged path is the opened one even where `link/..` would lead
/// elsewhere. Leading `..` stay, to be refused.
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

/// Returns the path as text, with `/` on every system.
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

/// Returns the refusal of a path whose target is not certain, so that it may be a private file.
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

/// Returns whether cap-std refused a path that leaves the folder. Its refusal has no error number of the
/// operating system, unlike a missing permission.
fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
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
