//! The configured agents, and how to launch one.

mod catalog;
mod help;
pub(crate) mod history;
mod program;
pub mod tool_catalog;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backends::openai::{Settings, function};
use backends::{Demo, Launch, ModelBackend, OpenAi, Pace, ProgramBackend};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tools::Tools;
use tools::mcp;
use tools::policy::Pattern;
use transcript::{ErrorCode, ErrorInfo};

use history::HistoryScope;

pub use catalog::AgentCatalog;
pub use program::{ProgramAgent, ProgramSettings, SHIPPED, is_tool_of_program};

/// The agents that the server offers.
#[derive(Debug, Clone)]
pub struct Agents {
    pub agents: Vec<Agent>,
    /// Folder with the files that Callboard ships for programs, such as extensions.
    pub shipped: PathBuf,
}

/// An agent with its configuration.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Name by which people and other agents address the agent.
    pub id: String,
    /// Purpose of the agent, as its owner describes it in the configuration. `None` if it is not
    /// described.
    pub purpose: Option<String>,
    pub kind: AgentKind,
    /// Folder that the agent's tools may access, unless a session names another.
    pub workspace: PathBuf,
    pub may_message: MessagePolicy,
}

/// Rules for the agents to which an agent may send messages. `deny` overrides `allow`.
#[derive(Debug, Clone, PartialEq)]
pub struct MessagePolicy {
    pub allow: Vec<Pattern>,
    pub deny: Vec<Pattern>,
}

impl Default for MessagePolicy {
    fn default() -> Self {
        Self { allow: vec![Pattern::new("*")], deny: Vec::new() }
    }
}

/// Kind of an agent, with its settings. A new kind is a variant here and a module in `backends`.
#[derive(Debug, Clone)]
pub enum AgentKind {
    Demo { pace: Pace },
    OpenAi(Arc<OpenAiAgent>),
    Program(Arc<ProgramAgent>),
}

/// An agent that is ready for a run: a model agent's backend, or a program to start.
pub enum LaunchedAgent {
    /// Backend of a model agent, for one run.
    Model(Box<dyn ModelBackend>),
    /// A program to start. Its process stays for further runs until it has been idle for
    /// `idle_limit`.
    Program {
        backend: Box<dyn ProgramBackend>,
        command: Vec<String>,
        environment: Vec<(OsString, OsString)>,
        idle_limit: Duration,
    },
}

/// A model agent behind an OpenAI-compatible API.
#[derive(Debug)]
pub struct OpenAiAgent {
    pub settings: Arc<Settings>,
    pub tools: ToolChoice,
    pub system: Option<String>,
    /// Whether the model accepts pictures in messages.
    pub sees: bool,
    /// Names of the environment variables that should hold an API key and are not set.
    pub missing: Vec<String>,
}

/// Patterns of the tools that an agent may use. `None` allows all tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChoice(pub Option<Vec<Pattern>>);

impl ToolChoice {
    /// Returns the chosen tools that are available now, as function descriptions for a model API.
    pub fn of(&self, tools: &Tools) -> Vec<Value> {
        let chosen = tools.specs().into_iter().filter(|it| self.takes(&it.name));
        chosen.map(|it| function(&it.name, &it.description, &it.parameters)).collect()
    }

    /// Returns whether the agent may use any tool of the MCP server with this name.
    pub fn takes_any_of(&self, server: &str) -> bool {
        self.any(|it| is_about(it, Some(server)))
    }

    /// Returns whether the agent may use the tool with this name.
    pub fn takes(&self, tool: &str) -> bool {
        self.any(|it| is_about(it, mcp::server_of(tool)) && it.fits(tool))
    }

    fn any(&self, fits: impl Fn(&Pattern) -> bool) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(fits))
    }
}

/// Returns whether a pattern can match tools of this MCP server, or built-in tools if `server` is
/// `None`. The pattern `*` matches tools of every server.
fn is_about(pattern: &Pattern, server: Option<&str>) -> bool {
    pattern.is_exactly("*") || mcp::server_of(&pattern.text()) == server
}

/// An agent as `GET /api/agents` shows it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentInfo {
    pub id: String,
    pub kind: &'static str,
    /// Purpose of the agent, or else a short description of its kind.
    pub description: String,
    workspace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Reason why the agent cannot work, and how to fix that. Absent if it can work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Features that the installed program of the agent lacks. Absent if it lacks none, as far as
    /// is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'static str>,
}

