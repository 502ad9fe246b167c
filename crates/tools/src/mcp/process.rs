//! The program of an MCP server: started in its own process group, marked, supervised, and ended with all
//! processes that it has started.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::StderrTail;
use crate::processes::{Mark, Processes};

/// Size in bytes of the stderr tail that is kept for an MCP server's program.
const STDERR_BYTES: usize = 2000;
/// Timeout for the end of an MCP server's program, and for reading the rest of its stderr after
/// that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The running program of an MCP server.
pub(super) struct Process {
    pub(super) pid: Option<u32>,
    stop: watch::Sender<bool>,
    /// Description of how the MCP server's program ended; `None` while it runs.
    ended: watch::Receiver<Option<String>>,
    stderr: StderrTail,
}

/// Stdout and stdin of an MCP server's program.
pub(super) type Pipes = (ChildStdout, ChildStdin);

impl Process {
    /// Starts the program of an MCP server, after ending processes that an earlier Callboard server
    /// left behind with the same mark.
    #[expect(clippy::disallowed_methods, reason = "dropping the process ends all with its mark")]
    pub(super) async fn start(
        command: &[String],
        folder: &Path,
        environment: &[(OsString, OsString)],
        mark: Mark,
    ) -> Result<(Self, Pipes), String> {
        Processes::of(None, &mark).end().await;
        let [program, arguments @ ..] = command else { return Err("it has no command".to_owned()) };
        let spawned = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env(mark.name, &mark.value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = spawned.map_err(|error| {
            format!("{program} cannot be started in {}: {error}", folder.display())
        })?;
        let pipes = child.stdout.take().zip(child.stdin.take());
        let pipes = pipes.ok_or_else(|| format!("{program} has no pipes"))?;
        let (stop, stopped) = watch::channel(false);
        let (end, ended) = watch::channel(None);
        let stderr = StderrTail::new(STDERR_BYTES);
        let process = Self { pid: child.id(), stop, ended, stderr: stderr.clone() };
        tokio::spawn(supervise(child, mark, stopped, stderr, end));
        Ok((process, pipes))
    }

    /// Ends the MCP server's program and all processes that it has started, and waits for their
    /// end.
    pub(super) async fn end(&self) {
        let _ = self.stop.send(true);
        let _ = self.ended.clone().wait_for(Option::is_some).await;
    }

    /// Returns how the MCP server's program ended, if it ends soon, and its stderr tail, for an
    /// error message.
    pub(super) async fn exit_reasons(&self) -> Vec<String> {
        let mut ended = self.ended.clone();
        let ended = timeout(DRAIN_TIMEOUT, ended.wait_for(Option::is_some)).await;
        let how = ended.ok().and_then(|it| it.ok()?.clone());
        let tail = self.stderr.get();
        let tail = (!tail.trim().is_empty()).then(|| format!("it said: {}", tail.trim()));
        how.into_iter().chain(tail).collect()
    }
}

async fn supervise(
    mut child: Child,
    mark: Mark,
    mut stopped: watch::Receiver<bool>,
    stderr: StderrTail,
    end: watch::Sender<Option<String>>,
) {
    let processes = Processes::of(child.id(), &mark);
    let mut reading = child.stderr.take().map(|it| tokio::spawn(stderr.listen(it)));
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        // An error means that its owner is gone, which is a stop too.
        _ = stopped.wait_for(|it| *it) => None,
    };
    let (_, later) = tokio::join!(processes.end(), async { child.wait().await.ok() });
    if let Some(reading) = &mut reading
        && timeout(DRAIN_TIMEOUT, &mut *reading).await.is_err()
    {
        reading.abort();
    }
    let how = match status {
        None => "it was ended".to_owned(),
        Some(status) => describe(later.unwrap_or(status)),
    };
    let _ = end.send(Some(how));
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
