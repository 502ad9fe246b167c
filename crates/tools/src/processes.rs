//! The processes that a command or an agent has begun, all of them, and their end.
//!
//! Each has a process group of its own, and a [`Mark`] in its environment. The group finds what cleared
//! its environment; the mark finds what left the group (`setsid`), and also what a server that was
//! killed has left behind. A program that has a [`keeper`] is found with all that is below that, whatever
//! it did to be neither in the group nor marked.

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

/// How long processes may take to end by themselves.
const GRACE: Duration = Duration::from_secs(2);
/// What cannot be killed within this time will never be.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// What is said of processes changes while it is read, so it may lead in a circle.
const DEEPEST: usize = 1000;

/// A variable that all processes of one command or agent inherit, and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub name: &'static str,
    pub value: String,
}

impl Mark {
    /// Known from the log alone.
    pub fn of_call(call: &CallId) -> Self {
        Self { name: "CALLBOARD_CALL", value: call.to_string() }
    }

    /// Known from the configuration alone.
    pub fn of_mcp_server(value: &str) -> Self {
        Self { name: "CALLBOARD_MCP_SERVER", value: value.to_owned() }
    }

    pub fn of_agent(value: String) -> Self {
        Self { name: "CALLBOARD_MARK", value }
    }
}

#[derive(Debug, Clone)]
pub struct Processes {
    group: Option<Pid>,
    /// What is below it is meant, and it ends by itself when nothing is.
    keeper: Option<Pid>,
    /// None: no process is meant because of its environment.
    mark: Option<String>,
}

/// A process, and when it was started: another one may get its number.
pub type Begun = (Pid, u64);

/// Which of them are meant.
#[derive(Clone)]
enum Which {
    All,
    /// What a program runs for its work, except these. It gives commands sessions of their own, to be
    /// able to end them; what it needs for itself, as its MCP servers, stays in its own session.
    CommandsBut(Vec<Begun>),
}

impl Processes {
    /// `leader` is the process that was started, and its group's number.
    pub fn of(leader: Option<u32>, mark: &Mark) -> Self {
        let group = leader.and_then(as_pid);
        Self { group, keeper: None, mark: Some(format!("{}={}", mark.name, mark.value)) }
    }

    /// The process that was started is a keeper.
    pub fn kept(keeper: Option<u32>, mark: &Mark) -> Self {
        let of = Self::of(keeper, mark);
        Self { keeper: of.group, ..of }
    }

    /// Those of an earlier server. Its keeper is one of them only if it is the same process still: the
    /// number may have become another's.
    pub fn of_earlier(keeper: Option<(u32, u64)>, mark: &Mark) -> Self {
        let alive = keeper.filter(|(pid, started)| start_time(*pid) == Some(*started));
        Self::kept(alive.map(|(pid, _)| pid), mark)
    }

    /// What a keeper has to end.
    fn below(keeper: Pid) -> Self {
        Self { group: None, keeper: Some(keeper), mark: None }
    }

    /// Asks them to end, then makes them, until none is left.
    pub async fn end(&self) {
        self.off_thread(Self::end_here).await;
    }

    /// Likewise, on this thread.
    fn end_here(&self) {
        for (signal, patience) in [(Signal::TERM, GRACE), (Signal::KILL, PATIENCE)] {
            self.wait(&Which::All, Some(signal), patience);
        }
    }

    /// The commands that a program has under way.
    pub fn commands(&self) -> Vec<Begun> {
        let found = self.found(&Which::CommandsBut(Vec::new())).unwrap_or_default();
        found.into_iter().filter_map(|it| Some((it, start_time(number(it))?))).collect()
    }

    /// The program has said that its commands have ended, but for these: waits until it is so, and
    /// ends what stays. Where the system does not say what runs, nothing can be done.
    pub async fn end_commands_but(&self, earlier: &[Begun]) {
        let which = Which::CommandsBut(earlier.to_vec());
        let steps = [(None, GRACE), (Some(Signal::TERM), GRACE), (Some(Signal::KILL), PATIENCE)];
        self.off_thread(move |processes| {
            for (signal, patience) in steps {
                processes.wait(&which, signal, patience);
            }
        })
        .await;
    }

    /// Looking at all that runs takes its time, again and again.
    async fn off_thread(&self, end: impl FnOnce(&Self) + Send + 'static) {
        let processes = self.clone();
        // It fails only with a server that is gone.
        let _ = tokio::task::spawn_blocking(move || end(&processes)).await;
    }

