//! The page as a tree of elements that patches can address, and the diff between two trees.
//!
//! The page is a function of the transcript, and a patch is a function of two trees, so a patched page equals
//! a freshly drawn one.

use std::collections::HashMap;
use std::fmt::Write;

use maud::Markup;

#[cfg(test)]
mod tests;

use crate::html::escape::push_escaped;
use crate::html::op::Op;

/// HTML element with an id, by which patches can address it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    tag: &'static str,
    id: String,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Element(Element),
    /// Text to which patches can append. It is the only child of its element.
    Text(String),
    /// A rendered element with an id, which a patch replaces as a whole.
    Opaque {
        id: String,
        html: String,
    },
    /// Rendered HTML without an id, which is replaced only together with its parent element.
    Html(String),
}

impl Element {
    pub(crate) fn new(tag: &'static str, id: impl Into<String>) -> Self {
        Self { tag, id: id.into(), attributes: Vec::new(), children: Vec::new() }
    }

    pub(crate) fn div(id: impl Into<String>) -> Self {
        Self::new("div", id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    pub(crate) fn attr(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    pub(crate) fn attr_if(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.attr(name, value),
            None => self,
        }
    }

    pub(crate) fn class(self, classes: impl Into<String>) -> Self {
        self.attr("class", classes)
    }

    pub(crate) fn child(mut self, child: Self) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    pub(crate) fn child_if(self, child: Option<Self>) -> Self {
        match child {
            Some(child) => self.child(child),
            None => self,
        }
    }

    pub(crate) fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(children.into_iter().map(Node::Element));
        self
    }

    /// Adds child elements to the element with this id, which is this one or a descendant.
    pub(crate) fn fill(mut self, id: &str, children: impl IntoIterator<Item = Self>) -> Self {
        if let Some(place) = self.find(id) {
            place.children.extend(children.into_iter().map(Node::Element));
        }
        self
    }

    fn find(&mut self, id: &str) -> Option<&mut Self> {
        if self.id == id {
            return Some(self);
        }
        self.children.iter_mut().find_map(|child| match child {
            Node::Element(element) => element.find(id),
            Node::Text(_) | Node::Opaque { .. } | Node::Html(_) => None,
        })
    }

    /// Adds child elements that are already rendered, as pairs of id and HTML.
    pub(crate) fn pieces(mut self, pieces: impl IntoIterator<Item = (String, String)>) -> Self {
        self.children.extend(pieces.into_iter().map(|(id, html)| Node::Opaque { id, html }));
        self
    }

    pub(crate) fn html(mut self, markup: Markup) -> Self {
        self.children.push(Node::Html(markup.into_string()));
        self
    }

    /// Sets text to which patches can append as the only child. The tag must not be `pre`, where an
    /// HTML parser drops the first newline.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.children.push(Node::Text(replace_nul(text)));
        self
    }

    /// Returns the element and its descendants as HTML.
    pub fn to_html(&self) -> String {
        let mut html = String::new();
        self.write(&mut html);
        html
    }

    fn write(&self, html: &mut String) {
        let _ = write!(html, "<{} id=\"", self.tag);
        push_escaped(html, &self.id);
        html.push('"');
        for (name, value) in &self.attributes {
            let _ = write!(html, " {name}=\"");
            push_escaped(html, value);
            html.push('"');
        }
        html.push('>');
        for child in &self.children {
            child.write(html);
        }
        let _ = write!(html, "</{}>", self.tag);
    }

    /// Returns the patch operation that replaces the element with the same id on a page.
    pub fn put(&self) -> Op {
        Op::Put { id: self.id.clone(), html: self.to_html() }
    }

    /// Appends the patch operations that turn this element into `next`, which has the same id.
    pub fn patch(&self, next: &Self, ops: &mut Vec<Op>) {
        if self == next {
            return;
        }
        if self.tag != next.tag || self.id != next.id || !self.patch_children(next, ops) {
            ops.push(next.put());
            return;
        }
        self.patch_attributes(next, ops);
    }

    /// Appends the patch operations that change this element's attributes to those of `next`.
    pub(crate) fn patch_attributes(&self, next: &Self, ops: &mut Vec<Op>) {
        let mut set = |name: &str, value: Option<&String>| {
            let (id, name) = (self.id.clone(), name.to_owned());
            ops.push(Op::Attr { id, name, value: value.cloned() });
        };
        for (name, value) in &next.attributes {
            if self.attribute(name) != Some(value) {
                set(name, Some(value));
            }
        }
        for (name, _) in &self.attributes {
            if next.attribute(name).is_none() {
                set(name, None);
            }
        }
    }

