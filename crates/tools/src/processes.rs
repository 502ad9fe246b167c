//! All processes that a command or an agent has started, and their termination.
//!
//! Each command or agent has its own process group, and a [`Mark`] in its environment. The group finds
//! processes that cleared their environment; the mark finds processes that left the group (`setsid`), and
//! those that a killed server left behind. If the program has a [`keeper`], all descendants of the keeper
//! are found, even without group and mark.

mod keeper;

use std::collections::HashMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal,
    test_kill_process_group,
};
use transcript::CallId;

pub use keeper::{keep, kept, program_of};

/// Time that processes get to end by themselves or after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Time after SIGKILL at which the server stops waiting for a process that does not end.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of ancestors of a process that are checked. Process data change while they are
/// read, so the ancestors may form a circle.
const MAX_DEPTH: usize = 1000;

/// Environment variable that all processes of one command, agent or MCP server inherit, and no
/// others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Name of the environment variable that marks the processes.
    pub name: &'static str,
    /// Value of the environment variable that marks the processes.
    pub value: String,
}

impl Mark {
    /// Returns the mark for the processes of a tool call, which a restarted server can derive from
    /// the log.
    pub fn of_call(call: &CallId) -> Self {
        Self { name: "CALLBOARD_CALL", value: call.to_string() }
    }

    /// Returns the mark for the processes of an MCP server, which a restarted server can derive
    /// from the configuration.
    pub fn of_mcp_server(value: &str) -> Self {
        Self { name: "CALLBOARD_MCP_SERVER", value: value.to_owned() }
    }

    /// Returns the mark for the processes of an agent's program.
    pub fn of_agent(value: String) -> Self {
        Self { name: "CALLBOARD_MARK", value }
    }
}

/// The processes of one command, agent or MCP server.
#[derive(Debug, Clone)]
pub struct Processes {
    group: Option<Pid>,
    /// Process id of the keeper, whose descendants belong to the set; `None` without a keeper. A
    /// keeper ends by itself when it has no descendants.
    keeper: Option<Pid>,
    /// Environment variable that marks the processes, as `NAME=value`; `None` to ignore
    /// environments.
    mark: Option<String>,
}

/// Process id and start time, which identify a process even if its id is reused.
pub type Begun = (Pid, u64);

/// Selection among the processes of a command, agent or MCP server.
#[derive(Clone)]
enum Selection {
    All,
    /// Commands that a program has started, except these. A program starts commands in separate
    /// Unix sessions so that it can end them; its own helpers, such as MCP servers, stay in its
    /// session.
    CommandsBut(Vec<Begun>),
}

impl Processes {
    /// Returns the processes of a program without a keeper; `leader` is the id of its process and
    /// its process group.
    pub fn of(leader: Option<u32>, mark: &Mark) -> Self {
        let group = leader.and_then(as_pid);
        Self { group, keeper: None, mark: Some(format!("{}={}", mark.name, mark.value)) }
    }

    /// Returns the processes of a program with a keeper, given by the keeper's process id.
    pub fn kept(keeper: Option<u32>, mark: &Mark) -> Self {
        let of = Self::of(keeper, mark);
        Self { keeper: of.group, ..of }
    }

    /// Returns the processes that an earlier Callboard server left behind. The keeper is given by
    /// process id and start time, and is ignored if its id belongs to another process now.
    pub fn of_earlier(keeper: Option<(u32, u64)>, mark: &Mark) -> Self {
        let alive = keeper.filter(|(pid, started)| start_time(*pid) == Some(*started));
        Self::kept(alive.map(|(pid, _)| pid), mark)
    }

    /// Returns the set of all processes that descend from a keeper.
    fn below(keeper: Pid) -> Self {
        Self { group: None, keeper: Some(keeper), mark: None }
    }

    /// Terminates all processes of the set, first with SIGTERM, then with SIGKILL.
    pub async fn end(&self) {
        self.off_thread(Self::end_here).await;
    }

    /// Terminates all processes of the set, blocking the current thread.
    fn end_here(&self) {
        for (signal, limit) in [(Signal::TERM, GRACE), (Signal::KILL, KILL_TIMEOUT)] {
            self.wait(&Selection::All, Some(signal), limit);
        }
    }

    /// Returns the running commands that the program has started.
    pub fn commands(&self) -> Vec<Begun> {
        let found = self.found(&Selection::CommandsBut(Vec::new())).unwrap_or_default();
        found.into_iter().filter_map(|it| Some((it, start_time(number(it))?))).collect()
    }

    /// Waits until the commands that a program has started have ended, except `earlier` ones, and
    /// then terminates the rest. For a program that has reported the end of its commands. Does
    /// nothing if the system lists no processes.
    pub async fn end_commands_but(&self, earlier: &[Begun]) {
        let selection = Selection::CommandsBut(earlier.to_vec());
        let steps =
            [(None, GRACE), (Some(Signal::TERM), GRACE), (Some(Signal::KILL), KILL_TIMEOUT)];
        self.off_thread(move |processes| {
            for (signal, limit) in steps {
                processes.wait(&selection, signal, limit);
            }
        })
        .await;
    }

    /// Runs blocking work on these processes on another thread, because scanning all processes
    /// takes time.
    async fn off_thread(&self, end: impl FnOnce(&Self) + Send + 'static) {
        let processes = self.clone();
        // It fails only while the server shuts down.
        let _ = tokio::task::spawn_blocking(move || end(&processes)).await;
    }