impl Agents {
    pub fn knows(&self, id: &str) -> bool {
        self.find(id).is_some()
    }

    /// Returns the id of the default agent for new sessions: the first one that can work, or else
    /// the first one. `None` if there is no agent.
    pub fn default_id(&self) -> Option<&str> {
        let works = self.agents.iter().find(|agent| agent.problem().is_none());
        works.or(self.agents.first()).map(|agent| agent.id.as_str())
    }

    pub fn infos(&self) -> Vec<AgentInfo> {
        self.agents.iter().map(Agent::info).collect()
    }

    /// Returns the ids of the agents that can work now.
    pub fn names(&self) -> Vec<&str> {
        let ready = self.agents.iter().filter(|it| it.problem().is_none());
        ready.map(|it| it.id.as_str()).collect()
    }

    /// Detects the features of all installed programs. Runs each program whose help text is not
    /// cached, so it is called before a page needs the result.
    pub async fn examine(&self) {
        join_all(self.agents.iter().map(Agent::examine)).await;
    }

    /// Returns an error with the reason if the agent with this id does not exist or cannot work.
    pub fn check(&self, id: &str) -> Result<(), ErrorInfo> {
        self.able(id).map(drop)
    }

    /// Prepares the agent with this id for a run. Fails with the reason if the agent cannot work.
    pub async fn launch(&self, id: &str, launch: &Launch) -> Result<LaunchedAgent, ErrorInfo> {
        let agent = self.able(id)?;
        agent.examine().await;
        Ok(match &agent.kind {
            AgentKind::Demo { pace } => LaunchedAgent::Model(Box::new(Demo::new(*pace))),
            AgentKind::OpenAi(agent) => {
                LaunchedAgent::Model(Box::new(OpenAi::new(Arc::clone(&agent.settings))))
            }
            AgentKind::Program(agent) => {
                let program::Ready { backend, command, environment } = agent.start(launch);
                LaunchedAgent::Program {
                    backend,
                    command,
                    environment,
                    idle_limit: agent.idle_limit,
                }
            }
        })
    }

    /// Returns whether the agent `asker` may send messages to the agent `asked`.
    pub fn may_message(&self, asker: &str, asked: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|it| it.fits(asked));
        self.find(asker)
            .is_some_and(|it| fits(&it.may_message.allow) && !fits(&it.may_message.deny))
    }

    /// Returns whether the agent with this id is a program, with a process and a memory of its own.
    pub fn is_program(&self, id: &str) -> bool {
        self.program_name(id).is_some()
    }

    /// Records that the installed program of the agent lacks a feature that it claims to have.
    pub fn mark_outdated(&self, id: &str) {
        if let Some(Agent { kind: AgentKind::Program(agent), .. }) = self.find(id) {
            agent.mark_outdated();
        }
    }

    /// Returns the display name of the program that the agent runs. `None` if the agent is not a
    /// program.
    pub fn program_name(&self, id: &str) -> Option<&'static str> {
        match &self.find(id)?.kind {
            AgentKind::Program(agent) => Some(agent.which.kind().name()),
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => None,
        }
    }

    /// Returns the `PATH` variable of the program that the agent runs. `None` if the agent is not a
    /// program.
    pub fn search_path(&self, id: &str) -> Option<&OsStr> {
        match &self.find(id)?.kind {
            AgentKind::Program(agent) => agent.search_path(),
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => None,
        }
    }

    fn able(&self, id: &str) -> Result<&Agent, ErrorInfo> {
        let Some(agent) = self.find(id) else {
            let message =
                format!("No agent called '{id}' is configured. Add it, or choose another.");
            return Err(ErrorInfo::new(ErrorCode::AgentNotFound, message));
        };
        let code = match agent.kind {
            AgentKind::Program(_) => ErrorCode::AgentNotInstalled,
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => ErrorCode::UpstreamAuth,
        };
        match agent.problem() {
            Some(problem) => Err(ErrorInfo::new(code, problem)),
            None => Ok(agent),
        }
    }

    /// Returns how much of the conversation the agent with this id needs as its history, and in
    /// which form. A program that `remembers` its own conversation gets only the last message.
    pub(crate) fn history_scope(&self, id: &str, remembers: bool) -> HistoryScope {
        match self.find(id).map(|agent| (agent, &agent.kind)) {
            Some((agent, AgentKind::OpenAi(kind))) => HistoryScope::Everything {
                agent: agent.id.clone(),
                model: agent.model().map(str::to_owned),
                system: kind.system.clone(),
                sees: kind.sees,
            },
            Some((_, AgentKind::Program(_))) if !remembers => HistoryScope::AsOneText,
            Some((_, AgentKind::Program(_))) => HistoryScope::LastMessage { with_files: true },
            Some((_, AgentKind::Demo { .. })) | None => {
                HistoryScope::LastMessage { with_files: false }
            }
        }
    }

    /// Returns the choice of Callboard's tools for a model agent behind an API. `None` for the demo
    /// agent and for programs.
    pub fn tool_choice(&self, id: &str) -> Option<&ToolChoice> {
        match &self.find(id)?.kind {
            AgentKind::OpenAi(agent) => Some(&agent.tools),
            AgentKind::Demo { .. } | AgentKind::Program(_) => None,
        }
    }

    pub fn workspace(&self, id: &str) -> PathBuf {
        self.find(id).map(|agent| agent.workspace.clone()).unwrap_or_default()
    }

    fn find(&self, id: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.id == id)
    }
}

