//! `write_file` and `edit_file`.

use std::fs;

use serde_json::json;
use transcript::ErrorCode;

use super::bench::Bench;

#[tokio::test]
async fn a_file_is_created_with_folders_then_replaced() {
    let bench = Bench::new();
    let made = bench.ok("write_file", r#"{"path": "a/b/c.txt", "text": "one"}"#).await;
    assert_eq!(made, json!({"path": "a/b/c.txt", "bytes": 3, "created": true}));
    let again = bench.ok("write_file", r#"{"path": "./a/b/c.txt", "text": "2"}"#).await;
    assert_eq!(again, json!({"path": "a/b/c.txt", "bytes": 1, "created": false}));
    assert_eq!(fs::read_to_string(bench.path("a/b/c.txt")).unwrap(), "2");
}

#[tokio::test]
async fn nothing_is_written_outside() {
    let bench = Bench::with(&[("in.txt", "in")]);
    bench.link("out", bench.outside());
    bench.link("secret", bench.outside().join("secret.txt"));
    bench.link("new", bench.outside().join("new.txt"));
    let absolute = bench.outside().join("secret.txt").display().to_string();
    for path in
        ["../outside/secret.txt", "out/secret.txt", "out/new.txt", "secret", "new", &absolute]
    {
        let write = json!({"path": path, "text": "changed"}).to_string();
        bench.refusal("write_file", &write).await;
        let edit = json!({"path": path, "old_string": "secret", "new_string": "x"}).to_string();
        bench.refusal("edit_file", &edit).await;
    }
    let left: Vec<_> =
        fs::read_dir(bench.outside()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["secret.txt"]);
    assert_eq!(fs::read_to_string(bench.outside().join("secret.txt")).unwrap(), "secret\n");
}

/// A folder is swapped with a link to the outside while it is written to.
#[test]
fn swapping_in_a_link_does_not_lead_a_write_out() {
    let bench = Bench::with(&[("real/secret.txt", "secret\n")]);
    bench.link("link", bench.outside());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    bench.while_swapping("place", ["real", "link"], || {
        for n in 0..500 {
            let write = json!({"path": "place/new.txt", "text": "x"}).to_string();
            runtime.block_on(bench.run("write_file", &write));
            let (old, new) = if n % 2 == 0 { ("secret", "open") } else { ("open", "secret") };
            let edit = json!({"path": "place/secret.txt", "old_string": old, "new_string": new});
            runtime.block_on(bench.run("edit_file", &edit.to_string()));
        }
    });
    assert!(!bench.outside().join("new.txt").exists());
    assert_eq!(fs::read_to_string(bench.outside().join("secret.txt")).unwrap(), "secret\n");
}

#[tokio::test]
async fn the_replaced_text_must_occur_exactly_once() {
    let bench = Bench::with(&[("a.txt", "one two one\n")]);
    let edit = |old: &str, new: &str, all: bool| {
        json!({"path": "a.txt", "old_string": old, "new_string": new, "replace_all": all})
            .to_string()
    };
    assert!(
        bench.refusal("edit_file", &edit("three", "x", false)).await.contains("does not stand")
    );
    assert!(bench.refusal("edit_file", &edit("one", "x", false)).await.contains("2 times"));
    for (old, new) in [("", "x"), ("two", "two")] {
        let (code, _) = bench.error("edit_file", &edit(old, new, false)).await;
        assert_eq!(code, ErrorCode::InvalidArguments);
    }
    assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), "one two one\n");
    bench.ok("edit_file", &edit("two", "$1 2", false)).await;
    let all = bench.ok("edit_file", &edit("one", "1", true)).await;
    assert_eq!(all["replacements"], 2);
    assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), "1 $1 2 1\n");
}
