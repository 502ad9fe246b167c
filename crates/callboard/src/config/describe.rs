//! Describes the effects of a configuration file for the person who has to trust it.
//!
//! The description names every setting of the file, except those on an allowlist that only affect
//! the display.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// Maximum number of harmless settings of a configuration file that are listed. Further ones are
/// only counted, so that the other settings stay visible.
const MAX_SETTINGS: usize = 40;

/// Paths of settings that start nothing, permit nothing and connect to nothing.
const DISPLAY_ONLY: [&[&str]; 1] = [&["demo", "pace"]];

/// Returns one line for each setting of a configuration file in `folder`. Settings that run or
/// permit something come last, so that they are next to the prompt. Empty if the file needs no
/// agreement.
pub(super) fn effects(text: &str, folder: &Path) -> Vec<String> {
    let Ok(table) = text.parse::<Table>() else {
        return vec!["stop the start: it is not valid TOML".to_owned()];
    };
    let table = Value::Table(table);
    let mut folders = vec![folder.to_owned()];
    walk(&table, &mut Vec::new(), &mut |path, value| {
        let is_folder = path.last().is_some_and(|it| it == "cwd" || it == "workspace");
        folders.extend(value.as_str().filter(|_| is_folder).map(|it| folder.join(it)));
    });
    let (mut lines, mut last) = (Vec::new(), Vec::new());
    walk(&table, &mut Vec::new(), &mut |path, value| {
        if !DISPLAY_ONLY.iter().any(|it| path == *it) {
            let line = visible(&effect(path, value, &folders));
            let list = if line.starts_with("set ") { &mut lines } else { &mut last };
            list.push(line);
        }
    });
    if lines.len() > MAX_SETTINGS {
        let n_more = lines.len() - MAX_SETTINGS;
        lines.truncate(MAX_SETTINGS);
        lines.push(format!("set {n_more} more values"));
    }
    lines.append(&mut last);
    lines
}

/// Calls `found` with every TOML value that is not a table of further settings, and its path.
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

fn effect(path: &[String], value: &Value, folders: &[PathBuf]) -> String {
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    match (steps.as_slice(), value) {
        (["agents" | "mcp_servers", owner, "command"], _) => {
            let words = words(value);
            format!("run {} (for {owner}){}", words.join(" "), changeable(&words, folders))
        }
        (["agents" | "mcp_servers", owner, "args"], _) => {
            let words = words(value);
            let more = changeable(&words, folders);
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

/// Returns the text on one line, with invisible characters and unusual blanks escaped.
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

/// Returns a warning if words of a command name files in these folders, else an empty text. A
/// person's agreement covers only the configuration file, and such files can change later.
///
/// A file is named by a relative path, or by the name of an existing one, as a word or within one
/// (`--config=./file`, `sh -c "./file --option"`).
fn changeable(words: &[String], folders: &[PathBuf]) -> String {
    let is_inside = |word: &&str| {
        let path = Path::new(word);
        let is_path = path.is_relative() && word.contains('/') && !word.contains("://");
        let is_there = |it: &PathBuf| it.join(path).is_file() && it.join(path).starts_with(it);
        !word.is_empty() && (is_path || folders.iter().any(is_there))
    };
    let is_sign = |it: char| it.is_whitespace() || "=;&|<>()'\"`".contains(it);
    let mut inside: Vec<&str> =
        words.iter().flat_map(|it| it.split(is_sign)).filter(is_inside).collect();
    inside.dedup();
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
    //! Every setting is named, except display settings.

    use super::*;

    #[test]
    fn every_setting_except_display_settings_is_named() {
        let text = "demo = { pace = \"instant\" }\n[server]\nlisten = 1\nallowed_origins = [\"http://a\"]\n\
                    [[agents]]\nid = \"x\"\nkind = \"codex\"\ncommand = [\"./t\u{202e}.sh\", \"a\"]\n\
                    [approvals.rules]\n\"*\" = \"allow\"\n\
                    [[mcp_servers]]\nid = \"m\"\ncommand = [\"evil\"]\nenv = { A = \"b\" }\n";
        let lines = effects(text, Path::new("/nowhere"));
        assert_eq!(
            lines,
            [
                "set agents.x.id = \"x\"",
                "set agents.x.kind = \"codex\"",
                "set mcp_servers.m.env.A = \"b\"",
                "set mcp_servers.m.id = \"m\"",
                "set server.listen = 1",
                "run ./t\\u{202e}.sh a (for x); ./t\\u{202e}.sh is a file in this folder, which can change \
                 without another question",
                "allow without asking: rules.*",
                "run evil (for m)",
                "let pages of http://a use this server",
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
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/inner.sh"), "").unwrap();
        for (command, file) in [
            (r#"["./tool.sh"]"#, "./tool.sh"),
            (r#"["sh", "tool.sh"]"#, "tool.sh"),
            (r#""./tool.sh""#, "./tool.sh"),
            (r#"["sh", "--rcfile=tool.sh"]"#, "tool.sh"),
            (r#"["sh", "-c", "./tool.sh --y"]"#, "./tool.sh"),
            (r#"["sh", "-c", "true;./later.sh"]"#, "./later.sh"),
            (r#"["sh", "inner.sh"]"#, "inner.sh"),
        ] {
            let text = format!("[[mcp_servers]]\ncwd = \"sub\"\ncommand = {command}\n");
            let lines = effects(&text, dir.path()).join("\n");
            assert!(lines.contains(&format!("{file} is a file in this folder")), "{lines}");
        }
        let text = "[[agents]]\ncommand = [\"npx\", \"-y\", \"https://a/b\", \"/usr/bin/x\"]\n";
        assert!(!effects(text, dir.path()).join("").contains("is a file"));
    }

    #[test]
    fn many_settings_do_not_hide_what_runs() {
        let many: String = (0..100).map(|it| format!("k{it} = {it}\n")).collect();
        let text = format!("[[agents]]\ncommand = [\"evil\"]\n[other]\n{many}");
        let lines = effects(&text, Path::new("/nowhere"));
        assert_eq!(lines.len(), MAX_SETTINGS + 2);
        assert_eq!(lines[MAX_SETTINGS..], ["set 60 more values", "run evil (for 0)"]);
    }
}
