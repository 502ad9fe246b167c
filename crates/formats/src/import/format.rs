//! The formats that can be imported, in one table.
//!
//! The shape of a file is checked here, and an error names its place; each format's own `import.rs` reads the
//! items and accepts anything. So a file is imported completely or not at all.

use serde_json::Value;

use super::{Entry, Setting};
use crate::incoming::BadRequest;
use crate::{agui, callboard, contract, fullstream, openai, ui, ui_v4};

/// Formats that can be imported. A new format needs an entry here and a file that reads it.
pub const FORMATS: [Format; 8] = [
    Format { word: "callboard", name: "Callboard", lists: &[callboard::import::MESSAGES] },
    Format { word: "ui", name: "AI SDK 5 to 7", lists: &[ui::import::MESSAGES] },
    Format {
        word: "ui-v4",
        name: "AI SDK 4",
        lists: &[ui_v4::import::MESSAGES, ui_v4::import::ROWS],
    },
    Format { word: "agui", name: "AG-UI", lists: &[agui::import::MESSAGES, agui::import::EVENTS] },
    Format { word: "openai", name: "OpenAI chat messages", lists: &[openai::stored::MESSAGES] },
    Format {
        word: "openai-stored",
        name: "OpenAI chat messages in a database",
        lists: &[openai::stored::MESSAGES],
    },
    Format {
        word: "fullstream",
        name: "AI SDK fullStream",
        lists: &[fullstream::import::MESSAGES, fullstream::import::EVENTS],
    },
    Format { word: "contract", name: "Message contract", lists: &[contract::import::MESSAGES] },
];

/// A format of files from which conversations can be imported.
///
/// ```
/// use formats::import::{Format, Setting};
/// use transcript::{Event, Millis, RunStatus};
///
/// let file = r#"[
///     { "role": "user", "content": "Hi" },
///     { "role": "assistant", "content": "Hello!" }
/// ]"#;
/// let document = Format::find("openai").unwrap().parse(file).unwrap();
/// let setting = Setting { agent: "demo", now: Millis(0), attach: &|_| None };
/// let entries = document.entries(&setting);
///
/// assert!(matches!(&entries[0].event, Event::UserMessage { text, .. } if text == "Hi"));
/// let end = &entries.last().unwrap().event;
/// assert!(matches!(end, Event::RunFinish { status: RunStatus::Completed, .. }));
/// ```
#[derive(Debug)]
pub struct Format {
    /// Name of the format in requests and on the command line.
    pub word: &'static str,
    /// Name of the format for people.
    pub name: &'static str,
    lists: &'static [List],
}

/// A kind of list that a file may contain, such as messages or events, and how to import it.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) of: &'static str,
    /// Name of the field that contains the kind of an item.
    pub(crate) tag: &'static str,
    /// Allowed values of the `tag` field; empty if all are allowed.
    pub(crate) words: &'static [&'static str],
    /// Names of other fields, and the types that they may have if they are present.
    pub(crate) fields: &'static [(&'static str, &'static [Holds])],
    pub(crate) read: fn(&Value, &Setting<'_>) -> Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Text,
    Object,
    /// A list of objects.
    List,
}

/// A conversation that was parsed from a file and can be imported.
#[derive(Debug)]
pub struct Document {
    /// Title of the conversation; `None` if the file contains none.
    pub title: Option<String>,
    items: Value,
    list: &'static List,
}

