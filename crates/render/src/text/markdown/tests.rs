//! Properties of streamed Markdown, on hard and on random documents.

mod documents;
mod examples;
mod library;
mod safety;

use proptest::prelude::*;

use super::{Stream, closed, html, open};
use crate::Op;
use crate::testing::dom::{Node, element};
use documents::{DOCUMENTS, long_answer};

/// A page that shows a text while it streams in.
struct Page {
    stream: Stream,
    dom: Node,
}

impl Page {
    fn new() -> Self {
        Self { stream: Stream::new("p"), dom: element("p", "") }
    }

    fn push(&mut self, delta: &str) -> Vec<Op> {
        let ops = self.stream.push(delta);
        ops.iter().for_each(|op| self.dom.apply(op));
        ops
    }

    fn close(mut self, text: &str) -> (Node, Vec<Op>) {
        let ops = self.stream.close(text);
        ops.iter().for_each(|op| self.dom.apply(op));
        (self.dom, ops)
    }
}

fn shown_open(text: &str) -> Node {
    element("p", &html(&open(text, "p")))
}

fn shown_closed(text: &str) -> Node {
    element("p", &html(&closed(text, "p")))
}

fn cuts(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()])
}

/// Checks that every split of the text shows the same as the text so far, and in the end as the whole.
fn check_cuts(text: &str) {
    for cut in cuts(text) {
        let mut page = Page::new();
        page.push(&text[..cut]);
        assert_eq!(page.dom, shown_open(&text[..cut]), "{:?}", &text[..cut]);
        page.push(&text[cut..]);
        assert_eq!(page.dom, shown_open(text), "{:?} + {:?}", &text[..cut], &text[cut..]);
    }
    check_chunks(text, 1);
}

/// Checks a split into pieces of `size` characters.
fn check_chunks(text: &str, size: usize) {
    let mut page = Page::new();
    let ends: Vec<_> = cuts(text).skip(1).collect();
    let mut from = 0;
    for (n, end) in ends.iter().copied().enumerate() {
        if (n + 1) % size == 0 || end == text.len() {
            page.push(&text[from..end]);
            from = end;
            assert_eq!(page.dom, shown_open(&text[..end]), "{:?} by {size}", &text[..end]);
        }
    }
    assert_eq!(page.close(text).0, shown_closed(text), "{text:?} closed");
}

/// Returns the node without highlighting.
fn without_highlighting(node: &Node) -> Node {
    match node {
        Node::Element { name, attributes, .. } if name == "code" => Node::Element {
            name: name.clone(),
            attributes: attributes.clone(),
            children: Some(node.text())
                .filter(|it| !it.is_empty())
                .map(Node::Text)
                .into_iter()
                .collect(),
        },
        Node::Element { name, attributes, children } => Node::Element {
            name: name.clone(),
            attributes: attributes.clone(),
            children: children.iter().map(without_highlighting).collect(),
        },
        text => text.clone(),
    }
}

/// Checks that closing a complete text changes nothing, unless it has definitions.
fn check_closing(text: &str) {
    if library::has_definitions(text) {
        return;
    }
    let complete = format!("{text}\n");
    let (open, closed) = (shown_open(&complete), shown_closed(&complete));
    assert_eq!(without_highlighting(&open), without_highlighting(&closed), "{text:?}");
}

fn check_all(text: &str) {
    check_cuts(text);
    check_closing(text);
    library::check(text);
    safety::check(text);
}

#[test]
fn every_split_of_every_document_shows_the_same() {
    assert!(DOCUMENTS.len() >= 40);
    let mut n_cuts = 0;
    for text in DOCUMENTS {
        check_cuts(text);
        for size in 1..4 {
            check_chunks(&text.replace('\n', "\r\n"), size);
        }
        n_cuts += text.chars().count();
    }
    assert!(n_cuts > 3500, "only {n_cuts} cuts");
}

#[test]
fn closing_changes_nothing_without_definitions() {
    for text in DOCUMENTS {
        for cut in cuts(text) {
            check_closing(&text[..cut]);
        }
    }
}

#[test]
fn a_closed_text_matches_the_library() {
    for text in DOCUMENTS {
        for cut in cuts(text) {
            library::check(&text[..cut]);
        }
    }
}