    /// Waits until no selected process is left or the time is over. Each process gets the signal
    /// once.
    fn wait(&self, selection: &Selection, signal: Option<Signal>, limit: Duration) {
        let started = Instant::now();
        let mut signalled = Vec::new();
        while self.is_any_left(selection) {
            if let Some(signal) = signal {
                self.signal(selection, signal, &mut signalled);
            }
            if started.elapsed() > limit {
                return;
            }
            sleep(POLL_INTERVAL);
        }
    }

    fn is_any_left(&self, selection: &Selection) -> bool {
        match (self.found(selection), selection) {
            (Some(found), _) => !found.is_empty(),
            (None, Selection::All) => {
                self.group.is_some_and(|it| test_kill_process_group(it).is_ok())
            }
            (None, Selection::CommandsBut(_)) => false,
        }
    }

    /// Sends a signal to each selected process that is not in `signalled` and adds it, but spares a
    /// keeper that is still needed.
    fn signal(&self, selection: &Selection, signal: Signal, signalled: &mut Vec<Pid>) {
        let Some(found) = self.found(selection) else {
            let _ = self.group.map(|it| kill_process_group(it, signal));
            return;
        };
        let is_alone = found.len() == 1;
        for pid in found {
            // Without its keeper the rest could not be found.
            let is_needed = Some(pid) == self.keeper && !(is_alone && signal == Signal::KILL);
            if is_needed || signalled.contains(&pid) {
                continue;
            }
            signalled.push(pid);
            // Between listing and signalling the number may have been reused.
            let handle = pidfd_open(pid, PidfdFlags::empty());
            if let Ok(handle) = handle
                && self.still_owns(pid, selection)
                && let Err(error) = pidfd_send_signal(handle, signal)
                && error != Errno::SRCH
            {
                tracing::warn!(%error, "a process cannot be ended");
            }
        }
    }

    /// Returns the live processes of the selection, oldest first; `None` if the system does not
    /// list processes.
    ///
    /// The order makes sure that a program is signalled before its commands, so that it does not
    /// take their end for a result.
    fn found(&self, selection: &Selection) -> Option<Vec<Pid>> {
        let entries = std::fs::read_dir("/proc").ok()?;
        let names = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
        let stats = names.filter_map(|it| Some((it, Stat::of(it)?)));
        let stats: HashMap<u32, Stat> = stats.collect();
        let found = stats.iter().filter(|(pid, stat)| {
            let parent_of = |pid| stats.get(&pid).map(|it| it.parent);
            self.owns(**pid, stat, selection, parent_of)
        });
        let mut found: Vec<(u64, u32)> = found.map(|(pid, stat)| (stat.started, *pid)).collect();
        found.sort_unstable();
        Some(found.into_iter().filter_map(|(_, pid)| as_pid(pid)).collect())
    }

    fn still_owns(&self, pid: Pid, selection: &Selection) -> bool {
        let parent_of = |pid| Stat::of(pid).map(|it| it.parent);
        Stat::of(number(pid)).is_some_and(|it| self.owns(number(pid), &it, selection, parent_of))
    }

    fn owns(
        &self,
        pid: u32,
        stat: &Stat,
        selection: &Selection,
        parent_of: impl Fn(u32) -> Option<u32>,
    ) -> bool {
        let is_selected = match selection {
            Selection::All => true,
            Selection::CommandsBut(earlier) => {
                let program = self.group.and_then(|it| Stat::of(number(it)));
                program.is_none_or(|it| it.session != stat.session)
                    && !earlier.iter().any(|it| (number(it.0), it.1) == (pid, stat.started))
            }
        };
        stat.is_alive
            && is_selected
            && (self.group.is_some_and(|it| it.as_raw_nonzero().get() == stat.group)
                || self.keeper.is_some_and(|it| is_below(number(it), stat.parent, parent_of))
                || self.mark.as_ref().is_some_and(|it| is_marked(pid, it)))
    }
}

/// Returns whether a process with this parent is a descendant of the process `ancestor`.
fn is_below(ancestor: u32, parent: u32, parent_of: impl Fn(u32) -> Option<u32>) -> bool {
    let mut ancestors = std::iter::successors(Some(parent), |it| parent_of(*it));
    ancestors.by_ref().take(MAX_DEPTH).any(|it| it == ancestor)
}

fn as_pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Returns whether the file exists and may be executed.
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}

/// Returns the start time of a process in clock ticks since boot. Together with the process id it
/// identifies the process until the next boot.
pub fn start_time(pid: u32) -> Option<u64> {
    Some(Stat::of(pid)?.started)
}

/// State of a process, from the fields of `/proc/PID/stat`.
struct Stat {
    is_alive: bool,
    parent: u32,
    group: i32,
    session: i32,
    started: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let file = Path::new("/proc").join(pid.to_string()).join("stat");
        let stat = std::fs::read_to_string(file).ok()?;
        // The name, in parentheses, may contain anything.
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let [state, parent, group, session, ..] = fields[..] else { return None };
        let (parent, group) = (parent.parse().ok()?, group.parse().ok()?);
        let session = session.parse().ok()?;
        let started = fields.get(19)?.parse().ok()?;
        let is_alive = !matches!(state, "Z" | "X");
        Some(Self { is_alive, parent, group, session, started })
    }
}

fn is_marked(pid: u32, mark: &str) -> bool {
    let environ = Path::new("/proc").join(pid.to_string()).join("environ");
    let environ = std::fs::read(environ).unwrap_or_default();
    environ.split(|it| *it == 0).any(|it| it == mark.as_bytes())
}
