//! Any model behind an OpenAI-compatible chat-completions API.

mod calls;
mod decoder;
mod finish_reason;
mod lines;
mod think_tags;
mod wire;

pub use self::decoder::{Decoder, FinishedCall, Outcome, Said, ServiceError};
pub use self::finish_reason::FinishReason;
