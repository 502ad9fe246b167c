//! The process of a program agent: started, fed and read, and ended with everything it started.
//!
//! Its output comes line by line through a short channel, so that a program that writes faster than the log can
//! be committed is held up by its own pipe. Its input has a queue of its own: a program that does not read must
//! not block the reading of its output. The last output is [`Heard::Exited`], when no process of it is left.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use session::{Line, Lines};
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
use crate::pulse::Pulse;

/// Maximum length of a line; the output of a tool is one line.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// Bytes of one read.
const PIECE: usize = 64 * 1024;
/// Reads that may wait for the session.
const PIECES: usize = 4;
const STDERR_TAIL: usize = 16 * 1024;
/// Bytes that are kept of what a program writes after it was told to end.
const LAST_LINES: usize = 1024 * 1024;
/// Time limit for the end of a pipe after all processes are gone.
const PIPE_TIMEOUT: Duration = Duration::from_secs(5);

/// A program to start.
pub(super) struct Start {
    pub(super) command: Vec<String>,
    pub(super) workspace: PathBuf,
    /// Its whole environment.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Output of a program.
#[derive(Debug)]
pub(super) enum Heard {
    Line(Line),
    /// Exit code; none if a signal ended it.
    Exited(Option<i32>),
}

impl Heard {
    fn line(self) -> Option<Line> {
        match self {
            Self::Line(line) => Some(line),
            Self::Exited(_) => None,
        }
    }
}

/// Resolves when all processes of a program that was told to end are gone, to the lines that it still wrote.
pub(super) type Leaving = JoinHandle<Vec<Line>>;

/// A running program. Dropping it ends it.
pub(super) struct Process {
    pub(super) pulse: Arc<Pulse>,
    processes: Processes,
    stderr: StderrTail,
    /// Bytes of stderr before this run.
    written_before: u64,
    /// Bytes of stderr before the program opened its conversation.
    written_starting: u64,
    /// Commands that its earlier runs left running.
    earlier_commands: Vec<Begun>,
    heard: VecDeque<Heard>,
    output: mpsc::Receiver<Vec<Heard>>,
    /// `None` once its stdin is closed.
    input: Option<mpsc::UnboundedSender<String>>,
    /// Sending, or losing it, ends the program.
    stop: Option<oneshot::Sender<()>>,
    keeper: JoinHandle<()>,
}

impl Process {
    /// Starts a program. The store knows of it before it exists, so that a starting server finds it whatever
    /// happens.
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
        let (lines_out, output) = mpsc::channel(PIECES);
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
        let (heard, pulse) = (VecDeque::new(), Arc::new(Pulse::new(pid, clock::now())));
        let process = Self {
            pulse,
            processes,
            stderr,
            written_before: 0,
            written_starting: 0,
            earlier_commands: Vec::new(),
            heard,
            output,
            input: Some(input),
            stop: Some(stop),
            keeper,
        };
        // From here on a failure drops the process, and so ends it.
        let leader = start_time(pid).map(|started| (pid, started));
        store.put_process(store::Process { leader, ..unknown }).await.map_err(not_stored)?;
        Ok(process)
    }

    /// Queues a line for the program's stdin.
    pub(super) fn write(&self, line: String) {
        // A program that does not read any more is about to exit.
        let _ = self.input.as_ref().map(|it| it.send(line));
    }

