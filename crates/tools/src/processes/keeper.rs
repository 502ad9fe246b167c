//! `callboard keep PROGRAM ...`: the keeper, the process between the server and a program that ends all that
//! the program leaves behind.
//!
//! The keeper is a child subreaper: descendants whose parent ends become its children. So everything that
//! the program has started stays below the keeper, even if it changed its group, session and environment,
//! and [`super::Processes`] finds it by its ancestors. When the program has ended, its keeper ends the rest
//! and then itself, with the program's exit status.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::process::Command;

use super::{Processes, is_executable};

/// Name of the `callboard` subcommand that runs the keeper of a program.
const KEEP: &str = "keep";
/// Maximum length in bytes of the first line of a script, which names its interpreter.
const MAX_FIRST_LINE: u64 = 4096;

/// Returns the command that runs a program under a keeper. Fails immediately if the program is
/// missing or not executable.
#[expect(clippy::disallowed_methods, reason = "the keeper ends what the program leaves behind")]
pub fn kept(program: &str, args: &[String]) -> std::io::Result<Command> {
    check(Path::new(program))?;
    // The running executable, even if its file has been replaced by another version.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("callboard").args([KEEP, "--", program]).args(args);
    Ok(command)
}

/// Checks that the program of a keeper can be executed. A name without a folder is left to the
/// keeper's `PATH` search.
fn check(file: &Path) -> std::io::Result<()> {
    if file.components().count() < 2 {
        return Ok(());
    }
    if !file.exists() || interpreter(file).is_some_and(|it| !Path::new(&it).exists()) {
        return Err(ErrorKind::NotFound.into());
    }
    if !is_executable(file) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

/// Returns the interpreter that a script names in its first line; `None` if the file is no script.
fn interpreter(file: &Path) -> Option<String> {
    let mut first = Vec::new();
    let mut file = BufReader::new(File::open(file).ok()?).take(MAX_FIRST_LINE);
    file.read_until(b'\n', &mut first).ok()?;
    let line = String::from_utf8_lossy(first.strip_prefix(b"#!")?).into_owned();
    line.split_whitespace().next().map(str::to_owned)
}

/// Returns the process id of the program that a keeper runs.
pub fn program_of(keeper: u32) -> Option<u32> {
    // The oldest child comes first; the others are orphans.
    let children = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"));
    children.ok()?.split_whitespace().next()?.parse().ok()
}

/// Runs a program as its keeper, ends all processes that the program leaves behind, and then exits
/// as the program did.
#[expect(clippy::disallowed_methods, reason = "this is the keeper, which waits for its program")]
pub fn keep(command: &[OsString]) -> anyhow::Result<ExitCode> {
    let [program, args @ ..] = command else { anyhow::bail!("there is nothing to keep") };
    set_child_subreaper(Some(getpid()))?;
    let child = std::process::Command::new(program).args(args).spawn();
    let child = child.with_context(|| format!("{} cannot be started", program.display()))?;
    let child = Pid::from_child(&child);
    close_pipes()?;
    // The keeper must not block the removal of the program's folder.
    std::env::set_current_dir("/")?;
    let status = wait_for(child)?;
    Processes::below(getpid()).end_here();
    end_like(status)
}

/// Closes the standard streams of the keeper, which belong to the program: the other ends must see
/// when the program closes them.
fn close_pipes() -> std::io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

/// Waits until the keeper's program ends, and reaps orphaned processes that end meanwhile.
fn wait_for(child: Pid) -> std::io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Ok(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ends the keeper with the exit code or the signal with which its program ended.
fn end_like(status: WaitStatus) -> anyhow::Result<ExitCode> {
    let signal = status.terminating_signal().and_then(Signal::from_named_raw);
    if let Some(signal) = signal {
        // The standard library handles SIGSEGV and SIGBUS once, for its message on stack overflows, and
        // leaves the second one to the system.
        for _ in 0..2 {
            kill_process(getpid(), signal)?;
        }
    }
    let code = status.exit_status().and_then(|it| u8::try_from(it).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
