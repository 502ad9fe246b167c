//! Ignore rules of git, read only from files inside the workspace.

use std::path::Path;
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::workspace::{FilePath, Workspace};

/// Ignore rules of a folder and of the folders above it, in the syntax of `.gitignore`.
pub(super) struct Ignored {
    here: Gitignore,
    above: Option<Rc<Self>>,
}

/// Names of the files that contain ignore rules; the second has precedence.
const FILES: [&str; 2] = [".gitignore", ".ignore"];

impl Ignored {
    /// Returns the ignore rules of all workspace folders above this folder; `None` if it is the
    /// workspace.
    pub(super) fn above(workspace: &Workspace, folder: &FilePath) -> Option<Rc<Self>> {
        if folder.given == Path::new(".") {
            return None;
        }
        let mut folders: Vec<&Path> = folder.given.ancestors().skip(1).collect();
        folders.reverse();
        folders.into_iter().fold(None, |above, it| match workspace.resolve(it) {
            Some(folder) => Some(Self::within(workspace, &folder, above)),
            None => above,
        })
    }

    pub(super) fn within(
        workspace: &Workspace,
        folder: &FilePath,
        above: Option<Rc<Self>>,
    ) -> Rc<Self> {
        let mut builder = GitignoreBuilder::new(&folder.given);
        for name in FILES {
            let text = workspace.text(&folder.join(name)).unwrap_or_default();
            for line in text.lines() {
                // An invalid line ignores nothing.
                let _ = builder.add_line(None, line);
            }
        }
        let here = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Rc::new(Self { here, above })
    }

    /// Returns whether the ignore rules exclude a path; the rules of the nearest folder have
    /// precedence.
    pub(super) fn has(&self, path: &Path, is_folder: bool) -> bool {
        let matched = self.here.matched(path, is_folder);
        if matched.is_none() {
            return self.above.as_ref().is_some_and(|it| it.has(path, is_folder));
        }
        matched.is_ignore()
    }
}

/// Parses glob patterns that select files by their path relative to the workspace.
pub(super) fn globs(patterns: &[String]) -> Result<Gitignore, String> {
    let mut builder = GitignoreBuilder::new("");
    builder.allow_unclosed_class(false);
    for pattern in patterns {
        builder.add_line(None, pattern).map_err(|error| error.to_string())?;
    }
    builder.build().map_err(|error| error.to_string())
}
