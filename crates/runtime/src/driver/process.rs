//! The process of a program agent: its start, input, output, and end with all its descendants.
//!
//! The output comes line by line through a short channel, which gives backpressure: a program that writes
//! faster than the log can be committed blocks on its pipe. The input has a separate queue, because a program
//! that does not read its input must not block the reading of its output. The last output is
//! [`AgentInput::Exited`], after all processes have ended.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use session::{AgentInput, Line, Lines};
use store::Store;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tools::StderrTail;
use tools::processes::{Begun, Mark, Processes, kept, start_time};
use transcript::{ErrorCode, ErrorInfo};

use crate::clock;
use crate::live::pulse::Pulse;

/// Maximum length of a line of a program's stdout, in bytes. Programs report the complete output of
/// a tool in one line.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// Maximum number of bytes of one read from a program's stdout.
const READ_BYTES: usize = 64 * 1024;
/// Maximum number of reads from a program's stdout that wait for the session.
const PENDING_READS: usize = 4;
const STDERR_TAIL: usize = 16 * 1024;
/// Maximum number of bytes that are kept of a program's stdout during its shutdown.
const MAX_LATE_BYTES: usize = 1024 * 1024;
/// Time limit for the end of a program's stdout and stderr after all its processes have ended.
const PIPE_TIMEOUT: Duration = Duration::from_secs(5);

/// Command, folder and environment of a program to start.
pub(super) struct Start {
    pub(super) command: Vec<String>,
    pub(super) workspace: PathBuf,
    /// Complete environment of the process.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Task that shuts down a program or its commands. It resolves to the program's last lines when all
/// processes have ended.
pub(super) type Shutdown = JoinHandle<Vec<Line>>;

/// The process of a running program. Dropping it ends the program.
pub(super) struct Process {
    pub(super) pulse: Arc<Pulse>,
    processes: Processes,
    stderr: StderrTail,
    /// Number of bytes that the program wrote to stderr before this run.
    written_before: u64,
    /// Number of bytes that the program wrote to stderr before it opened its conversation.
    written_starting: u64,
    /// Commands that earlier runs of the program started and that still run.
    earlier_commands: Vec<Begun>,
    /// Output of the program that was received and not returned yet.
    buffered: VecDeque<AgentInput>,
    output: mpsc::Receiver<Vec<AgentInput>>,
    /// Channel for lines to the program's stdin. `None` once stdin is closed.
    input: Option<mpsc::UnboundedSender<String>>,
    /// Signal to end the program, given by sending on this channel or dropping it.
    stop: Option<oneshot::Sender<()>>,
    keeper: JoinHandle<()>,
}

impl Process {
    /// Starts a program. The process is stored before it is started, so that the next server can
    /// find and end it after a crash.
    pub(super) async fn start(store: &Store, start: Start) -> Result<Self, ErrorInfo> {
        let mark = Mark::of_agent(clock::new_mark());
        let unknown = store::Process { mark: mark.value.clone(), leader: None };
        store.put_process(unknown.clone()).await.map_err(not_stored)?;
        let child = match spawn(&start, &mark) {
            Ok(child) => child,
            Err(error) => {
                let _ = store.remove_process(&mark.value).await;
                return Err(cannot_start(&start, &error));
            }
        };
        let pid = child.id().unwrap_or_default();
        let (stop, stopped) = oneshot::channel();
        let (input, lines_in) = mpsc::unbounded_channel();
        let (lines_out, output) = mpsc::channel(PENDING_READS);
        let processes = Processes::kept(child.id(), &mark);
        let stderr = StderrTail::new(STDERR_TAIL);
        let keeper = Keeper {
            child,
            processes: processes.clone(),
            mark,
            store: store.clone(),
            stderr: stderr.clone(),
            lines_in,
            lines_out,
        };
        let keeper = tokio::spawn(keeper.keep(stopped));
        let (buffered, pulse) = (VecDeque::new(), Arc::new(Pulse::new(pid, clock::now())));
        let process = Self {
            pulse,
            processes,
            stderr,
            written_before: 0,
            written_starting: 0,
            earlier_commands: Vec::new(),
            buffered,
            output,
            input: Some(input),
            stop: Some(stop),
            keeper,
        };
        // From here on, a failure drops and thereby ends the process.
        let leader = start_time(pid).map(|started| (pid, started));
        store.put_process(store::Process { leader, ..unknown }).await.map_err(not_stored)?;
        Ok(process)
    }

