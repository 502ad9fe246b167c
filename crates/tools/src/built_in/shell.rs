//! `shell`: runs a command in the workspace folder and reports its output while it arrives.
//!
//! The workspace is the starting folder, not a sandbox: a command can do anything that the server's user can.
//! At the end of the call, every process that it started is ended.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;
use transcript::{ErrorInfo, OutputStream};

use super::output::{self, MAX_OUTPUT, Printed};
use super::{Arguments, Tool, Work};
use crate::processes::{Mark, Processes};
use crate::workspace::open_root;
use crate::{ToolContext, ToolSettings, failed, interrupted, tool_error};

pub(super) const TOOL: Tool = Tool {
    name: "shell",
    description: "Runs a command with sh in the workspace folder and returns its output and exit \
                  code. Its standard input is empty. Background processes that it starts are ended \
                  with it.",
    parameters,
    may_repeat: false,
    work: Work::Waiting(run),
};

/// Timeout for reading the rest of a shell command's output after all its processes have ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shell {
    command: String,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1, "description": "The command line for sh."},
        },
        "required": ["command"],
        "additionalProperties": false,
    })
}

fn run(
    arguments: Arguments,
    context: ToolContext,
    settings: Arc<ToolSettings>,
) -> BoxFuture<'static, ToolOutcome> {
    Box::pin(async move {
        let child = arguments.parse().and_then(|it| start(&it, &context, &settings));
        match child {
            Ok(child) => follow(child, context).await,
            Err(error) => failed(error),
        }
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the end of the call ends all processes with its mark"
)]
fn start(
    shell: &Shell,
    context: &ToolContext,
    settings: &ToolSettings,
) -> Result<Child, ErrorInfo> {
    // The folder was judged without any link in its path.
    open_root(&context.workspace)?;
    let mark = Mark::of_call(&context.call_id);
    let mut command = Command::new("/bin/sh");
    command
        // A command that begins with a dash is still a command.
        .args(["-c", "--"])
        .arg(&shell.command)
        .current_dir(&context.workspace)
        .env_clear()
        .envs(settings.environment.iter().map(|(name, value)| (name, value)))
        .env(mark.name, mark.value)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command.spawn().map_err(|error| tool_error(format!("The command cannot be started: {error}.")))
}

async fn follow(mut child: Child, context: ToolContext) -> ToolOutcome {
    let processes = Processes::of(child.id(), &Mark::of_call(&context.call_id));
    let printed = Arc::new(Printed::default());
    let mut streaming = tokio::spawn(stream_pipes(
        (child.stdout.take(), child.stderr.take()),
        context.clone(),
        Arc::clone(&printed),
    ));
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        () = context.stopped.wait() => None,
        () = printed.too_much() => None,
    };
    tokio::join!(processes.end(), async { child.wait().await.ok() });
    // A process that was not found may still hold a pipe open.
    if timeout(DRAIN_TIMEOUT, &mut streaming).await.is_err() {
        streaming.abort();
    }
    match status {
        _ if printed.is_too_much() => failed(tool_error(format!(
            "The command printed more than {} MiB and was stopped. Print less, or redirect the output to a file.",
            MAX_OUTPUT >> 20
        ))),
        Some(status) => ended(status),
        None => failed(interrupted()),
    }
}

async fn stream_pipes(
    (stdout, stderr): (Option<ChildStdout>, Option<ChildStderr>),
    context: ToolContext,
    printed: Arc<Printed>,
) {
    let stdout = async {
        let Some(pipe) = stdout else { return };
        output::stream_output(pipe, OutputStream::Stdout, &context, &printed).await;
    };
    let stderr = async {
        let Some(pipe) = stderr else { return };
        output::stream_output(pipe, OutputStream::Stderr, &context, &printed).await;
    };
    tokio::join!(stdout, stderr);
}

fn ended(status: ExitStatus) -> ToolOutcome {
    let (code, signal) = (status.code(), status.signal());
    let why = match (code, signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("The command ended with exit code {code}.")),
        (None, Some(signal)) => Some(format!("The command was ended by signal {signal}.")),
        (None, None) => Some("The command ended abnormally.".to_owned()),
    };
    ToolOutcome {
        ok: why.is_none(),
        result: json!({ "exitCode": code }),
        error: why.map(tool_error),
    }
}
