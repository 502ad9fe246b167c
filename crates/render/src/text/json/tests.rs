//! Indented JSON has the same tokens as its source.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::{MAX_DEPTH, MAX_TEXT, pretty, tokens};
use crate::testing::dom::element;

fn shown(text: &str) -> String {
    element("j", &pretty(text).into_string()).text()
}

fn check(json: &str) {
    let shown = shown(json);
    assert_eq!(tokens(&shown), tokens(json), "{json}");
    assert!(serde_json::from_str::<&RawValue>(&shown).is_ok(), "{shown}");
}

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,4})?(e[+-]?[0-9]{1,2})?",
        "\"([a-z<>& \u{e9}\u{1f600}]|\\\\[nt\"\\\\/]|\\\\u00[0-7][0-9a-f]){0,12}\"",
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        let space = prop::sample::select(vec!["", " ", "\n\t"]);
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..8), space.clone())
                .prop_map(|(items, space)| format!("[{space}{}{space}]", items.join(","))),
            (prop::collection::vec(("\"[a-c]\"", inner), 0..8), space).prop_map(
                |(entries, space)| {
                    let entries: Vec<_> =
                        entries.iter().map(|(k, v)| format!("{k}{space}:{v}")).collect();
                    format!("{{{}{space}}}", entries.join(", "))
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn indented_json_is_the_same_json(json in any_json()) {
        check(&json);
    }

    #[test]
    fn every_prefix_of_json_is_json_or_unchanged(json in any_json()) {
        for (at, _) in json.char_indices() {
            let cut = &json[..at];
            let is_json = serde_json::from_str::<&RawValue>(cut).is_ok();
            if is_json { check(cut) } else { assert_eq!(shown(cut), cut) }
        }
    }
}

#[test]
fn numbers_keys_and_escapes_are_unchanged() {
    check(
        r#"{"z":1.0,"a":12345678901234567890123,"z":1E400,"u":"\u003cb\u003e <i>","e":{},"l":[]}"#,
    );
    check("  3.140  ");
    let html = pretty(r#"{"<b>":"</span><script>"}"#).into_string();
    assert!(!html.contains("<b>") && !html.contains("<script>"), "{html}");
}

#[test]
fn too_deep_or_too_long_text_is_unchanged() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    check(&deep(MAX_DEPTH));
    assert_eq!(shown(&deep(MAX_DEPTH + 1)), deep(MAX_DEPTH + 1));
    assert_eq!(shown(&deep(100_000)), deep(100_000));
    let long = format!("[{}1]", "1,".repeat(MAX_TEXT / 2));
    assert_eq!(shown(&long), long);
    assert_eq!(shown("{\"a\": <b>"), "{\"a\": <b>");
}

#[test]
fn deep_and_long_values_are_folded() {
    let many = format!("[[{}]]", vec!["[1]"; 60].join(","));
    expect![[r#"
        <div class="json"><details open data-holds="2 keys"><summary>{</summary>
          <span class="json-key">&quot;a&quot;</span>: <details open data-holds="1 key"><summary>{</summary>
            <span class="json-key">&quot;b&quot;</span>: <details open data-holds="1 item"><summary>[</summary>
              <details open data-holds="1 key"><summary>{</summary>
                <span class="json-key">&quot;c&quot;</span>: [<span class="json-number">1</span>, <span class="json-number">2</span>]
              }</details>
            ]</details>
          }</details>,
          <span class="json-key">&quot;d&quot;</span>: [<span class="json-word">true</span>, <span class="json-word">null</span>]
        }</details></div>"#]].assert_eq(&pretty(r#"{"a":{"b":[{"c":[1,2]}]},"d":[true,null]}"#).into_string());
    assert!(pretty(&many).into_string().contains("<details data-holds=\"60 items\">"));
    let deep = format!("[[[[\"{}\"]]]]", "long ".repeat(100));
    assert!(pretty(&deep).into_string().contains("<details data-holds=\"1 item\">"));
}
