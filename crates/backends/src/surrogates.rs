//! Surrogate pairs that were cut in two: JSON writes characters outside the basic plane as two escapes, and a
//! service or a program that counts in UTF-16 may send the first half in one event and the second in the
//! next.

use std::borrow::Cow;

/// Repairs UTF-16 surrogate pairs that are split between JSON events. Keeps the first half at the
/// end of an event for the next event.
#[derive(Debug, Default)]
pub(crate) struct Surrogates {
    first_half: Option<String>,
}

const ESCAPE: usize = r"\uXXXX".len();
const UNKNOWN: &str = r"\ufffd";

impl Surrogates {
    /// Returns a JSON event without lone surrogates. A first half at the end of a string is kept
    /// for the next event; any other lone half becomes U+FFFD.
    pub(crate) fn repair<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        self.repair_to_end(json, false)
    }

    /// Repairs the lone surrogates of a JSON event. `is_all`: no other event follows, so that no
    /// half is kept.
    fn repair_to_end<'a>(&mut self, json: &'a str, is_all: bool) -> Cow<'a, str> {
        let mut waiting = self.first_half.take();
        if !json.contains(r"\u") {
            return Cow::Borrowed(json);
        }
        let mut repaired = String::with_capacity(json.len() + ESCAPE);
        let mut rest = json;
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            repaired.push_str(before);
            let (half, size) = match Half::of(escape) {
                Some(half) => (half, ESCAPE),
                // A backslash and the character that it escapes.
                None => {
                    let size = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
                    repaired.push_str(&escape[..size]);
                    rest = &escape[size..];
                    continue;
                }
            };
            let (this, after) = escape.split_at(size);
            rest = after;
            match half {
                Half::First if Half::of(after) == Some(Half::Second) => {
                    repaired.push_str(this);
                    repaired.push_str(&after[..ESCAPE]);
                    rest = &after[ESCAPE..];
                }
                Half::First if after.starts_with('"') && !is_all => {
                    self.first_half = Some(this.to_owned())
                }
                Half::Second if repaired.ends_with('"') && waiting.is_some() => {
                    repaired.push_str(&waiting.take().unwrap_or_default());
                    repaired.push_str(this);
                }
                _ => repaired.push_str(UNKNOWN),
            }
        }
        repaired.push_str(rest);
        Cow::Owned(repaired)
    }
}

/// Returns the JSON text with U+FFFD in place of the escape of every lone UTF-16 surrogate.
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    Surrogates::default().repair_to_end(json, true)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

impl Half {
    /// Returns the kind of surrogate whose JSON escape the text begins with. `None` if it begins
    /// with another text.
    fn of(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(r"\u")?.get(..4)?;
        match u16::from_str_radix(digits, 16).ok()? {
            0xD800..0xDC00 => Some(Self::First),
            0xDC00..0xE000 => Some(Self::Second),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    //! A text arrives complete, wherever it is cut.

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Writes a string, which may end within a surrogate pair, as JavaScript does.
    fn written(units: &[u16]) -> String {
        let letters = char::decode_utf16(units.iter().copied()).map(|letter| match letter {
            Ok(letter) if letter.len_utf16() == 2 => {
                let mut pair = [0; 2];
                letter.encode_utf16(&mut pair);
                format!(r"\u{:04x}\u{:04X}", pair[0], pair[1])
            }
            Ok(letter) => serde_json::to_string(&letter).unwrap().trim_matches('"').to_owned(),
            Err(half) => format!(r"\u{:04x}", half.unpaired_surrogate()),
        });
        let letters: String = letters.collect();
        format!(r#"{{"a":"\\ud83d","text":"{letters}","n":1}}"#)
    }

    proptest! {
        #[test]
        fn text_cut_anywhere_arrives_whole(
            text in "[a🙂\\\\ü😀\n]{0,12}", cuts in prop::collection::vec(1..5usize, 1..24),
        ) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let (mut surrogates, mut said, mut rest) = (Surrogates::default(), String::new(), &units[..]);
            for size in cuts.iter().cycle().take(units.len()) {
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                rest = after;
                let event: Value = serde_json::from_str(&surrogates.repair(&written(piece))).unwrap();
                prop_assert_eq!(&event["a"], r"\ud83d", "an escaped backslash begins no escape");
                said.push_str(event["text"].as_str().unwrap());
            }
            prop_assert_eq!(said, text);
        }

        #[test]
        fn any_input_is_repaired_without_panic(text in r#"[\\u"dD8c0-9é🙂]{0,40}"#) {
            let mut surrogates = Surrogates::default();
            surrogates.repair(&text);
            surrogates.repair(&text);
        }
    }

    #[test]
    fn a_lone_surrogate_is_replaced() {
        let mut surrogates = Surrogates::default();
        assert_eq!(
            surrogates.repair(r#"["\udc00 a \ud800 b \ud83d"]"#),
            r#"["\ufffd a \ufffd b "]"#
        );
        assert_eq!(surrogates.repair(r#"["c"]"#), r#"["c"]"#);
        assert_eq!(surrogates.repair(r#"["\ude42"]"#), r#"["\ufffd"]"#);
    }
}
