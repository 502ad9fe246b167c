//! The calls that a grant covers, as a text that is compared byte by byte.
//!
//! The text is the JSON of [`GrantScope`], so no command, path or tool name can be mistaken for
//! another grant. Texts of earlier versions (`shell: make`) do not parse; such grants are inactive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tool calls that a grant covers: of one agent, in one workspace, to one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantScope {
    /// Id of the agent that makes the tool calls.
    pub agent: String,
    /// Real path of the workspace in which the agent works.
    pub workspace: String,
    /// Name of the tool that the grant is for.
    pub tool: String,
    /// The calls of the tool that the grant covers.
    pub calls: GrantedCalls,
}

/// The calls of one tool that a grant covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GrantedCalls {
    /// Calls that run exactly this command, with exactly these other arguments.
    Command {
        /// The command that the tool runs.
        text: String,
        /// All other arguments of the tool call by their names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        options: BTreeMap<String, Value>,
    },
    /// Calls for any file directly in this folder: relative to the workspace (`.` is the workspace
    /// itself), or absolute if it lies elsewhere.
    Folder(String),
    /// Calls for any URL with this scheme, host and port.
    Origin(String),
    /// Every call of the tool, with any arguments.
    All,
}

impl GrantScope {
    /// Returns the grant scope as text, in the form in which it is stored and compared.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the stored text of a grant scope. Returns `None` for texts of earlier versions, which
    /// name no agent and no workspace.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
