//! The `[[agents]]` tables: the allowed keys, and the agents that they configure.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use backends::openai::{Limits, Settings};
use backends::{Pace, ProgramKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::Tools;
use tools::mcp;
use tools::policy::Pattern;

use super::secrets::key_variables;
use super::source::{Key, Source};
use super::{Environment, File, programs};
use runtime::agents::{Agent, AgentKind, Agents, MessagePolicy, OpenAiAgent, ToolChoice};

const DEFAULT_MAX_STEPS: u32 = 30;
const DEFAULT_PARALLEL_TOOLS: usize = 8;
const DEFAULT_RETRIES: u32 = 4;
const DEFAULT_TIMEOUT_SECONDS: u64 = 300;

/// An `[[agents]]` table of the configuration file. All kinds of agents share one type, so that
/// errors name their line; the keys of each kind are checked afterwards.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentSection {
    id: String,
    kind: KindWord,
    description: Option<String>,
    workspace: Option<PathBuf>,
    agents_allow: Option<Vec<String>>,
    agents_deny: Option<Vec<String>>,

    base_url: Option<String>,
    pub(super) model: Option<String>,
    api_key_env: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    system: Option<String>,
    tools: Option<Vec<String>>,
    vision: Option<bool>,
    max_steps: Option<u32>,
    max_tokens: Option<u64>,
    max_seconds: Option<u64>,
    max_tool_calls: Option<u32>,
    parallel_tools: Option<usize>,
    retries: Option<u32>,
    timeout_seconds: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    seed: Option<i64>,
    max_output_tokens: Option<u64>,
    extra: Option<toml::Table>,
    omit: Option<Vec<String>>,

    pub(super) command: Option<Vec<String>>,
    pub(super) args: Option<Vec<String>>,
    pub(super) env: Option<BTreeMap<String, String>>,
    pub(super) permission_mode: Option<String>,
    pub(super) idle_minutes: Option<u64>,
}

