//! The texts of a record that search finds, each with its kind and the message it belongs to.
//!
//! Items are a function of the log up to their record, so it does not matter when they are made.

use serde_json::Value;
use transcript::{
    Body, CallId, Event, OutputStream, ResponseId, Seq, SteerState, event_from_body,
    stream::StreamKey,
};

use crate::Error;
use crate::files::connection::int;
use crate::log::stream::{self, StreamRow};
use crate::search::snippet;
use crate::sql::{Db, params};

/// Maximum number of bytes of a text that are searched.
const LONGEST: usize = 1024 * 1024;
/// Maximum number of records between the start and the arguments of a tool call, for the tool's
/// name to be found.
const NAME_WITHIN: usize = 1000;

/// Kind of a text that search finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// Title of a session.
    Title,
    /// Message that a user or an agent sent.
    Message,
    /// Text that a run has written.
    Text,
    /// Thinking of a run.
    Thinking,
    /// Tool name and arguments of a tool call.
    Arguments,
    /// Result of a tool call.
    Result,
    /// Output that a tool call has printed.
    Output,
    /// Notice to the user.
    Notice,
}

impl ItemKind {
    /// Returns the name of the kind in the database and in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Message => "message",
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::Arguments => "arguments",
            Self::Result => "result",
            Self::Output => "output",
            Self::Notice => "notice",
        }
    }

    pub(crate) fn from_word(word: &str) -> Self {
        match word {
            "title" => Self::Title,
            "message" => Self::Message,
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            "arguments" => Self::Arguments,
            "result" => Self::Result,
            "output" => Self::Output,
            _ => Self::Notice,
        }
    }
}

pub(crate) struct Item {
    pub(crate) kind: ItemKind,
    pub(crate) message: Option<String>,
    pub(crate) text: String,
}

/// Session, sequence number and run of a record.
#[derive(Clone, Copy)]
pub(crate) struct RecordPlace<'a> {
    pub(crate) session: i64,
    pub(crate) seq: Seq,
    pub(crate) response: Option<&'a ResponseId>,
}

pub(crate) fn items(db: &Db, at: RecordPlace<'_>, event: &Event) -> Result<Vec<Item>, Error> {
    let mut found = texts(db, at, event)?;
    found.retain(|(_, text)| !text.trim().is_empty());
    let item = |(kind, text)| Item { kind, message: message(at, event), text: searchable(text) };
    Ok(found.into_iter().map(item).collect())
}

fn texts(db: &Db, at: RecordPlace<'_>, event: &Event) -> Result<Vec<(ItemKind, String)>, Error> {
    Ok(match event {
        Event::SessionCreated { title: Some(title), .. }
        | Event::SessionUpdated { title: Some(title), .. } => {
            vec![(ItemKind::Title, title.clone())]
        }
        // One that goes into the running turn is in no `user_message`.
        Event::UserMessage { text, .. }
        | Event::MessageSteered { text, state: SteerState::HandedOver, .. } => {
            vec![(ItemKind::Message, text.clone())]
        }
        Event::TextDone { text, discarded: false, .. } => vec![(ItemKind::Text, text.clone())],
        Event::ThinkingDone { text, discarded: false, .. } => {
            vec![(ItemKind::Thinking, text.clone())]
        }
        Event::ToolArgumentsDone { call_id, arguments, .. } => {
            let name = tool_name(db, at, call_id)?;
            vec![(ItemKind::Arguments, format!("{name}\n{}", words_of_json(arguments)))]
        }
        Event::ToolResult { call_id, result, output, error, .. } => {
            let error = error.as_ref().map(|it| it.message.as_str());
            let output = match output {
                Some(output) => output.clone(),
                None => output_of(db, at, call_id)?,
            };
            vec![
                (ItemKind::Result, result_text(result.as_ref(), error)),
                (ItemKind::Output, output),
            ]
        }
        Event::Notice { text, .. } => vec![(ItemKind::Notice, text.clone())],
        _ => Vec::new(),
    })
}

/// Returns the id of the message that shows a record; `None` if no message does.
fn message(at: RecordPlace<'_>, event: &Event) -> Option<String> {
    match event {
        Event::UserMessage { message_id, .. } => Some(message_id.to_string()),
        event if event.is_session_event() => None,
        Event::Notice { .. } if at.response.is_none() => Some(format!("n{}", at.seq)),
        _ => at.response.map(ResponseId::to_string),
    }
}

/// Returns a text in the form that is indexed: truncated, and with spaces in place of control
/// characters.
fn searchable(mut text: String) -> String {
    text.truncate(snippet::floor(&text, LONGEST));
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(is_control) { text.replace(is_control, " ") } else { text }
}

/// Returns the tool name of a call; empty if the call's start is missing or too far away.
fn tool_name(db: &Db, at: RecordPlace<'_>, call: &CallId) -> Result<String, Error> {
    let mut name = String::new();
    let sql = &format!(
        "SELECT body FROM records WHERE session = ?1 AND seq < ?2
         ORDER BY seq DESC LIMIT {NAME_WITHIN}"
    );
    db.each(sql, params![at.session, int(at.seq)], |row| {
        let body = row.text(0)?;
        // Few are, so few need to be parsed.
        if body.starts_with(r#"{"type":"tool_call_start""#)
            && let Event::ToolCallStart { call_id, tool_name, .. } = event_from_body(body)
            && call_id == *call
        {
            name = tool_name;
            return Ok(false);
        }
        Ok(true)
    })?;
    Ok(name)
}

/// Returns the output of a tool call, from the streams that the record at this place has closed.
fn output_of(db: &Db, at: RecordPlace<'_>, call: &CallId) -> Result<String, Error> {
    let mut output = String::new();
    for stream in [OutputStream::Stdout, OutputStream::Stderr] {
        let name = stream::name(&StreamKey::Output(call.clone(), stream));
        let Some(row) = StreamRow::named(db, at.session, &name)? else { continue };
        if !row.is_closed_at(at.seq) {
            continue;
        }
        let mut body = Body::keeping(usize::MAX);
        for delta in row.deltas(db)? {
            body.replace_from(delta.offset.unwrap_or(body.bytes()), &delta.text);
        }
        output.push_str(&body.whole().unwrap_or_default());
        output.push('\n');
    }
    Ok(output)
}

fn result_text(result: Option<&Value>, error: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(error) = error {
        push_line(&mut text, error);
    }
    if let Some(result) = result {
        push_words(&mut text, result);
    }
    text
}

/// Returns the words of a text, which may be JSON, for the search index.
fn words_of_json(text: &str) -> String {
    match serde_json::from_str(text) {
        Ok(value) => result_text(Some(&value), None),
        Err(_) => text.to_owned(),
    }
}

/// Appends the words of a JSON value for the search index. Strings are not escaped, because an
/// escaped line break would join the words around it.
fn push_words(text: &mut String, value: &Value) {
    match value {
        Value::Null => (),
        Value::Bool(_) | Value::Number(_) => push_line(text, &value.to_string()),
        Value::String(words) => push_line(text, words),
        Value::Array(values) => values.iter().for_each(|it| push_words(text, it)),
        Value::Object(fields) => {
            for (name, value) in fields {
                text.push_str(name);
                text.push_str(": ");
                push_words(text, value);
            }
        }
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
