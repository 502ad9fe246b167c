//! Callboard's own tools inside a program: their names there, and the address of their MCP server.

/// Name under which programs know the MCP server with Callboard's own tools.
pub(crate) const TOOL_SERVER: &str = "callboard";
/// Environment variable with the bearer token for Callboard's own tools. A command line would be
/// readable for every user of the machine.
pub(crate) const TOKEN_ENV: &str = "CALLBOARD_TOOLS_TOKEN";
/// Time limit in seconds that programs set for Callboard's own tools. Callboard ends its tools
/// itself, so a program's own limit must never be reached first.
pub(crate) const SECONDS: u64 = 24 * 60 * 60;

/// Returns the name of a tool without the name of Callboard's MCP server: `agents_list` for
/// `mcp__callboard__agents_list`. Names of other tools are unchanged.
pub(crate) fn plain_name(tool: &str) -> &str {
    let qualified = tool.strip_prefix("mcp__").unwrap_or(tool);
    let own = qualified.strip_prefix(TOOL_SERVER).and_then(|it| it.strip_prefix("__"));
    own.filter(|it| !it.is_empty()).unwrap_or(tool)
}

#[cfg(test)]
mod tests {
    //! Names of Callboard's own tools are recognised, and others stay.

    use super::plain_name;

    #[test]
    fn callboards_tools_lose_the_server_prefix() {
        for name in ["agents_list", "callboard__agents_list", "mcp__callboard__agents_list"] {
            assert_eq!(plain_name(name), "agents_list");
        }
        for name in
            ["Bash", "mcp__files__read", "callboard__", "callboard_note", "callboards__x", ""]
        {
            assert_eq!(plain_name(name), name);
        }
    }
}
