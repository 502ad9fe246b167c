//! Streamed output shows the same as complete output, and no text escapes from its line.

use proptest::prelude::*;

use super::{MAX_CELLS, Output, html, stylesheet};
use crate::Op;
use crate::testing::dom::{Node, element};

const OUTPUTS: &[&str] = &[
    "",
    "plain\nlines\n\nand a last one",
    "\u{1b}[31mred\u{1b}[0m and \u{1b}[1;4;38;5;208mmore\u{1b}[m\nnext \u{1b}[7minverse\u{1b}[27m \u{1b}[9mx\u{1b}[29m",
    "\u{1b}[38;2;255;100;0mtrue\u{1b}[48:2::0:0:255mcolour\u{1b}[48;5;17m\u{1b}[39;49mend",
    "10%\r20%\r100%\ndone\r\nwindows\r\n",
    "long line\rshort\u{1b}[K\nabc\u{8}\u{8}X\nab\u{1b}[2Kc\u{1b}[1K\u{1b}[5Gd\u{1b}[2D\u{1b}[Ce",
    "\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\ \u{1b}]0;title\u{7}after",
    "\u{1b}[2J\u{1b}[H\u{1b}[?25l\u{1b}[10;10Htext\u{1b}[A\u{1b}(B\u{1b}P1$r0m\u{1b}\\x",
    "<script>alert(1)</script>&amp;\"'\u{1b}[1m<b>\u{1b}[0m",
    "日本語 🎉 e\u{301}\u{200b}\ttab\u{7}\u{0}\u{7f}\u{9b}31mx\u{85}y",
    "\u{1b}[999999999G.\u{1b}[65535Cx\u{1b}[38;5;999m\u{1b}[38m\u{1b}[38;2;1;2mz",
    "a\n\u{1b}[Kb\rc\n\r\n\r",
    "gone\r\u{1b}[K",
];

fn shown(text: &str) -> Node {
    element("o", &html(text, "o").into_string())
}

fn push(output: &mut Output, page: &mut Node, delta: &str) -> Vec<Op> {
    let ops = output.push(delta);
    ops.iter().for_each(|op| page.apply(op));
    ops
}

fn check_cuts(text: &str) {
    let (mut each, mut page) = (Output::new("o"), element("o", ""));
    for (at, it) in text.char_indices() {
        let (mut output, mut cut) = (Output::new("o"), element("o", ""));
        push(&mut output, &mut cut, &text[..at]);
        push(&mut output, &mut cut, &text[at..]);
        assert_eq!(cut, shown(text), "{:?} + {:?}", &text[..at], &text[at..]);

        let end = at + it.len_utf8();
        push(&mut each, &mut page, &text[at..end]);
        assert_eq!(page, shown(&text[..end]), "{:?}", &text[..end]);
    }
}

/// Checks that only our spans and classes occur.
fn check_safe(text: &str) {
    for node in shown(text).elements().iter().skip(1) {
        assert_eq!(node.name(), "span");
        for class in node.attribute("class").unwrap_or_default().split_whitespace() {
            assert!(stylesheet().contains(&format!(".{class} {{")), "{class}");
        }
    }
}

#[test]
fn every_split_of_every_output_shows_the_same() {
    for text in OUTPUTS {
        check_cuts(text);
        check_safe(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_output_streams_like_complete_output(text in "([a-z<&é😀]|[\n\r\t\u{8}\u{7}\u{1b}]|\u{1b}\\[[0-9;:]{0,6}[mKGCDAJ]|\u{1b}\\]8;;x\u{7}){0,40}") {
        check_cuts(&text);
        check_safe(&text);
    }

    #[test]
    fn output_without_controls_is_unchanged(text in "[^\\x00-\\x1f\\x7f-\\x9f]{0,60}(\n[a-z<>&]{0,9}){0,4}") {
        prop_assert_eq!(shown(&text).text(), text);
    }
}

#[test]
fn control_characters_work_as_in_a_terminal() {
    let text = |it: &str| shown(it).text();
    assert_eq!(text("10%\r20%\r100%\ndone"), "100%\ndone");
    assert_eq!(text("long line\rshort"), "shortline");
    assert_eq!(text("long line\rshort\u{1b}[K"), "short");
    assert_eq!(text("abc\u{8}\u{8}X"), "aXc");
    assert_eq!(text("ab\u{1b}[5Gc"), "ab  c");
    assert_eq!(text("a\r\nb\r\n"), "a\nb\n");
    assert_eq!(text("\u{1b}]8;;https://x\u{7}link\u{1b}]8;;\u{7}"), "link");
    assert_eq!(text("gone\r\u{1b}[K"), "");
}

#[test]
fn plain_output_grows_by_text_and_colours_are_classes() {
    let mut output = Output::new("o");
    let add = |html: &str| Op::Add { parent: "o".to_owned(), html: html.to_owned() };
    assert_eq!(output.push("hel"), [add("<span id=\"o-0\">hel</span>")]);
    let text = Op::Text { id: "o-0".to_owned(), text: "lo <\n".to_owned() };
    assert_eq!(output.push("lo <\n"), [text]);
    let red = "<span id=\"o-1\"><span class=\"ansi-bold ansi-fg-1\">red</span></span>";
    assert_eq!(output.push("\u{1b}[1;31mred"), [add(red)]);
    let grey = html("\u{1b}[38;2;128;128;128;7mx", "o").into_string();
    assert_eq!(grey, "<span id=\"o-0\"><span class=\"ansi-inverse ansi-bg-244\">x</span></span>");
}

#[test]
fn hostile_output_is_bounded() {
    let moves = html(&"\u{1b}[65535Gx\r".repeat(100), "o").into_string();
    assert!(moves.len() < 1000, "{}", moves.len());
    let long = shown(&"x".repeat(3 * MAX_CELLS));
    assert_eq!(long.children().len(), 3);
    assert_eq!(long.text().len(), 3 * MAX_CELLS);
}
