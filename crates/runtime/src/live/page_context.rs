//! Data that the page of a session shows and its log does not contain.

use std::sync::Arc;

use render::{Bodies, View};
use transcript::{SessionId, SessionState, Summary, Transcript};

use crate::agents::AgentCatalog;
use crate::live::pulse::Pulses;

/// The parts of the configuration and of the running programs that the page of a session shows.
pub struct PageContext {
    agents: AgentCatalog,
    pulses: Arc<Pulses>,
    /// Whether raw lines of programs are stored, so that the page can link to them.
    keeps_raw: bool,
}

impl PageContext {
    pub fn new(agents: AgentCatalog, pulses: Arc<Pulses>, keeps_raw: bool) -> Self {
        Self { agents, pulses, keeps_raw }
    }

    /// Returns whether the agent with this id is a program.
    pub(crate) fn is_program(&self, agent: &str) -> bool {
        self.agents.program_name(agent).is_some()
    }

    /// Returns the settings with which the page of a session is rendered.
    pub fn view_of(&self, id: &SessionId, Summary { agent, .. }: &Summary) -> View {
        let folder = self.agents.workspace(agent);
        View::new(id.clone(), Bodies::Cut)
            .with_folder(folder.to_str())
            .with_raw(self.keeps_raw && self.is_program(agent))
    }

    /// Returns the activity of the session's program. `None` if no run is open or no program runs.
    pub fn pulse_of(&self, id: &SessionId, transcript: &Transcript) -> Option<render::Pulse> {
        let state = transcript.summary.state();
        let is_at_work = matches!(state, SessionState::Running | SessionState::Waiting);
        let pulse = self.pulses.of(id).filter(|_| is_at_work)?;
        Some(render::Pulse { pid: pulse.pid(), last_line_at: pulse.last_line_at() })
    }
}
