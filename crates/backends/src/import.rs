//! Conversations that Claude Code, Codex and Pi keep on disk, read as records.
//!
//! A file is replayed ([`Replay`]): the state machine for the running program gets the lines that the program
//! would have written. An imported answer is therefore the same as the live answer, except for data that the
//! program does not store.
//!
//! The files only grow, and so does the result: the beginning of a file gives the beginning of its turns. Ids
//! come from the program's ids. Reading again after the program has continued therefore gives the same turns
//! and some more, and [`Turn::id`] identifies the known ones.
//!
//! No file is an error. A line that cannot be read is kept as `unrecognized`.

mod branch;
mod claude;
mod codex;
mod pi;
mod pictures;
mod replay;
mod silent;

use serde_json::Value;
pub use transcript::Entry;
use transcript::{Millis, ResponseId};

use self::replay::Replay;
use crate::ProgramKind;
use crate::surrogates::Surrogates;

/// A conversation of Claude Code, Codex or Pi, as the program keeps it on disk.
#[derive(Debug, Clone, Copy)]
pub struct ConversationFile<'a> {
    /// Program that wrote the conversation's file.
    pub kind: ProgramKind,
    /// Content of the conversation's file.
    pub text: &'a str,
    /// Files of sub-agents and large tool results, which Claude Code keeps in a folder beside the
    /// conversation's file. Empty for other programs.
    pub side_files: &'a [SideFile],
    /// Id of the Callboard agent that the imported runs get.
    pub agent: &'a str,
}

/// A file that belongs to a conversation and is stored in a folder beside the conversation's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFile {
    /// Path of the side file, relative to the folder beside the conversation's file.
    pub name: String,
    /// Content of the side file.
    pub text: String,
}

/// Treatment of the last turn of an imported conversation, if the file does not have its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The last turn is imported without an end.
    Open,
    /// The last turn is not imported, because it may still be going on. A turn whose last entry is
    /// an answer of the model without tool calls counts as ended.
    LeaveOut,
    /// The last turn is imported and closed, because it will not continue.
    Close,
}

/// A conversation that was read from a program's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The program's own id of the conversation, with which it can be resumed.
    pub conversation: String,
    /// Folder in which the program worked. `None` if the file does not name it.
    pub cwd: Option<String>,
    /// Version of the program that wrote the file. `None` if the file does not name it.
    pub version: Option<String>,
    /// Turns of the conversation, oldest first.
    pub turns: Vec<Turn>,
    /// Id of the last turn, if it was not imported because of [`Tail::LeaveOut`].
    pub left_out: Option<ResponseId>,
    /// Entries after the last imported turn, which belong to no turn yet.
    pub rest: Vec<Entry>,
}

/// A run of an imported conversation, with the message that it answers and the entries since the
/// run before.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Id of the turn's run.
    pub id: ResponseId,
    /// Entries of the turn, oldest first, from which records of the log are made.
    pub entries: Vec<Entry>,
}

/// Detects the program that wrote a conversation's file, by its name and its first lines. Returns
/// `None` for any other file, and for the file of a sub-agent.
pub fn detect(name: &str, head: &str) -> Option<ProgramKind> {
    let is_sub_agent = name.rsplit(['/', '\\']).next().is_some_and(|it| it.starts_with("agent-"));
    if is_sub_agent {
        return None;
    }
    head.lines().find_map(|line| {
        let line = parse(line)?;
        match line["type"].as_str()? {
            "session" if line["id"].is_string() => Some(ProgramKind::Pi),
            "session_meta" if line["payload"]["id"].is_string() => Some(ProgramKind::Codex),
            // Callboard's own records have a number.
            _ if line["sessionId"].is_string() && line["seq"].is_null() => {
                Some(ProgramKind::Claude)
            }
            _ => None,
        }
    })
}

/// Reads a conversation from a program's file. Returns `None` if the file does not name its
/// conversation.
pub fn read(kept: &ConversationFile<'_>, tail: Tail) -> Option<Imported> {
    match kept.kind {
        ProgramKind::Claude => claude::read(kept, tail),
        ProgramKind::Codex => codex::read(kept, tail),
        ProgramKind::Pi => pi::read(kept, tail),
    }
}

/// Parses every line of a program's file as a JSON object; the error is the unparsed line. An
/// incomplete last line, which the program is still writing, is skipped.
fn lines(text: &str) -> impl Iterator<Item = Result<Value, &str>> {
    let lines = text.split_inclusive('\n').filter(|it| !it.trim().is_empty());
    lines.filter_map(|line| {
        let value = parse(line).filter(Value::is_object);
        let is_whole = value.is_some() || line.ends_with('\n');
        is_whole.then(|| value.ok_or(line.trim_end()))
    })
}

/// Parses a line as JSON. Files consist of whole lines, so a surrogate pair is never split between
/// two.
fn parse(line: &str) -> Option<Value> {
    serde_json::from_str(&Surrogates::default().repair(line)).ok()
}

fn moment(value: &Value) -> Option<Millis> {
    Millis::parse(value.as_str()?)
}

fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns the text of a message's content, which is a string or a list of blocks. Images and
/// documents become `[image]` and `[document]`.
fn words(content: &Value) -> String {
    let of_block = |block: &Value| match block["text"].as_str() {
        Some(text) => Some(text.to_owned()),
        None if block["type"] == "image" => Some("[image]".to_owned()),
        None if block["type"] == "document" => Some("[document]".to_owned()),
        None => None,
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(of_block).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
