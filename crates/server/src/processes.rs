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

pub(crate) struct Processes {
    group: Option<Pid>,
    mark: String,
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
            let begun = Instant::now();
            let mut asked = Vec::new();
            while self.is_any_left() {
                self.signal(signal, &mut asked);
                if begun.elapsed() > patience {
                    break;
                }
                sleep(LOOK_AGAIN).await;
            }
        }
    }

    fn is_any_left(&self) -> bool {
        match self.found() {
            Some(found) => !found.is_empty(),
            None => self.group.is_some_and(|it| test_kill_process_group(it).is_ok()),
        }
    }

    /// Each is asked once; those that were begun meanwhile too.
    fn signal(&self, signal: Signal, asked: &mut Vec<Pid>) {
        let Some(found) = self.found() else {
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
                && self.owns(pid)
                && let Err(error) = pidfd_send_signal(handle, signal)
                && error != Errno::SRCH
            {
                tracing::warn!(%error, "a process cannot be ended");
            }
        }
    }

    /// Those that live. None where the system does not say what runs.
    fn found(&self) -> Option<Vec<Pid>> {
        let entries = std::fs::read_dir("/proc").ok()?;
        let names = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
        let found: Vec<Pid> = names.filter_map(Pid::from_raw).filter(|it| self.owns(*it)).collect();
        Some(found)
    }

    fn owns(&self, pid: Pid) -> bool {
        let stat = stat(pid.as_raw_nonzero().get().cast_unsigned());
        let field = |n: usize| stat.get(n).map(String::as_str);
        if matches!(field(STATE), None | Some("Z" | "X")) {
            return false;
        }
        let group = field(GROUP).and_then(|it| Pid::from_raw(it.parse().ok()?));
        let is_in_group = self.group.is_some() && group == self.group;
        let environ = Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("environ");
        is_in_group || has_line(&environ, &self.mark)
    }
}

/// When a process was started, in the system's own count: with its number it names the process for
/// as long as the system runs.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    stat(pid).get(START_TIME)?.parse().ok()
}

/// Places in what `/proc/PID/stat` says after the name.
const STATE: usize = 0;
const GROUP: usize = 2;
const START_TIME: usize = 19;

fn stat(pid: u32) -> Vec<String> {
    let file = Path::new("/proc").join(pid.to_string()).join("stat");
    let stat = std::fs::read_to_string(file).unwrap_or_default();
    // The name, in brackets, may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.map(str::to_owned).collect()
}

fn has_line(environ: &Path, wanted: &str) -> bool {
    let environ = std::fs::read(environ).unwrap_or_default();
    environ.split(|it| *it == 0).any(|it| it == wanted.as_bytes())
}
