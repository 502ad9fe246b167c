//! The state machine of one session.
//!
//! A [`Session`] owns the session's open run, queue, approvals and agent. It takes one [`Input`] at a time
//! and returns [`Effect`]s: records to append, programs to start, tools to run, replies to send. It does no
//! I/O, reads no clock and draws no random number, so every order of events can be tested synchronously.
//!
//! # The contract with the driver
//!
//! - The driver gives every input with the current time, and carries out the effects of one input, in their
//!   order, before it gives the next.
//! - [`Input::Settle`] says that nothing else is ready. Only then records are appended, so that what happened
//!   meanwhile is one commit. Effects behind an [`Effect::Append`] are carried out only once it is committed:
//!   nothing is shown, answered or started that is not in the log. The driver settles again until there are
//!   no effects left.
//! - If an append fails, the driver drops the remaining effects, calls [`Session::abandon`], and opens the
//!   session again from the log.
//! - Each [`Effect::Judge`], [`Effect::Find`] and [`Effect::TakeStderr`] gets one reply with the same
//!   [`QueryId`]; each [`Effect::Launch`] and [`Effect::ReadHistory`] gets one, unless the run ends first.
//!   Other inputs may come in between. A late reply is ignored.
//! - [`Session::deadline`] is the time of the next [`Input::Tick`].
//!
//! # Example
//!
//! ```
//! use session::{Command, Effect, Input, NewMessage, Opening, ReplyId, ReplyTo, Session};
//! use transcript::{Event, Millis, Record, Seq, SessionId, Summary};
//!
//! let id = SessionId::new("s1");
//! let created = Event::SessionCreated {
//!     agent: "demo".into(), workspace: None, workspace_confirmed: false, title: None,
//! };
//! let mut summary = Summary::default();
//! summary.apply(&Record::new(Seq(1), Millis(0), id.clone(), None, created));
//!
//! let mut session = Session::new(Opening::of(id, Seq(1), summary));
//! let message = NewMessage::of_person("Hello");
//! let send = Command::Send { message, reply: ReplyTo::new(ReplyId(1)) };
//! session.on(Millis(1), Input::Command(send));
//! let effects = session.on(Millis(1), Input::Settle);
//! assert!(matches!(&effects[0], Effect::Append { records, .. } if records.len() == 2));
//! assert!(matches!(&effects[1], Effect::Launch { .. }));
//! assert!(matches!(&effects[2], Effect::Reply { to: ReplyId(1), .. }));
//! ```

#![warn(missing_docs)]

mod agent;
mod agent_events;
mod agent_steps;
mod answer;
mod approvals;
mod calls;
mod command;
mod command_handling;
mod deadlines;
mod effect;
mod exchanges;
mod grants;
mod ids;
mod input;
mod journal;
mod lanes;
mod lines;
mod machine;
mod pending_calls;
mod phase;
mod program_output;
mod queue;
mod rate_limit;
mod raw_lines;
mod relay;
mod run;
mod run_end;
mod run_start;
mod settings;
mod steering;
mod unrecognized_lines;

#[cfg(test)]
mod tests;

pub use answer::{Answer, AnswerType, ReplyId, ReplyTo};
pub use command::{
    Addition, Answered, Approval, Command, ExchangeNews, ExchangeOpening, HOW_TO_GET_ONE,
    MessageState, NewMessage, Opened, Outcome, QueuedChange, Receipt, Refused, RelayedCall,
    SessionPatch, Undone, answering,
};
pub use effect::{Asker, Effect, Lookup, ProgramOrder, ProposedCall, QueryId};
pub use input::{
    AgentInput, Found, History, Input, Judged, Launched, LaunchedProgram, OfferedTools, Ruling,
    ToolEvent,
};
pub use lines::{Line, Lines};
pub use machine::{OpenRun, Opening, Session};
pub use settings::{AgentFacts, Limits, Settings};