impl AgentSection {
    /// Returns the names of the environment variables that hold the API keys and other secrets of
    /// the agent.
    pub(super) fn key_variables(&self) -> impl Iterator<Item = &str> {
        let values = self.headers.iter().flatten().map(|(_, it)| it);
        let values = values.chain(self.env.iter().flatten().map(|(_, it)| it));
        let named = values.filter_map(|it| it.strip_prefix("env:"));
        self.api_key_env.as_deref().into_iter().chain(named)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindWord {
    Demo,
    OpenAi,
    Claude,
    Codex,
    Pi,
}

/// Keys of an `[[agents]]` table that all kinds of agents have.
const COMMON: [&str; 6] = ["id", "kind", "description", "workspace", "agents_allow", "agents_deny"];
/// Further keys of an `[[agents]]` table for a program agent. Model agents share `model`.
const OF_PROGRAMS: [&str; 6] =
    ["command", "args", "model", "env", "permission_mode", "idle_minutes"];

/// Returns the configured agents, and the demo agent unless it is disabled or its id is taken. If
/// no agents are configured, the known programs are included, installed or not.
pub(super) fn agents(
    file: &File,
    source: &Source,
    environment: &Environment,
    data: &Path,
) -> anyhow::Result<Agents> {
    let (demo_wanted, pace) = file.demo.wanted_and_pace();
    let mut agents: Vec<Agent> = Vec::new();
    let mut ids = HashSet::new();
    for (idx, section) in file.agents.iter().enumerate() {
        let agent = resolve(section, pace, file, environment)
            .and_then(|agent| {
                let is_new = ids.insert(agent.id.clone());
                ensure!(is_new, "two agents are called {:?}: give each its own id", agent.id);
                Ok(agent)
            })
            .map_err(|error| source.at(&["agents", &idx.to_string()], error))?;
        agents.push(agent);
    }
    if demo_wanted && !ids.contains("demo") {
        let (id, kind) = ("demo".to_owned(), AgentKind::Demo { pace });
        let workspace = environment.working_dir.clone();
        agents.push(Agent {
            id,
            purpose: None,
            kind,
            workspace,
            may_message: MessagePolicy::default(),
        });
    }
    if file.agents.is_empty() {
        let keys = key_variables(file);
        agents
            .extend(ProgramKind::ALL.map(|kind| programs::unconfigured(kind, environment, &keys)));
    }
    Ok(Agents { agents, shipped: data.join("shipped") })
}

fn resolve(
    section: &AgentSection,
    pace: Pace,
    file: &File,
    environment: &Environment,
) -> anyhow::Result<Agent> {
    check_id(&section.id).context(Key::new("id"))?;
    let of_agent = || format!("agent {:?}", section.id);
    let workspace = workspace(section, environment).context(Key::new("workspace"));
    let workspace = workspace.with_context(of_agent)?;
    let kind = check_keys(section).and_then(|()| kind(section, pace, file, environment));
    Ok(Agent {
        id: section.id.clone(),
        purpose: section.description.clone(),
        kind: kind.with_context(of_agent)?,
        workspace,
        may_message: reach(section),
    })
}

fn check_id(id: &str) -> anyhow::Result<()> {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    let is_good = !id.is_empty() && id.len() <= 64 && id.bytes().all(is_name);
    ensure!(
        is_good,
        "{id:?} is not a valid agent id: use 1 to 64 letters, digits, '-', '_' or '.'"
    );
    Ok(())
}

fn workspace(section: &AgentSection, environment: &Environment) -> anyhow::Result<PathBuf> {
    let folder = &environment.working_dir;
    let workspace = section.workspace.as_ref().map_or(folder.clone(), |it| folder.join(it));
    ensure!(workspace.is_dir(), "{} is not a folder", workspace.display());
    Ok(workspace)
}

fn kind(
    section: &AgentSection,
    pace: Pace,
    file: &File,
    environment: &Environment,
) -> anyhow::Result<AgentKind> {
    Ok(match (section.kind, section.kind.program()) {
        (_, Some(kind)) => {
            let keys = key_variables(file);
            AgentKind::Program(Arc::new(programs::configured(kind, section, environment, &keys)?))
        }
        (KindWord::OpenAi, None) => {
            AgentKind::OpenAi(Arc::new(open_ai(section, file, environment)?))
        }
        (_, None) => AgentKind::Demo { pace },
    })
}

fn reach(section: &AgentSection) -> MessagePolicy {
    let patterns =
        |list: &Vec<String>| -> Vec<Pattern> { list.iter().map(|it| Pattern::new(it)).collect() };
    let MessagePolicy { allow, deny } = MessagePolicy::default();
    MessagePolicy {
        allow: section.agents_allow.as_ref().map_or(allow, patterns),
        deny: section.agents_deny.as_ref().map_or(deny, patterns),
    }
}

impl KindWord {
    fn program(self) -> Option<ProgramKind> {
        match self {
            Self::Demo | Self::OpenAi => None,
            Self::Claude => Some(ProgramKind::Claude),
            Self::Codex => Some(ProgramKind::Codex),
            Self::Pi => Some(ProgramKind::Pi),
        }
    }
}

/// Returns an error if an `[[agents]]` table has a key of another kind of agent.
fn check_keys(section: &AgentSection) -> anyhow::Result<()> {
    let table = toml::Table::try_from(section)?;
    let is_of_programs = |key: &str| key != "model" && OF_PROGRAMS.contains(&key);
    let (name, own): (&str, &[&str]) = match (section.kind, section.kind.program()) {
        (KindWord::OpenAi, _) => {
            let key = table.keys().find(|it| is_of_programs(it));
            return match key {
                Some(key) => Err(anyhow::anyhow!("it is for agents that are programs"))
                    .context(Key::new(key)),
                None => Ok(()),
            };
        }
        (_, Some(kind)) => (kind.word(), &OF_PROGRAMS),
        (_, None) => ("demo", &[]),
    };
    let keys = [&COMMON[..], own].concat();
    if let Some(key) = table.keys().find(|it| !keys.contains(&it.as_str())) {
        let error =
            anyhow::anyhow!("a {name} agent has no such key; its keys are {}", keys.join(", "));
        return Err(error.context(Key::new(key)));
    }
    Ok(())
}

fn open_ai(
    section: &AgentSection,
    file: &File,
    environment: &Environment,
) -> anyhow::Result<OpenAiAgent> {
    let base_url = base_url(section).context(Key::new("base_url"))?;
    let model = section.model.clone().context("it is missing: give the name of the model");
    let model = model.context(Key::new("model"))?;
    let mut missing = Vec::new();
    let mut variable = |name: &str| {
        // A key that was copied from a file often ends with a line break.
        let value = (environment.variable)(name).map(|it| it.trim().to_owned());
        let value = value.filter(|it| !it.is_empty());
        if value.is_none() {
            missing.push(name.to_owned());
        }
        value
    };
    let api_key = section.api_key_env.as_deref().and_then(&mut variable);
    let headers = headers(section, &mut variable).context(Key::new("headers"))?;
    let seconds = section.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
    let settings = Settings {
        base_url,
        model,
        api_key,
        api_key_env: section.api_key_env.clone(),
        headers,
        body: body(section).context(Key::new("extra"))?,
        omit: section.omit.clone().unwrap_or_default(),
        limits: Limits {
            steps: Some(at_least_one("max_steps", section.max_steps, DEFAULT_MAX_STEPS)?),
            tokens: section.max_tokens,
            seconds: section.max_seconds,
            tool_calls: section.max_tool_calls,
        },
        parallel_tools: at_least_one(
            "parallel_tools",
            section.parallel_tools,
            DEFAULT_PARALLEL_TOOLS,
        )?,
        retries: section.retries.unwrap_or(DEFAULT_RETRIES),
        idle_timeout_ms: at_least_one("timeout_seconds", Some(seconds), seconds)?
            .saturating_mul(1000),
    };
    Ok(OpenAiAgent {
        settings: Arc::new(settings),
        tools: tools(section, file).context(Key::new("tools"))?,
        system: section.system.clone(),
        sees: section.vision.unwrap_or(true),
        missing,
    })
}

fn base_url(section: &AgentSection) -> anyhow::Result<String> {
    let base_url = section.base_url.clone().context(
        "it is missing: give the URL of the model's API, like \"http://127.0.0.1:8080/v1\"",
    )?;
    ensure!(
        base_url.starts_with("http://") || base_url.starts_with("https://"),
        "{base_url:?} is not a valid URL: it must begin with http:// or https://"
    );
    ensure!(
        !base_url.split('?').next().unwrap_or_default().contains('@'),
        "it would be shown with its password; use `api_key_env` or `headers`"
    );
    Ok(base_url)
}

/// Returns the value of a configuration key, or the default. A value below one is an error.
pub(super) fn at_least_one<T: PartialOrd + From<u8>>(
    key: &str,
    value: Option<T>,
    default: T,
) -> anyhow::Result<T> {
    let value = value.unwrap_or(default);
    if value < T::from(1) {
        return Err(anyhow::anyhow!("it must be at least 1").context(Key::new(key)));
    }
    Ok(value)
}

/// Returns the HTTP headers for requests to a model. A value `env:NAME` refers to an environment
/// variable, so that the configuration file needs no secrets.
fn headers(
    section: &AgentSection,
    variable: &mut impl FnMut(&str) -> Option<String>,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    for (name, value) in section.headers.iter().flatten() {
        let value = match value.strip_prefix("env:") {
            Some(name) => variable(name).unwrap_or_default(),
            None => value.clone(),
        };
        let is_name = reqwest::header::HeaderName::try_from(name).is_ok();
        let is_value = reqwest::header::HeaderValue::try_from(&value).is_ok();
        ensure!(is_name && is_value, "{name:?} is not a valid header");
        headers.push((name.to_ascii_lowercase(), value));
    }
    Ok(headers)
}

/// Returns the tools that a model agent may use; all tools if the key `tools` is missing. For tools
/// of MCP servers, only the ids of the servers are checked, because the tools are not known yet.
fn tools(section: &AgentSection, file: &File) -> anyhow::Result<ToolChoice> {
    let Some(wanted) = &section.tools else { return Ok(ToolChoice(None)) };
    let names = Tools::names();
    let servers: Vec<&str> = file.mcp_servers.iter().map(|it| it.id.as_str()).collect();
    for name in wanted {
        let pattern = Pattern::new(name);
        match mcp::server_of(name) {
            Some(server) if servers.contains(&server) => (),
            Some(server) => {
                bail!("{name:?} belongs to no MCP server: {server:?} is not among [[mcp_servers]]")
            }
            None if names.iter().any(|it| pattern.fits(it)) => (),
            None => bail!(
                "there is no tool {name:?}; there are {}, and those of MCP servers, like \
                 \"server__tool\" or \"server__*\"",
                names.join(", ")
            ),
        }
    }
    Ok(ToolChoice(Some(wanted.iter().map(|it| Pattern::new(it)).collect())))
}

/// Returns the model parameters for the body of a request to a model, and the additional fields
/// from the key `extra`.
fn body(section: &AgentSection) -> anyhow::Result<Map<String, Value>> {
    let mut body = Map::new();
    let known = [
        ("temperature", section.temperature.map(Value::from)),
        ("top_p", section.top_p.map(Value::from)),
        ("seed", section.seed.map(Value::from)),
        ("max_tokens", section.max_output_tokens.map(Value::from)),
    ];
    body.extend(known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    for (key, value) in section.extra.iter().flatten() {
        ensure!(key != "messages", "the messages are made from the conversation");
        body.insert(key.clone(), serde_json::to_value(value)?);
    }
    Ok(body)
}
