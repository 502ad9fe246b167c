//! `search_files`: matches, skipped files, and limits.

use std::fs;

use serde_json::{Value, json};
use transcript::ErrorCode;

use super::bench::Bench;

impl Bench {
    async fn search(&self, arguments: Value) -> Value {
        self.ok("search_files", &arguments.to_string()).await
    }

    /// The files with a match, as `path:line`.
    async fn found(&self, arguments: Value) -> Vec<String> {
        let result = self.search(arguments).await;
        let matches = result["matches"].as_array().unwrap().iter();
        matches.map(|it| format!("{}:{}", it["path"].as_str().unwrap(), it["line"])).collect()
    }
}

#[tokio::test]
async fn matches_have_line_numbers() {
    let bench = Bench::with(&[
        ("a.txt", "Plan\nnothing\nthe plan"),
        ("src/b.rs", "PLAN"),
        (".git/c", "plan"),
        (".hidden/c", "plan"),
        ("target/c", "plan"),
        ("src/node_modules/c", "plan"),
        (".env", "plan"),
        ("binary", "plan\0"),
    ]);
    let found =
        |path: &str, line: u32, text: &str| json!({"path": path, "line": line, "text": text});
    assert_eq!(
        bench.search(json!({"query": "plan"})).await,
        json!({"query": "plan", "matches": [
            found(".env", 1, "plan"),
            found("a.txt", 1, "Plan"),
            found("a.txt", 3, "the plan"),
            found("src/b.rs", 1, "PLAN"),
        ], "total": 4, "files": 3})
    );
    let below = bench.search(json!({"query": "plan", "path": "src"})).await;
    assert_eq!(below["matches"], json!([found("src/b.rs", 1, "PLAN")]));
    let one = bench.search(json!({"query": "plan", "path": "a.txt"})).await;
    assert_eq!((&one["total"], &one["files"]), (&json!(2), &json!(1)));
    assert_eq!(bench.found(json!({"query": "plan", "path": "target"})).await, ["target/c:1"]);
    assert_eq!(bench.found(json!({"query": "plan", "path": ".hidden"})).await, [".hidden/c:1"]);
}

#[tokio::test]
async fn a_query_is_a_pattern_with_smart_case() {
    let bench = Bench::with(&[("a", "Foo(1)\nfoo bar\nFOO  12\nplain")]);
    for (query, case, expected) in [
        ("foo", "smart", vec![1, 2, 3]),
        ("Foo", "smart", vec![1]),
        (r"foo\S", "smart", vec![1]),
        ("foo", "sensitive", vec![2]),
        ("FOO", "insensitive", vec![1, 2, 3]),
        (r"o\(1\)$", "smart", vec![1]),
        (r"^foo\s+(bar|\d+)$", "smart", vec![2, 3]),
        ("plain|bar", "smart", vec![2, 4]),
        (".", "smart", vec![1, 2, 3, 4]),
        ("nothing", "smart", vec![]),
    ] {
        let expected: Vec<String> = expected.iter().map(|it| format!("a:{it}")).collect();
        assert_eq!(bench.found(json!({"query": query, "case": case})).await, expected, "{query}");
    }
}

#[tokio::test]
async fn ignored_files_are_skipped() {
    let bench = Bench::with(&[
        (".gitignore", "*.log\n/build\n# comment\n!keep.log\nsecret/\n"),
        ("a.log", "x"),
        ("keep.log", "x"),
        ("build/a", "x"),
        ("src/build/a", "x"),
        ("src/secret/a", "x"),
        ("src/.gitignore", "*.tmp\n!a.log\n/only\n["),
        ("src/a.tmp", "x"),
        ("src/a.log", "x"),
        ("src/only", "x"),
        ("src/deep/only", "x"),
        ("src/deep/a.tmp", "x"),
        (".ignore", "ours\n"),
        ("src/ours", "x"),
        ("a.tmp", "x"),
    ]);
    let all = ["a.tmp:1", "keep.log:1", "src/a.log:1", "src/build/a:1", "src/deep/only:1"];
    assert_eq!(bench.found(json!({"query": "x"})).await, all);
    assert_eq!(bench.found(json!({"query": "x", "path": "src"})).await, all[2..]);
    assert_eq!(
        bench.found(json!({"query": "x", "path": "src/deep"})).await,
        ["src/deep/only:1"],
        "folders above have their say"
    );
    for path in ["a.log", "build", "src/secret"] {
        let found = bench.found(json!({"query": "x", "path": path})).await;
        assert_eq!(found.len(), 1, "{path} is asked for by its name");
    }
}

#[tokio::test]
async fn rules_outside_the_workspace_are_not_read() {
    let bench = Bench::with(&[("a.txt", "x"), ("in/b.txt", "x")]);
    fs::write(bench.outside().join("rules"), "*.txt\n").unwrap();
    fs::write(bench.outside().join("../.gitignore"), "*.txt\n").unwrap();
    bench.link("in/.gitignore", bench.outside().join("rules"));
    assert_eq!(bench.found(json!({"query": "x"})).await, ["a.txt:1", "in/b.txt:1"]);
}

