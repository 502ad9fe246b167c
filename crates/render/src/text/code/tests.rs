//! Highlighting adds spans of known classes and changes no character.

use std::collections::HashSet;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{CLASSES, Highlighter, Language, MAX_CODE, MAX_LINE, file, highlight};
use super::{language_of_fence, language_of_file, unload_unused};
use crate::testing::dom::element;

const HARD: &[&str] = &[
    "",
    "\n\n",
    "<script>alert('&amp;')</script>\n",
    "fn main() { let s = \"</span><b>\"; } // <i> & \"quoted\"\n",
    "/* never closed\n\"nor this",
    "日本語 = '🎉' \u{200b}\u{0}\t\r\nx",
    "<?php echo '<b>'; ?>\n#!/bin/sh\n\"\"\"\n```\n{{{ ((( [[[\n",
    "---\na: [1, 2\n- b: &x *x !!str\n",
];

fn check(code: &str, language: Language) {
    let html = highlight(code, language).into_string();
    let shown = element("c", &html);
    // A browser normalises line ends and NUL, with or without highlighting.
    let plain = element("c", &crate::html::escape::escaped(code));
    assert_eq!(shown.text(), plain.text(), "{language:?} changed {code:?}");
    for span in shown.elements().iter().skip(1) {
        assert_eq!(span.name(), "span", "{language:?}: {code:?}");
        let class = span.attribute("class").and_then(|it| it.strip_prefix("hl-"));
        assert!(CLASSES.iter().any(|(_, it)| Some(*it) == class), "{class:?}");
    }
}

#[test]
fn every_language_has_a_grammar_and_changes_no_character() {
    let highlighter = Highlighter::get();
    for language in Language::all() {
        let found = highlighter.syntaxes.find_syntax_by_name(language.syntax());
        assert!(found.is_some(), "no grammar for {language:?}");
        HARD.iter().for_each(|code| check(code, language));
    }
}

#[test]
fn every_name_is_unique() {
    for language in Language::all() {
        assert_eq!(Language::named(language.name()), Some(language));
        assert!(language.name().bytes().all(|it| it.is_ascii_lowercase() || it == b'-'));
    }
}

#[test]
fn the_stylesheet_has_a_rule_for_exactly_each_class() {
    let page = include_str!("../../../../../web/style/text.css");
    let rules = page.split(".hl-").skip(1).filter_map(|it| it.split([' ', ',']).next());
    let mut rules: HashSet<_> = rules.collect();
    // Variables are plain text.
    rules.insert("variable");
    let classes = CLASSES.iter().map(|(_, it)| *it).filter(|it| !it.is_empty());
    assert_eq!(rules, classes.collect());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_code_changes_no_character(code in "([a-z]{1,3}|[0-9<>&\"'`/*#{}()\\[\\];:=$@!\\\\ \n]){0,60}") {
        for word in ["rust", "ts", "py", "sh", "html", "md", "yaml", "php"] {
            check(&code, language_of_fence(word).unwrap());
        }
    }
}

#[test]
fn only_known_names_identify_a_language() {
    let fence = |info| language_of_fence(info).map(Language::name);
    assert_eq!(fence("RS"), Some("rust"));
    assert_eq!(fence("rust,ignore"), Some("rust"));
    assert_eq!(fence("js {1,3} title=x"), Some("javascript"));
    assert_eq!(fence("\"><script>"), None);
    assert_eq!(fence(""), None);
    let of_file = |path| language_of_file(path).map(Language::name);
    assert_eq!(of_file("a/b/Cargo.toml"), Some("toml"));
    assert_eq!(of_file("Dockerfile"), Some("dockerfile"));
    assert_eq!(of_file("C:\\x\\y.PY"), Some("python"));
    assert_eq!(of_file("README"), None);
}

#[test]
fn highlighting_works_after_unloading() {
    let rust = language_of_fence("rust").unwrap();
    let before = highlight("let a = 1;", rust).into_string();
    // The first call finds that they were just used.
    unload_unused();
    unload_unused();
    assert_eq!(highlight("let a = 1;", rust).into_string(), before);
}

#[test]
fn long_code_is_plain() {
    let rust = language_of_fence("rust").unwrap();
    let is_plain = |code: &str| !highlight(code, rust).into_string().contains("<span");
    assert!(!is_plain("let a = 1;\n"));
    assert!(is_plain(&"let a = 1;\n".repeat(MAX_CODE / 10)));
    assert!(is_plain(&"let a = 1; ".repeat(MAX_LINE / 10)));
}

