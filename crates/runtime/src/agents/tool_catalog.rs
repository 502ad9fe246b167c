//! The tools and MCP servers of a server, as clients may see them.

use std::sync::Arc;

use tools::Tools;

pub use tools::ToolSpec;
pub use tools::mcp::McpServerInfo;
pub use tools::policy::grant_id;
pub use tools::{failed, tool_error};

/// Read access to Callboard's tools: their descriptions, and the state of the MCP servers.
#[derive(Clone)]
pub struct ToolCatalog {
    tools: Arc<Tools>,
}

impl ToolCatalog {
    pub fn new(tools: Arc<Tools>) -> Self {
        Self { tools }
    }

    /// Returns the descriptions of the tools that are available now, built-in or of MCP servers.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.specs()
    }

    /// Returns the configured MCP servers and their state.
    pub fn mcp_servers(&self) -> Vec<McpServerInfo> {
        self.tools.mcp().infos()
    }
}
