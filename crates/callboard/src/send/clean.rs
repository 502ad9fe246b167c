//! Sanitises output of agents and commands for a terminal.
//!
//! Control sequences could move the cursor, overwrite earlier output, change the title, or make the
//! terminal send input. Only printable characters, line breaks and tabs pass. Colours do not,
//! because text in the background colour is invisible.

use render::is_invisible;

/// Sanitiser for streamed output on a terminal. Escape sequences may span chunks of the stream.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    state: State,
    /// Whether the last character was a carriage return, which may precede a line break.
    returned: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Text,
    /// After the escape character (ESC).
    Escape,
    /// Inside a control sequence: after `ESC [`, up to the final letter.
    Sequence,
    /// Inside a string sequence such as a title or a link, up to BEL or ESC. A line break ends it
    /// too, so that an unterminated sequence hides no more than its line.
    Hidden,
}

impl Cleaner {
    pub(super) fn feed(&mut self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        for letter in text.chars() {
            self.take(letter, &mut clean);
        }
        clean
    }

    fn take(&mut self, letter: char, clean: &mut String) {
        self.state = match (self.state, letter) {
            (_, '\x1b') => State::Escape,
            (State::Escape, '[') => State::Sequence,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Hidden,
            (State::Escape, ' '..='/') => State::Escape,
            (State::Escape, '0'..='~') => State::Text,
            (State::Sequence, ' '..='?') => State::Sequence,
            (State::Sequence, '@'..='~') | (State::Hidden, '\x07') => State::Text,
            (State::Hidden, it) if it != '\n' => State::Hidden,
            (_, other) => {
                self.show(other, clean);
                State::Text
            }
        };
    }

    fn show(&mut self, letter: char, clean: &mut String) {
        let returned = std::mem::replace(&mut self.returned, letter == '\r');
        if returned && letter != '\n' {
            // A carriage return alone would overwrite the line.
            clean.push('\n');
        }
        if matches!(letter, '\n' | '\t') || !needs_escape(letter) {
            clean.push(letter);
        }
    }
}

/// Returns a text with invisible characters escaped, except line breaks and tabs. For complete
/// texts that a person decides about.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            it if is_invisible(it) => shown.extend(it.escape_unicode()),
            it => shown.push(it),
        }
    }
    shown
}

/// Returns a text on one line, with invisible characters escaped and white space collapsed.
pub(super) fn visible_line(text: &str) -> String {
    let shown = visible(text);
    shown.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a character must not reach the terminal: a control character, or one that is
/// invisible or changes the text direction.
fn needs_escape(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    //! Sanitised output does not depend on how the stream is divided.

    use super::*;

    const STREAMS: [(&str, &str); 18] = [
        ("plain\ttext\nä😀\n", "plain\ttext\nä😀\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[H\x1b[?25lover", "over"),
        ("\x1b[38;2;1;2;3mcolour", "colour"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("\x1b_app\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\after", "after"),
        ("\x1b]never ends\nnext line", "\nnext line"),
        ("\x1bcreset\x1b(Bset\x1b7save", "resetsetsave"),
        ("10%\r20%\r\nend\r\n", "10%\n20%\nend\n"),
        ("a\x08b\x07c\x00d\x7fe\u{9b}31mf", "abcde31mf"),
        ("\u{202e}right\u{2066}left\u{feff}", "rightleft"),
        ("\x1b[3\nbroken", "\nbroken"),
        ("\x1b\x1b[1mtwice", "twice"),
        ("\x1bäfter", "äfter"),
        ("family \u{1f468}\u{200d}\u{1f469}", "family \u{1f468}\u{200d}\u{1f469}"),
        ("", ""),
    ];

    #[test]
    fn chunk_borders_do_not_change_the_output() {
        for (stream, expected) in STREAMS {
            let cuts: Vec<usize> =
                (0..=stream.len()).filter(|it| stream.is_char_boundary(*it)).collect();
            for cut in cuts {
                let mut cleaner = Cleaner::default();
                let clean = cleaner.feed(&stream[..cut]) + &cleaner.feed(&stream[cut..]);
                assert_eq!(clean, expected, "{stream:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn no_pair_of_characters_passes_a_control() {
        let letters: Vec<char> = (0..=0xff).filter_map(char::from_u32).collect();
        for first in &letters {
            for second in &letters {
                let mut cleaner = Cleaner::default();
                let clean = cleaner.feed(&format!("\x1b{first}{second}x{first}{second}"));
                let is_harmless = |it: char| !it.is_control() || matches!(it, '\n' | '\t');
                assert!(clean.chars().all(is_harmless), "{first:?} {second:?}: {clean:?}");
            }
        }
    }

    #[test]
    fn text_to_decide_about_hides_nothing() {
        assert_eq!(visible("ls \x1b]; rm -r ~"), "ls \\u{1b}]; rm -r ~");
        assert_eq!(visible("a\rb\u{202e}c\nd"), "a\\u{d}b\\u{202e}c\nd");
        assert_eq!(visible_line(" a\n\n b\tc "), "a b c");
        assert_eq!(visible("npm test\u{a0}\u{200d}\u{ad}"), "npm test\\u{a0}\\u{200d}\\u{ad}");
    }

    #[test]
    fn no_invisible_character_is_printed_in_a_question() {
        for letter in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let shown = visible(&format!("a{letter}b"));
            let is_plain = |it: char| matches!(it, '\n' | '\t') || !is_invisible(it);
            assert!(shown.chars().all(is_plain), "{letter:?}: {shown:?}");
        }
    }
}