    /// Returns whether the children of two elements have the same ids in the same order.
    pub(crate) fn has_same_children(&self, other: &Self) -> bool {
        self.children.iter().map(Node::id).eq(other.children.iter().map(Node::id))
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&String> {
        self.attributes.iter().find(|(it, _)| *it == name).map(|(_, value)| value)
    }

    /// Appends the patch operations that turn the children into those of `next`. Returns false,
    /// without adding operations, if the whole element has to be replaced.
    fn patch_children(&self, next: &Self, ops: &mut Vec<Op>) -> bool {
        if let ([Node::Text(old)], [Node::Text(new)]) = (&*self.children, &*next.children) {
            let Some(more) = new.strip_prefix(&**old) else { return false };
            if !more.is_empty() {
                ops.push(Op::Text { id: self.id.clone(), text: more.to_owned() });
            }
            return true;
        }
        let Some(steps) = plan_steps(&self.children, &next.children) else { return false };
        let is_removed = |it: &&Node| next.children.iter().all(|new| !it.can_become(new));
        for id in self.children.iter().filter(is_removed).filter_map(Node::id) {
            ops.push(Op::Drop { id: id.to_owned() });
        }
        for (step, node) in steps.iter().zip(&next.children) {
            match step {
                Step::Keep(old) => old.patch(node, ops),
                Step::Move { old, before } => {
                    let id = node.id().unwrap_or_default().to_owned();
                    ops.push(Op::Move { id, before: before.map(str::to_owned) });
                    old.patch(node, ops);
                }
                Step::Insert { before: Some(next) } => {
                    ops.push(Op::Before { next: (*next).to_owned(), html: node.to_html() });
                }
                Step::Insert { before: None } => {
                    ops.push(Op::Add { parent: self.id.clone(), html: node.to_html() });
                }
            }
        }
        true
    }
}

/// Step of a patch that puts one child at its new position. `before` is the id of the next child
/// that stays in place, `None` for the end.
enum Step<'a> {
    Keep(&'a Node),
    Move { old: &'a Node, before: Option<&'a str> },
    Insert { before: Option<&'a str> },
}

/// Plans how to turn the child nodes `old` into `new` with the fewest moves, so that focus and
/// input in a child survive a change of its neighbours. `None` if a node without an id has changed,
/// would have to move, or would have to serve as an anchor.
fn plan_steps<'a>(old: &'a [Node], new: &'a [Node]) -> Option<Vec<Step<'a>>> {
    let was = old_positions(old, new)?;
    let stays = longest_increasing(&was);
    let mut steps = Vec::with_capacity(new.len());
    // The next child that is kept in place; none at the end.
    let mut before = None;
    for (idx, node) in new.iter().enumerate().rev() {
        steps.push(match was[idx] {
            Some(at) if stays[idx] => {
                before = Some(node.id());
                Step::Keep(&old[at])
            }
            place => {
                node.id()?;
                let before = match before {
                    Some(next) => Some(next?),
                    None => None,
                };
                match place {
                    Some(at) => Step::Move { old: &old[at], before },
                    None => Step::Insert { before },
                }
            }
        });
    }
    steps.reverse();
    Some(steps)
}

/// Returns the index in `old` of each node of `new`, `None` for an added node. Returns `None` as a
/// whole unless the nodes without an id are equal and in the same order.
fn old_positions(old: &[Node], new: &[Node]) -> Option<Vec<Option<usize>>> {
    let by_id: HashMap<&str, usize> =
        old.iter().enumerate().filter_map(|(at, it)| Some((it.id()?, at))).collect();
    let mut nameless = old.iter().enumerate().filter(|(_, it)| it.id().is_none());
    let mut places = Vec::with_capacity(new.len());
    for node in new {
        places.push(match node.id() {
            Some(id) => by_id.get(id).copied(),
            None => Some(nameless.next().filter(|(_, it)| *it == node)?.0),
        });
    }
    nameless.next().is_none().then_some(places)
}

/// Marks the members of the longest increasing subsequence of `places`, ignoring `None` entries.
fn longest_increasing(places: &[Option<usize>]) -> Vec<bool> {
    // The last index of the best sequence of each length, and the predecessor of each index.
    let mut ends: Vec<usize> = Vec::new();
    let mut earlier: Vec<Option<usize>> = vec![None; places.len()];
    for (idx, place) in places.iter().enumerate() {
        let Some(place) = place else { continue };
        let length = ends.partition_point(|&end| places[end] < Some(*place));
        earlier[idx] = length.checked_sub(1).map(|it| ends[it]);
        match ends.get_mut(length) {
            Some(end) => *end = idx,
            None => ends.push(idx),
        }
    }
    let mut is_in = vec![false; places.len()];
    let mut at = ends.last().copied();
    while let Some(idx) = at {
        is_in[idx] = true;
        at = earlier[idx];
    }
    is_in
}

impl Node {
    /// Returns the id by which patches can address the node; `None` for text and plain HTML.
    fn id(&self) -> Option<&str> {
        match self {
            Self::Element(element) => Some(&element.id),
            Self::Opaque { id, .. } => Some(id),
            Self::Text(_) | Self::Html(_) => None,
        }
    }

    fn to_html(&self) -> String {
        let mut html = String::new();
        self.write(&mut html);
        html
    }

    fn write(&self, html: &mut String) {
        match self {
            Self::Element(element) => element.write(html),
            Self::Text(text) => push_escaped(html, text),
            Self::Opaque { html: markup, .. } | Self::Html(markup) => html.push_str(markup),
        }
    }

    fn can_become(&self, next: &Self) -> bool {
        match self.id() {
            Some(id) => next.id() == Some(id),
            None => self == next,
        }
    }

    fn patch(&self, next: &Self, ops: &mut Vec<Op>) {
        match (self, next) {
            (Self::Element(old), Self::Element(new)) => old.patch(new, ops),
            (old, new) if old == new => (),
            (old, new) => {
                let id = old.id().unwrap_or_default().to_owned();
                ops.push(Op::Put { id, html: new.to_html() });
            }
        }
    }
}

/// Replaces NUL characters with U+FFFD, as an HTML parser does.
pub(crate) fn replace_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
