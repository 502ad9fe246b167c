//! Environment variables that hold secrets, which programs and commands do not get.

use std::ffi::OsStr;

use reqwest::Url;

use super::File;
use super::agents::AgentSection;
use super::mcp::McpSection;

/// Returns the names of the environment variables that hold secrets of agents and MCP servers.
pub(super) fn key_variables(file: &File) -> Vec<&str> {
    let of_agents = file.agents.iter().flat_map(AgentSection::key_variables);
    of_agents.chain(file.mcp_servers.iter().flat_map(McpSection::key_variables)).collect()
}

/// Returns whether an environment variable of this name is considered a secret, which commands of
/// agents do not get.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words = ["KEY", "TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "COOKIE"];
    let ends = ["_PAT", "_PWD", "PASS", "_AUTH"];
    name.starts_with("CALLBOARD_")
        || words.iter().any(|it| name.contains(it))
        || ends.iter().any(|it| name.ends_with(it))
}

/// Returns whether the value of an environment variable is a URL with a password, like those of
/// databases, or with a token in place of the user name.
pub(super) fn has_password(value: &OsStr) -> bool {
    let address = value.to_str().and_then(|it| Url::parse(it).ok());
    let is_web = |it: &Url| matches!(it.scheme(), "http" | "https");
    address.is_some_and(|it| it.password().is_some() || is_web(&it) && !it.username().is_empty())
}
