//! How clients declare the tools that they run.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::client_tools;

#[test]
fn a_tool_is_the_same_in_all_words() {
    let schema = json!({ "type": "object", "properties": { "of": { "type": "string" } } });
    let tool = json!({ "description": "Picks", "parameters": schema });
    let mut named = tool.clone();
    named["name"] = json!("pick");
    let words = [
        json!({ "pick": tool }),
        json!({ "pick": { "description": "Picks", "inputSchema": schema } }),
        json!({ "pick": { "description": "Picks", "inputSchema": { "jsonSchema": schema } } }),
        json!([named]),
        json!([{ "type": "function", "function": named }]),
    ];
    let read = words.map(|it| client_tools(&it).unwrap());
    assert!(read.iter().all(|it| *it == read[0]), "{read:?}");
    let [only] = read[0].as_slice() else { panic!("{read:?}") };
    assert_eq!((only.name.as_str(), only.description.as_str()), ("pick", "Picks"));
    assert_eq!(only.parameters, schema);
}

#[test]
fn little_is_needed() {
    assert_eq!(client_tools(&Value::Null), Ok(Vec::new()));
    assert_eq!(client_tools(&json!({})), Ok(Vec::new()));
    let [only] = &client_tools(&json!({ "a-b_9": {} })).unwrap()[..] else { panic!() };
    assert_eq!((only.name.as_str(), only.description.as_str()), ("a-b_9", ""));
    assert_eq!(only.parameters, json!({ "type": "object" }));
    let longest = "x".repeat(64);
    assert_eq!(client_tools(&json!([{ "name": longest }])).unwrap()[0].name, longest);
}

#[test]
fn invalid_requests_get_a_reason() {
    let long = "x".repeat(65);
    let bad = [
        json!(7),
        json!({ "": {} }),
        json!({ "a b": {} }),
        json!({ "größe": {} }),
        json!({ long: {} }),
        json!([{}]),
        json!([{ "name": "good" }, { "function": {} }]),
        json!({ "pick": { "parameters": "{}" } }),
    ];
    let whys = bad
        .iter()
        .map(|it| client_tools(it).unwrap_err().to_string().replace(&"x".repeat(65), "xxx..."));
    expect![[r#"
        `tools` is neither an object nor an array.
        `tools.` has no name of 1 to 64 letters, digits, '_' or '-'.
        `tools.a b` has no name of 1 to 64 letters, digits, '_' or '-'.
        `tools.größe` has no name of 1 to 64 letters, digits, '_' or '-'.
        `tools.xxx...` has no name of 1 to 64 letters, digits, '_' or '-'.
        `tools[0]` has no name of 1 to 64 letters, digits, '_' or '-'.
        `tools[1].function` has no name of 1 to 64 letters, digits, '_' or '-'.
        `tools.pick.parameters` is no JSON Schema.
    "#]]
    .assert_eq(&(whys.collect::<Vec<_>>().join("\n") + "\n"));
}

proptest! {
    /// Whatever is read has a name that a model service takes, and a schema that is an object.
    #[test]
    fn tools_are_well_named(name in ".{0,70}", tool in crate::tests::any_json()) {
        if let Ok(tools) = client_tools(&json!({ name: tool })) {
            for tool in tools {
                prop_assert!((1..=64).contains(&tool.name.len()));
                prop_assert!(tool.name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)));
                prop_assert!(tool.parameters.is_object());
            }
        }
    }
}
