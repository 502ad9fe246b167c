//! The law of patches: one tree plus the ops is the next tree, and what is in both is never taken out.

use proptest::prelude::*;

use super::Element;
use crate::Op;
use crate::testing::dom::element;
use crate::testing::{apply, assert_same};

/// Children of few names, each at most once; some with text that nobody can address.
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
    fn any_tree_leads_to_any_other_and_nothing_that_stays_is_taken_out(
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
                    prop_assert!(!has(&old, id), "{id} comes again");
                }
                _ => (),
            }
        }
    }
}

#[test]
fn one_that_goes_to_the_top_is_all_that_moves() {
    let list =
        |names: &[&str]| Element::div("l").children(names.iter().map(|it| Element::div(*it)));
    let mut ops = Vec::new();
    list(&["a", "b", "c", "d"]).patch(&list(&["d", "a", "x", "c"]), &mut ops);
    expect_test::expect![[
        r#"[["drop","b"],["move","d","a"],["before","c","<div id=\"x\"></div>"]]"#
    ]]
    .assert_eq(&serde_json::to_string(&ops).unwrap());
}
