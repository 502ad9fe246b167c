//! A program at a terminal, and somebody who reads it and types.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Ends its process when dropped.
pub(crate) struct Terminal {
    child: Child,
    screen: File,
    /// All that was shown.
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
        // The command holds its ends open too, and would keep the terminal alive.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child, screen: File::from(ours), shown: String::new() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads until these words have come after what was looked for before; gives what came up to
    /// their end.
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

    /// Reads to the end; gives the exit code.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        let code = self.child.wait().unwrap().code();
        (code, std::mem::take(&mut self.shown))
    }

    /// False at the end: a terminal that nobody writes to any more says so by an error.
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
