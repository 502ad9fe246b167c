//! `callboard keep PROGRAM ...`: stands between us and a program, so that nothing it begins gets lost.
//!
//! A process whose parent ends becomes a child of its nearest ancestor that takes such orphans in. With one
//! of those for each program, all that the program has begun stays below it, whatever it has done to its
//! group, its session and its environment, and is found by who its parents are ([`super::Processes`]).
//! When the program has ended, its keeper ends the rest and then itself, in the way the program did.

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

/// The word on our own command line.
const KEEP: &str = "keep";
/// Of an interpreter, in bytes.
const LONGEST_NAME: u64 = 4096;

/// The command of a program with a keeper. What is plainly not there is said at once.
pub fn kept(program: &str, args: &[String]) -> std::io::Result<Command> {
    check(Path::new(program))?;
    // This file, also when another version has been put in its place.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("callboard").args([KEEP, "--", program]).args(args);
    Ok(command)
}

/// A name without a folder is looked for by the keeper.
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

/// Who reads the file, if it is a script.
fn interpreter(file: &Path) -> Option<String> {
    let mut first = Vec::new();
    let mut file = BufReader::new(File::open(file).ok()?).take(LONGEST_NAME);
    file.read_until(b'\n', &mut first).ok()?;
    let line = String::from_utf8_lossy(first.strip_prefix(b"#!")?).into_owned();
    line.split_whitespace().next().map(str::to_owned)
}

/// The program itself, while it runs.
pub fn program_of(keeper: u32) -> Option<u32> {
    // The oldest child comes first; the others are orphans.
    let children = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"));
    children.ok()?.split_whitespace().next()?.parse().ok()
}

/// Runs as the keeper, until nothing is left of the program.
pub fn keep(command: &[OsString]) -> anyhow::Result<ExitCode> {
    let [program, args @ ..] = command else { anyhow::bail!("there is nothing to keep") };
    set_child_subreaper(Some(getpid()))?;
    let child = std::process::Command::new(program).args(args).spawn();
    let child = child.with_context(|| format!("{} cannot be started", program.display()))?;
    let child = Pid::from_child(&child);
    let_go_of_pipes()?;
    // Nor does it stand in the way of whoever wants to remove the program's folder.
    std::env::set_current_dir("/")?;
    let status = wait_for(child)?;
    Processes::below(getpid()).end_here();
    end_like(status)
}

/// They are the program's: who reads or writes the other ends must see what becomes of them.
fn let_go_of_pipes() -> std::io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    Ok(())
}

/// Others that end meanwhile are orphans which it has taken in.
fn wait_for(child: Pid) -> std::io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Ok(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(error.into()),
        }
    }
}

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
