//! The file as it was written, and where in it a mistake is.

use std::fmt;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::File;

#[derive(Default)]
pub(super) struct Source {
    shown: String,
    text: String,
}

/// The key that a mistake is about: a context of its error.
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

    /// A mistake in the table at this path, with its file and line: that of the key that it is about, or
    /// of the table.
    pub(super) fn at(&self, table: &[&str], error: anyhow::Error) -> anyhow::Error {
        let key = error.downcast_ref::<Key>().map(|it| it.0.clone());
        let path = table.iter().copied().chain(key.as_deref());
        let place = match self.line(path) {
            Some(line) => format!("{}, line {line}", self.shown),
            None => self.shown.clone(),
        };
        error.context(place)
    }

    /// Of as much of the path as there is.
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

/// What a table has under a key, or a list at a number, and where it begins.
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

/// The parser names types as Rust does.
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
