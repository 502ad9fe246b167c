//! Configuration of an agent of this kind, its command line, and the extension that asks for approvals.

use std::fmt;

use crate::program::{TOKEN_ENV, fmt_settings};
use crate::{Launch, Program};

/// Source code of Callboard's extension for Pi, to be written to the folder of shipped files under
/// [`EXTENSION_FILE`].
pub const EXTENSION: &str = include_str!("extension.ts");
/// Name of the file with Callboard's extension for Pi in the folder of shipped files.
pub const EXTENSION_FILE: &str = "callboard-pi.ts";

/// Configuration of a Pi agent.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Command that starts Pi: the program and its first arguments. `pi` if empty.
    pub command: Vec<String>,
    /// Further arguments for Pi, which come after Callboard's.
    pub args: Vec<String>,
    /// Model that Pi uses, as `provider/id`. `None`: its own default.
    pub model: Option<String>,
    /// Environment variables to set for Pi; they may hold keys.
    pub env: Vec<(String, String)>,
    /// Permission mode: `auto` for no approvals. Pi has no modes of its own, so any other value
    /// means `ask`.
    pub permission_mode: Option<String>,
    /// Version that the installed Pi reports with [`VERSION`]. `None` if it is not known. Pi's
    /// protocol does not report it.
    pub version: Option<String>,
}

/// Arguments with which Pi prints its version.
pub const VERSION: [&str; 1] = ["--version"];

/// Finds the version in Pi's output for [`VERSION`]: a number such as `0.73.1`, possibly with other
/// text.
pub fn version_in(said: &str) -> Option<String> {
    let is_version = |it: &&str| it.starts_with(|it: char| it.is_ascii_digit()) && it.contains('.');
    said.split_whitespace().find(is_version).map(str::to_owned)
}

/// Omits the arguments and the environment of the agent, which may hold keys.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_settings(f, &self.command, &self.model, &self.permission_mode)
    }
}

impl Settings {
    pub(super) fn asks(&self) -> bool {
        self.permission_mode.as_deref() != Some("auto")
    }
}

/// Builds the command line and the environment of a Pi process.
pub fn program(settings: &Settings, launch: &Launch) -> Program {
    let mut command = settings.command.clone();
    if command.is_empty() {
        command.push("pi".to_owned());
    }
    let extension = format!("{}/{EXTENSION_FILE}", launch.shipped.trim_end_matches('/'));
    command.extend(["--mode", "rpc", "-e"].map(str::to_owned));
    command.push(extension);
    // Pi accepts neither `--session=ID` nor `--`, so the shape of the id must rule out an option.
    let resume = launch.resume.as_ref().map(ToString::to_string);
    for (name, value) in [("--model", &settings.model), ("--session", &resume)] {
        command.extend(value.iter().flat_map(|it| [name.to_owned(), it.clone()]));
    }
    command.extend_from_slice(&settings.args);
    Program { command, env: environment(settings, launch) }
}

/// Returns the environment variables for Pi. The configuration takes precedence, except over the
/// variables that approvals and Callboard's tools need.
fn environment(settings: &Settings, launch: &Launch) -> Vec<(String, String)> {
    let mut env = vec![("PI_SKIP_VERSION_CHECK", "1"), ("PI_TELEMETRY", "0")];
    let mode = if settings.asks() { "ask" } else { "auto" };
    env.retain(|(name, _)| settings.env.iter().all(|(it, _)| it != name));
    let mut ours = vec![("CALLBOARD_PERMISSION_MODE", mode)];
    if let Some(tools) = &launch.tools {
        ours.push(("CALLBOARD_TOOLS_URL", &tools.url));
        ours.push((TOKEN_ENV, &tools.token));
    }
    let configured = settings.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    env.into_iter().chain(configured).chain(ours).map(owned).collect()
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn version_is_found_among_other_text() {
        for (expected, said) in [
            (Some("0.73.1"), "0.73.1\n"),
            (Some("1.5.0"), "pi 1.5.0\n"),
            (Some("2.0.0-rc.1"), "Warning: 3 things\n2.0.0-rc.1"),
            (None, "unknown option\n"),
            (None, ""),
        ] {
            assert_eq!(version_in(said).as_deref(), expected, "{said}");
        }
    }
}
