//! The text of the configuration file, and the positions of errors in it.

use std::fmt;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::File;

#[derive(Default)]
pub(super) struct Source {
    shown: String,
    text: String,
}

/// Error context with the configuration key that caused the error.
#[derive(Debug)]
pub(super) struct Key(String);

impl Key {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

impl Source {
    pub(super) fn new(path: &Path, text: String) -> Self {
        Self { shown: path.display().to_string(), text }
    }

    pub(super) fn parse(&self) -> anyhow::Result<File> {
        toml::from_str(&self.text).map_err(|error| {
            let (shown, message) = (error.to_string(), error.message());
            anyhow::anyhow!("{}: {}", self.shown, shown.replace(message, &in_words(message)))
        })
    }

    /// Adds the configuration file and the line to an error in the table at this path. The line is
    /// that of the error's key, or of the table if the error has no key.
    pub(super) fn at(&self, table: &[&str], error: anyhow::Error) -> anyhow::Error {
        let key = error.downcast_ref::<Key>().map(|it| it.0.clone());
        let path = table.iter().copied().chain(key.as_deref());
        let position = match self.line(path) {
            Some(line) => format!("{}, line {line}", self.shown),
            None => self.shown.clone(),
        };
        error.context(position)
    }

    /// Returns the line in the configuration file of the longest part of the path that exists.
    fn line<'a>(&self, path: impl Iterator<Item = &'a str>) -> Option<usize> {
        let document = DeTable::parse(&self.text).ok()?;
        let root = DeValue::Table(document.into_inner());
        let (mut value, mut offset) = (&root, None);
        for step in path {
            let Some((start, found)) = inside(value, step) else { break };
            (value, offset) = (found, Some(start));
        }
        let before = self.text.as_bytes().iter().take(offset?);
        Some(1 + before.filter(|byte| **byte == b'\n').count())
    }
}

/// Returns the value under a key of a TOML table or at an index of a TOML list, and its offset in
/// the text.
fn inside<'a>(value: &'a DeValue<'_>, step: &str) -> Option<(usize, &'a DeValue<'a>)> {
    match value {
        DeValue::Table(table) => {
            let (key, value) = table.iter().find(|(key, _)| key.get_ref() == step)?;
            Some((key.span().start, value.get_ref()))
        }
        DeValue::Array(list) => {
            let value = list.get(step.parse::<usize>().ok()?)?;
            Some((value.span().start, value.get_ref()))
        }
        _ => None,
    }
}

/// Replaces the names of Rust types in an error message of the TOML parser.
fn in_words(message: &str) -> String {
    let Some((before, expected)) = message.rsplit_once("expected ") else {
        return message.to_owned();
    };
    let expected = match expected {
        "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i64" => "a whole number",
        "f64" => "a number",
        "path string" => "a path in quotes",
        "a string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in [ ]",
        "a map" => "a table",
        other => other,
    };
    format!("{before}expected {expected}")
}
