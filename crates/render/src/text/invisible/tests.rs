//! Every character of Unicode is visible or written out.

use std::collections::BTreeSet;

use unicode_general_category::{GeneralCategory, get_general_category};

use super::*;
use crate::testing::dom::element;

fn scalars() -> impl Iterator<Item = char> {
    (0..=u32::from(char::MAX)).filter_map(char::from_u32)
}

/// Returns the text of the parsed HTML, as a browser shows it.
fn shown(text: &str) -> String {
    element("code", &html! { code { (marked(text)) } }.into_string()).text()
}

#[test]
fn every_character_is_shown_or_written_out() {
    for letter in scalars() {
        let text = format!("a{letter}b");
        let expected = match letter {
            '\n' | '\t' => text.clone(),
            it if is_invisible(it) => format!("aU+{:04X}b", u32::from(it)),
            _ => text.clone(),
        };
        // Parsing each of a million is slow; plain ones are covered by the blocks below.
        if is_invisible(letter) || letter.is_ascii() {
            assert_eq!(shown(&text), expected, "{letter:?}");
        }
    }
    let plain: String = scalars().filter(|it| !is_invisible(*it)).collect();
    assert_eq!(shown(&plain), plain);
}

/// An independent list, by Unicode category and by known use.
#[test]
fn invisible_characters_by_category() {
    for letter in scalars() {
        use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator, SpaceSeparator};
        let is_unseen = matches!(
            get_general_category(letter),
            Control | Format | LineSeparator | ParagraphSeparator | SpaceSeparator
        );
        if letter != ' ' && (is_unseen || letter.is_whitespace() || letter.is_control()) {
            assert!(is_invisible(letter), "{letter:?}");
        }
        if letter.is_ascii_graphic() {
            assert!(!is_invisible(letter), "{letter:?}");
        }
    }
    let known = "\u{0}\u{7}\u{8}\u{b}\u{c}\r\u{1b}\u{7f}\u{85}\u{a0}\u{ad}\u{61c}\u{1680}\u{2000}\u{200a}\u{200b}\u{200c}\
                 \u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{202f}\u{205f}\u{2060}\u{2066}\u{2069}\u{3000}\u{feff}\
                 \u{fff9}\u{115f}\u{3164}\u{ffa0}\u{2800}\u{fe0f}\u{e0001}\u{e0041}\u{e01ef}\u{1d173}";
    assert!(known.chars().all(is_invisible));
    let seen = "abc;'\"\\~äßЖ中あאب😀\u{301}";
    let hidden: BTreeSet<char> = seen.chars().filter(|it| is_invisible(*it)).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn a_reversed_command_is_shown_in_logical_order() {
    let command = "echo hello \u{202e};'~ fr- mr' dne\u{202c}";
    assert_eq!(shown(command), "echo hello U+202E;'~ fr- mr' dneU+202C");
    assert_eq!(shown("npm test\u{a0}"), "npm testU+00A0");
}