    /// Closes stdin after what was queued.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// Returns the next output. There is none after [`Heard::Exited`].
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            match self.output.recv().await {
                Some(heard) => self.take(heard),
                None => std::future::pending().await,
            }
        }
    }

    pub(super) fn try_next(&mut self) -> Option<Heard> {
        if self.heard.is_empty() {
            let heard = self.output.try_recv().ok()?;
            self.take(heard);
        }
        self.heard.pop_front()
    }

    fn take(&mut self, heard: Vec<Heard>) {
        self.pulse.note_line(clock::now());
        self.heard.extend(heard);
    }

    /// Notes that commands which run now, and stderr so far, belong to earlier runs.
    pub(super) fn begin_run(&mut self) {
        self.earlier_commands = self.processes.commands();
        self.written_before = self.stderr.written();
    }

    /// Marks the end of the start: stderr lines up to here are not shown as reasons of a later failure.
    pub(super) fn mark_started(&mut self) {
        self.written_starting = self.stderr.written();
    }

    /// Takes what was written to stderr in this run; for a living program without what it wrote while starting.
    pub(super) fn take_stderr(&mut self, lives: bool) -> String {
        let before = std::mem::replace(&mut self.written_before, self.stderr.written());
        self.stderr.since(if lives { before.max(self.written_starting) } else { before })
    }

    /// Ends the commands that the program has started in this run.
    pub(super) fn end_commands(&self) -> Leaving {
        let (processes, earlier) = (self.processes.clone(), self.earlier_commands.clone());
        tokio::spawn(async move {
            processes.end_commands_but(&earlier).await;
            Vec::new()
        })
    }

    /// Asks the program to end. What it writes until then is still read.
    pub(super) fn stop(&mut self) {
        self.stop = None;
    }

    /// Ends the program with everything it started.
    pub(super) fn end(mut self) -> Leaving {
        self.stop();
        self.close_input();
        tokio::spawn(async move {
            let (mut lines, mut room) = (Vec::new(), LAST_LINES);
            let mut heard = Some(Vec::from(self.heard));
            while let Some(some) = heard {
                for line in some.into_iter().filter_map(Heard::line) {
                    room = room.saturating_sub(line.bytes());
                    lines.extend(Some(line).filter(|_| room > 0));
                }
                heard = self.output.recv().await;
            }
            let _ = self.keeper.await;
            lines
        })
    }
}

/// Owner of the child process until it and everything that it started has ended.
struct Keeper {
    child: Child,
    processes: Processes,
    mark: Mark,
    store: Store,
    stderr: StderrTail,
    lines_in: mpsc::UnboundedReceiver<String>,
    lines_out: mpsc::Sender<Vec<Heard>>,
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
            // A program that has closed its stdout is of no more use.
            _ = &mut reading => is_read = true,
            _ = stopped => (),
        }
        // Closes its stdin.
        writing.abort();
        let ((), status) = tokio::join!(processes.end(), child.wait());
        // A process that nobody could find may still hold a pipe open.
        if !is_read && timeout(PIPE_TIMEOUT, &mut reading).await.is_err() {
            reading.abort();
        }
        if let Some(mut stderr) = stderr
            && timeout(PIPE_TIMEOUT, &mut stderr).await.is_err()
        {
            stderr.abort();
        }
        if let Err(error) = store.remove_process(&mark.value).await {
            tracing::warn!(%error, "the end of a program could not be stored");
        }
        let code = status.ok().and_then(|it| it.code());
        let _ = lines_out.send(vec![Heard::Exited(code)]).await;
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
        // A program that does not read any more is about to exit.
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_lines(stdout: Option<ChildStdout>, heard: mpsc::Sender<Vec<Heard>>) {
    let Some(mut stdout) = stdout else { return };
    let mut lines = Lines::new(LONGEST_LINE);
    let mut piece = vec![0; PIECE];
    while let Some(n) = read_some(&mut stdout, &mut piece).await {
        let ended: Vec<Heard> = lines.take(&piece[..n]).into_iter().map(Heard::Line).collect();
        if !ended.is_empty() && heard.send(ended).await.is_err() {
            return;
        }
    }
    if let Some(last) = lines.finish() {
        let _ = heard.send(vec![Heard::Line(last)]).await;
    }
}

/// Reads some bytes. `None` at the end or after an error.
async fn read_some(pipe: &mut (impl AsyncRead + Unpin), piece: &mut [u8]) -> Option<usize> {
    pipe.read(piece).await.ok().filter(|n| *n > 0)
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
pub async fn end_survivors(store: &Store) -> Result<(), store::Error> {
    let ends = store.processes().await?.into_iter().map(|process| async move {
        let mark = Mark::of_agent(process.mark);
        Processes::of_earlier(process.leader, &mark).end().await;
        if let Err(error) = store.remove_process(&mark.value).await {
            tracing::warn!(%error, "the end of a program could not be stored");
        }
    });
    futures_util::future::join_all(ends).await;
    Ok(())
}
