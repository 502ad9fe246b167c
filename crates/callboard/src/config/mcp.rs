//! The `[[mcp_servers]]` tables: the allowed keys, and the servers that they configure.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use tools::mcp::{McpSettings, ServerTransport, is_server_id};

use super::agents::at_least_one;
use super::source::{Key, Source};
use super::{Environment, File};

/// Names of environment variables that an MCP server inherits in addition to the configured ones.
const INHERITED: [&str; 9] =
    ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
const INHERITED_FAMILIES: [&str; 2] = ["LC_", "XDG_"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct McpSection {
    pub(super) id: String,
    timeout_seconds: Option<u64>,

    command: Option<Vec<String>>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,

    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// HTTP headers whose values are read from environment variables: header to name of the
    /// variable.
    #[serde(default)]
    headers_env: BTreeMap<String, String>,
}

impl McpSection {
    /// Returns the names of the environment variables that hold secrets of the MCP server.
    pub(super) fn key_variables(&self) -> impl Iterator<Item = &str> {
        let written = self.env.values().chain(self.headers.values());
        let named = self.headers_env.values().map(String::as_str);
        written.filter_map(|it| it.strip_prefix("env:")).chain(named)
    }
}

pub(super) fn servers(
    file: &File,
    source: &Source,
    environment: &Environment,
) -> anyhow::Result<Vec<McpSettings>> {
    let mut ids = HashSet::new();
    let mut servers = Vec::new();
    for (idx, section) in file.mcp_servers.iter().enumerate() {
        let server = resolve(section, file, environment)
            .and_then(|server| {
                let id = &server.id;
                ensure!(
                    ids.insert(id.clone()),
                    "two MCP servers are called {id:?}: give each its own id"
                );
                Ok(server)
            })
            .map_err(|error| source.at(&["mcp_servers", &idx.to_string()], error))?;
        servers.push(server);
    }
    Ok(servers)
}

fn resolve(
    section: &McpSection,
    file: &File,
    environment: &Environment,
) -> anyhow::Result<McpSettings> {
    let id = &section.id;
    check_id(id).context(Key::new("id"))?;
    let of_server = || format!("MCP server {id:?}");
    let mut missing = Vec::new();
    let mut values = |it: &str| match it.strip_prefix("env:") {
        Some(name) => variable(name, environment, &mut missing),
        None => it.to_owned(),
    };
    let transport = match (&section.command, &section.url) {
        (Some(command), None) => program(section, command, environment, &mut values),
        (None, Some(url)) => service(section, url, &mut values),
        _ => bail!(
            "MCP server {id:?} needs either `command`, to be started, or `url`, where it is served"
        ),
    };
    let transport = transport.with_context(of_server)?;
    let seconds = at_least_one("timeout_seconds", section.timeout_seconds, file.tools.seconds());
    let seconds = seconds.with_context(of_server)?;
    Ok(McpSettings { id: id.clone(), transport, time_limit: Duration::from_secs(seconds), missing })
}

fn check_id(id: &str) -> anyhow::Result<()> {
    ensure!(
        is_server_id(id),
        "{id:?} is not a valid server id: use 1 to 32 letters, digits, '-' or '_', without \"__\" \
         and with no '_' at the end"
    );
    Ok(())
}

fn variable(name: &str, environment: &Environment, missing: &mut Vec<String>) -> String {
    let value = (environment.variable)(name).map(|it| it.trim().to_owned());
    value.filter(|it| !it.is_empty()).unwrap_or_else(|| {
        missing.push(name.to_owned());
        String::new()
    })
}

fn program(
    section: &McpSection,
    command: &[String],
    environment: &Environment,
    values: &mut impl FnMut(&str) -> String,
) -> anyhow::Result<ServerTransport> {
    if command.is_empty() {
        let error = anyhow::anyhow!("it is empty: give the program and its arguments");
        return Err(error.context(Key::new("command")));
    }
    ensure!(
        section.headers.is_empty() && section.headers_env.is_empty(),
        "`headers` requires `url`; for a program, use `env`"
    );
    let folder = environment.working_dir.join(section.cwd.clone().unwrap_or_default());
    if !folder.is_dir() {
        return Err(
            anyhow::anyhow!("{} is not a folder", folder.display()).context(Key::new("cwd"))
        );
    }
    let is_inherited = |name: &str| {
        INHERITED.contains(&name) || INHERITED_FAMILIES.iter().any(|it| name.starts_with(it))
    };
    let ours = environment.child_variables().into_iter();
    let ours = ours.filter(|(name, _)| name.to_str().is_some_and(is_inherited));
    let own = section.env.iter().map(|(name, it)| (OsString::from(name), values(it).into()));
    let environment: Vec<(OsString, OsString)> = ours.chain(own).collect();
    let command = command.iter().chain(&section.args).cloned().collect();
    Ok(ServerTransport::Program { command, folder, environment })
}

fn service(
    section: &McpSection,
    url: &str,
    values: &mut impl FnMut(&str) -> String,
) -> anyhow::Result<ServerTransport> {
    ensure!(
        section.args.is_empty() && section.env.is_empty() && section.cwd.is_none(),
        "`args`, `env` and `cwd` require `command`"
    );
    check_url(url).context(Key::new("url"))?;
    let written = section.headers.iter().map(|(name, it)| (name, it.clone()));
    let named = section.headers_env.iter().map(|(name, it)| (name, format!("env:{it}")));
    let mut headers = Vec::new();
    for (name, value) in written.chain(named) {
        let value = values(&value);
        let is_name = reqwest::header::HeaderName::try_from(name).is_ok();
        let is_value = reqwest::header::HeaderValue::try_from(&value).is_ok();
        ensure!(is_name && is_value, "{name:?} is not a valid header");
        headers.push((name.to_ascii_lowercase(), value));
    }
    Ok(ServerTransport::Url { url: url.to_owned(), headers })
}

fn check_url(url: &str) -> anyhow::Result<()> {
    let parsed = url::Url::parse(url).with_context(|| format!("{url:?} is not a valid URL"))?;
    ensure!(
        matches!(parsed.scheme(), "http" | "https"),
        "{url:?} is not a valid URL: it must begin with http:// or https://"
    );
    ensure!(
        parsed.username().is_empty() && parsed.password().is_none(),
        "it would be shown with its password; use `headers_env`"
    );
    Ok(())
}
