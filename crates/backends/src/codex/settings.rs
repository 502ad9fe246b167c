//! Configuration of an agent of this kind, and the command line that follows from it.

use std::fmt;

use serde_json::{Value, json};

use crate::program::{SECONDS, TOKEN_ENV, TOOL_SERVER, fmt_settings};
use crate::{Launch, Program};

/// Configuration of a Codex agent.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Command that starts Codex: the program and its first arguments.
    pub command: Vec<String>,
    /// Further arguments for Codex, for instance `-c`, `key=value`.
    pub args: Vec<String>,
    /// Environment variables to set for Codex; they may hold keys.
    pub env: Vec<(String, String)>,
    /// Model that Codex uses. `None`: its own default.
    pub model: Option<String>,
    /// Permission mode: `ask`, `auto` (never ask), or one of Codex's own names for an approval
    /// policy or a sandbox.
    pub permission_mode: String,
    /// Whether to run `codex app-server`; otherwise `codex exec` is run.
    pub app_server: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            command: vec!["codex".to_owned()],
            args: Vec::new(),
            env: Vec::new(),
            model: None,
            permission_mode: "ask".to_owned(),
            app_server: true,
        }
    }
}

/// Omits the arguments and the environment of the agent, which may hold keys.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_settings(f, &self.command, &self.model, &self.permission_mode)
    }
}

/// Codex's approval policy, and its sandbox for commands that run without approval.
#[derive(Debug)]
pub(super) struct Permissions<'a> {
    pub(super) approval_policy: &'a str,
    pub(super) sandbox: &'a str,
}

impl Settings {
    pub(super) fn permissions(&self) -> Permissions<'_> {
        let (approval_policy, sandbox) = match self.permission_mode.as_str() {
            // Codex asks about calls that need to run outside its sandbox.
            "ask" | "" => ("on-request", "workspace-write"),
            "auto" => ("never", "workspace-write"),
            sandbox @ ("read-only" | "workspace-write") => ("on-request", sandbox),
            sandbox @ "danger-full-access" => ("never", sandbox),
            approval_policy => (approval_policy, "workspace-write"),
        };
        Permissions { approval_policy, sandbox }
    }
}

/// Builds the command line and the environment of a Codex process: an app-server for a
/// conversation, or `codex exec` for one run.
pub fn program(settings: &Settings, launch: &Launch) -> Program {
    let mut command = settings.command.clone();
    let mut env = settings.env.clone();
    if settings.app_server {
        command.push("app-server".to_owned());
        command.extend(settings.args.iter().cloned());
    } else {
        command.extend(exec_arguments(settings, launch));
        if let Some(server) = &launch.tools {
            env.push((TOKEN_ENV.to_owned(), server.token.clone()));
        }
    }
    Program { command, env }
}

/// Returns the arguments of `codex exec`. Settings are passed with `-c`, which `exec` and `exec
/// resume` both accept. `-` makes Codex read the prompt from stdin. The thread's id follows `--`,
/// so that it is never parsed as an option.
fn exec_arguments(settings: &Settings, launch: &Launch) -> Vec<String> {
    let mut arguments = vec!["exec".to_owned()];
    arguments.extend(launch.resume.iter().map(|_| "resume".to_owned()));
    arguments.extend(["--json".to_owned(), "--skip-git-repo-check".to_owned()]);
    let mut set = |key: &str, value: &str| {
        arguments.extend(["-c".to_owned(), format!("{key}={}", quoted(value))]);
    };
    set("sandbox_mode", settings.permissions().sandbox);
    set("model_reasoning_summary", "auto");
    if let Some(model) = &settings.model {
        set("model", model);
    }
    if let Some(server) = &launch.tools {
        let prefix = format!("mcp_servers.{TOOL_SERVER}");
        set(&format!("{prefix}.url"), &server.url);
        set(&format!("{prefix}.bearer_token_env_var"), TOKEN_ENV);
        set(&format!("{prefix}.default_tools_approval_mode"), "approve");
        arguments.extend(["-c".to_owned(), format!("{prefix}.tool_timeout_sec={SECONDS}")]);
    }
    arguments.extend(settings.args.iter().cloned());
    if let Some(thread) = &launch.resume {
        arguments.extend(["--".to_owned(), thread.to_string()]);
    }
    arguments.push("-".to_owned());
    arguments
}

/// Returns the configuration of a Codex thread with Callboard's own tools. Codex does not ask about
/// their calls, because Callboard decides about each itself. `None` without these tools.
pub(super) fn thread_config(launch: &Launch) -> Option<Value> {
    let server = launch.tools.as_ref()?;
    Some(json!({ "mcp_servers": { TOOL_SERVER: {
        "url": server.url,
        "http_headers": { "Authorization": format!("Bearer {}", server.token) },
        "default_tools_approval_mode": "approve",
        "tool_timeout_sec": SECONDS,
    }}}))
}

/// Returns the text as a TOML string, in JSON syntax, which TOML accepts.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
