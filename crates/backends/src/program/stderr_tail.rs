//! The end of a program's stderr, for error messages.
//!
//! Programs also log to stderr, in colours: only the last lines are kept, without escape sequences.

use std::iter::Peekable;
use std::str::Chars;

use crate::{Ending, Exit};

const MAX_LINES: usize = 10;
const MAX_BYTES: usize = 1024;
const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

impl Ending {
    /// Appends the last lines of the program's stderr to the error of a failed run. Does nothing if
    /// the run has no error.
    pub fn append_stderr(&mut self, stderr: &str) {
        let words = stderr_tail(stderr);
        if let Some(error) = self.error.as_mut().filter(|_| !words.is_empty()) {
            error.message = format!("{} It wrote: {words}", error.message);
        }
    }
}

/// Returns the last lines of a program's stderr that have text, without escape sequences; empty if
/// there are none.
fn stderr_tail(stderr: &str) -> String {
    let plain = plain(stderr);
    let lines: Vec<&str> = plain.lines().map(str::trim_end).filter(|it| !it.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(MAX_LINES)..].join("\n");
    let cut = last.ceil_char_boundary(last.len().saturating_sub(MAX_BYTES));
    if cut == 0 { last.trim().to_owned() } else { format!("…{}", last[cut..].trim()) }
}

impl Exit {
    /// Returns the last lines of the process's stderr that have text; empty if there are none.
    pub(crate) fn stderr_tail(&self) -> String {
        stderr_tail(&self.stderr)
    }

    pub(crate) fn how(&self) -> String {
        match self.code {
            Some(code) => format!("exit code {code}"),
            None => "ended by a signal".to_owned(),
        }
    }
}

/// Removes terminal escape sequences and control characters from a text.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ESCAPE => skip_sequence(&mut letters),
            '\r' if letters.peek() != Some(&'\n') => plain.push('\n'),
            '\n' | '\t' => plain.push(letter),
            letter if letter.is_control() => (),
            letter => plain.push(letter),
        }
    }
    plain
}

/// Skips a terminal escape sequence after its `ESC`: `[ ... letter`, `] ... BEL`, `] ... ESC \`, or
/// one character.
fn skip_sequence(letters: &mut Peekable<Chars<'_>>) {
    match letters.next() {
        Some('[') => {
            let _ = letters.find(|it| ('@'..='~').contains(it));
        }
        Some(']') => {
            let end = letters.find(|it| [BELL, ESCAPE].contains(it));
            if end == Some(ESCAPE) {
                letters.next_if_eq(&'\\');
            }
        }
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stderr_tail(stderr: &str) -> String {
        Exit { code: None, stderr: stderr.to_owned() }.stderr_tail()
    }

    #[test]
    fn escape_sequences_are_removed() {
        let coloured = "\u{1b}[2m2026\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m \u{1b}]8;;http://a\u{7}link\u{1b}]8;;\u{1b}\\ end";
        assert_eq!(stderr_tail(coloured), "2026 ERROR link end");
        for cut in (0..=coloured.len()).filter(|it| coloured.is_char_boundary(*it)) {
            let words = stderr_tail(&coloured[..cut]);
            assert!(!words.contains(ESCAPE), "{words:?}");
            assert!("2026 ERROR link end".starts_with(&words), "{words:?}");
        }
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        for (stderr, expected) in
            [("", ""), (" \n\n", ""), ("one\n", "one"), ("a\r\nb\rc", "a\nb\nc")]
        {
            assert_eq!(stderr_tail(stderr), expected, "{stderr:?}");
        }
        let many: Vec<String> = (0..100).map(|it| it.to_string()).collect();
        assert_eq!(stderr_tail(&many.join("\n\n")), many[90..].join("\n"));
        for n_letters in [MAX_BYTES / 2, MAX_BYTES / 2 + 1, 4 * MAX_BYTES] {
            let words = stderr_tail(&"ä".repeat(n_letters));
            assert!(words.len() <= MAX_BYTES + '…'.len_utf8() && words.ends_with('ä'));
            assert_eq!(words.starts_with('…'), n_letters > MAX_BYTES / 2);
        }
    }
}
