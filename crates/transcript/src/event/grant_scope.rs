//! The calls that a grant covers, as a text that is compared byte by byte.
//!
//! The text is the JSON of [`GrantScope`], so no command, path or tool name can be mistaken for
//! another grant. Texts of earlier versions (`shell: make`) do not parse; such grants are inactive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The calls that a grant covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantScope {
    /// Id of the agent that makes the call.
    pub agent: String,
    /// Real path of the workspace.
    pub workspace: String,
    /// Name of the tool.
    pub tool: String,
    /// The covered calls of the tool.
    pub calls: GrantedCalls,
}

/// The covered calls of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GrantedCalls {
    /// Exactly this command, with exactly these other arguments.
    Command {
        /// The command.
        text: String,
        /// The other arguments.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        options: BTreeMap<String, Value>,
    },
    /// Any file directly in this folder: relative to the workspace (`.` is the workspace itself), or
    /// absolute if it lies elsewhere.
    Folder(String),
    /// Any address with this scheme, host and port.
    Origin(String),
    /// Every call of the tool.
    All,
}

impl GrantScope {
    /// Returns the text that is stored and compared.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a stored text. Returns `None` for texts of earlier versions, which name no agent and no
    /// workspace.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
