//! A whole session: its messages, its queue and its summary, folded from the log.

mod message;
mod queue;
mod quiesce;
mod raw_line;
mod steering;
mod summary;
mod transcript;

pub use message::{Content, Message, UserMessage};
pub use queue::{Queue, QueuedMessage};
pub use quiesce::{IMPORTED, quiesce};
pub use raw_line::RawLine;
pub use steering::RunEvent;
pub use summary::{AgentLink, OpenExchange, Resuming, SessionState, Summary};
pub use transcript::{Change, Transcript};
