//! Detects from its help whether an installed Codex has an app-server that can be driven.
//!
//! Asking for help starts nothing and writes nothing. A Codex without the command takes it for a prompt and
//! prints the help of `codex`, or refuses. One whose app-server has no commands of its own is older than
//! threads and turns.

/// Arguments that print the help of the app-server.
pub const HELP: [&str; 2] = ["app-server", "--help"];

/// `help` is what it wrote to stdout.
pub fn has_app_server(help: &str) -> bool {
    help.contains("app-server") && help.contains("Commands:")
}

#[cfg(test)]
mod tests {
    use super::has_app_server;

    #[test]
    fn only_an_app_server_with_commands_is_one() {
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