    /// Queues a line for the program's stdin.
    pub(super) fn write(&self, line: String) {
        // A program that has closed its stdin is about to exit.
        let _ = self.input.as_ref().map(|it| it.send(line));
    }

    /// Closes the program's stdin after the queued lines.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the next output of the program. There is none after [`AgentInput::Exited`].
    pub(super) async fn next(&mut self) -> AgentInput {
        loop {
            if let Some(output) = self.take_buffered() {
                return output;
            }
            match self.output.recv().await {
                Some(output) => self.buffer(output),
                None => std::future::pending().await,
            }
        }
    }

    pub(super) fn try_next(&mut self) -> Option<AgentInput> {
        if self.buffered.is_empty() {
            let output = self.output.try_recv().ok()?;
            self.buffer(output);
        }
        self.take_buffered()
    }

    fn buffer(&mut self, output: Vec<AgentInput>) {
        self.pulse.note_line(clock::now());
        self.buffered.extend(output);
    }

    /// Removes the next buffered output, and adds the stderr of this run to the program's exit.
    fn take_buffered(&mut self) -> Option<AgentInput> {
        let mut output = self.buffered.pop_front()?;
        if let AgentInput::Exited { stderr, .. } = &mut output {
            *stderr = self.take_stderr(false);
        }
        Some(output)
    }

    /// Attributes the commands that run now and the stderr so far to earlier runs, because a run
    /// begins.
    pub(super) fn begin_run(&mut self) {
        self.earlier_commands = self.processes.commands();
        self.written_before = self.stderr.written();
    }

    /// Marks the end of the program's start. Earlier stderr is not shown as the reason of a later
    /// failure.
    pub(super) fn mark_started(&mut self) {
        self.written_starting = self.stderr.written();
    }

    /// Returns the program's stderr of this run, once. For a running program, the stderr of its
    /// start is left out.
    pub(super) fn take_stderr(&mut self, is_running: bool) -> String {
        let before = std::mem::replace(&mut self.written_before, self.stderr.written());
        self.stderr.since(if is_running { before.max(self.written_starting) } else { before })
    }

    /// Ends the commands that the program has started in this run.
    pub(super) fn end_commands(&self) -> Shutdown {
        let (processes, earlier) = (self.processes.clone(), self.earlier_commands.clone());
        tokio::spawn(async move {
            processes.end_commands_but(&earlier).await;
            Vec::new()
        })
    }

    /// Asks the program to end. Its output until then is still read.
    pub(super) fn stop(&mut self) {
        self.stop = None;
    }

