//! Events of the agent on their way to the log.
//!
//! A backend knows the output of its agent and nothing else, so the session completes and corrects
//! the events that the backend emits. In this order:
//!
//! 1. A tool call that begins with complete arguments has them in its start, because some clients
//!    read nothing later ([`announce_arguments`]).
//! 2. A steered message gets the text that was queued. If the run does not know the message,
//!    nothing is logged.
//! 3. Unreadable output is counted. Of a flood, only some lines are logged.
//! 4. A link to the program's own conversation is noted: the program remembers from then on.
//! 5. The start of a tool call says who runs the tool: the server, the client or the agent.
//! 6. The arguments of a tool call that the server runs are logged once the call is judged, with
//!    whether a person has to approve it.
//! 7. The result of a tool call gets the error code that its approval implies
//!    ([`correct_result_code`]). The result of Callboard's own tools is logged as they returned it.
//! 8. Between runs, only notices, unreadable output and events of the session are logged.
//! 9. A part that ends without a start gets one ([`implied_start`]).

use std::collections::HashMap;

use transcript::{
    CallId, Event, Executor, MessageId, SteerState, Validation, correct_result_code, implied_start,
};

use crate::lanes::Work;
use crate::{Effect, Judged, ProgramOrder, Session};

/// Copies the complete arguments of a tool call into its start event, if `work` contains both. A
/// tool call whose arguments arrive in deltas keeps a start event without arguments.
pub(crate) fn announce_arguments(work: &mut [Work]) {
    let is_start = |it: &Event| matches!(it, Event::ToolCallStart { .. });
    if !work.iter_mut().filter_map(Work::emitted).any(|it| is_start(it)) {
        return;
    }
    let mut complete: HashMap<CallId, String> = HashMap::new();
    for event in work.iter_mut().rev().filter_map(Work::emitted) {
        match event {
            Event::ToolArgumentsDone { call_id, arguments, incomplete: false, .. } => {
                complete.insert(call_id.clone(), arguments.clone());
            }
            Event::ToolArgumentsDelta { call_id, .. } => {
                complete.remove(call_id);
            }
            Event::ToolCallStart { call_id, arguments: none @ None, .. } => {
                *none = complete.remove(call_id);
            }
            _ => (),
        }
    }
}

impl Session {
    /// Completes and corrects an event of the agent, and logs it. See the module's documentation
    /// for the steps.
    pub(crate) fn log_agent_event(&mut self, mut event: Event) {
        match &mut event {
            Event::MessageSteered { message_id, text, state } => {
                match self.steered_text(message_id, std::mem::take(text), *state) {
                    Some(complete) => *text = complete,
                    None => return,
                }
            }
            Event::Unrecognized { source, raw, lines } => {
                self.raw.count_unrecognized(raw);
                let (source, raw) = (std::mem::take(source), std::mem::take(raw));
                let Some(due) = self.unrecognized.take(source, raw, *lines) else { return };
                event = due;
            }
            Event::AgentLinked { .. } => {
                if let Some(program) = self.program_mut() {
                    program.remembers = true;
                    self.now_do(Effect::Program(ProgramOrder::NoteConversation));
                }
            }
            Event::ToolCallStart { tool_name, executor, .. } => {
                *executor = self.executor_of(tool_name, *executor);
            }
            Event::ToolArgumentsDone { call_id, incomplete: false, arguments, .. }
                if self.is_run_here(call_id) =>
            {
                let (call_id, arguments) = (call_id.clone(), arguments.clone());
                return self.validate(&call_id, arguments, event);
            }
            Event::ToolResult { .. } => {
                if let Some(run) = self.phase.run() {
                    correct_result_code(&run.message, &mut event);
                }
                self.relay.restore_result(&mut event);
            }
            _ => (),
        }
        self.log_corrected(event);
    }

    /// Logs the arguments of a tool call, together with whether a person has to approve the call.
    pub(crate) fn log_validated(&mut self, mut event: Event, judged: &Judged) {
        let must_ask = self.needs_person(judged);
        if let Event::ToolArgumentsDone { validation, .. } = &mut event {
            *validation = if must_ask { Validation::Pending } else { Validation::NotRequired };
        }
        self.log_corrected(event);
    }

    fn log_corrected(&mut self, event: Event) {
        let Some(run) = self.phase.run_mut() else {
            // Anything else would belong to nothing.
            let is_aside = matches!(event, Event::Notice { .. } | Event::Unrecognized { .. });
            if is_aside || event.is_session_event() {
                self.push(None, event);
            }
            return;
        };
        run.remember_arguments(&event);
        if let Some(start) = implied_start(&run.message, &event) {
            self.push_here(start);
        }
        self.push_here(event);
    }

    /// Returns the text with which the log records a steered message. For a message that was just
    /// handed over, this is the queued text. `None` if the message is not known in that state, so
    /// that nothing is logged.
    fn steered_text(
        &self,
        message_id: &MessageId,
        text: String,
        state: SteerState,
    ) -> Option<String> {
        match state {
            SteerState::HandedOver => self.journal.queue.get(message_id).map(|it| it.text.clone()),
            SteerState::Seen | SteerState::Returned => self.has_steered(message_id).then_some(text),
        }
    }

    /// Returns whether the tool of a call runs on the server, and not in the agent's program or at
    /// the client.
    fn is_run_here(&self, call_id: &CallId) -> bool {
        let call = self.phase.run().and_then(|it| it.message.call(call_id));
        call.is_some_and(|it| it.executor == Executor::Server)
    }
}

#[cfg(test)]
mod tests {
    use backends::RunEffect;
    use transcript::{Executor, Validation};

    use super::*;

    fn emit(event: Event) -> Work {
        Work::Program(RunEffect::Emit(event).into())
    }

    fn start(call: &str) -> Work {
        emit(Event::ToolCallStart {
            call_id: CallId::new(call),
            provider_call_id: None,
            tool_name: "t".to_owned(),
            arguments: None,
            parent_call_id: None,
            executor: Executor::Agent,
        })
    }

    fn done(call: &str, incomplete: bool) -> Work {
        emit(Event::ToolArgumentsDone {
            call_id: CallId::new(call),
            arguments: format!("\"{call}\""),
            summary: String::new(),
            incomplete,
            validation: Validation::NotRequired,
            provider_data: None,
        })
    }

    #[test]
    fn a_start_has_arguments_that_are_complete() {
        let delta = Event::ToolArgumentsDelta { call_id: CallId::new("b"), delta: "\"".to_owned() };
        let mut work = vec![
            start("a"),
            start("b"),
            start("c"),
            start("d"),
            done("a", false),
            emit(delta),
            done("b", false),
            done("c", true),
        ];
        announce_arguments(&mut work);
        let announced = |it: &mut Work| match it.emitted() {
            Some(Event::ToolCallStart { arguments, .. }) => Some(arguments.clone()),
            _ => None,
        };
        let announced: Vec<_> = work.iter_mut().filter_map(announced).collect();
        assert_eq!(announced, [Some("\"a\"".to_owned()), None, None, None]);
    }
}
