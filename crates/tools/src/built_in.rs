//! The built-in tools: one module each, with a constant that describes the tool.

mod agents_list;
mod agents_message;
mod callboard_note;
mod edit_file;
pub(crate) mod http_get;
mod list_files;
mod output;
mod read_file;
mod search_files;
mod shell;
mod time;
mod write_file;

use std::sync::Arc;

use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo};

use crate::arguments::Arguments;
use crate::workspace::{FilePath, Workspace};
use crate::{ToolContext, ToolSettings, outcome};

/// A built-in tool, which the server runs itself.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) parameters: fn() -> Value,
    /// Whether a call of this tool may be retried after a transient failure.
    pub(crate) may_repeat: bool,
    pub(crate) work: Work,
}

/// Function that implements a built-in tool, by the way in which it runs.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Function like [`Work::Blocking`] that also gets the open workspace and the file or folder
    /// that the argument `path` of the tool call names.
    InWorkspace(WorkInWorkspace),
    /// Synchronous function that may block and may panic, so it runs on a separate thread.
    Blocking(fn(&Arguments, &ToolContext) -> Result<Value, ErrorInfo>),
    /// Asynchronous function with the configured timeout of built-in tools.
    Waiting(Wait),
    /// Asynchronous function that waits for other agents and enforces its own timeout.
    WaitingForOthers(Wait),
}

type WorkInWorkspace =
    fn(&Arguments, &ToolContext, &Workspace, &FilePath) -> Result<Value, ErrorInfo>;
type Wait = fn(Arguments, ToolContext, Arc<ToolSettings>) -> BoxFuture<'static, ToolOutcome>;

pub(crate) const BUILT_IN: [Tool; 11] = [
    time::TOOL,
    list_files::TOOL,
    read_file::TOOL,
    search_files::TOOL,
    write_file::TOOL,
    edit_file::TOOL,
    shell::TOOL,
    http_get::TOOL,
    agents_list::TOOL,
    agents_message::TOOL,
    callboard_note::TOOL,
];

/// Names of the built-in tools that are also offered to program agents, which have tools of their
/// own for everything else.
pub(crate) const FOR_PROGRAMS: [&str; 3] =
    [agents_list::TOOL.name, agents_message::TOOL.name, callboard_note::TOOL.name];

impl Tool {
    pub(crate) async fn start(
        self,
        arguments: Arguments,
        path: Result<FilePath, ErrorInfo>,
        context: ToolContext,
        settings: Arc<ToolSettings>,
    ) -> ToolOutcome {
        match self.work {
            Work::Waiting(run) | Work::WaitingForOthers(run) => {
                run(arguments, context, settings).await
            }
            Work::Blocking(run) => self.on_a_thread(move || run(&arguments, &context)).await,
            Work::InWorkspace(run) => {
                let work = move || {
                    let path = path?;
                    let workspace = Workspace::open(&context.workspace, &context.private)?;
                    workspace.check(&path)?;
                    run(&arguments, &context, &workspace, &path)
                };
                self.on_a_thread(work).await
            }
        }
    }

    /// Runs the function of a built-in tool on a separate thread, because it may block and may
    /// panic.
    async fn on_a_thread(
        self,
        work: impl FnOnce() -> Result<Value, ErrorInfo> + Send + 'static,
    ) -> ToolOutcome {
        let result = tokio::task::spawn_blocking(work).await;
        outcome(result.unwrap_or_else(|error| Err(aborted(self.name, &error))))
    }
}

fn aborted(name: &str, error: &tokio::task::JoinError) -> ErrorInfo {
    if error.is_panic() {
        ErrorInfo::new(ErrorCode::ToolFailed, format!("The tool '{name}' failed internally."))
    } else {
        ErrorInfo::new(ErrorCode::ToolInterrupted, "The server is stopping.")
    }
}
