//! What a call that writes a file would write over, for whoever is asked about it.

use std::path::Path;

use serde_json::Value;
use transcript::WriteTarget;

use super::workspace::Workspace;

/// Our own tool, and what programs call theirs.
const WRITERS: [&str; 2] = ["write_file", "write"];
/// A longer file is only named: its text goes into the log, and before the eyes of a person.
const MAX_SHOWN: u64 = 64 * 1024;

/// None if the call writes no file, or one outside the workspace.
pub(crate) fn write_target(tool: &str, arguments: &str, workspace: &Path) -> Option<WriteTarget> {
    if !WRITERS.iter().any(|it| tool.eq_ignore_ascii_case(it)) {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let path = ["path", "file_path"].iter().find_map(|it| arguments.get(it)?.as_str())?;
    let folder = Workspace::open(workspace).ok()?;
    let path = folder.relative(path).ok()?;
    let size = folder.size(&path);
    let text = size.filter(|it| *it <= MAX_SHOWN).and_then(|_| folder.text(&path).ok());
    Some(WriteTarget { path: workspace.join(path).display().to_string(), size, text })
}