    /// Until none is left, or for so long.
    fn wait(&self, which: &Which, signal: Option<Signal>, patience: Duration) {
        let begun = Instant::now();
        let mut asked = Vec::new();
        while self.is_any_left(which) {
            if let Some(signal) = signal {
                self.signal(which, signal, &mut asked);
            }
            if begun.elapsed() > patience {
                return;
            }
            sleep(LOOK_AGAIN);
        }
    }

    fn is_any_left(&self, which: &Which) -> bool {
        match (self.found(which), which) {
            (Some(found), _) => !found.is_empty(),
            (None, Which::All) => self.group.is_some_and(|it| test_kill_process_group(it).is_ok()),
            (None, Which::CommandsBut(_)) => false,
        }
    }

    /// Each is asked once; those that were begun meanwhile too.
    fn signal(&self, which: &Which, signal: Signal, asked: &mut Vec<Pid>) {
        let Some(found) = self.found(which) else {
            let _ = self.group.map(|it| kill_process_group(it, signal));
            return;
        };
        let is_alone = found.len() == 1;
        for pid in found {
            // Without its keeper nobody would know what is left.
            let is_needed = Some(pid) == self.keeper && !(is_alone && signal == Signal::KILL);
            if is_needed || asked.contains(&pid) {
                continue;
            }
            asked.push(pid);
            // Between looking and signalling the number may have become another process's.
            let handle = pidfd_open(pid, PidfdFlags::empty());
            if let Ok(handle) = handle
                && self.still_owns(pid, which)
                && let Err(error) = pidfd_send_signal(handle, signal)
                && error != Errno::SRCH
            {
                tracing::warn!(%error, "a process cannot be ended");
            }
        }
    }

    /// The processes that are alive, oldest first. None where the system does not list processes.
    ///
    /// A program is therefore signalled before its commands, and cannot take their end for a result
    /// that it answers.
    fn found(&self, which: &Which) -> Option<Vec<Pid>> {
        let entries = std::fs::read_dir("/proc").ok()?;
        let names = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
        let stats = names.filter_map(|it| Some((it, Stat::of(it)?)));
        let stats: HashMap<u32, Stat> = stats.collect();
        let found = stats.iter().filter(|(pid, stat)| {
            let parent_of = |pid| stats.get(&pid).map(|it| it.parent);
            self.owns(**pid, stat, which, parent_of)
        });
        let mut found: Vec<(u64, u32)> = found.map(|(pid, stat)| (stat.started, *pid)).collect();
        found.sort_unstable();
        Some(found.into_iter().filter_map(|(_, pid)| as_pid(pid)).collect())
    }

    fn still_owns(&self, pid: Pid, which: &Which) -> bool {
        let parent_of = |pid| Stat::of(pid).map(|it| it.parent);
        Stat::of(number(pid)).is_some_and(|it| self.owns(number(pid), &it, which, parent_of))
    }

    fn owns(
        &self,
        pid: u32,
        stat: &Stat,
        which: &Which,
        parent_of: impl Fn(u32) -> Option<u32>,
    ) -> bool {
        let is_meant = match which {
            Which::All => true,
            Which::CommandsBut(earlier) => {
                let program = self.group.and_then(|it| Stat::of(number(it)));
                program.is_none_or(|it| it.session != stat.session)
                    && !earlier.iter().any(|it| (number(it.0), it.1) == (pid, stat.started))
            }
        };
        stat.is_alive
            && is_meant
            && (self.group.is_some_and(|it| it.as_raw_nonzero().get() == stat.group)
                || self.keeper.is_some_and(|it| is_below(number(it), stat.parent, parent_of))
                || self.mark.as_ref().is_some_and(|it| is_marked(pid, it)))
    }
}

/// Whether the ancestor is the parent, or one of its ancestors.
fn is_below(ancestor: u32, parent: u32, parent_of: impl Fn(u32) -> Option<u32>) -> bool {
    let mut ancestors = std::iter::successors(Some(parent), |it| parent_of(*it));
    ancestors.by_ref().take(DEEPEST).any(|it| it == ancestor)
}

fn as_pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}

/// When a process was started, in the system's own count: with its number it names the process for
/// as long as the system runs.
pub fn start_time(pid: u32) -> Option<u64> {
    Some(Stat::of(pid)?.started)
}

/// What the system says of a process.
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
        // The name, in brackets, may hold anything.
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
