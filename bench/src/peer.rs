//! Programs of others, from `bench/peers`, that do what ours does.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::process::{Process, pinned};

/// A file in the folder of the peers.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

/// A program that was installed there.
pub fn program(name: &str) -> PathBuf {
    path("node_modules/.bin").join(name)
}

/// What a script prints.
pub fn output(script: &str, args: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(program("node"));
    let output = command.arg(path(script)).args(args).output();
    let output = output.context("no node: run npm ci in bench/peers")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{script} {args:?}: {complaint}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// What a server of frames has to do.
#[derive(Debug, Clone, Copy)]
pub struct Broadcast {
    /// It begins when so many are connected; never, for none.
    pub subscribers: usize,
    pub sessions: usize,
    /// In each session.
    pub per_second: u32,
    pub deltas: usize,
}

/// A server that sends stamped frames to all that are connected, on core 0.
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
