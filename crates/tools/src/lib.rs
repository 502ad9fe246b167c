//! The tools of agents: built-in tools, the tools of MCP servers, the policy that decides which calls need
//! an approval, and the processes that calls start.
//!
//! A call has exactly one outcome, even if its arguments do not match the schema, if it panics, times out
//! or is stopped. Error messages are written for a model and say what to do instead. File tools are
//! confined to the workspace folder. Other sessions are reached only through [`Peers`].
//!
//! # Example
//!
//! Asking the policy whether calls may run:
//!
//! ```
//! use std::path::Path;
//!
//! use tools::policy::{Asker, Pattern, Policy, Request, Rule, Verdict};
//! use tools::{ParsedCall, PrivateFiles};
//!
//! let rule = Rule { deny: vec![Pattern::new("*.env")], ..Rule::default() };
//! let policy = Policy {
//!     rules: [("write_file".to_owned(), rule)].into(),
//!     timeout_ms: None,
//!     private: PrivateFiles::default(),
//!     search_path: "/usr/bin:/bin".into(),
//! };
//!
//! let judge = |tool, arguments| {
//!     let call = &ParsedCall::new(tool, arguments, Path::new("/workspace"));
//!     let asker = Asker::Callboard;
//!     policy.judge(&Request { call, agent: "demo", search_path: None, asker })
//! };
//! assert_eq!(judge("read_file", r#"{"path": "a.txt"}"#), Verdict::Allow);
//! assert_eq!(judge("write_file", r#"{"path": "a.txt", "text": ""}"#), Verdict::Ask);
//! assert_eq!(judge("write_file", r#"{"path": "src/.env", "text": ""}"#), Verdict::Deny);
//! ```

#![warn(missing_docs)]

mod arguments;
mod built_in;
mod context;
mod folder;
mod http_client;
pub mod mcp;
mod paths;
mod peers;
pub mod policy;
mod prepared;
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
pub use prepared::{ParsedCall, PreparedCall};
pub use private_files::PrivateFiles;
pub use registry::{ToolSettings, ToolSpec, Tools};
pub use ssrf::Web;
pub use stderr_tail::StderrTail;
pub use write_target::write_target;

/// Returns an error of a tool call that the tool itself reports, with the code `ToolError`.
pub fn tool_error(message: impl Into<String>) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolError, message)
}

/// Returns the error of a tool call that was stopped.
pub fn interrupted() -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolInterrupted, "The call was stopped.")
}

/// Returns the outcome of a tool call that failed without a result.
pub fn failed(error: ErrorInfo) -> ToolOutcome {
    ToolOutcome { ok: false, result: Value::Null, error: Some(error) }
}

fn outcome(result: Result<Value, ErrorInfo>) -> ToolOutcome {
    match result {
        Ok(result) => ToolOutcome { ok: true, result, error: None },
        Err(error) => failed(error),
    }
}
