//! A readable outline of a page: a line for each block with its class, state and text, followed by
//! its inner blocks. Pictures, ids and clocks are left out.

use render::testing::Node;

/// Maximum number of characters that are shown of a block's text.
const MAX_CHARS: usize = 110;
/// Classes that are left out: they repeat other parts or are the same on every page.
const LEFT_OUT: [&str; 7] =
    ["actions", "chevron", "icon", "mark", "raw-link", "skip", "tool-calls-container"];
/// Classes of mere wrappers, whose children are shown without them.
const WRAPPERS: [&str; 3] = ["inside", "parts", "raw"];
const INLINE: [&str; 14] = [
    "a", "abbr", "b", "button", "code", "em", "i", "kbd", "label", "small", "span", "strong",
    "sup", "time",
];
/// Classes whose text is shown in one line, regardless of inner blocks.
const LEAVES: [&str; 8] =
    ["about", "body", "bubble", "heading", "section", "text", "title", "view"];

pub(super) fn outline(page: &Node) -> String {
    let mut lines = String::new();
    page.children().iter().for_each(|it| draw(it, 0, &mut lines));
    lines
}

fn draw(node: &Node, depth: usize, lines: &mut String) {
    if is_left_out(node) {
        return;
    }
    if classes(node).any(|it| WRAPPERS.contains(&it)) {
        return node.children().iter().for_each(|it| draw(it, depth, lines));
    }
    let label = label(node);
    let inside = node.children().iter().filter(|it| is_block(it));
    let is_leaf = inside.count() == 0 || classes(node).any(|it| LEAVES.contains(&it));
    if is_leaf {
        let words = words(node);
        if !words.is_empty() || node.attribute("data-state").is_some() {
            line(depth, &label, &words, lines);
        }
        return;
    }
    if label.is_empty() {
        return node.children().iter().for_each(|it| draw(it, depth, lines));
    }
    let mut within = String::new();
    node.children().iter().for_each(|it| draw(it, depth + 1, &mut within));
    // The summary of a block is shown on the block's own line.
    let indent = "  ".repeat(depth + 1);
    let own = within.lines().next().and_then(|it| it.strip_prefix(&indent)).unwrap_or_default();
    match own.strip_prefix("summary: ") {
        Some(summary) => {
            line(depth, &label, summary, lines);
            lines.extend(within.split_inclusive('\n').skip(1));
        }
        None if within.is_empty() => (),
        None => {
            line(depth, &label, "", lines);
            lines.push_str(&within);
        }
    }
}

fn line(depth: usize, label: &str, words: &str, lines: &mut String) {
    let indent = "  ".repeat(depth);
    let words = cut(words);
    let line = match (label, words.as_str()) {
        ("", words) => words.to_owned(),
        (label, "") => label.to_owned(),
        (label, words) => format!("{label}: {words}"),
    };
    lines.push_str(&format!("{indent}{line}\n"));
}

fn cut(words: &str) -> String {
    match words.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}… ({})", &words[..end], words.chars().count()),
        None => words.to_owned(),
    }
}

/// Returns the classes or else the tag, the role and the state. Mere wrappers have no label.
fn label(node: &Node) -> String {
    let mut words: Vec<&str> = classes(node).collect();
    if words.is_empty() && !matches!(node.name(), "div" | "details" | "p" | "") {
        words.push(node.name());
    }
    let told = ["data-role", "data-state"].into_iter().filter_map(|it| node.attribute(it));
    words.extend(told);
    words.join(" ")
}

fn classes(node: &Node) -> impl Iterator<Item = &str> {
    node.attribute("class").unwrap_or_default().split_whitespace()
}

fn is_left_out(node: &Node) -> bool {
    let is_heading_of_raw =
        node.name() == "summary" && node.text() == "Show details: arguments and result";
    is_heading_of_raw || node.name() == "svg" || classes(node).any(|it| LEFT_OUT.contains(&it))
}

fn is_block(node: &Node) -> bool {
    matches!(node, Node::Element { .. }) && !INLINE.contains(&node.name()) && node.name() != "svg"
}

/// Returns the whole text of a node, with a sign between blocks.
fn words(node: &Node) -> String {
    let mut text = String::new();
    collect(node, &mut text);
    let paragraphs = text.split('¶').map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let paragraphs: Vec<String> = paragraphs.filter(|it| !it.is_empty()).collect();
    paragraphs.join(" ¶ ")
}

fn collect(node: &Node, text: &mut String) {
    if is_left_out(node) {
        return;
    }
    match node {
        Node::Text(words) => text.push_str(words),
        _ if classes(node).any(|it| it == "json") => text.push_str(&node.text()),
        Node::Element { name, children, .. } => {
            let (before, after) = match name.as_str() {
                "button" => ("[", "]"),
                "span" | "code" | "time" => (" ", " "),
                _ if is_block(node) => ("¶", "¶"),
                _ => ("", ""),
            };
            if name == "button" && words_of(children).is_empty() {
                return;
            }
            text.push_str(before);
            children.iter().for_each(|it| collect(it, text));
            text.push_str(after);
        }
    }
}

fn words_of(nodes: &[Node]) -> String {
    nodes.iter().map(Node::text).collect::<String>().trim().to_owned()
}
