//! Tools that write files, ours and those of programs, and the file that a call writes.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::command::is_plain_character;
use crate::ParsedCall;
use crate::paths::real_path;

/// A tool that writes files, either built in or of a program agent.
#[derive(Debug)]
pub struct FileTool {
    name: &'static str,
    /// Name of the argument that contains the path of the file.
    path: &'static str,
    /// Names of all other known arguments of the file tool. An unknown argument may have any
    /// effect.
    others: &'static [&'static str],
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    /// Tool of Claude Code, which resolves a relative path in its shell's current folder, unknown
    /// to the server.
    Claude,
    /// Tool of Pi, which resolves a relative path in the workspace.
    Pi,
    Codex,
}

const FILE_TOOLS: [FileTool; 9] = [
    tool("write_file", "path", &["text"], Kind::Ours),
    tool("edit_file", "path", &["old_string", "new_string", "replace_all"], Kind::Ours),
    tool("Write", "file_path", &["content"], Kind::Claude),
    tool("Edit", "file_path", &["old_string", "new_string", "replace_all"], Kind::Claude),
    tool("MultiEdit", "file_path", &["edits"], Kind::Claude),
    tool(
        "NotebookEdit",
        "notebook_path",
        &["new_source", "cell_id", "cell_number", "cell_type", "edit_mode"],
        Kind::Claude,
    ),
    tool("write", "path", &["content"], Kind::Pi),
    tool("edit", "path", &["oldText", "newText", "edits"], Kind::Pi),
    tool("apply_patch", "path", &["patch"], Kind::Codex),
];

const fn tool(
    name: &'static str,
    path: &'static str,
    others: &'static [&'static str],
    kind: Kind,
) -> FileTool {
    FileTool { name, path, others, kind }
}

impl FileTool {
    /// Returns the file-writing tool of this name: a built-in one if `is_ours`, else a tool of a
    /// program.
    pub fn find(name: &str, is_ours: bool) -> Option<&'static Self> {
        FILE_TOOLS.iter().find(|it| it.name == name && (it.kind == Kind::Ours) == is_ours)
    }

    /// Returns the path argument of a file-writing tool call, as the agent wrote it.
    pub fn path<'a>(&self, arguments: &'a Value) -> Option<&'a str> {
        arguments.get(self.path)?.as_str()
    }

    /// Returns the file that a tool call writes, following links: relative to the workspace, or
    /// absolute if it lies elsewhere. `None` if the file is not certain.
    pub fn target(&self, call: &ParsedCall) -> Option<PathBuf> {
        let path = self.path(&call.arguments)?;
        let patch = || call.arguments.get("patch").and_then(Value::as_str);
        let root = call.root.as_ref()?;
        let real = match self.kind {
            // The tool refuses paths outside the workspace.
            Kind::Ours => return call.path.as_ref().ok().map(|it| it.real.clone()),
            _ if !is_unambiguous(path) => return None,
            Kind::Claude if !Path::new(path).is_absolute() => return None,
            Kind::Codex if !patches_only(path, patch()?) => return None,
            Kind::Claude | Kind::Pi | Kind::Codex => real_path(&root.join(path))?,
        };
        Some(real.strip_prefix(root).map(Path::to_owned).unwrap_or(real))
    }

    /// Returns the folder of the file that a tool call writes, see [`Self::target`]. `None` also if
    /// an argument is not known.
    pub(super) fn folder(&self, call: &ParsedCall) -> Option<String> {
        let is_known = |name: &String| name == self.path || self.others.contains(&&**name);
        if !call.arguments.as_object()?.keys().all(is_known) {
            return None;
        }
        let target = self.target(call)?;
        let folder = target.parent()?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        folder.to_str().map(str::to_owned)
    }
}

/// Returns whether all program agents interpret the path of a tool call in the same way. They
/// differ in `~`, `@`, blanks and `..`.
fn is_unambiguous(path: &str) -> bool {
    let is_plain = path.chars().all(|it| it != '\n' && is_plain_character(it));
    let has_detour = Path::new(path).components().any(|it| it == Component::ParentDir);
    is_plain && !has_detour && !path.is_empty() && !path.starts_with(['~', '@'])
}

/// Returns whether a patch changes only the file at `path`. Its header names the file twice; a
/// different second name would move the file.
fn patches_only(path: &str, patch: &str) -> bool {
    const NONE: &str = "/dev/null";
    let heads = [(path, path), (NONE, path), (path, NONE)];
    heads.iter().any(|(old, new)| patch.starts_with(&format!("--- {old}\n+++ {new}\n")))
}
