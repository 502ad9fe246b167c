//! The processes of a command, all of them, and their end.
//!
//! A command has a process group of its own, and its call's id in its environment. The group finds
//! what cleared its environment; the id finds what left the group (`setsid`), and also what a server
//! that was killed has left behind.

use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal,
    test_kill_process_group,
};
use tokio::time::{Instant, sleep};
use transcript::CallId;

/// The variable that holds the mark: a call's id, or whose server it is.
pub(crate) const MARK: &str = "CALLBOARD_CALL";

/// How long processes may take to end by themselves.
const GRACE: Duration = Duration::from_secs(2);
/// What cannot be killed within this time will never be.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub(crate) struct Processes {
    group: Option<Pid>,
    mark: String,
}

/// Ends what a call of an earlier server has left running.
pub(crate) async fn end_survivors(call: &CallId) {
    Processes::of(None, call.as_str()).end().await;
}

impl Processes {
    /// `leader` is the process that was started, and its group's number.
    pub(crate) fn of(leader: Option<u32>, mark: &str) -> Self {
        let group = leader.and_then(|it| Pid::from_raw(i32::try_from(it).ok()?));
        Self { group, mark: format!("{MARK}={mark}") }
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
                tracing::warn!(%error, "a process of a tool cannot be ended");
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
        let folder = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
        let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
        // The name, in brackets, may hold anything.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, group) = (fields.next(), fields.nth(1).and_then(|it| it.parse().ok()));
        if matches!(state, None | Some("Z" | "X")) {
            return false;
        }
        let is_in_group = self.group.is_some() && group.and_then(Pid::from_raw) == self.group;
        is_in_group || has_line(&folder.join("environ"), &self.mark)
    }
}

fn has_line(environ: &Path, wanted: &str) -> bool {
    let environ = std::fs::read(environ).unwrap_or_default();
    environ.split(|it| *it == 0).any(|it| it == wanted.as_bytes())
}
