//! For any text, the page contains only our elements, attributes, ids and classes.

use std::collections::HashSet;

use super::documents::DOCUMENTS;
use super::{cuts, shown_closed, shown_open};
use crate::testing::dom::Node;

const ELEMENTS: &[&str] = &[
    "div",
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "ul",
    "ol",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "pre",
    "code",
    "hr",
    "br",
    "em",
    "strong",
    "del",
    "a",
    "span",
    "img",
    "input",
    "sup",
    "button",
    "svg",
    "use",
];

const CLASSES: &[&str] = &[
    "align-left",
    "align-center",
    "align-right",
    "autolink",
    "code-bar",
    "code-block",
    "footnote-back",
    "footnote-definition",
    "footnote-definition-label",
    "footnote-reference",
    "icon",
    "no-link",
    "quiet",
    "raw-html",
    "remote-image",
    "unparsed",
    "url",
    "markdown-alert-note",
    "markdown-alert-tip",
    "markdown-alert-important",
    "markdown-alert-warning",
    "markdown-alert-caution",
];

pub(super) fn check(text: &str) {
    for page in [shown_open(text), shown_closed(text)] {
        let mut ids = HashSet::new();
        for node in page.elements() {
            check_element(node, text);
            if let Some(id) = node.attribute("id") {
                assert!(ids.insert(id.to_owned()), "{id} twice in {text:?}");
            }
        }
    }
}

fn check_element(node: &Node, text: &str) {
    let Node::Element { name, attributes, .. } = node else { return };
    assert!(ELEMENTS.contains(&name.as_str()), "<{name}> from {text:?}");
    for (attribute, value) in attributes {
        let is_ours = match attribute.as_str() {
            "id" => value == "p" || (value.starts_with("p-") && value.len() < 25),
            "class" if name == "code" => value.starts_with("language-") && value.len() < 24,
            "class" => CLASSES.contains(&value.as_str()) || value.starts_with("hl-"),
            "href" if name == "use" => value.starts_with("#icon-"),
            "href" if value.starts_with('#') => value.starts_with("#p-fn"),
            "href" => is_remote(value),
            "src" => value.starts_with("data:image/") && name == "img",
            "rel" => value == "noopener noreferrer nofollow",
            "data-action" if name == "button" => matches!(value.as_str(), "copy" | "wrap"),
            "data-action" => value == "show-picture",
            "data-of" => value == "code",
            "dir" => matches!(value.as_str(), "auto" | "ltr"),
            // The stylesheet shows it as text.
            "data-language" => name == "div" && value.len() <= 24,
            "aria-hidden" => name == "svg",
            "target" => value == "_blank",
            "tabindex" => value == "0",
            "start" => value.parse::<u64>().is_ok(),
            "title" | "alt" | "data-host" | "type" | "disabled" | "checked" | "aria-label" => true,
            _ => false,
        };
        assert!(is_ours, "<{name} {attribute}={value:?}> from {text:?}");
    }
    let goes_out = node.attribute("href").is_some_and(is_remote);
    assert_eq!(goes_out, node.attribute("rel").is_some(), "{text:?}");
}

fn is_remote(url: &str) -> bool {
    let url = url.to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|it| url.starts_with(it))
}

const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "</p></div><b id=\"p-0\" class=x>",
    "[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) [x](&#106;avascript:alert(1)) [x](java\nscript:x)",
    "[x](vbscript:x) [x](data:text/html;base64,PHNjcmlwdD4=) [x](file:///etc/passwd) [x](\u{1}javascript:x)",
    "<javascript:alert(1)> <data:text/html,x> <x@y.z>",
    "[x](https://a\"onmouseover=alert(1)) [x](https://a '\"><script>') ![\"><b>](https://a\"><b>)",
    "![x](javascript:alert(1)) ![x](data:image/svg+xml;base64,AAAA) ![x](data:image/png;base64,\"onerror=x)",
    "https://a\"onmouseover='x' https://a<b> https://a&quot;x https://x\u{0}y",
    "```\"><script>\nx</code></pre><script>\n```\n\n```rust\" onload=x\n</code>\n```",
    "| <b> | \" |\n|---|---|\n| </td><script> | x |",
    "# <b> {#p-0 .x onclick=y}\n\n[^<b>]: x\n\nuse [^<b>]\n\n[^\"]: y [^\"]",
    "[a]: javascript:alert(1) \"t\"\n\n[a] [b][a] ![a]",
    "&lt;script&gt; &#60;script&#62; &NewLine; &Tab;javascript:x",
    "> [!NOTE\" class=x]\n> y\n\n- [x\"] z\n\n1000000000. n\n999999999. n",
    "\u{202e}<b>\u{2066} \u{feff}<i> \u{0}<u>",
    "<!--><script>--> <![CDATA[<script>]]> <?<script>?> <!D <script>>",
];

#[test]
fn nothing_of_the_text_becomes_markup() {
    for text in HOSTILE {
        cuts(text).for_each(|cut| check(&text[..cut]));
        for wrapped in [
            format!("- {text}"),
            format!("> {text}"),
            format!("**{text}**"),
            format!("[{text}](https://e.org)"),
        ] {
            check(&wrapped);
        }
    }
    for text in DOCUMENTS {
        cuts(text).for_each(|cut| check(&text[..cut]));
    }
}

#[test]
fn quotes_and_lists_may_have_any_depth() {
    let lists: String = (0..100).map(|it| format!("{}- x\n", "  ".repeat(it))).collect();
    for text in [">".repeat(10_000), "> ".repeat(5000) + "x", "- ".repeat(5000) + "x", lists] {
        let page = shown_closed(&text);
        let mut depth = 0;
        let mut level: Vec<_> = page.children().iter().collect();
        while !level.is_empty() {
            depth += 1;
            level = level.into_iter().flat_map(Node::children).collect();
        }
        assert!(depth < 80, "{depth} deep");
        assert_eq!(page, shown_open(&format!("{text}\n")));
    }
}
