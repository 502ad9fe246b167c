//! Whether an installed Codex has an app-server that we can talk to, by what its help says.
//!
//! Asking for help starts nothing and writes nothing. A Codex that knows no such command takes it for a
//! prompt and helps with `codex`, or refuses. One whose app-server has no commands of its own is from
//! before threads and turns.

/// What comes after the command.
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
