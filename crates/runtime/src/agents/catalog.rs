//! The agents of a server, as clients may see them.

use std::path::PathBuf;
use std::sync::Arc;

use backends::ProgramKind;
use render::ListedAgent;
use transcript::ErrorInfo;

use super::{Agent, AgentInfo, AgentKind, Agents};

/// Read access to the configured agents: their names, descriptions and workspaces. It launches
/// nothing, and gives no access to command lines and keys.
#[derive(Debug, Clone)]
pub struct AgentCatalog {
    agents: Arc<Agents>,
}

impl AgentCatalog {
    pub fn new(agents: Arc<Agents>) -> Self {
        Self { agents }
    }

    pub fn knows(&self, id: &str) -> bool {
        self.agents.knows(id)
    }

    /// Returns the id of the default agent for new sessions, see [`Agents::default_id`].
    pub fn default_id(&self) -> Option<&str> {
        self.agents.default_id()
    }

    /// Returns the ids of the agents that can work now.
    pub fn names(&self) -> Vec<&str> {
        self.agents.names()
    }

    pub fn infos(&self) -> Vec<AgentInfo> {
        self.agents.infos()
    }

    /// Returns the agents in the form in which the web page lists them.
    pub fn listed(&self) -> Vec<ListedAgent> {
        let listed = self.agents.agents.iter().map(|agent| ListedAgent {
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

    /// Returns an error with the reason if the agent with this id does not exist or cannot work.
    pub fn check(&self, id: &str) -> Result<(), ErrorInfo> {
        self.agents.check(id)
    }

    pub fn workspace(&self, id: &str) -> PathBuf {
        self.agents.workspace(id)
    }

    /// Returns the display name of the program that the agent runs. `None` if the agent is not a
    /// program.
    pub fn program_name(&self, id: &str) -> Option<&'static str> {
        self.agents.program_name(id)
    }

    /// Returns the id of the first agent that runs this kind of program and can continue its
    /// conversations.
    pub(crate) fn of_kind(&self, kind: ProgramKind) -> Option<&str> {
        let is_it = |it: &&Agent| match &it.kind {
            AgentKind::Program(program) => program.which.kind() == kind,
            AgentKind::Demo { .. } | AgentKind::OpenAi(_) => false,
        };
        self.agents.agents.iter().find(is_it).map(|it| it.id.as_str())
    }
}
