//! `read_file`: returns the text of a file in the workspace, or some of its lines.

use serde::Deserialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, Work};
use crate::workspace::{FilePath, MAX_FILE_BYTES, Unreadable, Workspace, display, private};
use crate::{ToolContext, tool_error};

pub(super) const TOOL: Tool = Tool {
    name: "read_file",
    description: "Reads a text file in the workspace, up to 1 MiB, or a range of its lines.",
    parameters,
    may_repeat: false,
    work: Work::InWorkspace(run),
};

#[derive(Deserialize)]
struct ReadFile {
    from_line: Option<usize>,
    to_line: Option<usize>,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace."},
            "from_line": {"type": "integer", "minimum": 1, "description": "The first line to read, counted from 1."},
            "to_line": {"type": "integer", "minimum": 1, "description": "The last line to read."},
        },
        "required": ["path"],
        "additionalProperties": false,
    })
}

fn run(
    arguments: &Arguments,
    _: &ToolContext,
    workspace: &Workspace,
    path: &FilePath,
) -> Result<Value, ErrorInfo> {
    let ReadFile { from_line, to_line } = arguments.parse()?;
    let (from, to) = (from_line.unwrap_or(1), to_line.unwrap_or(usize::MAX));
    if from == 0 || to < from {
        return Err(
            arguments.invalid("lines count from 1, and from_line must not be after to_line")
        );
    }
    let text = workspace.text(path).map_err(|why| explain(workspace, path, &why))?;
    let lines = text.lines().count();
    if from > lines.max(1) {
        return Err(tool_error(format!("'{}' has only {lines} lines.", display(&path.given))));
    }
    let wanted: String = text.split_inclusive('\n').skip(from - 1).take(to - from + 1).collect();
    Ok(json!({"path": display(&path.given), "text": wanted, "lines": lines}))
}

pub(super) fn explain(workspace: &Workspace, path: &FilePath, why: &Unreadable) -> ErrorInfo {
    let name = display(&path.given);
    match why {
        Unreadable::TooLarge(size) => tool_error(format!(
            "'{name}' is too large: it has {size} bytes, and at most {MAX_FILE_BYTES} can be read."
        )),
        Unreadable::Binary(size) => {
            tool_error(format!("'{name}' is not text: it is a binary file of {size} bytes."))
        }
        Unreadable::NotAFile => tool_error(format!(
            "'{name}' is not a file. If it is a folder, use list_files to see what is in it."
        )),
        Unreadable::Private => private(&path.given),
        Unreadable::Io(error) => workspace.explain(error, path, "file"),
    }
}
