//! The `[approvals]`, `[tools]` and `[exchanges]` tables: the allowed keys, and the policy that
//! they configure.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::time::Duration;

use anyhow::{Context, ensure};
use reqwest::Url;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use tools::PrivateFiles;
use tools::policy::{Pattern, Policy, Rule, Verdict};
use tools::{SessionRule, ToolSettings, Tools, Web};

use super::agents::{AgentSection, at_least_one};
use super::mcp::McpSection;
use super::source::Key;
use super::{Environment, File, PATH};
use runtime::ExchangeLimits;
use runtime::agents::is_tool_of_program;

const DEFAULT_TOOL_SECONDS: u64 = 120;
const DEFAULT_PER_MINUTE: u32 = 30;
const DEFAULT_RETRIES: u32 = 2;

/// The `[approvals]` table of the configuration file: rules by tool name, and the timeout of
/// approvals.
#[derive(Debug, Default)]
pub(super) struct ApprovalsSection {
    timeout_seconds: Option<u64>,
    rules: BTreeMap<String, RuleSection>,
}

/// Rule of the `[approvals]` table for a tool: a word such as `"ask"`, or a table of patterns.
#[derive(Debug)]
enum RuleSection {
    Word(Word),
    Patterns(PatternsSection),
}

impl<'de> Deserialize<'de> for ApprovalsSection {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = ApprovalsSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of rules, and `timeout_seconds`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Self::Value, A::Error> {
                let mut section = ApprovalsSection::default();
                while let Some(key) = table.next_key::<String>()? {
                    match key.as_str() {
                        "timeout_seconds" => section.timeout_seconds = Some(table.next_value()?),
                        _ => drop(section.rules.insert(key, table.next_value()?)),
                    }
                }
                Ok(section)
            }
        }

        given.deserialize_map(Shape)
    }
}

impl<'de> Deserialize<'de> for RuleSection {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = RuleSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "\"allow\", \"ask\" or \"deny\", or a table with lists `allow`, `ask`, `deny` of \
                     patterns and a word `otherwise`",
                )
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<RuleSection, E> {
                let word = match word {
                    "allow" => Word::Allow,
                    "ask" => Word::Ask,
                    "deny" => Word::Deny,
                    _ => return Err(E::invalid_value(Unexpected::Str(word), &self)),
                };
                Ok(RuleSection::Word(word))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<RuleSection, A::Error> {
                let patterns = PatternsSection::deserialize(MapAccessDeserializer::new(table));
                patterns.map(RuleSection::Patterns)
            }
        }

        given.deserialize_any(Shape)
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PatternsSection {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    otherwise: Option<Word>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ToolsSection {
    timeout_seconds: Option<u64>,
    /// Maximum number of tool calls per minute in a session; zero means no limit, `None` the
    /// default.
    per_minute: Option<u32>,
    retries: Option<u32>,
    http_private: bool,
}

/// The `[exchanges]` table of the configuration file: limits on messages that agents send to each
/// other without a person.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExchangesSection {
    max_depth: Option<u32>,
    max_per_run: Option<usize>,
    max_queued: Option<usize>,
    session: Option<SessionRule>,
    timeout_seconds: Option<u64>,
}

impl ToolsSection {
    pub(super) fn seconds(&self) -> u64 {
        self.timeout_seconds.unwrap_or(DEFAULT_TOOL_SECONDS)
    }
}

pub(super) fn approvals(
    section: &ApprovalsSection,
    private: PrivateFiles,
    environment: &Environment,
) -> anyhow::Result<Policy> {
    let mut rules = BTreeMap::new();
    for (tool, rule) in &section.rules {
        check_name(tool).context(Key::new(tool))?;
        rules.insert(tool.clone(), rule.resolve());
    }
    let seconds = section.timeout_seconds.map(|it| at_least_one("timeout_seconds", Some(it), it));
    let timeout_ms = seconds.transpose()?.map(|it| it.saturating_mul(1000));
    let search_path = search_path(environment).unwrap_or_default();
    Ok(Policy { rules, timeout_ms, private, search_path })
}

/// Checks that a rule of the `[approvals]` table names a known tool. Tools of MCP servers are not
/// checked, because they are not known yet.
fn check_name(tool: &str) -> anyhow::Result<()> {
    let names = Tools::names();
    let pattern = Pattern::new(tool);
    let is_known = names.iter().any(|it| pattern.fits(it)) || is_tool_of_program(tool);
    ensure!(
        tool.contains("__") || is_known,
        "there is no such tool; the tools are {}",
        names.join(", ")
    );
    Ok(())
}

impl RuleSection {
    fn resolve(&self) -> Rule {
        let patterns = |list: &[String]| list.iter().map(|it| Pattern::new(it)).collect();
        match self {
            Self::Word(word) => Rule { otherwise: Some(word.verdict()), ..Rule::default() },
            Self::Patterns(PatternsSection { allow, ask, deny, otherwise }) => Rule {
                allow: patterns(allow),
                ask: patterns(ask),
                deny: patterns(deny),
                otherwise: otherwise.map(Word::verdict),
            },
        }
    }
}

impl Word {
    fn verdict(self) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Ask => Verdict::Ask,
            Self::Deny => Verdict::Deny,
        }
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

pub(super) fn exchanges(section: &ExchangesSection) -> anyhow::Result<ExchangeLimits> {
    let ExchangeLimits { depth, per_run, queued, timeout, session } = ExchangeLimits::default();
    let seconds = at_least_one("timeout_seconds", section.timeout_seconds, timeout.as_secs())?;
    Ok(ExchangeLimits {
        depth: section.max_depth.unwrap_or(depth),
        per_run: section.max_per_run.unwrap_or(per_run),
        queued: section.max_queued.unwrap_or(queued),
        timeout: Duration::from_secs(seconds),
        session: section.session.unwrap_or(session),
    })
}

/// Returns the names of the environment variables that hold secrets of agents and MCP servers.
pub(super) fn key_variables(file: &File) -> Vec<&str> {
    let of_agents = file.agents.iter().flat_map(AgentSection::key_variables);
    of_agents.chain(file.mcp_servers.iter().flat_map(McpSection::key_variables)).collect()
}

/// Returns the value of `PATH` for the commands that agents run; `None` if it is not set.
fn search_path(environment: &Environment) -> Option<OsString> {
    environment.child_variables().into_iter().find(|(name, _)| name == PATH).map(|(_, path)| path)
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
