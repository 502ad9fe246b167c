//! Launching the session's agent.

use std::path::{Path, PathBuf};

use backends::Launch;
use session::{Input, Launched, LaunchedProgram};
use transcript::ErrorInfo;

use super::Driver;
use crate::agents::LaunchedAgent;
use crate::driver::from_log;
use crate::driver::process::{Process, Start};
use crate::passes::Pass;

/// The running process of a program agent.
pub(super) struct RunningProgram {
    pub(super) process: Process,
    /// Pass with which the program may call Callboard's tools, valid while the program runs.
    _pass: Option<Pass>,
}

impl RunningProgram {
    pub(super) async fn next(&mut self) -> Input {
        Input::Agent(self.process.next().await)
    }

    pub(super) fn try_next(&mut self) -> Option<Input> {
        self.process.try_next().map(Input::Agent)
    }
}

impl Driver {
    /// Launches the agent of the session. Also returns a notice for the log if a program cannot
    /// resume its conversation.
    pub(super) async fn launch(
        &mut self,
        workspace: PathBuf,
    ) -> (Option<String>, Result<Launched, ErrorInfo>) {
        let agent = self.session.summary().agent.clone();
        let is_program = self.parts.agents.is_program(&agent);
        let pass = is_program.then(|| self.parts.passes.issue(&self.id));
        let (launch, notice) = self.launch_settings(&workspace, pass.as_ref());
        (notice, self.launch_with(agent, launch, workspace, pass).await)
    }

    async fn launch_with(
        &mut self,
        agent: String,
        launch: Launch,
        workspace: PathBuf,
        pass: Option<Pass>,
    ) -> Result<Launched, ErrorInfo> {
        let is_resumed = launch.resume.is_some();
        match self.parts.agents.launch(&agent, &launch).await? {
            LaunchedAgent::Model(backend) => Ok(Launched::Model(backend)),
            LaunchedAgent::Program { backend, command, environment, idle_limit } => {
                let start = Start { command, workspace, environment };
                let process = Process::start(&self.parts.store, start).await?;
                self.parts.pulses.add(&self.id, &process.pulse);
                self.program = Some(RunningProgram { process, _pass: pass });
                let idle_limit_ms = u64::try_from(idle_limit.as_millis()).unwrap_or(u64::MAX);
                let program = LaunchedProgram { backend, idle_limit_ms, is_resumed };
                Ok(Launched::Program(program))
            }
        }
    }

    /// Returns the parameters with which to launch the agent, and a notice if its program cannot
    /// resume its conversation.
    fn launch_settings(&self, workspace: &Path, pass: Option<&Pass>) -> (Launch, Option<String>) {
        let (resume, notice) = match from_log::resume_id(self.session.summary(), workspace) {
            Some(Err(why)) => {
                let text = format!(
                    "{why}, so the program starts a new one and gets the messages above as text."
                );
                (None, Some(text))
            }
            Some(Ok(id)) => (Some(id), None),
            None => (None, None),
        };
        let launch = Launch {
            workspace: workspace.display().to_string(),
            resume,
            tools: pass.map(Pass::server),
            shipped: self.parts.agents.shipped.display().to_string(),
            private: self.parts.policy.private.real_folder(),
        };
        (launch, notice)
    }
}
