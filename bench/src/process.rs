//! A program under measurement: what it uses, and its end with the value.

use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

/// Clock ticks per second in Linux's CPU times; the same on every machine.
const TICKS_PER_SECOND: u64 = 100;

pub struct Process {
    child: Child,
}

impl Process {
    /// Starts the process and returns it with its standard output, which reports that it is ready.
    pub fn start(mut command: Command) -> anyhow::Result<(Self, ChildStdout)> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("starting {name}: see bench/README.md"))?;
        let stdout = child.stdout.take().context("no standard output")?;
        Ok((Self { child }, stdout))
    }

    /// Resident memory in bytes.
    pub fn memory(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|it| it.starts_with("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kilobytes * 1024)
    }

    /// CPU time of all threads so far, in user and kernel mode.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The second field is the program's name, which may contain spaces.
        let (_, fields) = stat.rsplit_once(") ").context("no name")?;
        let ticks: u64 = fields.split(' ').skip(11).take(2).flat_map(str::parse::<u64>).sum();
        Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that runs the program on one core only.
pub(crate) fn pinned(core: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(core.to_string()).arg(program);
    command
}
