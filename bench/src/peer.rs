//! Programs of others, from `bench/peers`, that do what ours does.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::process::{Process, pinned};

/// Path of a file in the folder of the peers.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

/// Path of a program that is installed there.
pub fn program(name: &str) -> PathBuf {
    path("node_modules/.bin").join(name)
}

/// Runs a script and returns its output.
pub fn output(script: &str, args: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(program("node"));
    let output = command.arg(path(script)).args(args).output();
    let output = output.context("no node: run npm ci in bench/peers")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{script} {args:?}: {complaint}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The work of a server of frames.
#[derive(Debug, Clone, Copy)]
pub struct Broadcast {
    /// Number of connections at which it starts; 0 for never.
    pub subscribers: usize,
    pub sessions: usize,
    /// Deltas per second in each session.
    pub per_second: u32,
    pub deltas: usize,
}

/// A server that sends stamped frames to all connections, on core 0.
pub struct Broadcaster {
    pub process: Process,
    pub address: String,
}

impl Broadcaster {
    /// `runtime` is `node` or `bun`; in `frame`, `@STAMP` is replaced.
    pub fn start(runtime: &str, what: Broadcast, frame: &str) -> anyhow::Result<Self> {
        let Broadcast { subscribers, sessions, per_second, deltas } = what;
        let numbers = [subscribers, sessions, per_second as usize, deltas];
        let mut command = pinned(0, program(runtime));
        command.arg(path(&format!("broadcast_{runtime}.mjs")));
        command.args(numbers.map(|it| it.to_string())).arg(frame);
        let (process, stdout) = Process::start(command)?;
        let mut port = String::new();
        BufReader::new(stdout).read_line(&mut port)?;
        Ok(Self { process, address: format!("127.0.0.1:{}", port.trim()) })
    }
}
