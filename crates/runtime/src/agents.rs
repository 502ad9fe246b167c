//! The configured agents, and how to launch one.

mod help;
mod program;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backends::openai::Settings;
use backends::{Demo, Launch, ModelBackend, OpenAi, Pace, ProgramBackend, ProgramKind};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tools::mcp;
use tools::policy::Pattern;
use tools::{ToolSpec, Tools};
use transcript::{ErrorCode, ErrorInfo};

use crate::history::HistoryScope;

pub use program::{ProgramAgent, ProgramSettings, SHIPPED, is_tool_of_program};

#[derive(Debug, Clone)]
pub struct Agents {
    pub agents: Vec<Agent>,
    /// Folder with the files that Callboard ships for programs.
    pub shipped: PathBuf,
}

#[derive(Debug, Clone)]
pub struct Agent {
    /// Name by which people and other agents address it.
    pub id: String,
    /// Purpose, as written by its owner.
    pub purpose: Option<String>,
    pub kind: AgentKind,
    /// Folder that the agent's tools may access, unless a session names another.
    pub workspace: PathBuf,
    pub may_message: MessagePolicy,
}

/// Other agents to which an agent may send messages. `deny` overrides `allow`.
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

/// Kinds of agents. A new kind is a variant here and a module in `backends`.
#[derive(Debug, Clone)]
pub enum AgentKind {
    Demo { pace: Pace },
    OpenAi(Arc<OpenAiAgent>),
    Program(Arc<ProgramAgent>),
}

/// An agent that is launched in a session.
pub enum LaunchedAgent {
    /// A model agent, for one run.
    Model(Box<dyn ModelBackend>),
    /// A program to start. It stays for further runs until it has been idle for `idle_limit`.
    Program {
        backend: Box<dyn ProgramBackend>,
        command: Vec<String>,
        environment: Vec<(OsString, OsString)>,
        idle_limit: Duration,
    },
}

#[derive(Debug)]
pub struct OpenAiAgent {
    pub settings: Arc<Settings>,
    pub tools: ToolChoice,
    pub system: Option<String>,
    /// Whether the model accepts pictures.
    pub sees: bool,
    /// Environment variables that are configured to hold a key and are not set.
    pub missing: Vec<String>,
}

/// Tools that an agent may use: those that match one of the patterns, or all if there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChoice(pub Option<Vec<Pattern>>);

impl ToolChoice {
    /// Returns the tools that are known now, in the form that model APIs expect.
    pub fn of(&self, tools: &Tools) -> Vec<Value> {
        let chosen = tools.specs().into_iter().filter(|it| self.takes(&it.name));
        let function = |ToolSpec { name, description, parameters }: ToolSpec| {
            json!({ "type": "function", "function": {
                "name": name, "description": description, "parameters": parameters,
            }})
        };
        chosen.map(function).collect()
    }

    /// Returns whether the agent may use any tool of this MCP server.
    pub fn takes_any_of(&self, server: &str) -> bool {
        self.any(|it| is_about(it, Some(server)))
    }

    pub fn takes(&self, tool: &str) -> bool {
        self.any(|it| is_about(it, mcp::server_of(tool)) && it.fits(tool))
    }

    fn any(&self, fits: impl Fn(&Pattern) -> bool) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(fits))
    }
}

/// Returns whether a pattern can match tools of this MCP server, or built-in ones if it is `None`.
/// `*` matches tools of every server.
fn is_about(pattern: &Pattern, server: Option<&str>) -> bool {
    pattern.is_exactly("*") || mcp::server_of(&pattern.text()) == server
}

/// An agent as `GET /api/agents` shows it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentInfo {
    pub id: String,
    pub kind: &'static str,
    /// Purpose of the agent.
    pub description: String,
    workspace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Reason why the agent cannot work, and how to fix that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Features that the installed program lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'static str>,
}

impl Agents {
    pub fn knows(&self, id: &str) -> bool {
        self.find(id).is_some()
    }

    /// Returns the default agent of new sessions: the first that can work.
    pub fn default_id(&self) -> Option<&str> {
        let works = self.agents.iter().find(|agent| agent.problem().is_none());
        works.or(self.agents.first()).map(|agent| agent.id.as_str())
    }

