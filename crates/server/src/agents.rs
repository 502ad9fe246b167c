//! The agents that are configured, and how to make one that works.

use std::path::PathBuf;

use backends::{Backend, Demo, Pace};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Clone)]
pub(crate) struct Agents {
    pub(crate) agents: Vec<Agent>,
}

#[derive(Debug, Clone)]
pub(crate) struct Agent {
    /// What people and other agents call it.
    pub(crate) id: String,
    pub(crate) kind: AgentKind,
    /// The folder that its tools may touch, unless a session names another.
    pub(crate) workspace: PathBuf,
}

/// A closed set: the next kind of agent is a variant here and a file in `backends`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AgentKind {
    Demo { pace: Pace },
}

/// An agent as `GET /api/agents` shows it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentInfo {
    id: String,
    kind: &'static str,
    description: &'static str,
    workspace: String,
}

impl Agents {
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.find(id).is_some()
    }

    /// The one that a new session gets when nobody chooses.
    pub(crate) fn default_id(&self) -> Option<&str> {
        self.agents.first().map(|agent| agent.id.as_str())
    }

    pub(crate) fn infos(&self) -> Vec<AgentInfo> {
        self.agents.iter().map(Agent::info).collect()
    }

    pub(crate) fn backend(&self, id: &str) -> Option<Box<dyn Backend>> {
        match self.find(id)?.kind {
            AgentKind::Demo { pace } => Some(Box::new(Demo::new(pace))),
        }
    }

    pub(crate) fn workspace(&self, id: &str) -> PathBuf {
        self.find(id).map(|agent| agent.workspace.clone()).unwrap_or_default()
    }

    fn find(&self, id: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.id == id)
    }
}

impl Agent {
    fn info(&self) -> AgentInfo {
        let (kind, description) = match self.kind {
            AgentKind::Demo { .. } => (
                "demo",
                "Built in, needs no key and no network. Say \"help\" to see what it can do.",
            ),
        };
        let workspace = self.workspace.display().to_string();
        AgentInfo { id: self.id.clone(), kind, description, workspace }
    }
}
