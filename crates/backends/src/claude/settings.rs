//! Configuration of an agent of this kind, and the command line that follows from it.

use std::fmt;

use serde_json::json;

use crate::program::{SECONDS, TOKEN_ENV, TOOL_SERVER, fmt_settings};
use crate::{Launch, Program};

/// Configuration of a Claude Code agent.
#[derive(Clone)]
pub struct Settings {
    /// Command that starts Claude Code: the program and its first arguments.
    pub command: Vec<String>,
    /// Further arguments for Claude Code, which come last and override Callboard's.
    pub args: Vec<String>,
    /// Model that Claude Code uses. `None`: its own default.
    pub model: Option<String>,
    /// Environment variables to set for Claude Code; they may hold keys.
    pub env: Vec<(String, String)>,
    /// Permission mode: `ask`, `auto` (never ask), or one of Claude Code's own modes.
    pub permission_mode: String,
    /// Text to append to Claude Code's own system prompt.
    pub system: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            command: vec!["claude".to_owned()],
            args: Vec::new(),
            model: None,
            env: Vec::new(),
            permission_mode: "ask".to_owned(),
            system: None,
        }
    }
}

/// Omits the arguments and the environment of the agent, which may hold keys.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_settings(f, &self.command, &self.model, &self.permission_mode)
    }
}

/// Builds the command line and the environment of a Claude Code process.
pub fn program(settings: &Settings, launch: &Launch) -> Program {
    let (mut command, mut env) = (settings.command.clone(), settings.env.clone());
    let mut add = |words: &[&str]| command.extend(words.iter().map(|&it| it.to_owned()));
    add(&["-p", "--input-format", "stream-json", "--output-format", "stream-json"]);
    add(&["--verbose", "--include-partial-messages", "--permission-prompt-tool", "stdio"]);
    if let Some(tools) = &launch.tools {
        let server = json!({
            "type": "http",
            "url": tools.url,
            // The program replaces this by the variable's value.
            "headers": { "Authorization": format!("Bearer ${{{TOKEN_ENV}}}") },
            "timeout": SECONDS * 1000,
            // Otherwise the model has to search for the tools before it knows them.
            "alwaysLoad": true,
        });
        add(&["--mcp-config", &json!({ "mcpServers": { TOOL_SERVER: server } }).to_string()]);
        // Callboard decides about each call itself.
        add(&["--allowedTools", &format!("mcp__{TOOL_SERVER}")]);
        env.push((TOKEN_ENV.to_owned(), tools.token.clone()));
    }
    let mode = match settings.permission_mode.as_str() {
        "ask" => "default",
        "auto" => "bypassPermissions",
        own => own,
    };
    add(&["--permission-mode", mode]);
    for (flag, value) in
        [("--model", &settings.model), ("--append-system-prompt", &settings.system)]
    {
        if let Some(value) = value {
            add(&[flag, value]);
        }
    }
    if let Some(folder) = &launch.private {
        // Two slashes begin an absolute path. The rules hold for commands that read a file, too.
        let rules = ["Read", "Edit"].map(|it| format!("{it}(/{folder}/**)"));
        add(&["--settings", &json!({ "permissions": { "ask": rules } }).to_string()]);
    }
    if let Some(id) = &launch.resume {
        add(&[&format!("--resume={id}")]);
    }
    command.extend(settings.args.iter().cloned());
    Program { command, env }
}
