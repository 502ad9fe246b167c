//! Kinds of tools and their views: one table for the built-in tools and those of Claude Code, Codex and Pi. A
//! new tool is one line.

mod arguments;
mod headline;
mod remaining_arguments;
mod result;
mod search_result;

use std::borrow::Cow;

use serde_json::Value;
use transcript::Call;

use crate::text::json;
use crate::view::one_line;
use remaining_arguments::RemainingArguments;

pub(crate) use arguments::{approval_view, arguments_view, in_body};
pub(crate) use headline::{Headline, headline};
pub(crate) use result::result_view;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Shell,
    Read,
    List,
    Edit,
    Write,
    Search,
    Fetch,
    Plan,
    Agent,
    Agents,
    Other,
}

const NAMES: [(Kind, &[&str]); 10] = [
    (
        Kind::Shell,
        &["shell", "bash", "exec_command", "local_shell", "command_execution", "run_command"],
    ),
    (Kind::Read, &["read_file", "read", "notebookread"]),
    (Kind::List, &["list_files", "ls"]),
    (Kind::Edit, &["edit_file", "edit", "multiedit", "apply_patch", "file_change"]),
    (Kind::Write, &["write_file", "write", "create_file", "notebookedit"]),
    (Kind::Search, &["search_files", "grep", "glob", "find"]),
    (Kind::Fetch, &["http_get", "webfetch", "websearch", "web_fetch", "web_search"]),
    (Kind::Plan, &["todowrite", "update_plan", "todo_list", "plan"]),
    (Kind::Agent, &["task", "agent", "agents_message", "spawn_agent"]),
    (Kind::Agents, &["agents_list"]),
];

/// Names of the built-in tools that program agents have in addition to their own.
const OURS: [&str; 3] = ["agents_list", "agents_message", "callboard_note"];

/// Returns the owner of a tool, `Callboard`, if the agent does not make it obvious.
pub(crate) fn origin(tool: &str) -> Option<&'static str> {
    OURS.contains(&tool).then_some("Callboard")
}

impl Kind {
    /// Returns the kind of a tool by its name; for a tool of an MCP server, by the name without the
    /// server.
    pub(crate) fn of(tool: &str) -> Self {
        let name = tool.rsplit("__").next().unwrap_or(tool).to_ascii_lowercase();
        let found = NAMES.iter().find(|(_, names)| names.contains(&&*name));
        found.map_or(Self::Other, |(kind, _)| *kind)
    }

    pub(crate) fn icon(self) -> &'static str {
        match self {
            Self::Shell => "terminal",
            Self::Read | Self::List => "file",
            Self::Edit | Self::Write => "pencil",
            Self::Search => "search",
            Self::Fetch => "globe",
            Self::Plan => "list",
            Self::Agent | Self::Agents => "agent",
            Self::Other => "wrench",
        }
    }
}

/// Returns the command, path, URL or pattern of a tool call, in one line; `None` if there is none.
pub(crate) fn subject(call: &Call) -> Option<String> {
    let mut rest = RemainingArguments::of(arguments(call)?);
    let names: &[&str] = match Kind::of(&call.name) {
        Kind::Shell => {
            return Some(one_line(&command_text(&call.name, &mut rest)?, 200).into_owned());
        }
        Kind::Read | Kind::List | Kind::Edit | Kind::Write => paths(&call.name),
        Kind::Search => PATTERNS,
        Kind::Fetch => ADDRESSES,
        Kind::Agent => &["agent", "agentId", "subagent_type", "description"],
        Kind::Plan | Kind::Agents | Kind::Other => return None,
    };
    rest.text(names).map(|it| one_line(it, 200).into_owned())
}

/// File that a tool call has read or written.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// Returns the file that a tool call has read or written, as far as the page shows it.
pub(crate) fn file(call: &Call) -> Option<File> {
    match Kind::of(&call.name) {
        Kind::Read => Some(File { path: subject(call)?, content: result_text(call)?.to_owned() }),
        Kind::Write => {
            let (path, content) =
                written(&call.name, &mut RemainingArguments::of(arguments(call)?))?;
            Some(File { path: path.to_owned(), content: content.to_owned() })
        }
        _ => None,
    }
}

