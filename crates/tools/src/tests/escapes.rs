//! Attempts to escape from the workspace, which fail, and links inside it, which work.

use std::collections::HashSet;

use serde_json::json;

use super::bench::Bench;
use crate::workspace::{FilePath, Workspace};

/// Paths that lead to the secret next to the workspace, or to its folder.
fn bench_with_escapes() -> (Bench, Vec<String>) {
    let bench = Bench::with(&[("inside/a.txt", "inside\n")]);
    let outside = bench.outside();
    bench.link("file_link", outside.join("secret.txt"));
    bench.link("folder_link", &outside);
    bench.link("relative_link", "../outside");
    bench.link("inside/deep_link", "../../outside/secret.txt");
    bench.link("link_to_link", "folder_link");
    bench.link("root_link", "/");
    let ways = [
        "..",
        "../outside",
        "../outside/secret.txt",
        "inside/../../outside/secret.txt",
        "file_link",
        "folder_link",
        "folder_link/secret.txt",
        "relative_link/secret.txt",
        "inside/deep_link",
        "link_to_link/secret.txt",
        "root_link/etc/passwd",
        "/etc/passwd",
        "/",
    ];
    let mut ways: Vec<String> = ways.map(str::to_owned).to_vec();
    ways.push(outside.join("secret.txt").display().to_string());
    ways.push(format!("{}/../outside/secret.txt", bench.context.workspace.display()));
    (bench, ways)
}

#[tokio::test]
async fn no_tool_leaves_the_workspace() {
    let (bench, ways) = bench_with_escapes();
    for way in ways {
        for tool in ["read_file", "list_files", "search_files"] {
            let arguments = match tool {
                "search_files" => json!({"query": "secret", "path": way}),
                _ => json!({ "path": way }),
            };
            let message = bench.refusal(tool, &arguments.to_string()).await;
            assert!(message.contains("is outside the workspace folder"), "{tool} {way}: {message}");
        }
    }
}

