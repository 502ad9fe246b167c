//! Rendered blocks, and the operations between two lists of them.

use crate::Op;
use crate::html::escape::unescaped;

/// Top-level block of a Markdown text as HTML. Items of a list and rows of a table are separate, so
/// that they can be added and replaced alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub(super) id: String,
    pub(super) body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Whole(Piece),
    /// A list or table: `head`, then the children within the element `parent`, then `foot`.
    Parts {
        parent: String,
        head: String,
        children: Vec<Piece>,
        foot: &'static str,
    },
}

/// One HTML element of a Markdown block: the smallest unit that is replaced, added or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) id: String,
    pub(super) html: String,
    pub(super) leaf: Option<Leaf>,
}

/// Last element with text in a piece of a Markdown block, to which following text is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) id: String,
    pub(super) kind: LeafKind,
    /// Byte offset of the end of the leaf's content in the HTML of its piece.
    pub(super) html_end: usize,
    /// Byte offset of the end of the leaf's content in the Markdown source.
    pub(super) source_end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeafKind {
    Paragraph,
    Heading,
    /// A fenced code block that has not been closed.
    OpenFence,
    /// A block that is too long to be parsed while it is open, shown as plain text.
    Unparsed,
}

impl Block {
    /// Returns the id of the block's element: the prefix and the number of the block.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the block as HTML.
    pub fn html(&self) -> String {
        match &self.body {
            Body::Whole(piece) => piece.html.clone(),
            Body::Parts { head, children, foot, .. } => {
                let children: String = children.iter().map(|it| it.html.as_str()).collect();
                format!("{head}{children}{foot}")
            }
        }
    }

    pub(super) fn last_piece(&self) -> Option<&Piece> {
        match &self.body {
            Body::Whole(piece) => Some(piece),
            Body::Parts { children, .. } => children.last(),
        }
    }

    pub(super) fn last_piece_mut(&mut self) -> Option<&mut Piece> {
        match &mut self.body {
            Body::Whole(piece) => Some(piece),
            Body::Parts { children, .. } => children.last_mut(),
        }
    }

    /// Returns a copy of a list or table without its items or rows.
    pub(super) fn without_children(&self) -> Self {
        let mut empty = self.clone();
        if let Body::Parts { children, .. } = &mut empty.body {
            children.clear();
        }
        empty
    }

    fn add(&self, prefix: &str) -> Op {
        Op::Add { parent: prefix.to_owned(), html: self.html() }
    }
}

/// Appends the operations that turn the blocks `old` into `new`, both children of the element
/// `prefix`.
pub(super) fn patch(old: &[Block], new: &[Block], prefix: &str, ops: &mut Vec<Op>) {
    for (old, new) in old.iter().zip(new) {
        patch_block(old, new, ops);
    }
    let surplus = old.iter().skip(new.len()).rev();
    ops.extend(surplus.map(|it| Op::Drop { id: it.id.clone() }));
    ops.extend(new.iter().skip(old.len()).map(|it| it.add(prefix)));
}

fn patch_block(old: &Block, new: &Block, ops: &mut Vec<Op>) {
    match (&old.body, &new.body) {
        (Body::Whole(old), Body::Whole(new)) => patch_piece(old, new, ops),
        (
            Body::Parts { head: old_head, children: old, .. },
            Body::Parts { head, children: new, parent, .. },
        ) if old_head == head => {
            patch_children(old, new, parent, ops);
        }
        _ => ops.push(Op::Put { id: new.id.clone(), html: new.html() }),
    }
}

/// Appends the operations that turn the pieces `old` into `new`, both the last children of the
/// element `parent`.
pub(super) fn patch_children(old: &[Piece], new: &[Piece], parent: &str, ops: &mut Vec<Op>) {
    for (old, new) in old.iter().zip(new) {
        patch_piece(old, new, ops);
    }
    let surplus = old.iter().skip(new.len()).rev();
    ops.extend(surplus.map(|it| Op::Drop { id: it.id.clone() }));
    let more = new.iter().skip(old.len());
    ops.extend(more.map(|it| Op::Add { parent: parent.to_owned(), html: it.html.clone() }));
}

fn patch_piece(old: &Piece, new: &Piece, ops: &mut Vec<Op>) {
    if old.html == new.html {
        return;
    }
    ops.push(match grown(old, new) {
        Some((leaf, text)) => Op::Text { id: leaf.id.clone(), text },
        None => Op::Put { id: new.id.clone(), html: new.html.clone() },
    });
}

/// Returns the last leaf of a piece and the text by which it has grown; `None` if anything else has
/// changed.
fn grown<'a>(old: &Piece, new: &'a Piece) -> Option<(&'a Leaf, String)> {
    let (old_leaf, leaf) = (old.leaf.as_ref()?, new.leaf.as_ref()?);
    let more = new.html[..leaf.html_end].strip_prefix(&old.html[..old_leaf.html_end])?;
    let same_end = new.html[leaf.html_end..] == old.html[old_leaf.html_end..];
    (leaf.id == old_leaf.id && same_end && !more.contains('<')).then(|| (leaf, unescaped(more)))
}