impl Agent {
    /// Returns the reason why the agent cannot work, and how to fix that. `None` if it can work.
    pub fn problem(&self) -> Option<String> {
        match &self.kind {
            AgentKind::Demo { .. } => None,
            AgentKind::OpenAi(agent) if agent.missing.is_empty() => None,
            AgentKind::OpenAi(agent) => Some(format!(
                "{} should hold a key and is not set. Set it, then start Callboard again.",
                agent.missing.join(", ")
            )),
            AgentKind::Program(agent) => agent.problem(),
        }
    }

    /// Returns whether the agent accepts messages during a run (steering).
    fn can_be_steered(&self) -> bool {
        match &self.kind {
            AgentKind::Demo { .. } => false,
            AgentKind::OpenAi(_) => true,
            AgentKind::Program(agent) => agent.can_be_steered(),
        }
    }

    pub async fn examine(&self) {
        if let AgentKind::Program(agent) = &self.kind {
            agent.examine().await;
        }
    }

    /// Returns the version that the agent's installed program reports. `None` if it reports none or
    /// the agent is not a program.
    pub async fn version(&self) -> Option<String> {
        match &self.kind {
            AgentKind::Program(agent) => agent.version().await,
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => None,
        }
    }

    /// Returns a text on the features that the agent's installed program lacks. `None` if it lacks
    /// none, as far as is known.
    pub fn limits(&self) -> Option<&'static str> {
        match &self.kind {
            AgentKind::Program(agent) => agent.limits(),
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => None,
        }
    }

    /// Returns whether the agent runs a known program that is not configured, so that the program
    /// may be missing.
    pub fn is_optional(&self) -> bool {
        matches!(&self.kind, AgentKind::Program(agent) if agent.is_optional)
    }

    pub fn model(&self) -> Option<&str> {
        match &self.kind {
            AgentKind::Demo { .. } => None,
            AgentKind::OpenAi(agent) => Some(&agent.settings.model),
            AgentKind::Program(agent) => agent.which.model(),
        }
    }

    /// Returns the configured purpose of the agent, or else a short description of its kind.
    pub fn description(&self) -> String {
        if let Some(purpose) = &self.purpose {
            return purpose.clone();
        }
        match &self.kind {
            AgentKind::Demo { .. } => {
                "Built in, needs no key and no network. Say \"help\" to see what it can do."
                    .to_owned()
            }
            AgentKind::Program(agent) => agent.description(),
            AgentKind::OpenAi(agent) => {
                let Settings { model, base_url, .. } = &*agent.settings;
                format!("The model {model} at {}.", base_url.split('?').next().unwrap_or_default())
            }
        }
    }

    fn info(&self) -> AgentInfo {
        AgentInfo {
            id: self.id.clone(),
            kind: match &self.kind {
                AgentKind::Demo { .. } => "demo",
                AgentKind::OpenAi(_) => "openai",
                AgentKind::Program(agent) => agent.which.kind().word(),
            },
            description: self.description(),
            workspace: self.workspace.display().to_string(),
            model: self.model().map(str::to_owned),
            problem: self.problem(),
            limits: self.limits(),
        }
    }
}
