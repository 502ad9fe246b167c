//! `write_file`: creates a file in the workspace, or replaces its content.

use serde::Deserialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, Work};
use crate::ToolContext;
use crate::workspace::{FilePath, Workspace, display};

pub(super) const TOOL: Tool = Tool {
    name: "write_file",
    description: "Creates or replaces a text file in the workspace, including missing folders. Use \
                  edit_file to change part of a file.",
    parameters,
    may_repeat: false,
    work: Work::InWorkspace(run),
};

#[derive(Deserialize)]
struct WriteFile {
    text: String,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace."},
            "text": {"type": "string", "description": "The complete content of the file."},
        },
        "required": ["path", "text"],
        "additionalProperties": false,
    })
}

fn run(
    arguments: &Arguments,
    _: &ToolContext,
    workspace: &Workspace,
    path: &FilePath,
) -> Result<Value, ErrorInfo> {
    let WriteFile { text } = arguments.parse()?;
    let is_new = workspace.write(path, &text)?;
    Ok(json!({"path": display(&path.given), "bytes": text.len(), "created": is_new}))
}
