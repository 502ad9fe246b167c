//! `list_files` and `read_file`.

use serde_json::json;

use super::bench::Bench;

#[tokio::test]
async fn folders_come_first_then_names() {
    let bench = Bench::with(&[("b.txt", "12"), ("a.txt", ""), ("z/x.txt", ""), ("d/x.txt", "")]);
    bench.link("c", "b.txt");
    assert_eq!(
        bench.ok("list_files", "{}").await,
        json!({"path": ".", "entries": [
            {"name": "d", "kind": "folder"},
            {"name": "z", "kind": "folder"},
            {"name": "a.txt", "kind": "file", "size": 0},
            {"name": "b.txt", "kind": "file", "size": 2},
            {"name": "c", "kind": "link"},
        ], "total": 5})
    );
    let folder = bench.ok("list_files", r#"{"path": "./d/"}"#).await;
    assert_eq!(folder["path"], "d");
    assert_eq!(folder["total"], 1);
}

#[tokio::test]
async fn a_large_folder_is_cut() {
    let bench = Bench::new();
    for n in 0..510 {
        bench.write(&format!("{n:03}"), "");
    }
    let result = bench.ok("list_files", "{}").await;
    assert_eq!(result["entries"].as_array().unwrap().len(), 500);
    assert_eq!(result["entries"][499]["name"], "499");
    assert_eq!(result["total"], 510);
}

#[tokio::test]
async fn a_file_or_some_of_its_lines_are_read() {
    let bench = Bench::with(&[("d/a.txt", "one\ntwo\nthree")]);
    let whole = json!({"path": "d/a.txt", "text": "one\ntwo\nthree", "lines": 3});
    assert_eq!(bench.ok("read_file", r#"{"path": "d/a.txt"}"#).await, whole);
    let absolute = json!({"path": bench.path("d/a.txt")}).to_string();
    assert_eq!(bench.ok("read_file", &absolute).await, whole);
    assert_eq!(bench.ok("read_file", r#"{"path": "d/../d/./a.txt"}"#).await["text"], whole["text"]);
    for (range, text) in [
        (r#""from_line": 2"#, "two\nthree"),
        (r#""to_line": 1"#, "one\n"),
        (r#""from_line": 2, "to_line": 2"#, "two\n"),
        (r#""from_line": 3, "to_line": 99"#, "three"),
    ] {
        let result = bench.ok("read_file", &format!(r#"{{"path": "d/a.txt", {range}}}"#)).await;
        assert_eq!((&result["text"], &result["lines"]), (&json!(text), &json!(3)));
    }
    assert_eq!(
        bench.refusal("read_file", r#"{"path": "d/a.txt", "from_line": 4}"#).await,
        "'d/a.txt' has only 3 lines."
    );
}

#[tokio::test]
async fn an_empty_file_has_an_empty_text() {
    let bench = Bench::with(&[("a.txt", "")]);
    let result = bench.ok("read_file", r#"{"path": "a.txt"}"#).await;
    assert_eq!(result, json!({"path": "a.txt", "text": "", "lines": 0}));
}

#[tokio::test]
async fn binary_and_large_files_are_refused() {
    let bench = Bench::new();
    bench.write("zero", b"a\0b");
    bench.write("latin", b"\xe9t\xe9");
    bench.write("just", vec![b'x'; 1 << 20]);
    bench.write("large", vec![b'x'; (1 << 20) + 1]);
    bench.write("d/x", "");
    bench.ok("read_file", r#"{"path": "just"}"#).await;
    for (path, message) in [
        ("zero", "'zero' is not text: it is a binary file of 3 bytes."),
        ("latin", "'latin' is not text: it is a binary file of 3 bytes."),
        ("large", "'large' is too large: it has 1048577 bytes, and at most 1048576 can be read."),
        ("d", "'d' is not a file. If it is a folder, use list_files to see what is in it."),
    ] {
        let arguments = json!({ "path": path }).to_string();
        assert_eq!(bench.refusal("read_file", &arguments).await, message);
    }
}

#[tokio::test]
async fn a_missing_file_suggests_a_similar_name() {
    let bench = Bench::with(&[("notes.txt", ""), ("docs/README.md", "")]);
    for (tool, path, message) in [
        ("read_file", "missing.txt", "There is no file 'missing.txt' in the workspace."),
        (
            "read_file",
            "note.txt",
            "There is no file 'note.txt' in the workspace. Did you mean 'notes.txt'?",
        ),
        (
            "read_file",
            "docs/readme.md",
            "There is no file 'docs/readme.md' in the workspace. Did you mean 'docs/README.md'?",
        ),
        ("list_files", "doc", "There is no folder 'doc' in the workspace. Did you mean 'docs'?"),
        (
            "list_files",
            "notes.txt",
            "'notes.txt' is not a folder, or leads through something that is not.",
        ),
    ] {
        let arguments = json!({ "path": path }).to_string();
        assert_eq!(bench.refusal(tool, &arguments).await, message);
    }
    let message = bench.refusal("search_files", r#"{"query": "x", "path": "nowhere"}"#).await;
    assert_eq!(message, "There is no file or folder 'nowhere' in the workspace.");
}

#[tokio::test]
async fn a_missing_workspace_is_an_error() {
    let mut bench = Bench::new();
    bench.context.workspace = bench.path("gone");
    let message = bench.refusal("list_files", "{}").await;
    assert!(message.starts_with("The workspace folder cannot be opened: "), "{message}");
}
