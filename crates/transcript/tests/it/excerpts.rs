//! Excerpts of values of any size.

use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{EXCERPT_PIECE, Transcript, weight};

use crate::result_summaries::outcome_in;

/// Returns the excerpt of a result that a page gets.
fn excerpt(result: &Value) -> Option<Value> {
    outcome_in(Transcript::default(), result, "", None).result_value
}

/// Generates values whose texts and lists lie on both sides of the bound.
fn values() -> impl Strategy<Value = Value> {
    let text = (any::<char>(), 0..3 * EXCERPT_PIECE)
        .prop_map(|(letter, bytes)| json!(letter.to_string().repeat(bytes / letter.len_utf8())));
    let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!("short")), text];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            (inner.clone(), 1_usize..60_000).prop_map(|(it, times)| {
                let times = times.min(4 * EXCERPT_PIECE / weight(&it) + 1);
                Value::Array(vec![it; times])
            }),
            prop::collection::vec(inner, 0..6).prop_map(|values| {
                let fields = values.into_iter().enumerate();
                Value::Object(fields.map(|(idx, it)| (format!("field {idx}"), it)).collect())
            }),
        ]
    })
}

/// Checks that a cut text keeps both ends and is long enough to show that it was cut.
fn check(cut: &Value, whole: &Value) {
    match (cut, whole) {
        (Value::String(cut), Value::String(whole)) => {
            let end = cut.ceil_char_boundary(cut.len().saturating_sub(4096));
            assert!(cut == whole || whole.starts_with(&cut[..end]) && whole.ends_with(&cut[end..]));
            assert!(cut == whole || cut.len() >= EXCERPT_PIECE);
            assert!(cut.len() <= EXCERPT_PIECE + 8);
        }
        (Value::Array(cut), Value::Array(whole)) => {
            cut.iter().zip(whole).for_each(|(cut, whole)| check(cut, whole));
            let kept: usize = cut.iter().map(weight).sum();
            assert!(cut.len() == whole.len() || kept >= EXCERPT_PIECE);
        }
        (Value::Object(cut), Value::Object(whole)) => {
            assert!(cut.keys().eq(whole.keys()));
            cut.values().zip(whole.values()).for_each(|(cut, whole)| check(cut, whole));
        }
        _ => assert_eq!(cut, whole),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_excerpt_keeps_both_ends_of_long_texts(value in values()) {
        let whole = outcome_in(Transcript::whole(), &value, "", None).result_value;
        let cut = excerpt(&value);
        prop_assert_eq!(cut.is_some(), whole.is_some(), "where everything is kept too");
        if let (Some(cut), Some(whole)) = (cut, whole) {
            check(&cut, &whole);
            prop_assert!(whole == value);
            prop_assert!(weight(&cut) <= 1024 * 1024);
        }
    }
}

#[test]
fn a_huge_value_has_no_excerpt() {
    let long = json!("a".repeat(EXCERPT_PIECE));
    let fields = |n| Value::Object((0..n).map(|it: i32| (it.to_string(), long.clone())).collect());
    assert!(excerpt(&fields(15)).is_some());
    assert!(excerpt(&fields(17)).is_none());
}
