//! Describes in words what a configuration file would do, for the person who has to trust it.
//!
//! Every setting of the file is named in one line or another. Settings that change nothing but how things
//! look are left out, by an allowlist.

use std::path::Path;

use toml::{Table, Value};

/// Settings that start nothing, allow nothing and reach nothing.
const DISPLAY_ONLY: [&[&str]; 1] = [&["demo", "pace"]];

/// One line for each setting. Empty if the file needs no agreement.
pub(super) fn effects(text: &str, folder: &Path) -> Vec<String> {
    let Ok(table) = text.parse::<Table>() else {
        return vec!["stop the start: it is not valid TOML".to_owned()];
    };
    let mut lines = Vec::new();
    walk(&Value::Table(table), &mut Vec::new(), &mut |path, value| {
        if !DISPLAY_ONLY.iter().any(|it| path == *it) {
            lines.push(visible(&effect(path, value, folder)));
        }
    });
    lines
}

/// Calls `found` for every value that is not a table of further settings.
fn walk(value: &Value, path: &mut Vec<String>, found: &mut impl FnMut(&[String], &Value)) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                path.push(key.clone());
                walk(value, path, found);
                path.pop();
            }
        }
        Value::Array(list) if list.iter().any(Value::is_table) => {
            for (idx, value) in list.iter().enumerate() {
                let id = value.get("id").and_then(Value::as_str);
                path.push(id.map_or(idx.to_string(), str::to_owned));
                walk(value, path, found);
                path.pop();
            }
        }
        value => found(path, value),
    }
}

fn effect(path: &[String], value: &Value, folder: &Path) -> String {
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    match (steps.as_slice(), value) {
        (["agents" | "mcp_servers", owner, "command"], _) => {
            let words = words(value);
            format!("run {} (for {owner}){}", words.join(" "), changeable(&words, folder))
        }
        (["agents" | "mcp_servers", owner, "args"], _) => {
            let words = words(value);
            let more = changeable(&words, folder);
            format!("give {owner} the arguments {}{more}", words.join(" "))
        }
        (["approvals", ..], Value::String(rule)) if rule == "allow" => {
            format!("allow without asking: {}", steps[1..].join("."))
        }
        (["approvals", tool, "allow"], _) => {
            format!("allow without asking: {tool} {}", words(value).join(", "))
        }
        (["server", "allowed_origins"], _) => {
            format!("let pages of {} use this server", words(value).join(", "))
        }
        _ => format!("set {} = {value}", steps.join(".")),
    }
}

/// On one line, with everything written out that a terminal would not show or would show as a blank.
fn visible(text: &str) -> String {
    const FILLERS: [char; 4] = ['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}'];
    let is_plain = |it: char| {
        it == ' ' || it.is_ascii_graphic() || it.is_alphanumeric() && !FILLERS.contains(&it)
    };
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_plain(letter) {
            true => shown.push(letter),
            false => shown.extend(letter.escape_unicode()),
        }
    }
    shown
}

fn words(value: &Value) -> Vec<String> {
    let word = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    match value {
        Value::Array(list) => list.iter().map(word).collect(),
        value => vec![word(value)],
    }
}

/// An agreement covers the configuration file alone: files that it runs may change later.
fn changeable(words: &[String], folder: &Path) -> String {
    let is_inside = |it: &&str| {
        let file = folder.join(it);
        file.is_file() && file.starts_with(folder)
    };
    // `--config=./file` names a file as well.
    let values = words.iter().filter_map(|it| Some(it.split_once('=')?.1));
    let inside: Vec<&str> =
        words.iter().map(String::as_str).chain(values).filter(is_inside).collect();
    match inside.is_empty() {
        true => String::new(),
        false => format!(
            "; {} is a file in this folder, which can change without another question",
            inside.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    //! Every setting is named, and display settings are not.

    use super::*;

    #[test]
    fn every_setting_is_named_but_display_settings() {
        let text = "demo = { pace = \"instant\" }\n[server]\nlisten = 1\nallowed_origins = [\"http://a\"]\n\
                    [[agents]]\nid = \"x\"\nkind = \"codex\"\ncommand = [\"./t\u{202e}.sh\", \"a\"]\n\
                    [approvals.rules]\n\"*\" = \"allow\"\n\
                    [[mcp_servers]]\nid = \"m\"\ncommand = [\"evil\"]\nenv = { A = \"b\" }\n";
        let said = effects(text, Path::new("/nowhere"));
        assert_eq!(
            said,
            [
                "run ./t\\u{202e}.sh a (for x)",
                "set agents.x.id = \"x\"",
                "set agents.x.kind = \"codex\"",
                "allow without asking: rules.*",
                "run evil (for m)",
                "set mcp_servers.m.env.A = \"b\"",
                "set mcp_servers.m.id = \"m\"",
                "let pages of http://a use this server",
                "set server.listen = 1",
            ]
        );
        assert_eq!(visible("a\u{a0}b\nc\u{200b}é"), "a\\u{a0}b\\u{a}c\\u{200b}é");
        assert!(effects("[demo]\npace = \"natural\"\n", Path::new("/")).is_empty());
        assert!(effects("", Path::new("/")).is_empty());
        assert_eq!(effects("demo = false", Path::new("/")), ["set demo = false"]);
        assert_eq!(effects("[[", Path::new("/")).len(), 1);
    }

    #[test]
    fn a_file_of_the_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tool.sh"), "").unwrap();
        let with_option = r#"["sh", "--rcfile=tool.sh"]"#;
        for command in [r#"["./tool.sh"]"#, r#"["sh", "tool.sh"]"#, r#""./tool.sh""#, with_option] {
            let text = format!("[[agents]]\ncommand = {command}\n");
            let said = effects(&text, dir.path()).join("\n");
            assert!(said.contains("tool.sh is a file in this folder"), "{said}");
        }
    }
}
