//! What a program writes to its stderr: the end of it, for when something goes wrong.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The end of a text that may be long, and that somebody is still writing.
#[derive(Clone)]
pub struct StderrTail {
    limit: usize,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// In all.
    written: u64,
}

impl StderrTail {
    pub fn new(limit: usize) -> Self {
        Self { limit, kept: Arc::default() }
    }

    /// Takes in all that comes.
    pub async fn listen(self, mut pipe: impl AsyncRead + Unpin) {
        let mut piece = vec![0; 4096];
        while let Ok(n @ 1..) = pipe.read(&mut piece).await {
            self.push(&piece[..n]);
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend_from_slice(bytes);
        kept.written += bytes.len() as u64;
        let surplus = kept.bytes.len().saturating_sub(self.limit);
        kept.bytes.drain(..surplus);
    }

    pub fn get(&self) -> String {
        self.since(0)
    }

    /// How much has been written by now.
    pub fn written(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).written
    }

    /// What was written after that, as far as it is kept.
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
    async fn the_end_is_kept_and_what_came_after_a_moment_is_known() {
        let words = StderrTail::new(10);
        words.clone().listen(&b"0123456789abcdef"[..]).await;
        assert_eq!((words.get().as_str(), words.written()), ("6789abcdef", 16));
        assert_eq!((words.since(14).as_str(), words.since(16).as_str()), ("ef", ""));
        assert_eq!(words.since(3), words.get(), "what is gone is gone");
    }
}