#[test]
fn examples() {
    #[track_caller]
    fn shows(word: &str, code: &str, expected: Expect) {
        expected.assert_eq(&highlight(code, language_of_fence(word).unwrap()).into_string());
    }
    shows(
        "rust",
        "// hi\npub fn add<T: Clone>(a: &T) -> u8 { a.len() + 0x1f /* \"x\" */ }",
        expect![[r#"
            <span class="hl-comment">// hi
            </span><span class="hl-keyword">pub fn </span><span class="hl-function">add</span>&lt;T: <span class="hl-type">Clone</span>&gt;(<span class="hl-variable">a</span>: <span class="hl-operator">&amp;</span>T) -&gt; <span class="hl-keyword">u8 </span>{ a.<span class="hl-function">len</span>() <span class="hl-operator">+ </span><span class="hl-number">0x1f </span><span class="hl-comment">/* &quot;x&quot; */ </span>}"#]],
    );
    shows(
        "ts",
        "const a: string = `x ${y + 1}`; export class B extends C {}",
        expect![[
            r#"<span class="hl-keyword">const </span><span class="hl-constant">a</span><span class="hl-operator">: </span><span class="hl-type">string </span><span class="hl-operator">= </span><span class="hl-string">`x </span>${<span class="hl-variable">y </span><span class="hl-operator">+ </span><span class="hl-number">1</span>}<span class="hl-string">`</span>; <span class="hl-keyword">export class </span><span class="hl-type">B </span><span class="hl-keyword">extends </span><span class="hl-type">C </span>{}"#
        ]],
    );
    shows(
        "py",
        "@dec\ndef f(x, *y) -> None:\n    return f\"{x!r}\" if x else 3.5",
        expect![[r#"
            @<span class="hl-attribute">dec
            </span><span class="hl-keyword">def </span><span class="hl-function">f</span>(<span class="hl-variable">x</span>, <span class="hl-operator">*</span><span class="hl-variable">y</span>) -&gt; <span class="hl-constant">None</span>:
                <span class="hl-keyword">return f</span><span class="hl-string">&quot;</span>{x<span class="hl-keyword">!r</span>}<span class="hl-string">&quot; </span><span class="hl-keyword">if </span>x <span class="hl-keyword">else </span><span class="hl-number">3</span>.<span class="hl-number">5</span>"#]],
    );
    shows(
        "sh",
        "for f in *.rs; do echo \"$f\" | wc -l; done # count",
        expect![[
            r#"<span class="hl-keyword">for</span> f <span class="hl-keyword">in </span><span class="hl-operator">*</span>.rs<span class="hl-operator">; </span><span class="hl-keyword">do </span><span class="hl-function">echo </span><span class="hl-string">&quot;</span><span class="hl-variable">$f</span><span class="hl-string">&quot; </span><span class="hl-operator">| </span><span class="hl-function">wc</span> -<span class="hl-variable">l</span><span class="hl-operator">; </span><span class="hl-keyword">done </span><span class="hl-comment"># count</span>"#
        ]],
    );
    shows(
        "json",
        "{\"a\": [1, true, null, \"b\\n\"]}",
        expect![[
            r#"{<span class="hl-string">&quot;a&quot;</span>: [<span class="hl-number">1</span>, <span class="hl-constant">true</span>, <span class="hl-constant">null</span>, <span class="hl-string">&quot;b</span><span class="hl-constant">\n</span><span class="hl-string">&quot;</span>]}"#
        ]],
    );
    shows(
        "diff",
        "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n",
        expect![[r#"
            ---<span class="hl-heading"> a
            </span>+++<span class="hl-heading"> b
            </span>@@ <span class="hl-heading">-1 +1 </span>@@
            <span class="hl-deleted">-old
            </span><span class="hl-inserted">+new
            </span>"#]],
    );
    shows(
        "html",
        "<a href=\"x\">y</a>",
        expect![[
            r#"&lt;<span class="hl-tag">a </span><span class="hl-attribute">href</span>=<span class="hl-string">&quot;x&quot;</span>&gt;y&lt;/<span class="hl-tag">a</span>&gt;"#
        ]],
    );
    expect![[r#"
        <pre><code class="language-toml">[<span class="hl-function">x</span>]
        <span class="hl-tag">y </span>= <span class="hl-number">1
        </span></code></pre>"#]]
    .assert_eq(&file("a.toml", "[x]\ny = 1\n").into_string());
}
