//! Comparison with the HTML of the parser library.

use pulldown_cmark::{CowStr, Event, Parser, Tag, TagEnd, html::push_html};

use super::super::parse::options;
use super::shown_closed;
use crate::testing::dom::{Node, element};

pub(super) fn has_definitions(text: &str) -> bool {
    let parser = Parser::new_ext(text, options());
    let has_links = parser.reference_definitions().iter().next().is_some();
    has_links || parser.into_iter().any(|it| matches!(it, Event::Start(Tag::FootnoteDefinition(_))))
}

/// Checks that a closed text equals the library's HTML, except for the rules in `markdown.rs`.
pub(super) fn check(text: &str) {
    // The library keeps NUL, which an HTML parser replaces.
    let text = &text.replace('\0', "\u{fffd}");
    let mut html = String::new();
    push_html(&mut html, Parser::new_ext(text, options()).map(raw_html_as_text));
    let (ours, theirs) = (shown_closed(text), element("p", &html));
    assert_eq!(comparable(&ours), comparable(&theirs), "{text:?}");
}

fn raw_html_as_text(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::InlineHtml(CowStr::from("<pre class=raw-html>")),
        Event::End(TagEnd::HtmlBlock) => Event::InlineHtml(CowStr::from("</pre>")),
        event => event,
    }
}

/// Removes the known differences: ids, classes, styles, white space between blocks, links and images,
/// markup around code, and paragraphs in tight items.
fn comparable(node: &Node) -> Vec<Node> {
    let Node::Element { name, children, .. } = node else {
        return vec![Node::Text(collapsed(&node.text()))];
    };
    let class = node.attribute("class").unwrap_or_default();
    let is_dead = node.attribute("href").is_some_and(|it| !is_allowed(it));
    if name == "pre" {
        return vec![element_of("pre", Vec::new(), vec![Node::Text(node.text())])];
    }
    if node.attribute("src").is_some_and(|it| !is_allowed(it) && !it.starts_with("data:image/png"))
    {
        return vec![Node::Text(collapsed(&picture_text(node)))];
    }
    if name == "img" || class == "remote-image" {
        return vec![element_of("img", vec![("alt".to_owned(), picture_text(node))], Vec::new())];
    }
    if matches!(class, "footnote-back" | "url" | "code-bar") {
        return Vec::new();
    }
    let children = joined(children.iter().flat_map(comparable).collect());
    if is_dead || matches!(class, "autolink" | "no-link" | "code-block") {
        return children;
    }
    let attribute = |name: &str| Some((name.to_owned(), node.attribute(name)?.to_owned()));
    let attributes = ["start", "checked", "type"].into_iter().filter_map(attribute).collect();
    vec![element_of(name, attributes, spaced(name, children))]
}

fn element_of(name: &str, attributes: Vec<(String, String)>, children: Vec<Node>) -> Node {
    Node::Element { name: name.to_owned(), attributes, children }
}

fn is_allowed(url: &str) -> bool {
    let url = url.to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|it| url.starts_with(it))
}

fn picture_text(node: &Node) -> String {
    let alt = node.attribute("alt").map_or_else(|| node.text(), str::to_owned);
    let is_address = node.attribute("data-host").is_some_and(|host| alt.contains(host));
    if is_address { String::new() } else { alt }
}

/// Collapses white space as a browser shows it.
fn spaced(name: &str, children: Vec<Node>) -> Vec<Node> {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "td" | "th" => trimmed(children),
        "li" => wrapped(children),
        "div" | "blockquote" | "ul" | "ol" | "table" | "thead" | "tbody" | "tr" => {
            children.into_iter().filter(|it| it.text() != " " || it.name() != "").collect()
        }
        _ => children,
    }
}

/// Puts the loose content of an item into a paragraph, as in a loose list; a task's checkbox goes into the
/// paragraph that follows.
fn wrapped(children: Vec<Node>) -> Vec<Node> {
    let mut blocks: Vec<Node> = Vec::new();
    let mut run = Vec::new();
    for node in children.into_iter().map(Some).chain([None]) {
        match node {
            Some(node) if is_inline(&node) => run.push(node),
            Some(Node::Element { name, attributes, children })
                if name == "p" && run.first().is_some_and(|it| it.name() == "input") =>
            {
                let children = run.drain(..).chain(children).collect();
                blocks.push(element_of("p", attributes, joined(children)));
            }
            block => {
                let run = trimmed(std::mem::take(&mut run));
                if !run.is_empty() {
                    blocks.push(element_of("p", Vec::new(), run));
                }
                blocks.extend(block);
            }
        }
    }
    blocks
}

fn is_inline(node: &Node) -> bool {
    ["", "em", "strong", "del", "code", "a", "br", "input", "sup", "img"].contains(&node.name())
}

fn trimmed(mut nodes: Vec<Node>) -> Vec<Node> {
    if let Some(Node::Text(text)) = nodes.first_mut() {
        *text = text.trim_start_matches(' ').to_owned();
    }
    if let Some(Node::Text(text)) = nodes.last_mut() {
        *text = text.trim_end_matches(' ').to_owned();
    }
    nodes.retain(|it| *it != Node::Text(String::new()));
    nodes
}

fn collapsed(text: &str) -> String {
    let mut collapsed = String::new();
    for it in text.chars() {
        match it {
            ' ' | '\n' | '\t' if collapsed.ends_with(' ') => (),
            ' ' | '\n' | '\t' => collapsed.push(' '),
            it => collapsed.push(it),
        }
    }
    collapsed
}

/// Merges adjacent texts.
fn joined(nodes: Vec<Node>) -> Vec<Node> {
    let mut all: Vec<Node> = Vec::new();
    for node in nodes {
        match (all.last_mut(), node) {
            (Some(Node::Text(before)), Node::Text(text)) => {
                *before = collapsed(&format!("{before}{text}"))
            }
            (_, node) => all.push(node),
        }
    }
    all
}
