//! Deadlines: of calls that wait for a person or a client, of the agent, and of idle programs.

use transcript::{CallId, ErrorCode, ErrorInfo, Millis};

use crate::agent::Program;
use crate::{Effect, Session};

/// Default time limit of a tool call that a client runs, in milliseconds. A configured time limit
/// of approvals takes precedence.
const CLIENT_TIMEOUT_MS: u64 = 300_000;

impl Session {
    /// Returns the time at which the next [`crate::Input::Tick`] is due. `None` if the session has
    /// no deadline.
    pub fn deadline(&self) -> Option<Millis> {
        let all = [
            self.agent.as_ref().and_then(|it| it.wake_at),
            self.program().and_then(Program::idle_until),
            self.phase.run().and_then(|it| it.pending.deadline()),
            self.relay.deadline(),
            self.raw.due(),
        ];
        all.into_iter().flatten().min()
    }

    pub(crate) fn tick(&mut self) {
        let now = self.now;
        let is_due = |at: Option<Millis>| at.is_some_and(|it| it <= now);
        if let Some(agent) = self.agent.as_mut().filter(|it| is_due(it.wake_at)) {
            agent.wake_at = None;
            self.tell(backends::RunInput::Wake);
        }
        for call_id in self.phase.run().map(|it| it.pending.overdue(now)).unwrap_or_default() {
            self.time_out(call_id);
        }
        if is_due(self.program().and_then(Program::idle_until)) {
            self.now_do(Effect::Inform("an idle program is ended"));
            self.stop_agent();
        }
    }

    /// Ends the wait of a tool call for a person's decision or a client's result, because its time
    /// limit has passed.
    fn time_out(&mut self, call_id: CallId) {
        if !self.take_client_call(&call_id) {
            return self.time_out_approval(call_id);
        }
        let seconds = self.client_timeout_ms() / 1000;
        let message = format!(
            "The client that runs this tool gave no result within {seconds} seconds. It may be \
             disconnected; continue without this call."
        );
        self.refuse_call(call_id, ErrorInfo::new(ErrorCode::ToolTimeout, message));
    }

    pub(crate) fn client_timeout_ms(&self) -> u64 {
        self.settings.limits.approval_timeout_ms.unwrap_or(CLIENT_TIMEOUT_MS)
    }
}
