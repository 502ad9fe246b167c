//! What somebody types, line by line.

use std::io::BufRead;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

/// Lines that may wait to be read.
const LINES: usize = 16;

pub(super) struct Keyboard {
    lines: mpsc::Receiver<String>,
}

impl Keyboard {
    /// Reads on a thread of its own, which nobody waits for: reading a terminal cannot be broken off.
    pub(super) fn open() -> Self {
        let (send, lines) = mpsc::channel(LINES);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if send.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    /// What was typed before a question was there is no answer to it.
    pub(super) fn forget(&mut self) {
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        while self.lines.try_recv().is_ok() {}
    }

    /// None when nothing more can come.
    pub(super) async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