fn written<'a>(tool: &str, rest: &mut RemainingArguments<'a>) -> Option<(&'a str, &'a str)> {
    let names = match tool {
        "write_file" => &["text", "content", "contents", "new_source"],
        "NotebookEdit" => &["new_source", "content", "text", "contents"],
        _ => &["content", "text", "contents", "new_source"],
    };
    Some((rest.text(paths(tool))?, rest.text(names)?))
}

fn result(call: &Call) -> Option<&Value> {
    call.outcome.as_ref()?.result_value.as_ref()
}

/// Returns the arguments of a tool call as text: the command or the file content, else all
/// arguments.
pub(crate) fn text(call: &Call) -> String {
    let value = arguments(call);
    let shell = value.filter(|_| Kind::of(&call.name) == Kind::Shell);
    let command = shell.and_then(|it| command_text(&call.name, &mut RemainingArguments::of(it)));
    let written = || file(call).filter(|_| Kind::of(&call.name) == Kind::Write);
    let text = command.or_else(|| Some(written()?.content));
    text.unwrap_or_else(|| json::indented(&call.input().whole().unwrap_or_default()))
}

/// Returns the text in the result of a tool call; `None` if there is none.
pub(crate) fn result_text(call: &Call) -> Option<&str> {
    result_text_of(result(call)?)
}

fn result_text_of(result: &Value) -> Option<&str> {
    result.as_str().or_else(|| first_text(result, &["text", "content", "output", "stdout"]))
}

const PATTERNS: &[&str] = &["pattern", "query", "glob", "regex"];
const ADDRESSES: &[&str] = &["url", "query"];

/// Returns the argument names under which a tool may have a path; the name that the tool itself
/// reads comes first.
fn paths(tool: &str) -> &'static [&'static str] {
    match tool {
        "Read" | "Write" | "Edit" | "MultiEdit" => {
            &["file_path", "path", "filePath", "notebook_path", "filename", "dir"]
        }
        "NotebookRead" | "NotebookEdit" => {
            &["notebook_path", "file_path", "path", "filePath", "filename", "dir"]
        }
        _ => &["path", "file_path", "filePath", "notebook_path", "filename", "dir"],
    }
}

/// Returns the argument names under which a tool may have the folder for its command. The shells of
/// Claude Code and Pi have no such argument and ignore one of that name.
fn folders(tool: &str) -> &'static [&'static str] {
    match tool.eq_ignore_ascii_case("bash") {
        true => &[],
        false => &["workdir", "cwd", "workspace"],
    }
}

fn arguments(call: &Call) -> Option<&Value> {
    let is_done = call.arguments_done;
    call.input_value.as_ref().filter(|it| is_done && it.is_object())
}

fn first_text<'a>(arguments: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(name)?.as_str())
}

/// Returns the command of a shell tool as text: a script, or words that are quoted where needed.
fn command_text(tool: &str, rest: &mut RemainingArguments<'_>) -> Option<String> {
    let names = if tool == "exec_command" { ["cmd", "command"] } else { ["command", "cmd"] };
    let is_words = |it: &Value| it.as_array().is_some_and(|it| it.iter().all(Value::is_string));
    let command = rest.take(&names, |it| it.is_string() || is_words(it))?;
    if let Some(line) = command.as_str() {
        return Some(line.to_owned());
    }
    let words: Vec<&str> = command.as_array()?.iter().filter_map(Value::as_str).collect();
    Some(match words[..] {
        [shell, "-c" | "-lc", script] if SHELLS.contains(&shell) => script.to_owned(),
        _ => words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" "),
    })
}

/// Names of shells that are omitted from a shown command if they only run a script.
const SHELLS: [&str; 7] =
    ["bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash"];

/// Quotes a word for a shell, if needed.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+=:,@%".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}
