//! A patch turns one tree into another and never removes an element that is in both.

use proptest::prelude::*;

use super::Element;
use crate::Op;
use crate::testing::dom::element;
use crate::testing::{apply, assert_same};

/// Generates a tree with few different ids, and some text that patches cannot address.
fn tree() -> impl Strategy<Value = Element> {
    let child = ("[ab]", any::<bool>());
    let children = prop::collection::vec(child, 8);
    let order = Just((0..8usize).collect::<Vec<_>>()).prop_shuffle();
    (children, order, 0..9usize, any::<bool>()).prop_map(|(children, order, len, has_label)| {
        let mut tree = Element::div("top");
        if has_label {
            tree = tree.html(maud::html! { b { "label" } });
        }
        tree.children(order.into_iter().take(len).map(|name| {
            let (text, is_marked) = &children[name];
            let marked = is_marked.then_some("marked");
            Element::div(format!("c{name}")).attr_if("class", marked).text(text)
        }))
    })
}

proptest! {
    #[test]
    fn a_patch_turns_any_tree_into_any_other(
        old in tree(), new in tree(),
    ) {
        let mut ops = Vec::new();
        old.patch(&new, &mut ops);
        let mut shown = element("page", &old.to_html());
        apply(&mut shown, &ops);
        assert_same(&shown, &element("page", &new.to_html()), "after the patch");
        let has = |tree: &Element, id: &str| tree.children.iter().any(|it| it.id() == Some(id));
        for op in &ops {
            match op {
                Op::Drop { id } => prop_assert!(!has(&new, id), "{id} is dropped"),
                Op::Add { html, .. } | Op::Before { html, .. } => {
                    let id = &html[9..11];
                    prop_assert!(!has(&old, id), "{id} is inserted again");
                }
                _ => (),
            }
        }
    }
}

#[test]
fn moving_one_child_to_the_top_moves_no_other() {
    let list =
        |names: &[&str]| Element::div("l").children(names.iter().map(|it| Element::div(*it)));
    let mut ops = Vec::new();
    list(&["a", "b", "c", "d"]).patch(&list(&["d", "a", "x", "c"]), &mut ops);
    expect_test::expect![[
        r#"[["drop","b"],["move","d","a"],["before","c","<div id=\"x\"></div>"]]"#
    ]]
    .assert_eq(&serde_json::to_string(&ops).unwrap());
}
