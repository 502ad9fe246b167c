//! What a tool does, by its name, and the view that fits: one table for the built-in tools and for
//! those of Claude Code, Codex and Pi. A new tool is a line here.

mod asked;
mod found;
mod told;

use serde_json::Value;
use transcript::Call;

use crate::json;
use crate::view::one_line;

pub(crate) use asked::{asked, in_body, proposed};
pub(crate) use told::told;

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

/// Tools of ours that programs have too, beside their own.
const OURS: [&str; 3] = ["agents_list", "agents_message", "callboard_note"];

/// Whose tool it is, where that is not plain from the agent.
pub(crate) fn origin(tool: &str) -> Option<&'static str> {
    OURS.contains(&tool).then_some("Callboard")
}

impl Kind {
    /// A tool of an MCP server is known by its own name.
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

/// The command, path, address or pattern: what a person wants to see first.
pub(crate) fn subject(call: &Call) -> Option<String> {
    let arguments = arguments(call)?;
    let names: &[&str] = match Kind::of(&call.name) {
        Kind::Shell => return Some(one_line(&command_text(arguments)?, 200).into_owned()),
        Kind::Read | Kind::List | Kind::Edit | Kind::Write => PATHS,
        Kind::Search => &["pattern", "query", "glob", "regex"],
        Kind::Fetch => &["url", "query"],
        Kind::Agent => &["agent", "agentId", "subagent_type", "description"],
        Kind::Plan | Kind::Agents | Kind::Other => return None,
    };
    first_text(arguments, names).map(|it| one_line(it, 200).into_owned())
}

/// A file that a call has read or written.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// The one that a call was about, as far as the page shows it.
pub(crate) fn file(call: &Call) -> Option<File> {
    match Kind::of(&call.name) {
        Kind::Read => Some(File { path: subject(call)?, content: result_text(call)?.to_owned() }),
        Kind::Write => written(arguments(call)?),
        _ => None,
    }
}

fn written(arguments: &Value) -> Option<File> {
    let path = first_text(arguments, PATHS)?.to_owned();
    let content = first_text(arguments, &["content", "text", "contents", "new_source"])?.to_owned();
    Some(File { path, content })
}

fn result(call: &Call) -> Option<&Value> {
    call.outcome.as_ref()?.result_value.as_ref()
}

/// What was asked, as text: the command or the file, else all arguments.
pub(crate) fn text(call: &Call) -> String {
    let value = arguments(call);
    let command = value.filter(|_| Kind::of(&call.name) == Kind::Shell).and_then(command_text);
    let written = || file(call).filter(|_| Kind::of(&call.name) == Kind::Write);
    let text = command.or_else(|| Some(written()?.content));
    text.unwrap_or_else(|| json::indented(&call.input().whole().unwrap_or_default()))
}

/// What a result says in words.
pub(crate) fn result_text(call: &Call) -> Option<&str> {
    result_text_of(result(call)?)
}

fn result_text_of(result: &Value) -> Option<&str> {
    result.as_str().or_else(|| first_text(result, &["text", "content", "output", "stdout"]))
}

const PATHS: &[&str] = &["path", "file_path", "filePath", "notebook_path", "filename", "dir"];

fn arguments(call: &Call) -> Option<&Value> {
    let is_done = call.arguments_done;
    call.input_value.as_ref().filter(|it| is_done && it.is_object())
}

fn first_text<'a>(arguments: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(name)?.as_str())
}

fn command_text(arguments: &Value) -> Option<String> {
    let command = arguments.get("command").or_else(|| arguments.get("cmd"))?;
    match command {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            // `bash -lc SCRIPT` is the script.
            match &words[..] {
                [shell, flag, script] if shell.ends_with("sh") && flag.starts_with('-') => {
                    Some((*script).to_owned())
                }
                _ => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}
