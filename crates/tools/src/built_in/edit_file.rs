//! `edit_file`: replaces a text in a file of the workspace, which must match exactly.

use serde::Deserialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::read_file::explain;
use super::{Arguments, Tool, Work};
use crate::workspace::{FilePath, Workspace, display};
use crate::{ToolContext, tool_error};

pub(super) const TOOL: Tool = Tool {
    name: "edit_file",
    description: "Replaces text in a file of the workspace. The text must match exactly, including \
                  blanks and line breaks, and must occur only once unless replace_all is true.",
    parameters,
    may_repeat: false,
    work: Work::InWorkspace(run),
};

#[derive(Deserialize)]
struct EditFile {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace."},
            "old_string": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as it is in the file."},
            "new_string": {"type": "string", "description": "The replacement text."},
            "replace_all": {"type": "boolean", "description": "Replace every occurrence."},
        },
        "required": ["path", "old_string", "new_string"],
        "additionalProperties": false,
    })
}

fn run(
    arguments: &Arguments,
    _: &ToolContext,
    workspace: &Workspace,
    path: &FilePath,
) -> Result<Value, ErrorInfo> {
    let EditFile { old_string, new_string, replace_all } = arguments.parse()?;
    if old_string == new_string {
        return Err(arguments.invalid("old_string and new_string are the same"));
    }
    let text = workspace.text(path).map_err(|why| explain(workspace, path, &why))?;
    let found = text.matches(&old_string).count();
    let name = display(&path.given);
    match found {
        0 => Err(tool_error(format!(
            "old_string does not stand in '{name}'. Read the file and give it exactly, with its \
             blanks and line breaks."
        ))),
        2.. if !replace_all => Err(tool_error(format!(
            "old_string stands in '{name}' {found} times. Give more of what is around it, or set \
             replace_all."
        ))),
        _ => {
            workspace.write(path, &text.replace(&old_string, &new_string))?;
            Ok(json!({"path": name, "replacements": found}))
        }
    }
}
