//! Characters that are invisible or change the order in which others are read.
//!
//! Approval cards write them out, so that a command cannot look like another one.

use maud::{Markup, html};
use unicode_general_category::{GeneralCategory, get_general_category};

#[cfg(test)]
mod tests;

/// Returns whether a character is invisible or changes the reading order: control and format
/// characters, and every blank except the space. This includes line breaks and tabs.
pub fn is_invisible(letter: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator, SpaceSeparator};
    match letter {
        ' ' => false,
        it if it.is_ascii() => it.is_ascii_control(),
        it if is_blank_by_design(it) => true,
        it => matches!(
            get_general_category(it),
            Control | Format | LineSeparator | ParagraphSeparator | SpaceSeparator
        ),
    }
}

/// Returns whether fonts draw nothing for the character: joiners, fillers and variation selectors
/// (`Default_Ignorable_Code_Point`), and the empty Braille pattern.
fn is_blank_by_design(letter: char) -> bool {
    matches!(
        letter,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2065}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{13441}'..='\u{13442}'
            | '\u{1d159}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Draws text with every invisible character written out, as `U+202E`, except line breaks and tabs.
pub(crate) fn marked(text: &str) -> Markup {
    html! {
        @for piece in pieces(text) {
            @match piece {
                Piece::Plain(text) => (text),
                Piece::Invisible(letter) => span.invisible { (format!("U+{:04X}", u32::from(letter))) },
            }
        }
    }
}

enum Piece<'a> {
    Plain(&'a str),
    Invisible(char),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let is_marked = |(_, it): &(usize, char)| is_invisible(*it) && !matches!(it, '\n' | '\t');
    let mut pieces = Vec::new();
    let mut plain_from = 0;
    for (at, letter) in text.char_indices().filter(is_marked) {
        pieces.push(Piece::Plain(&text[plain_from..at]));
        pieces.push(Piece::Invisible(letter));
        plain_from = at + letter.len_utf8();
    }
    pieces.push(Piece::Plain(&text[plain_from..]));
    pieces
}
