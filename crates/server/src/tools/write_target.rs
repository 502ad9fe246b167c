//! What a call that writes a file would write over, for whoever is asked about it.

use std::path::Path;

use serde_json::Value;
use transcript::WriteTarget;

use super::workspace::Workspace;
use crate::approvals::FileTool;
use crate::private::Private;

/// Our own tool, and what programs call theirs.
const WRITERS: [&str; 3] = ["write_file", "Write", "write"];
/// A longer file is only named: its text goes into the log, and before the eyes of a person.
const MAX_SHOWN: u64 = 64 * 1024;

/// None if the call writes no file, or one outside the workspace.
pub(crate) fn write_target(
    tool: &str,
    arguments: &str,
    workspace: &Path,
    private: &Private,
) -> Option<WriteTarget> {
    if !WRITERS.contains(&tool) {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let file_tool = FileTool::find(tool, true).or_else(|| FileTool::find(tool, false))?;
    let folder = Workspace::open(workspace, private).ok()?;
    let path = folder.relative(file_tool.path(&arguments)?).ok()?;
    let size = folder.size(&path);
    let text = size.filter(|it| *it <= MAX_SHOWN).and_then(|_| folder.text(&path).ok());
    Some(WriteTarget { path: workspace.join(path).display().to_string(), size, text })
}