#[tokio::test]
async fn globs_choose_files() {
    let names = ["a.md", "a.rs", "docs/b.md", "src/b.rs", "src/deep/c.rs", "src/deep/c.txt"];
    let bench = Bench::with(&names.map(|it| (it, "x")));
    for (include, exclude, expected) in [
        (vec!["*.rs"], vec![], vec!["a.rs", "src/b.rs", "src/deep/c.rs"]),
        (vec!["*.rs", "*.md"], vec!["deep"], vec!["a.md", "a.rs", "docs/b.md", "src/b.rs"]),
        (vec!["src/"], vec![], vec!["src/b.rs", "src/deep/c.rs", "src/deep/c.txt"]),
        (vec!["/*.rs"], vec![], vec!["a.rs"]),
        (vec!["src/**/c.*"], vec!["*.txt"], vec!["src/deep/c.rs"]),
        (vec!["*.{md,txt}"], vec!["/docs"], vec!["a.md", "src/deep/c.txt"]),
        (vec![], vec!["*.rs", "*.txt"], vec!["a.md", "docs/b.md"]),
        (vec!["*.none"], vec![], vec![]),
    ] {
        let arguments = json!({"query": "x", "include": include, "exclude": exclude});
        let expected: Vec<String> = expected.iter().map(|it| format!("{it}:1")).collect();
        assert_eq!(bench.found(arguments.clone()).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn context_lines_are_returned() {
    let bench = Bench::with(&[("a", "1\n2\nhit\n4\nhit")]);
    let result = bench.search(json!({"query": "hit", "context": 2})).await;
    assert_eq!(
        result["matches"],
        json!([
            {"path": "a", "line": 3, "text": "hit", "before": ["1", "2"], "after": ["4", "hit"]},
            {"path": "a", "line": 5, "text": "hit", "before": ["hit", "4"]},
        ])
    );
}

#[tokio::test]
async fn a_search_has_limits() {
    let bench = Bench::new();
    bench.write("a.txt", "x\n".repeat(9_999));
    bench.write("b.txt", "x\n".repeat(10));
    bench.write("c.txt", "x");
    let result = bench.search(json!({"query": "x"})).await;
    assert_eq!(result["matches"].as_array().unwrap().len(), 200);
    assert_eq!((&result["total"], &result["files"]), (&json!(10_000), &json!(2)));
    let few = bench.search(json!({"query": "x", "max_results": 3})).await;
    assert_eq!(few["matches"].as_array().unwrap().len(), 3);
    assert_eq!(few["total"], 10_000, "all are counted");
}

#[tokio::test]
async fn a_long_line_is_cut_around_the_match() {
    for (before, after) in [(0, 0), (0, 500), (500, 0), (500, 500), (10, 500), (97, 97), (98, 99)] {
        let line = format!("{}HIT{}", "ä".repeat(before), "ö".repeat(after));
        let bench = Bench::with(&[("a", &line)]);
        let result = bench.search(json!({"query": "HIT"})).await;
        let text = result["matches"][0]["text"].as_str().unwrap();
        let bare = text.trim_start_matches('…').trim_end_matches('…');
        assert!(text.contains("HIT") && line.contains(bare), "{text}");
        assert_eq!(bare.chars().count(), line.chars().count().min(200), "{before} {after}");
        assert_eq!(text.starts_with('…'), !line.starts_with(bare));
        assert_eq!(text.ends_with('…'), !line.ends_with(bare));
    }
}

#[tokio::test]
async fn invalid_arguments_are_refused() {
    let bench = Bench::with(&[("a", "x")]);
    for (arguments, words) in [
        (json!({"query": ""}), "query"),
        (json!({"query": "("}), "unclosed group"),
        (json!({"query": "x{1000}{1000}{1000}"}), "size limit"),
        (json!({"query": "x", "include": ["["]}), "include"),
        (json!({"query": "x", "exclude": ["a{"]}), "exclude"),
        (json!({"query": "x", "exclude": "a"}), "exclude"),
        (json!({"query": "x", "case": "loud"}), "case"),
        (json!({"query": "x", "context": 11}), "context"),
        (json!({"query": "x", "context": -1}), "context"),
        (json!({"query": "x", "max_results": 0}), "max_results"),
        (json!({"query": "x", "flags": "-e"}), "flags"),
    ] {
        let (code, message) = bench.error("search_files", &arguments.to_string()).await;
        assert_eq!(code, ErrorCode::InvalidArguments, "{arguments}");
        assert!(message.contains(words), "{arguments}: {message}");
    }
}

/// Texts that look like options of a program have no special meaning.
#[tokio::test]
async fn queries_are_never_options() {
    let bench = Bench::with(&[("-e", "--pre=sh\n"), ("a", "x\n")]);
    assert_eq!(bench.found(json!({"query": "--pre=sh"})).await, ["-e:1"]);
    assert_eq!(bench.found(json!({"query": "sh", "path": "-e"})).await, ["-e:1"]);
    let message = bench.refusal("search_files", r#"{"query": "x", "path": "--pre=sh"}"#).await;
    assert!(message.contains("There is no file"), "{message}");
    assert_eq!(bench.found(json!({"query": "-f/etc/passwd"})).await, Vec::<String>::new());
    assert_eq!(bench.found(json!({"query": "x", "include": ["--", "a"]})).await, ["a:1"]);
}

#[tokio::test]
async fn a_stopped_search_ends() {
    let bench = Bench::with(&[("a.txt", "x")]);
    bench.stop.send(true).unwrap();
    let (code, _) = bench.error("search_files", r#"{"query": "x"}"#).await;
    assert_eq!(code, ErrorCode::ToolInterrupted);
}

/// Folders are swapped with links to the outside while they are searched.
#[test]
fn swapping_in_links_does_not_lead_a_search_out() {
    let bench = Bench::with(&[("d/real/secret.txt", "harmless")]);
    bench.link("way_out", bench.outside());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut texts = Vec::new();
    bench.while_swapping("d/x", ["d/real", "way_out"], || {
        for path in ["d", "d/x", "."].into_iter().cycle().take(600) {
            let arguments = json!({"query": "secret|harmless", "path": path}).to_string();
            let outcome = runtime.block_on(bench.run("search_files", &arguments));
            texts.extend(outcome.result["matches"].as_array().cloned().unwrap_or_default());
        }
    });
    assert!(texts.iter().all(|it| it["text"] == "harmless"), "{texts:?}");
}
