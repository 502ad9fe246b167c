//! Calls that are parsed, checked and resolved once, for the policy, the approval and the execution.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use transcript::ErrorInfo;

use crate::arguments::Arguments;
use crate::built_in::Tool;
use crate::mcp::McpTool;
use crate::paths::real_path;
use crate::workspace::{FilePath, normalize, uncertain};

/// A tool call with its arguments parsed and its path resolved.
#[derive(Debug)]
pub struct ParsedCall {
    pub(crate) tool: String,
    /// Arguments of the tool call. Arguments that are not JSON are null, or a string in a
    /// [`PreparedCall`].
    pub(crate) arguments: Arc<Value>,
    /// Path of the workspace as configured.
    pub(crate) workspace: PathBuf,
    /// Path of the workspace with its links resolved; `None` if it is not certain.
    pub(crate) root: Option<PathBuf>,
    /// File or folder that the argument `path` of the tool call names; the workspace if there is no
    /// such argument. An error if it is outside the workspace or not certain.
    pub(crate) path: Result<FilePath, ErrorInfo>,
}

/// A call of one of Callboard's own tools, parsed and checked for the policy and the execution.
pub struct PreparedCall {
    pub(crate) parsed: ParsedCall,
    pub(crate) tool: Result<PreparedTool, ErrorInfo>,
}

/// A built-in tool or MCP tool with arguments that match its JSON schema.
#[derive(Clone)]
pub(crate) enum PreparedTool {
    BuiltIn(Tool, Arguments),
    Mcp(Arc<McpTool>, Arguments),
}

impl ParsedCall {
    /// Parses a tool call whose arguments are JSON text.
    pub fn new(tool: &str, arguments: &str, workspace: &Path) -> Self {
        let arguments = serde_json::from_str(arguments).unwrap_or_default();
        Self::with(tool, Arc::new(arguments), workspace)
    }

    pub(crate) fn with(tool: &str, arguments: Arc<Value>, workspace: &Path) -> Self {
        let path = Path::new(arguments["path"].as_str().unwrap_or("."));
        let root = real_path(workspace);
        let path = match &root {
            Some(root) => FilePath::resolve(path, workspace, root),
            None => Err(uncertain(path)),
        };
        Self { tool: tool.to_owned(), arguments, workspace: workspace.to_owned(), root, path }
    }

    /// Returns the name of the called tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the folder that the tool call was judged for: the workspace with its links resolved.
    pub fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(&self.workspace)
    }

    /// Returns the path of the tool call that policy rules are matched against: relative to the
    /// workspace, with its links resolved. A path that leads out is only normalised, for the tool
    /// to refuse.
    pub(crate) fn subject_path(&self) -> String {
        match &self.path {
            Ok(path) => path.real.display().to_string(),
            Err(_) => {
                let given = self.arguments["path"].as_str().unwrap_or_default();
                normalize(Path::new(given)).display().to_string()
            }
        }
    }
}

impl PreparedCall {
    /// Returns the parsed tool call, which the policy judges.
    pub fn parsed(&self) -> &ParsedCall {
        &self.parsed
    }
}
