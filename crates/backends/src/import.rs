//! Conversations that Claude Code, Codex and Pi have kept on disk, read as records.
//!
//! A file is not interpreted a second time: it is *retold* ([`Retelling`]) to the state machine that
//! hears the running program, in the words that the program would have used. So an imported answer is
//! the answer that would have been seen live, up to what the program has not written down.
//!
//! The files only grow, and so does what is read from them: what a file's beginning gives is the
//! beginning of what the file gives. Ids come from the program's ids. Reading again after the program
//! has gone on therefore gives the same turns and some more, and [`Turn::id`] tells which are known.
//!
//! No file is an error. A line that cannot be read is kept as `unrecognized`.

mod branch;
mod claude;
mod codex;
mod pi;
mod pictures;
mod retelling;
mod silent;

use serde_json::Value;
pub use transcript::Entry;
use transcript::{Millis, ResponseId};

use self::retelling::Retelling;
use crate::ProgramKind;
use crate::surrogates::Surrogates;

/// What the program has kept of one conversation.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    pub kind: ProgramKind,
    pub text: &'a str,
    /// Claude Code keeps sub-agents and large results in a folder beside the file.
    pub side_files: &'a [SideFile],
    /// What the agent is called here.
    pub agent: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFile {
    /// With the folders that it is in.
    pub name: String,
    pub text: String,
}

/// What to do with a turn that the file shows no end of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// It stays open.
    Open,
    /// It may still be going on, and will be read when it has ended. Where the model had the last word
    /// and wanted nothing more, it has.
    LeaveOut,
    /// Nothing more will come: it broke off.
    Close,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The program's own id, with which it can go on.
    pub conversation: String,
    pub cwd: Option<String>,
    /// The program's.
    pub version: Option<String>,
    pub turns: Vec<Turn>,
    /// A turn that may still be going on, with [`Tail::LeaveOut`].
    pub left_out: Option<ResponseId>,
    /// What was said after the last turn, to no turn yet.
    pub rest: Vec<Entry>,
}

/// A run, with the message that it answers and what was noted since the run before.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub id: ResponseId,
    pub entries: Vec<Entry>,
}

/// Which program wrote a file, by its name and how it begins. None for files of others, and for those
/// that belong to another file.
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

/// None if the file does not say which conversation it is.
pub fn read(kept: &Kept<'_>, tail: Tail) -> Option<Imported> {
    match kept.kind {
        ProgramKind::Claude => claude::read(kept, tail),
        ProgramKind::Codex => codex::read(kept, tail),
        ProgramKind::Pi => pi::read(kept, tail),
    }
}

/// The lines that can be read, and those that cannot. A last one without its end is being written.
fn lines(text: &str) -> impl Iterator<Item = Result<Value, &str>> {
    let lines = text.split_inclusive('\n').filter(|it| !it.trim().is_empty());
    lines.filter_map(|line| {
        let value = parse(line).filter(Value::is_object);
        let is_whole = value.is_some() || line.ends_with('\n');
        is_whole.then(|| value.ok_or(line.trim_end()))
    })
}

/// Files are of whole lines: a half of a letter has no other half in the next.
fn parse(line: &str) -> Option<Value> {
    serde_json::from_str(&Surrogates::default().mend(line)).ok()
}

fn moment(value: &Value) -> Option<Millis> {
    Millis::parse(value.as_str()?)
}

fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The words of a content: a text, or blocks of which some are texts. What cannot be said in words is
/// named.
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
