//! Lexical analysis of shell commands.

/// Characters with a special meaning in a shell, including all that can start a second command.
const SIGNS: &[char] = &[
    ';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '[', ']', '*', '?', '!', '#', '~', '\\',
    '"', '\'', '\n', '\r', '\0',
];

/// Characters in a shell command line after which another command may start.
const SEPARATORS: &[char] = &[';', '&', '|', '\n', '(', ')', '`', '{', '}'];

/// The only blanks that separate words within a shell command.
const BLANKS: &[char] = &[' ', '\t'];

/// Characters that Unicode classifies as letters and fonts draw as nothing.
const INVISIBLE_LETTERS: &[char] =
    &['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}', '\u{13441}', '\u{13442}'];

/// Returns whether every character of a shell command is visible and means the same to every shell.
/// A command with another blank, control, invisible or direction-changing character needs an
/// approval.
pub(super) fn is_plain(command: &str) -> bool {
    command.chars().all(is_plain_character)
}

pub(super) fn is_plain_character(character: char) -> bool {
    match character {
        ' ' | '\t' | '\n' => true,
        ascii if ascii.is_ascii() => ascii.is_ascii_graphic(),
        other => {
            other.is_alphanumeric() && !INVISIBLE_LETTERS.contains(&other) && !has_blank_byte(other)
        }
    }
}

/// Returns whether the UTF-8 encoding of a character contains a byte that a shell takes for a blank
/// in some locales.
fn has_blank_byte(character: char) -> bool {
    character.encode_utf8(&mut [0; 4]).bytes().any(|it| matches!(it, 0x85 | 0xa0))
}

/// Returns whether a command line is a single shell command without special characters.
pub(super) fn is_single(command: &str) -> bool {
    is_plain(command) && !command.contains(SIGNS)
}

/// Splits a single shell command into its words.
pub(super) fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(BLANKS).filter(|it| !it.is_empty())
}

/// Returns all texts of a shell command that patterns of `deny` and `ask` are matched against: the
/// whole and each of its parts; as written, with one space between words, and without characters
/// that are not plain.
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
