//! A shell command, read as the shell reads it: to the letter.

/// Characters with a meaning of their own in a shell, all the ways to a second command among them.
const SIGNS: &[char] = &[
    ';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '[', ']', '*', '?', '!', '#', '~', '\\',
    '"', '\'', '\n', '\r', '\0',
];

/// Characters after which another command may begin.
const SEPARATORS: &[char] = &[';', '&', '|', '\n', '(', ')', '`', '{', '}'];

/// Characters that separate words within a command. No other blank does.
const BLANKS: &[char] = &[' ', '\t'];

/// Letters, as Unicode has it, that draw nothing.
const UNSEEN_LETTERS: &[char] =
    &['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}', '\u{13441}', '\u{13442}'];

/// Whether every character is one that people see and that every shell takes for what it looks like. Any
/// other blank, control, invisible or direction-changing character makes a command one to ask about.
pub(super) fn is_plain(command: &str) -> bool {
    command.chars().all(is_plain_character)
}

pub(super) fn is_plain_character(character: char) -> bool {
    match character {
        ' ' | '\t' | '\n' => true,
        ascii if ascii.is_ascii() => ascii.is_ascii_graphic(),
        other => {
            other.is_alphanumeric() && !UNSEEN_LETTERS.contains(&other) && !has_blank_byte(other)
        }
    }
}

/// In some locales a shell takes these bytes for blanks, wherever they stand.
fn has_blank_byte(character: char) -> bool {
    character.encode_utf8(&mut [0; 4]).bytes().any(|it| matches!(it, 0x85 | 0xa0))
}

/// One command, with nothing in it that means anything to a shell but blanks between words.
pub(super) fn is_single(command: &str) -> bool {
    is_plain(command) && !command.contains(SIGNS)
}

/// The words of a single command.
pub(super) fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(BLANKS).filter(|it| !it.is_empty())
}

/// Every reading of a command that a pattern of `deny` or `ask` is tried on: the whole and each of its
/// parts; as written, with one space between words, and without the characters that are not plain.
pub(super) fn readings(command: &str) -> Vec<String> {
    let parts = command.split(SEPARATORS).map(|it| it.trim_matches(BLANKS));
    let mut readings = Vec::new();
    for part in parts.filter(|it| !it.is_empty()).chain([command]) {
        let is_blank = |it: char| !is_plain_character(it) || it.is_whitespace();
        let spaced: Vec<&str> = part.split(is_blank).filter(|it| !it.is_empty()).collect();
        let without: String = part.chars().filter(|it| is_plain_character(*it)).collect();
        let without: Vec<&str> = words(&without).collect();
        readings.extend([part.to_owned(), spaced.join(" "), without.join(" ")]);
    }
    readings
}
