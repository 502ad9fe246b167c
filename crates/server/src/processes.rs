//! The processes that a command or an agent has begun, all of them, and their end.
//!
//! Each has a process group of its own, and a [`Mark`] in its environment. The group finds what cleared
//! its environment; the mark finds what left the group (`setsid`), and also what a server that was
//! killed has left behind.

use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal,
    test_kill_process_group,
};
use tokio::time::{Instant, sleep};
use transcript::CallId;

/// How long processes may take to end by themselves.
const GRACE: Duration = Duration::from_secs(2);
/// What cannot be killed within this time will never be.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A variable that all processes of one command or agent inherit, and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

impl Mark {
    /// Known from the log alone.
    pub(crate) fn of_call(call: &CallId) -> Self {
        Self { name: "CALLBOARD_CALL", value: call.to_string() }
    }

    /// Known from the configuration alone.
    pub(crate) fn of_mcp_server(value: &str) -> Self {
        Self { name: "CALLBOARD_MCP_SERVER", value: value.to_owned() }
    }

    pub(crate) fn of_agent(value: String) -> Self {
        Self { name: "CALLBOARD_MARK", value }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Processes {
    group: Option<Pid>,
    mark: String,
}

/// A process, and when it was started: another one may get its number.
pub(crate) type Begun = (Pid, u64);

/// Which of them are meant.
#[derive(Clone, Copy)]
enum Which<'a> {
    All,
    /// What a program runs for its work, except these. It gives commands sessions of their own, to be
    /// able to end them; what it needs for itself, as its MCP servers, stays in its own session.
    CommandsBut(&'a [Begun]),
}

impl Processes {
    /// `leader` is the process that was started, and its group's number.
    pub(crate) fn of(leader: Option<u32>, mark: &Mark) -> Self {
        let group = leader.and_then(|it| Pid::from_raw(i32::try_from(it).ok()?));
        Self { group, mark: format!("{}={}", mark.name, mark.value) }
    }

    /// Those of an earlier server. Its leader is one of them only if it is the same process still: the
    /// number may have become another's.
    pub(crate) fn of_earlier(leader: Option<(u32, u64)>, mark: &Mark) -> Self {
        let alive = leader.filter(|(pid, started)| start_time(*pid) == Some(*started));
        Self::of(alive.map(|(pid, _)| pid), mark)
    }

    /// Asks them to end, then makes them, until none is left.
    pub(crate) async fn end(&self) {
        for (signal, patience) in [(Signal::TERM, GRACE), (Signal::KILL, PATIENCE)] {
            self.wait(Which::All, Some(signal), patience).await;
        }
    }

    /// The commands that a program has under way.
    pub(crate) fn commands(&self) -> Vec<Begun> {
        let found = self.found(Which::CommandsBut(&[])).unwrap_or_default();
        found.into_iter().filter_map(|it| Some((it, start_time(number(it))?))).collect()
    }

    /// The program has said that its commands have ended, but for these: waits until it is so, and
    /// ends what stays. Where the system does not say what runs, nothing can be done.
    pub(crate) async fn end_commands_but(&self, earlier: &[Begun]) {
        let steps = [(None, GRACE), (Some(Signal::TERM), GRACE), (Some(Signal::KILL), PATIENCE)];
        for (signal, patience) in steps {
            self.wait(Which::CommandsBut(earlier), signal, patience).await;
        }
    }

    /// Until none is left, or for so long.
    async fn wait(&self, which: Which<'_>, signal: Option<Signal>, patience: Duration) {
        let begun = Instant::now();
        let mut asked = Vec::new();
        while self.is_any_left(which) {
            if let Some(signal) = signal {
                self.signal(which, signal, &mut asked);
            }
            if begun.elapsed() > patience {
                return;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    fn is_any_left(&self, which: Which<'_>) -> bool {
        match (self.found(which), which) {
            (Some(found), _) => !found.is_empty(),
            (None, Which::All) => self.group.is_some_and(|it| test_kill_process_group(it).is_ok()),
            (None, Which::CommandsBut(_)) => false,
        }
    }

    /// Each is asked once; those that were begun meanwhile too.
    fn signal(&self, which: Which<'_>, signal: Signal, asked: &mut Vec<Pid>) {
        let Some(found) = self.found(which) else {
            let _ = self.group.map(|it| kill_process_group(it, signal));
            return;
        };
        for pid in found {
            if asked.contains(&pid) {
                continue;
            }
            asked.push(pid);
            // Between looking and signalling the number may have become another process's.
            let handle = pidfd_open(pid, PidfdFlags::empty());
            if let Ok(handle) = handle
                && self.owns(pid, which)
                && let Err(error) = pidfd_send_signal(handle, signal)
                && error != Errno::SRCH
            {
                tracing::warn!(%error, "a process cannot be ended");
            }
        }
    }

    /// Those that live. None where the system does not say what runs.
    fn found(&self, which: Which<'_>) -> Option<Vec<Pid>> {
        let entries = std::fs::read_dir("/proc").ok()?;
        let names = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
        Some(names.filter_map(Pid::from_raw).filter(|it| self.owns(*it, which)).collect())
    }

    fn owns(&self, pid: Pid, which: Which<'_>) -> bool {
        let Some(stat) = Stat::of(number(pid)) else { return false };
        let is_meant = match which {
            Which::All => true,
            Which::CommandsBut(earlier) => {
                let program = self.group.and_then(|it| Stat::of(number(it)));
                program.is_none_or(|it| it.session != stat.session)
                    && !earlier.contains(&(pid, stat.started))
            }
        };
        stat.is_alive && is_meant && self.is_ours(pid, &stat)
    }

    fn is_ours(&self, pid: Pid, stat: &Stat) -> bool {
        let is_in_group = self.group.is_some_and(|it| it.as_raw_nonzero().get() == stat.group);
        let environ = Path::new("/proc").join(number(pid).to_string()).join("environ");
        is_in_group || has_line(&environ, &self.mark)
    }
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}

/// When a process was started, in the system's own count: with its number it names the process for
/// as long as the system runs.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    Some(Stat::of(pid)?.started)
}

/// What the system says of a process.
struct Stat {
    is_alive: bool,
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
        let [state, _parent, group, session, ..] = fields[..] else { return None };
        let (group, session) = (group.parse().ok()?, session.parse().ok()?);
        let started = fields.get(19)?.parse().ok()?;
        Some(Self { is_alive: !matches!(state, "Z" | "X"), group, session, started })
    }
}

fn has_line(environ: &Path, wanted: &str) -> bool {
    let environ = std::fs::read(environ).unwrap_or_default();
    environ.split(|it| *it == 0).any(|it| it == wanted.as_bytes())
}
