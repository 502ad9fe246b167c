//! The `[approvals]` table: its keys, and the policy that they configure.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use tools::policy::{Pattern, Policy, Rule, Verdict};
use tools::{PrivateFiles, Tools};

use super::agents::at_least_one;
use super::environment::Environment;
use super::source::Key;
use runtime::agents::is_tool_of_program;

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
    let search_path = environment.search_path().unwrap_or_default();
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
