//! A body depends on its text, not on the deltas in which the text arrived.

use proptest::prelude::*;
use transcript::Body;

const EDGE: usize = 16;

fn body_of(pieces: &[&str]) -> Body {
    let mut body = Body::keeping(EDGE);
    pieces.iter().for_each(|piece| body.push(piece));
    body
}

#[test]
fn every_split_gives_the_same_body() {
    let text = "zero\nöne two\n\nthree ✓ four five six seven ✓✓ eight\nnine";
    for cut in (0..=text.len()).filter(|&it| text.is_char_boundary(it)) {
        let whole = body_of(&[text]);
        let in_two = body_of(&[&text[..cut], &text[cut..]]);
        assert_eq!(whole, in_two, "cut at {cut}");
    }
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    assert_eq!(body_of(&[text]), body_of(&letters));
}

#[test]
fn short_texts_are_kept_whole_and_long_ones_counted() {
    assert_eq!(body_of(&["a\nb"]).whole().as_deref(), Some("a\nb"));
    assert_eq!(body_of(&["a\nb"]).lines(), 2);
    assert_eq!(body_of(&["a\nb\n"]).lines(), 2);
    assert_eq!(body_of(&[]).lines(), 0);

    let long = body_of(&["0123456789abcdef", "--------------------------", "fedcba9876543210"]);
    assert_eq!((long.head(), long.tail()), ("0123456789abcdef", "fedcba9876543210"));
    assert_eq!((long.whole(), long.bytes(), long.omitted()), (None, 58, 26));
}

proptest! {
    #[test]
    fn a_replacement_equals_writing_the_result(text in "[aé\n]{0,60}", from in 0..70usize, more in "[bü\n]{0,30}") {
        let mut cut = from.min(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let mut body = body_of(&[&text]);
        body.replace_from(cut as u64, &more);

        let expected = format!("{}{more}", &text[..cut]);
        prop_assert_eq!(body.bytes(), expected.len() as u64);
        if expected.len() <= EDGE {
            prop_assert_eq!(body.whole(), Some(expected.clone()));
        }
        prop_assert!(expected.starts_with(body.head()) && expected.ends_with(body.tail()));
    }

    #[test]
    fn a_replacement_does_not_depend_on_deltas(text in "[aé\n]{0,60}", pieces in 1..7usize, from in 0..70u64) {
        let mut whole = body_of(&[&text]);
        let letters: Vec<char> = text.chars().collect();
        let chunks: Vec<String> = letters.chunks(pieces).map(String::from_iter).collect();
        let mut in_deltas = body_of(&chunks.iter().map(String::as_str).collect::<Vec<_>>());
        whole.replace_from(from, "new");
        in_deltas.replace_from(from, "new");
        prop_assert_eq!(whole, in_deltas);
    }
}
