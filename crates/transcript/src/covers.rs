//! The scope of a session or "always" decision, as a text that is compared byte by byte.
//!
//! The text is the JSON of [`Covers`], so no command, path or name of a tool can pass for another
//! decision. Texts of earlier versions (`shell: make`) do not parse; such grants are inactive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The calls that need no further question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Covers {
    /// Id of the agent that makes the call.
    pub agent: String,
    /// Real path of the workspace.
    pub workspace: String,
    pub tool: String,
    pub calls: Extent,
}

/// Which calls of the tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Extent {
    /// Exactly this command, with exactly these other arguments.
    Command {
        text: String,
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

impl Covers {
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// None for the texts of earlier versions, which name no agent and no workspace.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