    pub fn infos(&self) -> Vec<AgentInfo> {
        self.agents.iter().map(Agent::info).collect()
    }

    /// Returns the agents as the page lists them.
    pub fn listed(&self) -> Vec<render::ListedAgent> {
        let listed = self.agents.iter().map(|agent| render::ListedAgent {
            folder: agent.workspace.display().to_string(),
            id: agent.id.clone(),
            kind: agent.info().kind.to_owned(),
            program: self.program_name(&agent.id),
            can_be_steered: agent.can_be_steered(),
            problem: agent.problem(),
            limits: agent.limits(),
        });
        listed.collect()
    }

    /// Returns the ids of the agents that can answer now.
    pub fn names(&self) -> Vec<&str> {
        let ready = self.agents.iter().filter(|it| it.problem().is_none());
        ready.map(|it| it.id.as_str()).collect()
    }

    /// Detects the features of the installed programs. Runs each of them, so it is called before a
    /// page needs the result.
    pub async fn examine(&self) {
        join_all(self.agents.iter().map(Agent::examine)).await;
    }

    /// Returns an error that says why the agent cannot work, if it cannot.
    pub fn check(&self, id: &str) -> Result<(), ErrorInfo> {
        self.able(id).map(drop)
    }

    /// Prepares an agent for a run, or returns the reason why it cannot work.
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

    pub fn may_message(&self, asker: &str, asked: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|it| it.fits(asked));
        self.find(asker)
            .is_some_and(|it| fits(&it.may_message.allow) && !fits(&it.may_message.deny))
    }

    /// Returns whether the agent is a program, with a process and a memory of its own.
    pub fn is_program(&self, id: &str) -> bool {
        self.program_name(id).is_some()
    }

    /// Records that the installed program lacks a feature it claimed to have.
    pub fn mark_outdated(&self, id: &str) {
        if let Some(Agent { kind: AgentKind::Program(agent), .. }) = self.find(id) {
            agent.mark_outdated();
        }
    }

    /// Returns the display name of the agent's program, if the agent is one.
    pub fn program_name(&self, id: &str) -> Option<&'static str> {
        match &self.find(id)?.kind {
            AgentKind::Program(agent) => Some(agent.which.kind().name()),
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => None,
        }
    }

    /// Returns `PATH` of the agent's program, if the agent is one.
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

    /// Returns how much of the conversation the agent needs, and in which form. A program that has
    /// a conversation of its own remembers the rest.
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

    /// Returns the choice of tools that the server runs for the agent. `None` if the agent has its
    /// own tools.
    pub fn tool_choice(&self, id: &str) -> Option<&ToolChoice> {
        match &self.find(id)?.kind {
            AgentKind::OpenAi(agent) => Some(&agent.tools),
            AgentKind::Demo { .. } | AgentKind::Program(_) => None,
        }
    }

    pub fn workspace(&self, id: &str) -> PathBuf {
        self.find(id).map(|agent| agent.workspace.clone()).unwrap_or_default()
    }

    /// Returns the agent that continues conversations of this kind of program.
    pub fn of_kind(&self, kind: ProgramKind) -> Option<&str> {
        let is_it = |it: &&Agent| match &it.kind {
            AgentKind::Program(program) => program.which.kind() == kind,
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => false,
        };
        self.agents.iter().find(is_it).map(|it| it.id.as_str())
    }

    fn find(&self, id: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.id == id)
    }
}

impl Agent {
    /// Returns the reason why the agent cannot work, and how to fix that.
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

    /// Returns whether the agent accepts messages during a run.
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

    /// Returns the version of the installed program, if the agent is a program that reports one.
    pub async fn version(&self) -> Option<String> {
        match &self.kind {
            AgentKind::Program(agent) => agent.version().await,
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => None,
        }
    }

    /// Returns the features that the installed program lacks, as far as they are known.
    pub fn limits(&self) -> Option<&'static str> {
        match &self.kind {
            AgentKind::Program(agent) => agent.limits(),
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => None,
        }
    }

    /// Returns whether the agent is a known program that is not configured, so that it may be missing.
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

    /// Returns the configured purpose, or else a short description of the agent's kind.
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
