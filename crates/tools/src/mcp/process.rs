//! The program of an MCP server: started in a process group of its own, marked, watched, and ended with
//! all that it has begun.

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

/// How much of what it writes to stderr is kept: the end.
const LAST_WORDS: usize = 2000;
/// How long stderr may take to come in when all processes are gone.
const LAST_MOMENT: Duration = Duration::from_secs(1);

pub(super) struct Process {
    pub(super) pid: Option<u32>,
    stop: watch::Sender<bool>,
    /// How it ended, once it has.
    ended: watch::Receiver<Option<String>>,
    last_words: StderrTail,
}

/// Its way in and its way out.
pub(super) type Pipes = (ChildStdout, ChildStdin);

impl Process {
    /// What an earlier server of ours has left running under the same mark is ended first.
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
        let (tell, ended) = watch::channel(None);
        let last_words = StderrTail::new(LAST_WORDS);
        let process = Self { pid: child.id(), stop, ended, last_words: last_words.clone() };
        tokio::spawn(watch_over(child, mark, stopped, last_words, tell));
        Ok((process, pipes))
    }

    /// Ends it and all that it has begun, and waits for it.
    pub(super) async fn end(&self) {
        let _ = self.stop.send(true);
        let _ = self.ended.clone().wait_for(Option::is_some).await;
    }

    /// How it ended, if it does so soon, and what it said last.
    pub(super) async fn epitaph(&self) -> Vec<String> {
        let mut ended = self.ended.clone();
        let ended = timeout(LAST_MOMENT, ended.wait_for(Option::is_some)).await;
        let how = ended.ok().and_then(|it| it.ok()?.clone());
        let words = self.last_words.get();
        let words = (!words.trim().is_empty()).then(|| format!("it said: {}", words.trim()));
        how.into_iter().chain(words).collect()
    }
}

async fn watch_over(
    mut child: Child,
    mark: Mark,
    mut stopped: watch::Receiver<bool>,
    last_words: StderrTail,
    tell: watch::Sender<Option<String>>,
) {
    let processes = Processes::of(child.id(), &mark);
    let mut listening = child.stderr.take().map(|it| tokio::spawn(last_words.listen(it)));
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        // An error means that nobody holds it any more, which is a stop too.
        _ = stopped.wait_for(|it| *it) => None,
    };
    let (_, later) = tokio::join!(processes.end(), async { child.wait().await.ok() });
    if let Some(listening) = &mut listening
        && timeout(LAST_MOMENT, &mut *listening).await.is_err()
    {
        listening.abort();
    }
    let how = match status {
        None => "it was ended".to_owned(),
        Some(status) => describe(later.unwrap_or(status)),
    };
    let _ = tell.send(Some(how));
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
