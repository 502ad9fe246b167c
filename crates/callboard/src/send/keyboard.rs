//! Lines that the user types on standard input.

use std::io::BufRead;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

/// Maximum number of typed lines that are buffered.
const LINES: usize = 16;

pub(super) struct Keyboard {
    lines: mpsc::Receiver<String>,
}

impl Keyboard {
    /// Starts a thread that reads lines from standard input. The thread is never joined, because
    /// reading a terminal cannot be interrupted.
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

    /// Discards lines that the user typed before a question was shown.
    pub(super) fn discard_typed(&mut self) {
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        while self.lines.try_recv().is_ok() {}
    }

    /// Returns the next typed line, or `None` at the end of input.
    pub(super) async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