#[tokio::test]
async fn a_search_does_not_follow_links() {
    let (bench, _) = bench_with_escapes();
    bench.link("inside/loop", "..");
    bench.link("self", "self");
    let result = bench.ok("search_files", r#"{"query": "s"}"#).await;
    assert_eq!(result["matches"], json!([{"path": "inside/a.txt", "line": 1, "text": "inside"}]));
    assert_eq!(result["files"], 1);
}

#[tokio::test]
async fn a_listing_names_links_without_following_them() {
    let (bench, _) = bench_with_escapes();
    let entries = bench.ok("list_files", "{}").await["entries"].clone();
    assert!(entries.as_array().unwrap().contains(&json!({"name": "file_link", "kind": "link"})));
}

/// A folder is swapped with a link to the outside while it is read.
#[test]
fn swapping_in_a_link_is_no_escape() {
    let bench = Bench::with(&[("real/secret.txt", "harmless")]);
    bench.link("way_out", bench.outside());
    let workspace = Workspace::open(&bench.context.workspace, &bench.context.private).unwrap();
    let path = FilePath { given: "x/secret.txt".into(), real: "x/secret.txt".into() };
    let mut texts = HashSet::new();
    bench.while_swapping("x", ["real", "way_out"], || {
        let read = || workspace.text(&path).ok();
        texts.extend((0..5_000).filter_map(|_| read()));
    });
    assert!(texts.iter().all(|it| it == "harmless"), "{texts:?}");
}

/// A person approves a call because of the file that it names. Swapping the link afterwards changes nothing, and
/// swapping the file for a link is an error.
#[tokio::test]
async fn a_prepared_call_opens_what_was_judged() {
    let bench = Bench::with(&[("a.txt", "a"), ("b.txt", "b"), ("folder/x", "x"), ("other/x", "y")]);
    bench.link("link", "a.txt");
    let prepare = |tool: &str, arguments: serde_json::Value| {
        bench.tools.prepare(tool, &arguments.to_string(), &bench.context.workspace)
    };
    let write = prepare("write_file", json!({"path": "link", "text": "new"}));
    let read = prepare("read_file", json!({"path": "folder/x"}));
    let list = prepare("list_files", json!({"path": "folder"}));
    let search = prepare("search_files", json!({"path": "folder", "query": "."}));
    std::fs::remove_file(bench.path("link")).unwrap();
    bench.link("link", "b.txt");
    std::fs::rename(bench.path("folder"), bench.path("moved")).unwrap();
    bench.link("folder", "other");
    assert!(bench.start(&write).await.ok);
    assert_eq!(std::fs::read_to_string(bench.path("a.txt")).unwrap(), "new");
    assert_eq!(std::fs::read_to_string(bench.path("b.txt")).unwrap(), "b");
    for call in [read, list, search] {
        let message = bench.start(&call).await.error.unwrap().message;
        assert!(message.contains("leads elsewhere than when the call was checked"), "{message}");
    }
}

#[tokio::test]
async fn a_workspace_replaced_by_a_link_is_not_opened() {
    let bench = Bench::with(&[("secret.txt", "harmless")]);
    let calls = [
        ("read_file", json!({"path": "secret.txt"})),
        ("list_files", json!({})),
        ("search_files", json!({"query": "secret"})),
        ("write_file", json!({"path": "new.txt", "text": ""})),
        ("shell", json!({"command": "touch new.txt"})),
    ];
    let workspace = &bench.context.workspace;
    let calls = calls.map(|(tool, it)| bench.tools.prepare(tool, &it.to_string(), workspace));
    std::fs::rename(workspace, workspace.with_file_name("moved")).unwrap();
    std::os::unix::fs::symlink(bench.outside(), workspace).unwrap();
    for call in calls {
        let message = bench.start(&call).await.error.unwrap().message;
        assert!(message.contains("leads elsewhere than when the call was checked"), "{message}");
    }
    assert!(!bench.outside().join("new.txt").exists());
}

/// The workspace is configured as a link, which leads elsewhere when the call runs.
#[tokio::test]
async fn a_call_runs_in_the_folder_it_was_judged_for() {
    let bench = Bench::with(&[("secret.txt", "harmless")]);
    let alias = bench.outside().with_file_name("alias");
    std::os::unix::fs::symlink(&bench.context.workspace, &alias).unwrap();
    let prepare = |tool, arguments| bench.tools.prepare(tool, arguments, &alias);
    let read = prepare("read_file", r#"{"path": "secret.txt"}"#);
    let touch = prepare("shell", r#"{"command": "touch new.txt"}"#);
    std::fs::remove_file(&alias).unwrap();
    std::os::unix::fs::symlink(bench.outside(), &alias).unwrap();
    assert_eq!(bench.start(&read).await.result["text"], "harmless");
    assert!(bench.start(&touch).await.ok && bench.path("new.txt").exists());
}

#[tokio::test]
async fn links_within_the_workspace_work() {
    let bench = Bench::with(&[("real/a.txt", "text")]);
    bench.link("file", "real/a.txt");
    bench.link("folder", "real");
    bench.link("real/back", "../real/a.txt");
    for path in ["file", "folder/a.txt", "real/back"] {
        let result = bench.ok("read_file", &json!({ "path": path }).to_string()).await;
        assert_eq!(result["text"], "text");
    }
    assert_eq!(bench.ok("list_files", r#"{"path": "folder"}"#).await["total"], 2);
    let found = bench.ok("search_files", r#"{"query": "text", "path": "folder"}"#).await;
    assert_eq!(found["matches"][0]["path"], "folder/a.txt");
}

/// The opened path is the judged one, which is normalised lexically.
#[tokio::test]
async fn a_parent_of_a_link_is_resolved_lexically() {
    let bench =
        Bench::with(&[("a.txt", "next to the link"), ("d/e/f/x", ""), ("d/e/a.txt", "behind it")]);
    bench.link("link", "d/e/f");
    let result = bench.ok("read_file", r#"{"path": "link/../a.txt"}"#).await;
    assert_eq!((&result["path"], &result["text"]), (&json!("a.txt"), &json!("next to the link")));
    bench.ok("write_file", r#"{"path": "link/../new.txt", "text": ""}"#).await;
    assert!(bench.path("new.txt").exists() && !bench.path("d/e/new.txt").exists());
}

#[tokio::test]
async fn a_linked_workspace_accepts_both_its_paths() {
    let mut bench = Bench::with(&[("a.txt", "text")]);
    let real = bench.path("a.txt");
    let alias = bench.outside().join("alias");
    std::os::unix::fs::symlink(&bench.context.workspace, &alias).unwrap();
    bench.context.workspace = alias.clone();
    for path in [real, alias.join("a.txt")] {
        let result = bench.ok("read_file", &json!({ "path": path }).to_string()).await;
        assert_eq!(result["path"], "a.txt");
    }
}

#[tokio::test]
async fn a_circular_link_is_an_error() {
    let bench = Bench::new();
    bench.link("self", "self");
    let message = bench.refusal("read_file", r#"{"path": "self"}"#).await;
    assert!(message.starts_with("'self' cannot be opened: "), "{message}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "mkfifo ends immediately")]
async fn a_pipe_does_not_block() {
    let bench = Bench::new();
    let made = std::process::Command::new("mkfifo").arg(bench.path("pipe")).status();
    if made.is_ok_and(|it| it.success()) {
        let message = bench.refusal("read_file", r#"{"path": "pipe"}"#).await;
        assert!(message.contains("is not a file"), "{message}");
        assert_eq!(bench.ok("search_files", r#"{"query": "x"}"#).await["files"], 0);
    }
}