    /// Ends the program and all its descendants, and collects its last lines.
    pub(super) fn end(mut self) -> Shutdown {
        self.stop();
        self.close_input();
        tokio::spawn(async move {
            let (mut lines, mut budget) = (Vec::new(), MAX_LATE_BYTES);
            let mut next = Some(Vec::from(self.buffered));
            while let Some(output) = next {
                for output in output {
                    let AgentInput::Line(line) = output else { continue };
                    budget = budget.saturating_sub(line.bytes());
                    lines.extend(Some(line).filter(|_| budget > 0));
                }
                next = self.output.recv().await;
            }
            let _ = self.keeper.await;
            lines
        })
    }
}

/// Owner of a program's child process until the process and all its descendants have ended.
struct Keeper {
    child: Child,
    processes: Processes,
    mark: Mark,
    store: Store,
    stderr: StderrTail,
    lines_in: mpsc::UnboundedReceiver<String>,
    lines_out: mpsc::Sender<Vec<AgentInput>>,
}

impl Keeper {
    async fn keep(self, stopped: oneshot::Receiver<()>) {
        let Self { mut child, processes, mark, store, stderr, lines_in, lines_out } = self;
        let writing = tokio::spawn(write_lines(child.stdin.take(), lines_in));
        let stderr = child.stderr.take().map(|it| tokio::spawn(stderr.listen(it)));
        let mut reading = tokio::spawn(read_lines(child.stdout.take(), lines_out.clone()));
        let mut is_read = false;
        tokio::select! {
            _ = child.wait() => (),
            // A program that has closed its stdout cannot be used any more.
            _ = &mut reading => is_read = true,
            _ = stopped => (),
        }
        // Closes stdin.
        writing.abort();
        let ((), status) = tokio::join!(processes.end(), child.wait());
        // A process that was not found may still hold a pipe open.
        if !is_read && timeout(PIPE_TIMEOUT, &mut reading).await.is_err() {
            reading.abort();
        }
        if let Some(mut stderr) = stderr
            && timeout(PIPE_TIMEOUT, &mut stderr).await.is_err()
        {
            stderr.abort();
        }
        if let Err(error) = store.remove_process(&mark.value).await {
            tracing::warn!(%error, "cannot store the end of a program");
        }
        let code = status.ok().and_then(|it| it.code());
        let exited = AgentInput::Exited { code, stderr: String::new() };
        let _ = lines_out.send(vec![exited]).await;
    }
}

fn spawn(start: &Start, mark: &Mark) -> std::io::Result<Child> {
    let (program, args) = start.command.split_first().ok_or(ErrorKind::InvalidInput)?;
    kept(program, args)?
        .current_dir(&start.workspace)
        .env_clear()
        .envs(start.environment.iter().map(|(name, value)| (name, value)))
        .env(mark.name, &mark.value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

async fn write_lines(stdin: Option<ChildStdin>, mut lines: mpsc::UnboundedReceiver<String>) {
    let Some(mut stdin) = stdin else { return };
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        // A program that has closed its stdin is about to exit.
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_lines(stdout: Option<ChildStdout>, output: mpsc::Sender<Vec<AgentInput>>) {
    let Some(mut stdout) = stdout else { return };
    let mut lines = Lines::new(MAX_LINE);
    let mut buffer = vec![0; READ_BYTES];
    while let Some(n) = read_some(&mut stdout, &mut buffer).await {
        let ended: Vec<_> = lines.take(&buffer[..n]).into_iter().map(AgentInput::Line).collect();
        if !ended.is_empty() && output.send(ended).await.is_err() {
            return;
        }
    }
    if let Some(last) = lines.finish() {
        let _ = output.send(vec![AgentInput::Line(last)]).await;
    }
}

/// Reads the bytes that a pipe has available. Returns `None` at the end of the pipe or after an
/// error.
async fn read_some(pipe: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> Option<usize> {
    pipe.read(buffer).await.ok().filter(|n| *n > 0)
}

fn not_stored(error: store::AppendError) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::Storage, format!("The program was not started: {error}"))
}

fn cannot_start(start: &Start, error: &std::io::Error) -> ErrorInfo {
    let program = start.command.first().map_or("", String::as_str);
    let workspace = start.workspace.display();
    let (code, message) = match error.kind() {
        _ if !start.workspace.is_dir() => (
            ErrorCode::AgentExited,
            format!(
                "The folder {workspace} does not exist, so {program} cannot work in it. Create it, or start a session in another folder."
            ),
        ),
        ErrorKind::NotFound => (
            ErrorCode::AgentNotInstalled,
            format!("{program} cannot be found. Install it, or set the command of this agent."),
        ),
        ErrorKind::PermissionDenied => (
            ErrorCode::AgentNotInstalled,
            format!(
                "{program} may not be executed: {error}. Fix its permissions, or set the command of this agent."
            ),
        ),
        _ => (ErrorCode::AgentExited, format!("{program} cannot be started: {error}.")),
    };
    ErrorInfo::new(code, message)
}

/// Ends the processes that programs of an earlier server left running.
pub(crate) async fn end_survivors(store: &Store) -> Result<(), store::Error> {
    let ends = store.processes().await?.into_iter().map(|process| async move {
        let mark = Mark::of_agent(process.mark);
        Processes::of_earlier(process.leader, &mark).end().await;
        if let Err(error) = store.remove_process(&mark.value).await {
            tracing::warn!(%error, "cannot store the end of a program");
        }
    });
    futures_util::future::join_all(ends).await;
    Ok(())
}
