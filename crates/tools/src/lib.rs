//! What agents can do on the server: the built-in tools, the tools of MCP servers, the policy that decides
//! which calls need an approval, and the processes that calls start.
//!
//! A call has exactly one outcome, whatever happens in it: arguments that do not match the schema, a panic,
//! a timeout, a stop. Error messages are written for a model and say what to do instead. File tools are
//! confined to the workspace folder. Other sessions are reached only through [`Peers`].

mod arguments;
mod built_in;
mod context;
mod http_client;
pub mod mcp;
mod paths;
mod peers;
pub mod policy;
mod private_files;
pub mod processes;
mod registry;
mod ssrf;
mod stderr_tail;
mod workspace;
mod write_target;

#[cfg(test)]
mod tests;

use backends::ToolOutcome;
use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo};

pub use arguments::without_advice;
pub use context::{Stopped, ToolContext, ToolEvent, ToolUpdate};
pub use http_client::{http_client, http_client_builder};
pub use peers::{Peer, PeerMessage, PeerReply, Peers, SessionChoice, SessionRule};
pub use private_files::PrivateFiles;
pub use registry::{ToolSettings, ToolSpec, Tools};
pub use ssrf::Web;
pub use stderr_tail::StderrTail;
pub use write_target::write_target;

/// Returns the error of a tool that reports a failure itself.
pub fn tool_error(message: impl Into<String>) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolError, message)
}

/// Returns the error of a call that was stopped.
pub fn interrupted() -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolInterrupted, "The call was stopped.")
}

/// Returns the outcome of a call that failed without a result.
pub fn failed(error: ErrorInfo) -> ToolOutcome {
    ToolOutcome { ok: false, result: Value::Null, error: Some(error) }
}

fn outcome(result: Result<Value, ErrorInfo>) -> ToolOutcome {
    match result {
        Ok(result) => ToolOutcome { ok: true, result, error: None },
        Err(error) => failed(error),
    }
}
