//! The tools and MCP servers of a server, as clients may see them.

use std::sync::Arc;

use tools::Tools;

pub use tools::ToolSpec;
pub use tools::mcp::McpServerInfo;
pub use tools::policy::grant_id;
pub use tools::{failed, tool_error};

/// Read access to the tools: their descriptions, and the state of the MCP servers.
#[derive(Clone)]
pub struct ToolCatalog {
    tools: Arc<Tools>,
}

impl ToolCatalog {
    pub fn new(tools: Arc<Tools>) -> Self {
        Self { tools }
    }

    /// Returns the tools that are known now.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.specs()
    }

    /// Returns the MCP servers and their state.
    pub fn mcp_servers(&self) -> Vec<McpServerInfo> {
        self.tools.mcp().infos()
    }
}
