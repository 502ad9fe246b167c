//! The DOM of a page, for tests: HTML is parsed as a browser parses it, and operations are
//! applied as the page's script applies them.

use html5ever::tendril::TendrilSink;
use html5ever::{QualName, local_name, ns, parse_fragment};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

use crate::Op;

/// Node of a parsed HTML page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A text node.
    Text(String),
    /// An element node.
    Element {
        /// Tag name of the element.
        name: String,
        /// Names and values of the element's attributes, sorted.
        attributes: Vec<(String, String)>,
        /// Child nodes of the element.
        children: Vec<Self>,
    },
}

/// Whether a change of an element also covered the inside of the element.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Inside,
    NotInside,
}

/// Returns a `div` element with the given id and content.
pub(crate) fn element(id: &str, html: &str) -> Node {
    let attributes = vec![("id".to_owned(), id.to_owned())];
    Node::Element { name: "div".to_owned(), attributes, children: parse(html) }
}

/// Parses HTML as the content of a `<template>`, where rows and items may stand alone.
pub(crate) fn parse(html: &str) -> Vec<Node> {
    let context = QualName::new(None, ns!(html), local_name!("template"));
    let dom =
        parse_fragment(RcDom::default(), Default::default(), context, Vec::new(), false).one(html);
    let root = dom.document.children.borrow()[0].clone();
    let nodes = root.children.borrow().iter().filter_map(node).collect();
    merged(nodes)
}

fn node(handle: &Handle) -> Option<Node> {
    match &handle.data {
        NodeData::Text { contents } => Some(Node::Text(contents.borrow().to_string())),
        NodeData::Element { name, attrs, .. } => {
            let attribute =
                |it: &html5ever::Attribute| (it.name.local.to_string(), it.value.to_string());
            let mut attributes: Vec<_> = attrs.borrow().iter().map(attribute).collect();
            attributes.sort();
            let children = handle.children.borrow().iter().filter_map(node).collect();
            Some(Node::Element {
                name: name.local.to_string(),
                attributes,
                children: merged(children),
            })
        }
        _ => None,
    }
}

/// Merges adjacent text nodes.
fn merged(nodes: Vec<Node>) -> Vec<Node> {
    let mut merged: Vec<Node> = Vec::new();
    for node in nodes {
        match (merged.last_mut(), node) {
            (Some(Node::Text(before)), Node::Text(text)) => before.push_str(&text),
            (_, node) => merged.push(node),
        }
    }
    merged
}

impl Node {
    /// Returns the child nodes of an element; none for a text.
    pub fn children(&self) -> &[Self] {
        match self {
            Self::Text(_) => &[],
            Self::Element { children, .. } => children,
        }
    }

    /// Returns the tag name of an element; empty for a text.
    pub fn name(&self) -> &str {
        match self {
            Self::Text(_) => "",
            Self::Element { name, .. } => name,
        }
    }

