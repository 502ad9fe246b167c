//! One-line summaries of the arguments of calls.

use transcript::arguments_summary;

#[track_caller]
fn check(arguments: &str, summary: &str) {
    assert_eq!(arguments_summary(arguments), summary);
}

#[test]
fn names_values_and_their_order() {
    check(r#"{"query":"dbplus","types":["program"]}"#, "query: 'dbplus', types: ['program']");
    check(r#"{"z":1,"a":true,"m":null}"#, "z: 1, a: true, m: null");
    check(r#"{"a":1.5,"b":2,"c":3,"d":4}"#, "a: 1.5, b: 2, c: 3");
    check(r#"{"where":{"name":"x","n":[1,"y"]}}"#, "where: {name: 'x', n: [1, 'y']}");
    check(r#"{"list":[],"map":{}}"#, "list: [], map: {}");
}

#[test]
fn long_values_are_cut() {
    check(r#"{"just":"123456789012345678901234567"}"#, "just: '123456789012345678901234567'");
    check(r#"{"over":"1234567890123456789012345678"}"#, "over: '123456789012345678901234567...'");
    check(
        r#"{"umlauts":"ääääääääääääääääääääääääääää"}"#,
        "umlauts: 'äääääääääääääääääääääääääää...'",
    );
    check(
        r#"{"list":["one","two","three","four","five"]}"#,
        "list: ['one', 'two', 'three', 'fo...",
    );
}

#[test]
fn without_arguments_it_is_empty() {
    for arguments in ["", "{}", "[1]", "\"text\"", "{\"broken\":", "null"] {
        check(arguments, "");
    }
}
