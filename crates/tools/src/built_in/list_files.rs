//! `list_files`: lists a folder of the workspace. Links are listed as links and not followed.

use std::cmp::Reverse;
use std::ffi::OsString;

use cap_std::fs::{Dir, DirEntry, FileType};
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, Work};
use crate::ToolContext;
use crate::workspace::{Workspace, display};

pub(super) const TOOL: Tool = Tool {
    name: "list_files",
    description: "Lists the files and folders in one folder of the workspace.",
    parameters,
    may_repeat: false,
    work: Work::Blocking(run),
};

const MAX_ENTRIES: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    path: Option<String>,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "The folder, relative to the workspace. The workspace itself if left out.",
            },
        },
        "additionalProperties": false,
    })
}

fn run(arguments: &Arguments, context: &ToolContext) -> Result<Value, ErrorInfo> {
    let ListFiles { path } = arguments.parse()?;
    let workspace = Workspace::open(&context.workspace, &context.private)?;
    let path = workspace.relative(path.as_deref().unwrap_or("."))?;
    let folder = workspace.folder(&path)?;
    let mut names = Vec::new();
    for entry in folder.entries().map_err(|error| workspace.explain(&error, &path, "folder"))? {
        context.check_stopped()?;
        names.extend(entry.ok().and_then(name_and_type));
    }
    names.sort_by_cached_key(|(name, kind)| (Reverse(kind.is_dir()), name.clone()));
    let shown = names.iter().take(MAX_ENTRIES);
    Ok(json!({
        "path": display(&path),
        "entries": shown.map(|(name, kind)| describe(&folder, name, *kind)).collect::<Vec<_>>(),
        "total": names.len(),
    }))
}

/// Returns `None` if the entry was removed meanwhile.
fn name_and_type(entry: DirEntry) -> Option<(OsString, FileType)> {
    Some((entry.file_name(), entry.file_type().ok()?))
}

fn describe(folder: &Dir, name: &OsString, file_type: FileType) -> Value {
    let text = name.to_string_lossy();
    if file_type.is_dir() {
        return json!({"name": text, "kind": "folder"});
    }
    if file_type.is_symlink() {
        return json!({"name": text, "kind": "link"});
    }
    match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => {
            json!({"name": text, "kind": "file", "size": metadata.len()})
        }
        _ => json!({"name": text, "kind": "file"}),
    }
}
