//! The `[tools]` table: limits of tool calls, the SSRF guard, and the environment variables of commands.

use std::ffi::OsStr;
use std::time::Duration;

use serde::Deserialize;
use tools::{ToolSettings, Web};

use super::File;
use super::agents::at_least_one;
use super::environment::Environment;
use super::secrets::{has_password, is_secret, key_variables};

const DEFAULT_TOOL_SECONDS: u64 = 120;
const DEFAULT_PER_MINUTE: u32 = 30;
const DEFAULT_RETRIES: u32 = 2;

/// The `[tools]` table of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ToolsSection {
    timeout_seconds: Option<u64>,
    /// Maximum number of tool calls per minute in a session; zero means no limit, `None` the
    /// default.
    per_minute: Option<u32>,
    retries: Option<u32>,
    /// Whether `http_get` may reach private addresses, which turns off the SSRF guard.
    http_private: bool,
}

impl ToolsSection {
    pub(super) fn seconds(&self) -> u64 {
        self.timeout_seconds.unwrap_or(DEFAULT_TOOL_SECONDS)
    }
}

pub(super) fn tools(file: &File, environment: &Environment) -> anyhow::Result<ToolSettings> {
    let section = &file.tools;
    let seconds = at_least_one("timeout_seconds", Some(section.seconds()), DEFAULT_TOOL_SECONDS)?;
    let keys = key_variables(file);
    let is_open = |name: &str, value: &OsStr| {
        !is_secret(name) && !keys.contains(&name) && !has_password(value)
    };
    let variables = environment.child_variables().into_iter();
    let open = variables.filter(|(name, it)| name.to_str().is_some_and(|name| is_open(name, it)));
    Ok(ToolSettings {
        time_limit: Duration::from_secs(seconds),
        per_minute: section.per_minute.unwrap_or(DEFAULT_PER_MINUTE) as usize,
        retries: section.retries.unwrap_or(DEFAULT_RETRIES),
        web: if section.http_private { Web::with_private() } else { Web::public() },
        environment: open.collect(),
    })
}
