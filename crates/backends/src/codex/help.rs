//! Detects from its help whether an installed Codex has an app-server that can be driven.
//!
//! Printing the help starts nothing and writes nothing. A Codex without the command prints the help of
//! `codex` or fails. A Codex whose app-server has no subcommands is older than threads and turns.

/// Arguments with which Codex prints the help of its app-server.
pub const HELP: [&str; 2] = ["app-server", "--help"];

/// Returns whether the installed Codex has a usable app-server. `help` is its output for [`HELP`].
pub fn has_app_server(help: &str) -> bool {
    help.contains("app-server") && help.contains("Commands:")
}

#[cfg(test)]
mod tests {
    use super::has_app_server;

    #[test]
    fn app_server_is_detected_by_its_commands() {
        for (expected, help) in [
            (
                true,
                "Run the app server\n\nUsage: codex app-server [OPTIONS] [COMMAND]\n\nCommands:\n  proxy\n",
            ),
            (
                false,
                "Run the app server\n\nUsage: codex app-server [OPTIONS]\n\nOptions:\n  -h, --help\n",
            ),
            (false, "Codex CLI\n\nUsage: codex [OPTIONS] [PROMPT]\n\nCommands:\n  exec\n  login\n"),
            (false, ""),
        ] {
            assert_eq!(has_app_server(help), expected, "{help}");
        }
    }
}