impl Format {
    /// Returns the format with this name in requests; `None` if there is none.
    pub fn find(word: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|it| it.word == word)
    }

    /// Parses a file: a list of items, an object with such a list under its name, a single item, or
    /// JSON Lines.
    pub fn parse(&self, text: &str) -> Result<Document, BadRequest> {
        let file = read_json(text)?;
        let title = file["session"]["title"].as_str().map(str::to_owned);
        let (list, items) = self.find_list(file)?;
        let Some(first) = items.first() else {
            return Err(BadRequest::new(format!("There are no {} in it.", list.of)));
        };
        let list = self.lists.iter().find(|it| first.get(it.tag).is_some()).unwrap_or(list);
        for (idx, item) in items.iter().enumerate() {
            list.check(item, &format!("{}[{idx}]", list.of))?;
        }
        Ok(Document { title, items: Value::Array(items), list })
    }

    fn find_list(&self, file: Value) -> Result<(&'static List, Vec<Value>), BadRequest> {
        let first = &self.lists[0];
        let mut fields = match file {
            Value::Array(items) => return Ok((first, items)),
            Value::Object(fields) => fields,
            _ => return Err(self.no_list()),
        };
        for list in self.lists {
            match fields.remove(list.of) {
                Some(Value::Array(items)) => return Ok((list, items)),
                Some(_) => return Err(BadRequest::new(format!("`{}` is no list.", list.of))),
                None if fields.contains_key(list.tag) => {
                    return Ok((list, vec![Value::Object(fields)]));
                }
                None => (),
            }
        }
        Err(self.no_list())
    }

    fn no_list(&self) -> BadRequest {
        let names: Vec<&str> = self.lists.iter().map(|it| it.of).collect();
        BadRequest::new(format!("The file is no list of {}.", names.join(" or ")))
    }
}

impl Document {
    /// Returns the log entries of the conversation, for a new session.
    pub fn entries(&self, setting: &Setting<'_>) -> Vec<Entry> {
        (self.list.read)(&self.items, setting)
    }
}

impl List {
    fn check(&self, item: &Value, place: &str) -> Result<(), BadRequest> {
        let bad = |why: String| Err(BadRequest::new(why));
        if !item.is_object() {
            return bad(format!("`{place}` is no object."));
        }
        let (tag, words) = (self.tag, self.words);
        match item[tag].as_str() {
            None => return bad(format!("`{place}.{tag}` is no text.")),
            Some(word) if !words.is_empty() && !words.contains(&word) => {
                let words = words.join(", ");
                return bad(format!("`{place}.{tag}` is {word:?}, which is none of: {words}."));
            }
            Some(_) => (),
        }
        for (field, holds) in self.fields {
            let value = item.get(field).filter(|it| !it.is_null());
            if let Some(value) = value {
                check_field(value, holds, &format!("{place}.{field}"))?;
            }
        }
        Ok(())
    }
}

fn check_field(value: &Value, holds: &[Holds], place: &str) -> Result<(), BadRequest> {
    let kind = match value {
        Value::String(_) => Some(Holds::Text),
        Value::Object(_) => Some(Holds::Object),
        Value::Array(_) => Some(Holds::List),
        _ => None,
    };
    if !kind.is_some_and(|it| holds.contains(&it)) {
        let names: Vec<&str> = holds.iter().map(|it| it.name()).collect();
        return Err(BadRequest::new(format!("`{place}` is no {}.", names.join(" and no "))));
    }
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    match items.iter().position(|it| !it.is_object()) {
        Some(idx) => Err(BadRequest::new(format!("`{place}[{idx}]` is no object."))),
        None => Ok(()),
    }
}

impl Holds {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Object => "object",
            Self::List => "list",
        }
    }
}

/// Parses a file as one JSON document or as JSON Lines, which become an array.
fn read_json(text: &str) -> Result<Value, BadRequest> {
    let as_one = match serde_json::from_str(text) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut items = Vec::new();
    for (idx, line) in lines {
        match serde_json::from_str(line) {
            Ok(item) => items.push(item),
            Err(_) if items.is_empty() => {
                return Err(BadRequest::new(format!("The file is no JSON: {as_one}.")));
            }
            Err(error) => {
                return Err(BadRequest::new(format!("Line {} is no JSON: {error}.", idx + 1)));
            }
        }
    }
    Ok(Value::Array(items))
}
