//! The files that Codex changes, as one unified diff.
//!
//! Codex gives hunks for a file that it updates, and the plain content of one that it adds or deletes.

use serde_json::Value;

pub(super) fn unified(changes: &[Value]) -> String {
    changes.iter().map(of_file).collect()
}

fn of_file(change: &Value) -> String {
    let path = change["path"].as_str().unwrap_or_default();
    let body = change["diff"].as_str().unwrap_or_default();
    let kind = change["kind"]["type"].as_str().unwrap_or_default();
    let new_path = change["kind"]["move_path"].as_str().unwrap_or(path);
    match kind {
        "add" => format!("--- /dev/null\n+++ {path}\n{}", whole_file('+', body)),
        "delete" => format!("--- {path}\n+++ /dev/null\n{}", whole_file('-', body)),
        _ => format!("--- {path}\n+++ {new_path}\n{}", with_newline(body)),
    }
}

fn whole_file(sign: char, content: &str) -> String {
    // A newer Codex may give a real diff.
    if content.starts_with("@@ ") {
        return with_newline(content);
    }
    let n_lines = content.lines().count();
    let range = |n| if n == 0 { "0,0".to_owned() } else { format!("1,{n}") };
    let (old, new) = if sign == '+' { (0, n_lines) } else { (n_lines, 0) };
    let lines: String = content.lines().map(|line| format!("{sign}{line}\n")).collect();
    format!("@@ -{} +{} @@\n{lines}", range(old), range(new))
}

fn with_newline(text: &str) -> String {
    let is_open = !text.is_empty() && !text.ends_with('\n');
    format!("{text}{}", if is_open { "\n" } else { "" })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::unified;

    #[test]
    fn diff_of_added_updated_moved_and_deleted_files() {
        let changes = [
            json!({ "path": "/w/new.txt", "kind": { "type": "add" }, "diff": "one\ntwo\n" }),
            json!({ "path": "/w/empty", "kind": { "type": "add" }, "diff": "" }),
            json!({ "path": "/w/a", "kind": { "type": "update" }, "diff": "@@ -1 +1 @@\n-a\n+b" }),
            json!({ "path": "/w/b", "kind": { "type": "update", "move_path": "/w/c" }, "diff": "" }),
            json!({ "path": "/w/gone", "kind": { "type": "delete" }, "diff": "last\n" }),
            json!(7),
        ];
        expect![[r#"
            --- /dev/null
            +++ /w/new.txt
            @@ -0,0 +1,2 @@
            +one
            +two
            --- /dev/null
            +++ /w/empty
            @@ -0,0 +0,0 @@
            --- /w/a
            +++ /w/a
            @@ -1 +1 @@
            -a
            +b
            --- /w/b
            +++ /w/c
            --- /w/gone
            +++ /dev/null
            @@ -1,1 +0,0 @@
            -last
            --- 
            +++ 
        "#]]
        .assert_eq(&unified(&changes));
    }
}