/// Generates meaningful lines in any order with any indentation.
fn lines() -> impl Strategy<Value = String> {
    let indent = prop::sample::select(vec![
        "", "", "", " ", "  ", "   ", "    ", "\t", "> ", ">", "- ", "1. ",
    ]);
    let word = prop::sample::select(documents::WORDS.to_vec());
    let line = (indent.clone(), indent, prop::collection::vec(word, 0..4))
        .prop_map(|(a, b, words)| format!("{a}{b}{}", words.join(" ")));
    let end = prop::sample::select(vec!["\n", "\n", "\n\n", "\n \n", ""]);
    prop::collection::vec((line, end).prop_map(|(line, end)| line + end), 1..9)
        .prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_lines_stream_like_complete_text(text in lines()) {
        check_all(&text);
    }

    #[test]
    fn random_marks_stream_like_complete_text(text in "[-*_`~#>|\\[\\]()!<&:=+1. \t\na😀\u{200b}]{0,40}") {
        check_all(&text);
    }

    #[test]
    fn random_chunks_show_the_same(text in lines(), size in 2_usize..9) {
        check_chunks(&text, size);
    }
}

#[test]
fn a_block_that_is_too_long_is_plain_until_it_closes() {
    let words = "with *many* words in it ".repeat(6);
    let item = "- one\n- two *and*\n  ".to_owned() + &format!("{words}\n  more ").repeat(130);
    let quote = format!("> a quote {words}\n").repeat(130);
    let fence = format!("```rust\n{}```\nafter\n", "let a = 1;\n".repeat(1600));
    for (text, is_unparsed) in [(item, true), (quote, true), (fence, false)] {
        check_chunks(&text, text.len() / 3);
        assert_eq!(html(&open(&text, "p")).contains("\"unparsed\""), is_unparsed);
        assert!(!html(&closed(&text, "p")).contains("\"unparsed\""));
        let mut stream = Stream::new("p");
        for piece in text.as_bytes().chunks(64) {
            stream.push(std::str::from_utf8(piece).unwrap());
        }
        assert!(stream.n_parsed() < 8 << 20, "parsed {}", stream.n_parsed());
    }
}

/// Items and rows are sealed individually.
#[test]
fn long_lists_and_tables_cost_the_same_per_line() {
    let item = |n: usize| format!("- item {n} with *some* `code`\n  - nested\n");
    let loose = |n: usize| format!("{n}. item {n}\n\n   more of it\n\n");
    let row = |n: usize| format!("| {n} | **cell** | last |\n");
    let lists = [item, loose].map(|line| (1..1000).map(line).collect::<String>());
    let table =
        "| a | b | c |\n|---|---|---|\n".to_owned() + &(1..1000).map(row).collect::<String>();
    for text in lists.iter().chain([&table]) {
        let mut stream = Stream::new("p");
        for line in text.split_inclusive('\n') {
            stream.push(line);
        }
        let parsed = stream.n_parsed() / text.len();
        assert!(parsed <= 4, "parsed {parsed} times its length: {}", &text[..40]);
        assert_eq!(html(stream.blocks()), html(&closed(text, "p")));
    }
}

#[test]
fn work_does_not_grow_with_the_length_of_the_text() {
    let text = long_answer(200 << 10);
    let mut stream = Stream::new("p");
    let (mut n_sent, mut from) = (0, 0);
    for end in cuts(&text).skip(4).step_by(4).chain([text.len()]) {
        for op in stream.push(&text[from..end]) {
            n_sent += match op {
                Op::Put { html, .. } | Op::Add { html, .. } | Op::Before { html, .. } => html.len(),
                Op::Text { text, .. } => text.len(),
                Op::Drop { .. } | Op::Attr { .. } | Op::Move { .. } => 0,
            };
        }
        from = end;
    }
    let (parsed, sent) = (stream.n_parsed() / text.len(), n_sent / text.len());
    assert!(parsed <= 16, "parsed {parsed} times its length");
    assert!(sent <= 12, "sent {sent} times its length");
}

/// Longer than the parsed maximum, with every split.
#[test]
fn a_very_long_paragraph_is_plain_text_while_it_is_open() {
    let text = "word ".repeat(4 << 10);
    for at in [1, 16 << 10, (16 << 10) + 1, text.len() - 1] {
        let mut stream = Stream::new("p");
        stream.push(&text[..at]);
        stream.push(&text[at..]);
        assert_eq!(html(stream.blocks()), html(&open(&text, "p")), "cut at {at}");
    }
}
