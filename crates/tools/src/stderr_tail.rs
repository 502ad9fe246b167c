//! The stderr tail: the last lines that a program wrote to stderr, for error messages.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Stderr tail of a program, which is updated while the program writes to stderr.
#[derive(Clone)]
pub struct StderrTail {
    limit: usize,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Total number of bytes that the program has written to stderr.
    written: u64,
}

impl StderrTail {
    /// Returns an empty stderr tail that keeps the last `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, kept: Arc::default() }
    }

    /// Reads the stderr of a program to its end and keeps its tail.
    pub async fn listen(self, mut pipe: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 4096];
        while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
            self.push(&buffer[..n]);
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend_from_slice(bytes);
        kept.written += bytes.len() as u64;
        let surplus = kept.bytes.len().saturating_sub(self.limit);
        kept.bytes.drain(..surplus);
    }

    /// Returns the text of the stderr tail.
    pub fn get(&self) -> String {
        self.since(0)
    }

    /// Returns the number of bytes that the program has written to stderr so far.
    pub fn written(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).written
    }

    /// Returns the text that the program wrote to stderr after the first `before` bytes, as far as
    /// it is kept.
    pub fn since(&self, before: u64) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = usize::try_from(kept.written.saturating_sub(before)).unwrap_or(usize::MAX);
        let from = kept.bytes.len().saturating_sub(wanted);
        String::from_utf8_lossy(&kept.bytes[from..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::StderrTail;

    #[tokio::test]
    async fn the_end_and_the_text_since_a_position_are_kept() {
        let tail = StderrTail::new(10);
        tail.clone().listen(&b"0123456789abcdef"[..]).await;
        assert_eq!((tail.get().as_str(), tail.written()), ("6789abcdef", 16));
        assert_eq!((tail.since(14).as_str(), tail.since(16).as_str()), ("ef", ""));
        assert_eq!(tail.since(3), tail.get(), "dropped text does not return");
    }
}
