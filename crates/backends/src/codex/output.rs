//! The data about a command's output that is needed to compare it with Codex's final report: its beginning,
//! its length and a checksum.

/// Maximum number of bytes of a command's output that are kept for comparison.
const KEPT: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Output {
    beginning: String,
    bytes: usize,
    sum: Sum,
}

impl Output {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, delta: &str) {
        if self.beginning.len() == self.bytes {
            let room = KEPT.saturating_sub(self.bytes);
            self.beginning.push_str(&delta[..delta.floor_char_boundary(room)]);
        }
        self.bytes += delta.len();
        self.sum.add(delta);
    }

    /// Replaces the output of a command. Returns the offset in bytes of the first difference from
    /// the output so far, at a UTF-8 boundary; `None` if there is no difference.
    pub(super) fn replace(&mut self, whole: &str) -> Option<usize> {
        let mut sum = Sum::default();
        let begins_so = whole.get(..self.bytes).is_some_and(|it| {
            sum.add(it);
            sum == self.sum
        });
        let same = match begins_so {
            true => self.bytes,
            false => shared_start(&self.beginning, whole),
        };
        let is_news = same < whole.len() || self.bytes > whole.len();
        *self = Self::default();
        self.push(whole);
        is_news.then_some(same)
    }
}

/// FNV-1a hash of a command's output. Deliberate collisions do no harm here.
#[derive(Debug, PartialEq)]
struct Sum(u128);

impl Default for Sum {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Sum {
    fn add(&mut self, text: &str) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        self.0 = text.bytes().fold(self.0, |sum, it| (sum ^ u128::from(it)).wrapping_mul(PRIME));
    }
}

/// Returns the number of bytes that two texts have in common at their start, up to a UTF-8 boundary
/// of `b`.
fn shared_start(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=same).rev().find(|it| b.is_char_boundary(*it)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies every delta at its offset.
    fn read(pieces: &[&str], whole: &str) -> String {
        let (mut output, mut read) = (Output::default(), String::new());
        for piece in pieces {
            output.push(piece);
            read.push_str(piece);
        }
        if let Some(from) = output.replace(whole) {
            read.truncate(from);
            read.push_str(&whole[from..]);
        }
        assert_eq!(output.replace(whole), None, "the same output is no difference");
        read
    }

    #[test]
    fn the_final_output_replaces_the_streamed_output() {
        let long = "täglich ".repeat(KEPT / 4);
        let (cut, _) = long.split_at(long.floor_char_boundary(KEPT + 100));
        let other = format!("{cut}anders");
        let texts = ["", "a", "ab", "ba", "ä", &long, cut, &other];
        for whole in texts {
            for came in texts {
                let middle = came.floor_char_boundary(came.len() / 2);
                assert_eq!(read(&[&came[..middle], &came[middle..]], whole), whole);
            }
        }
    }

    #[test]
    fn kept_output_is_bounded() {
        let mut output = Output::default();
        for _ in 0..1000 {
            output.push(&"ä".repeat(1000));
        }
        assert!(output.beginning.len() <= KEPT && output.bytes == 2_000_000);
    }
}
