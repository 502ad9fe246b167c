//! `list_files`: lists a folder of the workspace. Links are listed as links and not followed.

use std::cmp::Reverse;
use std::ffi::OsStr;

use rustix::fs::FileType;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, Work};
use crate::ToolContext;
use crate::folder::Folder;
use crate::workspace::{FilePath, Workspace, display};

pub(super) const TOOL: Tool = Tool {
    name: "list_files",
    description: "Lists the files and folders in one folder of the workspace.",
    parameters,
    may_repeat: false,
    work: Work::InWorkspace(run),
};

const MAX_ENTRIES: usize = 500;

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "The folder, relative to the workspace. Default: the workspace itself.",
            },
        },
        "additionalProperties": false,
    })
}

fn run(
    _: &Arguments,
    context: &ToolContext,
    workspace: &Workspace,
    path: &FilePath,
) -> Result<Value, ErrorInfo> {
    let folder = workspace.folder(path)?;
    let mut names = Vec::new();
    let entries = folder.entries().map_err(|error| workspace.explain(&error, path, "folder"))?;
    for entry in entries {
        context.check_stopped()?;
        names.push(entry);
    }
    names.sort_by_cached_key(|(name, kind)| (Reverse(kind.is_dir()), name.clone()));
    let shown = names.iter().take(MAX_ENTRIES);
    Ok(json!({
        "path": display(&path.given),
        "entries": shown.map(|(name, kind)| describe(&folder, name, *kind)).collect::<Vec<_>>(),
        "total": names.len(),
    }))
}

fn describe(folder: &Folder, name: &OsStr, file_type: FileType) -> Value {
    let text = name.to_string_lossy();
    match file_type {
        FileType::Directory => json!({"name": text, "kind": "folder"}),
        FileType::Symlink => json!({"name": text, "kind": "link"}),
        FileType::RegularFile => match folder.size_of(name) {
            Ok(size) => json!({"name": text, "kind": "file", "size": size}),
            Err(_) => json!({"name": text, "kind": "file"}),
        },
        _ => json!({"name": text, "kind": "file"}),
    }
}
