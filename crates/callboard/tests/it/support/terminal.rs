//! A program in a terminal, and the input and output of its user.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A program in a pseudo-terminal, which is killed when dropped.
pub(crate) struct Terminal {
    child: Child,
    screen: File,
    /// All output so far.
    pub(crate) shown: String,
}

impl Terminal {
    pub(crate) fn start(command: &mut Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs =
            || -> OwnedFd { open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap() };
        command
            .stdin(Stdio::from(theirs()))
            .stdout(Stdio::from(theirs()))
            .stderr(Stdio::from(theirs()))
            .env_remove("NO_COLOR");
        let child = command.spawn().unwrap();
        // The command would otherwise keep its ends open, and with them the terminal.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child, screen: File::from(ours), shown: String::new() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads until these words appear in the new output, and returns the new output.
    pub(crate) fn until(&mut self, words: &str) -> String {
        let from = self.shown.len();
        while !self.shown[from..].contains(words) {
            assert!(self.read(), "never shown: {words}\n{}", self.shown);
        }
        self.shown[from..].to_owned()
    }

    pub(crate) fn type_in(&mut self, words: &str) {
        self.screen.write_all(words.as_bytes()).unwrap();
    }

    /// Reads to the end. Returns the exit code and the output.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        let code = self.child.wait().unwrap().code();
        (code, std::mem::take(&mut self.shown))
    }

    /// Returns false at the end, which a terminal without writers reports as an error.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        let n = self.screen.read(&mut piece).unwrap_or(0);
        self.shown += &String::from_utf8_lossy(&piece[..n]);
        n > 0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
