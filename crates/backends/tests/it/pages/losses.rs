//! Checks that nothing is lost: every string in an agent's lines is in the transcript, or is of a
//! kind that is listed here with the reason.
//!
//! The check walks through the JSON of all lines without knowledge of the protocol. So it also
//! finds texts in fields that we do not read.

mod of_no_use;

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use transcript::Transcript;

use self::of_no_use::{ELSEWHERE, OF_NO_USE, SAID_OTHERWISE};
use super::{Session, all};

#[test]
fn every_string_is_kept_or_listed_as_irrelevant() {
    let mut lost = BTreeMap::new();
    let mut checked = 0;
    for session in all() {
        let kept = Kept::of(&session);
        let mut seen = HashSet::new();
        let lines = session.output.iter();
        let lines = lines.filter(|it| !kept.is_unrecognized(it) && !is_elsewhere(&session, it));
        for (path, text) in lines.flat_map(|it| strings_of(it)) {
            // Many texts are repeated.
            if reason(&path).is_some() || !seen.insert(text.clone()) || kept.text.contains(&text) {
                continue;
            }
            for line in text.lines().filter(|it| !it.trim().is_empty() && !kept.has(it)) {
                lost.entry((path.clone(), line.to_owned())).or_insert(session.name.clone());
            }
        }
        checked += seen.len();
    }
    let lost: Vec<String> = lost.iter().map(|(it, name)| format!("{name}: {it:?}")).collect();
    assert!(lost.is_empty(), "{} lines are lost:\n{}", lost.len(), lost.join("\n"));
    assert!(checked > 3000, "{checked} texts");
}

fn is_elsewhere(session: &Session, line: &str) -> bool {
    ELSEWHERE.iter().any(|(name, sign, _)| session.name == *name && line.contains(sign))
}

fn reason(path: &str) -> Option<&'static str> {
    let is_it = |pattern: &str| match pattern.split_at(1) {
        ("*", end) => path.trim_end_matches("[]").ends_with(end),
        ("=", whole) => path == whole,
        _ => path.starts_with(pattern),
    };
    OF_NO_USE.iter().find(|(_, them)| them.iter().any(|it| is_it(it))).map(|(reason, _)| *reason)
}

/// All text in the transcript of a session.
struct Kept {
    text: String,
    unrecognized: Vec<String>,
}

impl Kept {
    fn of(session: &Session) -> Self {
        let mut transcript = Transcript::whole();
        transcript.extend(&session.records);
        let mut kept = Self { text: String::new(), unrecognized: Vec::new() };
        for message in &transcript.messages {
            let message = serde_json::to_value(formats::callboard::message(message)).unwrap();
            kept.add(&message);
        }
        kept
    }

    fn add(&mut self, value: &Value) {
        if value["type"] == "unrecognized" {
            self.unrecognized.push(value["raw"].as_str().unwrap().to_owned());
        }
        leaves(value, &mut |_, text| {
            self.text.push_str(text);
            self.text.push('\n');
            // The same text without JSON's escapes.
            if let Some(value) = json_in(text) {
                leaves(&value, &mut |_, text| {
                    self.text.push_str(text);
                    self.text.push('\n');
                });
            }
        });
    }

    fn is_unrecognized(&self, line: &str) -> bool {
        self.unrecognized.iter().any(|it| line.ends_with(it.as_str()))
    }

    /// Checks whether the transcript has the line unchanged, without a prefix, or in our words.
    fn has(&self, line: &str) -> bool {
        let line = line.trim();
        let is_kept = |it: &str| self.text.contains(it.trim().trim_end_matches('.'));
        let prefixes = ["API Error: ", "Error: ", "<tool_use_error>Error: ", "/bin/bash -lc '"];
        let bare = prefixes.iter().find_map(|it| line.strip_prefix(it));
        let bare = bare.map(|it| it.trim_end_matches("</tool_use_error>").trim_end_matches('\''));
        // Claude Code adds line numbers to a file for the model.
        let numbered = line.split_once('\t').filter(|(n, _)| n.parse::<u32>().is_ok());
        is_kept(line)
            || numbered.is_some_and(|(_, it)| is_kept(it))
            || bare.is_some_and(is_kept)
            || SAID_OTHERWISE.iter().any(|(_, them)| them.iter().any(|it| line.starts_with(it)))
    }
}

/// Returns the strings of a line, each with its path.
fn strings_of(line: &str) -> Vec<(String, String)> {
    let line = line.strip_prefix("data:").unwrap_or(line).trim();
    let Ok(value) = serde_json::from_str::<Value>(line) else { return Vec::new() };
    let name = ["type", "method"].iter().find_map(|it| value[*it].as_str()).unwrap_or("");
    let name = match value["subtype"].as_str() {
        Some(subtype) => format!("{name}/{subtype}"),
        None => name.to_owned(),
    };
    let mut strings = Vec::new();
    leaves(&value, &mut |path, text| {
        let path = format!("{name}:{path}");
        match json_in(text) {
            Some(value) => leaves(&value, &mut |further, text| {
                strings.push((format!("{path}{further}"), text.to_owned()));
            }),
            None => strings.push((path, text.to_owned())),
        }
    });
    strings
}

/// Parses a text that is JSON, also after a status code, as in errors that are passed on.
fn json_in(text: &str) -> Option<Value> {
    let text = text.trim_start_matches(|it: char| it.is_ascii_digit()).trim_start();
    text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

fn leaves(value: &Value, take: &mut dyn FnMut(&str, &str)) {
    fn walk(value: &Value, path: &mut String, take: &mut dyn FnMut(&str, &str)) {
        let len = path.len();
        match value {
            Value::String(text) => take(path, text),
            Value::Array(items) => {
                path.push_str("[]");
                items.iter().for_each(|it| walk(it, path, take));
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    path.push('.');
                    path.push_str(name);
                    walk(value, path, take);
                    path.truncate(len);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => (),
        }
        path.truncate(len);
    }
    walk(value, &mut String::new(), take);
}