    /// Returns the value of an element's attribute; `None` if it is not set.
    pub fn attribute(&self, wanted: &str) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Element { attributes, .. } => {
                attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
            }
        }
    }

    /// Returns the text content of a node, including that of its descendants.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Element { children, .. } => children.iter().map(Self::text).collect(),
        }
    }

    /// Returns this element and all its descendant elements, in document order.
    pub fn elements(&self) -> Vec<&Self> {
        let mut found = Vec::new();
        let mut waiting = vec![self];
        while let Some(node) = waiting.pop() {
            if matches!(node, Self::Element { .. }) {
                found.push(node);
            }
            waiting.extend(node.children().iter().rev());
        }
        found
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        match op {
            Op::Put { id, html } => self.replace(id, &parse(html)),
            Op::Drop { id } => self.replace(id, &[]),
            Op::Add { parent, html } => self.append(parent, parse(html)),
            Op::Before { next, html } => self.set_before(next, &parse(html)),
            Op::Move { id, before } => self.move_child(id, before.as_deref()),
            Op::Text { id, text } => self.append(id, vec![Self::Text(text.clone())]),
            Op::Attr { id, name, value } => self.set(id, name, value.as_deref()),
        }
    }

    fn replace(&mut self, id: &str, by: &[Self]) {
        let Self::Element { children, .. } = self else { return };
        if let Some(at) = children.iter().position(|it| it.attribute("id") == Some(id)) {
            children.splice(at..=at, by.iter().cloned());
        } else {
            children.iter_mut().for_each(|it| it.replace(id, by));
        }
    }

    fn set_before(&mut self, next: &str, more: &[Self]) {
        let Self::Element { children, .. } = self else { return };
        if let Some(at) = children.iter().position(|it| it.attribute("id") == Some(next)) {
            children.splice(at..at, more.iter().cloned());
        } else {
            children.iter_mut().for_each(|it| it.set_before(next, more));
        }
    }

    fn move_child(&mut self, id: &str, before: Option<&str>) {
        let Self::Element { children, .. } = self else { return };
        let place = |children: &[Self], id: Option<&str>| {
            children.iter().position(|it| id.is_some() && it.attribute("id") == id)
        };
        let Some(at) = place(children, Some(id)) else {
            return children.iter_mut().for_each(|it| it.move_child(id, before));
        };
        let moved = children.remove(at);
        let to = place(children, before).unwrap_or(children.len());
        children.insert(to, moved);
    }

    fn set(&mut self, id: &str, name: &str, value: Option<&str>) {
        if self.attribute("id") == Some(id) {
            self.set_attribute(name, value);
        } else if let Self::Element { children, .. } = self {
            children.iter_mut().for_each(|it| it.set(id, name, value));
        }
    }

    pub(crate) fn set_attribute(&mut self, name: &str, value: Option<&str>) {
        let Self::Element { attributes, .. } = self else { return };
        attributes.retain(|(known, _)| known != name);
        attributes.extend(value.map(|it| (name.to_owned(), it.to_owned())));
        attributes.sort();
    }

    fn append(&mut self, id: &str, more: Vec<Self>) {
        let is_it = self.attribute("id") == Some(id);
        let Self::Element { children, .. } = self else { return };
        if is_it {
            children.extend(more);
            *children = merged(std::mem::take(children));
        } else {
            children.iter_mut().for_each(|it| it.append(id, more.clone()));
        }
    }

    pub(crate) fn has_class(&self, class: &str) -> bool {
        self.attribute("class").is_some_and(|it| it.split(' ').any(|it| it == class))
    }
}

/// Changes of a parsed page, for the tests of this crate.
#[cfg(test)]
impl Node {
    /// Calls `change` for every element, from the outside in, except inside elements that it
    /// covered.
    pub(crate) fn change_each(&mut self, change: &dyn Fn(&mut Self) -> Changed) {
        if change(self) == Changed::Inside {
            return;
        }
        if let Self::Element { children, .. } = self {
            children.iter_mut().for_each(|it| it.change_each(change));
        }
    }

    pub(crate) fn set_children(&mut self, html: &str) {
        if let Self::Element { children, .. } = self {
            children.clear();
        }
        self.add_children(html);
    }

    pub(crate) fn add_children(&mut self, html: &str) {
        if let Self::Element { children, .. } = self {
            children.extend(parse(html));
        }
    }
}

/// Describes where two parsed pages first differ; `None` if they are equal.
pub(crate) fn difference(a: &Node, b: &Node) -> Option<String> {
    let short = |node: &Node| format!("{node:?}").chars().take(300).collect::<String>();
    let (
        Node::Element { name, attributes, children },
        Node::Element { name: name_b, attributes: attributes_b, children: children_b },
    ) = (a, b)
    else {
        return (a != b).then(|| format!("{} is not {}", short(a), short(b)));
    };
    if (name, attributes) != (name_b, attributes_b) {
        return Some(format!("<{name} {attributes:?}> is not <{name_b} {attributes_b:?}>"));
    }
    let inner = children.iter().zip(children_b).find_map(|(a, b)| difference(a, b));
    let inner = inner.or_else(|| {
        let (has, should) = (children.len(), children_b.len());
        let odd = children.get(should).or_else(|| children_b.get(has))?;
        Some(format!("{has} children, not {should}: {}", short(odd)))
    });
    inner.map(|inner| format!("<{name} {:?}> {inner}", a.attribute("id")))
}
