//! Examples of the operations for a text that streams in.

use expect_test::{Expect, expect};

use super::super::{Stream, closed, html};
use crate::Op;

/// Checks the operations of each piece; the last line holds those of closing.
fn check(pieces: &[&str], expected: Expect) {
    let mut stream = Stream::new("p");
    let mut lines: Vec<_> = pieces.iter().map(|it| line(it, &stream.push(it))).collect();
    lines.push(line("end", &stream.close(&pieces.concat())));
    expected.assert_eq(&lines.concat());
}

fn line(piece: &str, ops: &[Op]) -> String {
    let ops = ops.iter().map(|op| match op {
        Op::Put { id, html } => format!("  put {id} {html:?}\n"),
        Op::Before { next, html } => format!("  before {next} {html:?}\n"),
        Op::Move { id, before } => format!("  move {id} {before:?}\n"),
        Op::Add { parent, html } => format!("  add {parent} {html:?}\n"),
        Op::Text { id, text } => format!("  text {id} {text:?}\n"),
        Op::Attr { id, name, value } => format!("  attr {id} {name} {value:?}\n"),
        Op::Drop { id } => format!("  drop {id}\n"),
    });
    format!("{piece:?}\n{}", ops.collect::<String>())
}

#[test]
fn words_grow_a_paragraph() {
    check(
        &["Hel", "lo ", "wor", "ld, **bo", "ld**", " and", "\n\nnext"],
        expect![[r#"
            "Hel"
              add p "<p id=\"p-0\" dir=\"auto\">Hel</p>"
            "lo "
              text p-0 "lo"
            "wor"
              text p-0 " wor"
            "ld, **bo"
              text p-0 "ld, **bo"
            "ld**"
              put p-0 "<p id=\"p-0\" dir=\"auto\">Hello world, <strong>bold</strong></p>"
            " and"
              text p-0 " and"
            "\n\nnext"
              add p "<p id=\"p-1\" dir=\"auto\">next</p>"
            "end"
        "#]],
    );
}

#[test]
fn a_list_grows_by_its_items() {
    check(
        &["Intro:\n-", " one\n", "- two", "\n\n- loose", "\n\nend"],
        expect![[r#"
            "Intro:\n-"
              add p "<p id=\"p-0\" dir=\"auto\">Intro:</p>"
            " one\n"
              add p "<ul id=\"p-1\" dir=\"auto\"><li id=\"p-1-0\"><p id=\"p-1-0-t1\">one</p></li></ul>"
            "- two"
              add p-1 "<li id=\"p-1-1\"><p id=\"p-1-1-t1\">two</p></li>"
            "\n\n- loose"
              add p-1 "<li id=\"p-1-2\"><p id=\"p-1-2-t1\">loose</p></li>"
            "\n\nend"
              add p "<p id=\"p-2\" dir=\"auto\">end</p>"
            "end"
        "#]],
    );
}

#[test]
fn a_fence_grows_by_text_and_is_highlighted_when_it_closes() {
    check(
        &["```rust\n", "let a", " = 1;\n", "``", "`\n", "after"],
        expect![[r##"
            "```rust\n"
              add p "<div id=\"p-0\" class=\"code-block\" dir=\"ltr\"><div class=\"code-bar\" data-language=\"rust\"><button id=\"p-0-t1-wrap\" class=\"quiet\" type=\"button\" data-action=\"wrap\" aria-label=\"Wrap lines\" title=\"Wrap lines\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-wrap\"></use></svg></button><button id=\"p-0-t1-copy\" class=\"quiet\" type=\"button\" data-action=\"copy\" data-of=\"code\" aria-label=\"Copy code\" title=\"Copy code\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-copy\"></use></svg></button></div><pre tabindex=\"0\"><code id=\"p-0-t1\" class=\"language-rust\"></code></pre></div>"
            "let a"
              text p-0-t1 "let a"
            " = 1;\n"
              text p-0-t1 " = 1;\n"
            "``"
            "`\n"
              put p-0 "<div id=\"p-0\" class=\"code-block\" dir=\"ltr\"><div class=\"code-bar\" data-language=\"rust\"><button id=\"p-0-t1-wrap\" class=\"quiet\" type=\"button\" data-action=\"wrap\" aria-label=\"Wrap lines\" title=\"Wrap lines\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-wrap\"></use></svg></button><button id=\"p-0-t1-copy\" class=\"quiet\" type=\"button\" data-action=\"copy\" data-of=\"code\" aria-label=\"Copy code\" title=\"Copy code\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-copy\"></use></svg></button></div><pre tabindex=\"0\"><code id=\"p-0-t1\" class=\"language-rust\"><span class=\"hl-keyword\">let</span> a <span class=\"hl-operator\">= </span><span class=\"hl-number\">1</span>;\n</code></pre></div>"
            "after"
              add p "<p id=\"p-1\" dir=\"auto\">after</p>"
            "end"
        "##]],
    );
}

#[test]
fn a_table_grows_by_its_rows() {
    check(
        &["| a |", "\n|--", "-|\n", "| 1 |\n", "| 2", " |\n"],
        expect![[r#"
            "| a |"
              add p "<p id=\"p-0\" dir=\"auto\">| a |</p>"
            "\n|--"
            "-|\n"
              put p-0 "<table id=\"p-0\" dir=\"auto\" tabindex=\"0\"><thead><tr><th>a</th></tr></thead><tbody id=\"p-0-body\"></tbody></table>"
            "| 1 |\n"
              add p-0-body "<tr id=\"p-0-0\"><td>1</td></tr>"
            "| 2"
              add p-0-body "<tr id=\"p-0-1\"><td>2</td></tr>"
            " |\n"
            "end"
        "#]],
    );
}

#[test]
fn definitions_take_effect_when_the_text_closes() {
    check(
        &["See [a] and[^1].\n\n", "[a]: https://e.org\n", "[^1]: A note.\n"],
        expect![[r##"
            "See [a] and[^1].\n\n"
              add p "<p id=\"p-0\" dir=\"auto\">See [a] and[^1].</p>"
            "[a]: https://e.org\n"
            "[^1]: A note.\n"
              add p "<div id=\"p-1\" dir=\"auto\" class=\"footnote-definition\"><sup class=\"footnote-definition-label\">[^1]</sup><p id=\"p-1-t1\">A note.</p></div>"
            "end"
              put p-0 "<p id=\"p-0\" dir=\"auto\">See <a href=\"https://e.org\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">a</a> and<sup class=\"footnote-reference\" id=\"p-fnref1-1\"><a href=\"#p-fn1\">1</a></sup>.</p>"
              put p-1 "<div id=\"p-1\" dir=\"auto\" class=\"footnote-definition\"><sup class=\"footnote-definition-label\" id=\"p-fn1\">1</sup><p id=\"p-1-t1\">A note.</p><a class=\"footnote-back\" href=\"#p-fnref1-1\" aria-label=\"Back to the text\">↩</a></div>"
        "##]],
    );
}

#[test]
fn bare_urls_are_links_if_they_stand_alone() {
    let links = |text: &str| -> Vec<String> {
        let html = html(&closed(text, "p"));
        let hrefs = html.split("<a class=\"autolink\" href=\"").skip(1);
        hrefs.map(|it| it.split('"').next().unwrap_or_default().to_owned()).collect()
    };
    for (text, expected) in [
        ("see www.e.org/a?b=(c).", "http://www.e.org/a?b=(c)"),
        ("(www.e.org) *www.e.org*", "http://www.e.org http://www.e.org"),
        ("hhttp://a http://a", "http://a"),
        ("www. www.. www.( www.-", ""),
        ("xwww.e.org a.www.e.org /www.e.org me@www.e.org `www.e.org`", ""),
        ("why www.e.org, how https://e.org", "http://www.e.org https://e.org"),
    ] {
        assert_eq!(links(text).join(" "), expected, "{text}");
    }
}

#[test]
fn links_and_pictures() {
    let shown = |text: &str| html(&closed(text, "p"));
    expect![[r#"<p id="p-0" dir="auto"><a href="https://e.org" title="t" rel="noopener noreferrer nofollow" target="_blank">a</a> <span class="no-link">b<span class="url"> (src/x.rs)</span></span> <a class="autolink" href="https://e.org/x" rel="noopener noreferrer nofollow" target="_blank">https://e.org/x</a>.</p>"#]].assert_eq(&shown("[a](https://e.org \"t\") [b](src/x.rs) https://e.org/x."));
    expect![[r#"<p id="p-0" dir="auto"><a class="remote-image" data-host="e.org" data-action="show-picture" href="https://e.org/i.png" rel="noopener noreferrer nofollow" target="_blank">alt</a> <img src="data:image/png;base64,AAAA" alt="d"></p>"#]].assert_eq(&shown("![alt](https://e.org/i.png) ![d](data:image/png;base64,AAAA)"));
}
