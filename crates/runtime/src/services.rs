//! Puts the parts of the crate together.

use std::sync::Arc;

use session::{AgentFacts, Limits, Settings};
use store::Store;
use tools::Tools;
use tools::policy::Policy;

use crate::agents::{Agent, Agents};
use crate::driver::{self, DriverParts, HttpClient};
use crate::exchanges::{self, ExchangeLimits};
use crate::live::hub::Hub;
use crate::live::pulse::Pulses;
use crate::metrics::Metrics;
use crate::passes::Passes;
use crate::sessions::Sessions;

/// The parts of the server that its sessions use.
pub struct Services {
    pub store: Store,
    pub hub: Arc<Hub>,
    pub agents: Arc<Agents>,
    pub tools: Arc<Tools>,
    pub policy: Arc<Policy>,
    pub exchange_limits: ExchangeLimits,
    pub metrics: Arc<Metrics>,
    pub passes: Arc<Passes>,
    pub pulses: Arc<Pulses>,
    /// Whether raw lines of programs are stored.
    pub keeps_raw: bool,
}

impl Services {
    /// Ends the processes that an earlier server left behind, and returns the sessions of the
    /// store. Interrupted sessions continue only when [`Sessions::recover`] is called.
    pub async fn start(self) -> Result<Sessions, store::Error> {
        driver::end_survivors(&self.store).await?;
        let settings = Arc::new(self.settings());
        let Self { store, hub, agents, tools, policy, .. } = self;
        let connect = exchanges::connect(&store, &hub, &agents, self.exchange_limits);
        let parts = DriverParts {
            store,
            hub,
            agents,
            tools,
            policy,
            metrics: self.metrics,
            passes: self.passes,
            pulses: self.pulses,
            keeps_raw: self.keeps_raw,
            settings,
            http: HttpClient::default(),
        };
        Ok(Sessions::new(parts, connect))
    }

    /// Returns the part of the server's configuration that session state machines use.
    fn settings(&self) -> Settings {
        let Self { agents, tools, policy, exchange_limits: exchanges, .. } = self;
        let limits = Limits {
            approval_timeout_ms: policy.timeout_ms,
            calls_per_minute: tools.settings().per_minute,
            exchange_depth: exchanges.depth,
            exchanges_per_run: exchanges.per_run,
            queued_exchanges: exchanges.queued,
        };
        let facts = |agent: &Agent| AgentFacts {
            model: agent.model().map(str::to_owned),
            is_program: agents.is_program(&agent.id),
            workspace: agent.workspace.clone(),
        };
        let agents = agents.agents.iter().map(|it| (it.id.clone(), facts(it))).collect();
        Settings { agents, limits }
    }
}
