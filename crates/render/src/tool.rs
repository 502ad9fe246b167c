//! What a tool does, by its name, and the view that fits: one table for the built-in tools and for
//! those of Claude Code, Codex and Pi. A new tool is a line here.

use maud::{Markup, html};
use serde_json::Value;
use transcript::{Call, WriteTarget};

use crate::diff::{self, Diff};
use crate::tree::Element;
use crate::view::{inline, one_line};
use crate::whole;
use crate::words::{count, size};

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

/// The tool's own view of what it was asked to do, with `file` for the content of one that it writes;
/// none for a tool that nobody knows, and while the arguments still come.
pub(crate) fn view(id: &str, call: &Call, file: impl Fn(&File) -> Markup) -> Option<Element> {
    let arguments = arguments(call)?;
    let text = |names: &[&str]| first_text(&arguments, names);
    let markup = match Kind::of(&call.name) {
        Kind::Shell => command(&arguments)?,
        Kind::Read => path_line(text(PATHS)?, lines(&arguments)),
        Kind::List => path_line(text(PATHS).unwrap_or("."), None),
        Kind::Edit => changes(call, &arguments).or_else(|| edit(&arguments))?,
        Kind::Write => match changes(call, &arguments) {
            Some(changes) => changes,
            None => {
                let written = written(&arguments)?;
                html! { (path_line(&written.path, None)) (file(&written)) }
            }
        },
        Kind::Search => {
            let pattern = text(&["pattern", "query", "glob", "regex"])?;
            html! {
                p.subject { code { (pattern) } @if let Some(path) = text(PATHS) { " in " code { (path) } } }
            }
        }
        Kind::Fetch => address(text(&["url", "query"])?),
        Kind::Plan => plan(&arguments)?,
        Kind::Agent => {
            let to = text(&["agent", "agentId", "to", "subagent_type", "description"])
                .unwrap_or("agent");
            let words = text(&["prompt", "content", "message", "text"])?;
            html! { p.subject { "To " b { (to) } } blockquote { (words) } }
        }
        Kind::Agents => agents(call),
        Kind::Other => return None,
    };
    Some(Element::div(id).class("view").html(markup))
}

/// What a call would write, beside what it would write over.
pub(crate) fn overwriting(id: &str, call: &Call, target: &WriteTarget) -> Option<Element> {
    let written = written(&arguments(call)?)?;
    let n_lines = count(written.content.lines().count() as u64, "line");
    let markup = match (target.size, &target.text) {
        (None, _) => html! {
            (path_line(&target.path, None))
            p.meta { "A new file, " (n_lines) }
            div.body.file { (whole::file(&written)) }
        },
        (Some(_), Some(text)) => {
            let Diff { html, added, removed } = diff::texts(text, &written.content, Some(1));
            html! {
                (changed(Some(&target.path), added, removed))
                p.overwrites { "Writes over the file that is there:" }
                (html)
            }
        }
        (Some(bytes), None) => html! {
            (path_line(&target.path, None))
            p.overwrites { "Writes over the file that is there (" (size(bytes)) ") with " (n_lines) ":" }
            div.body.file { (whole::file(&written)) }
        },
    };
    Some(Element::div(id).class("view").html(markup))
}

/// The command, path, address or pattern: what a person wants to see first.
pub(crate) fn subject(call: &Call) -> Option<String> {
    let arguments = arguments(call)?;
    let names: &[&str] = match Kind::of(&call.name) {
        Kind::Shell => return Some(one_line(&command_text(&arguments)?, 200).into_owned()),
        Kind::Read | Kind::List | Kind::Edit | Kind::Write => PATHS,
        Kind::Search => &["pattern", "query", "glob", "regex"],
        Kind::Fetch => &["url", "query"],
        Kind::Agent => &["agent", "agentId", "subagent_type", "description"],
        Kind::Plan | Kind::Agents | Kind::Other => return None,
    };
    first_text(&arguments, names).map(|it| one_line(it, 200).into_owned())
}

/// A file that a call has read or written.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// The one that a call was about, as far as the page shows it.
pub(crate) fn file(call: &Call) -> Option<File> {
    match Kind::of(&call.name) {
        Kind::Read => Some(File { path: subject(call)?, content: result_text(call)? }),
        Kind::Write => written(&arguments(call)?),
        _ => None,
    }
}

fn written(arguments: &Value) -> Option<File> {
    let path = first_text(arguments, PATHS)?.to_owned();
    let content = first_text(arguments, &["content", "text", "contents", "new_source"])?.to_owned();
    Some(File { path, content })
}

/// What a search has found.
pub(crate) fn matches(call: &Call) -> Option<Vec<Value>> {
    match result(call)?.get_mut("matches")?.take() {
        Value::Array(matches) => Some(matches),
        _ => None,
    }
}

/// What is in a folder that was listed.
pub(crate) fn entries(call: &Call) -> Option<Vec<Value>> {
    match result(call)?.get_mut("entries")?.take() {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

fn result(call: &Call) -> Option<Value> {
    serde_json::from_str(&call.outcome.as_ref()?.result.as_ref()?.whole()?).ok()
}

/// What a result says in words.
pub(crate) fn result_text(call: &Call) -> Option<String> {
    let value = result(call)?;
    let text = value.as_str();
    text.or_else(|| first_text(&value, &["text", "content", "output", "stdout"])).map(str::to_owned)
}

const PATHS: &[&str] = &["path", "file_path", "filePath", "notebook_path", "filename", "dir"];

fn arguments(call: &Call) -> Option<Value> {
    if !call.arguments_done {
        return None;
    }
    let value: Value = serde_json::from_str(&inline(call.input())?).ok()?;
    value.is_object().then_some(value)
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

fn command(arguments: &Value) -> Option<Markup> {
    let command = command_text(arguments)?;
    let folder = first_text(arguments, &["workdir", "cwd", "workspace"]);
    Some(html! {
        div.command { span.prompt aria-hidden="true" { "$ " } code { (command) } }
        @if let Some(folder) = folder { p.meta { "in " code { (folder) } } }
    })
}

fn path_line(path: &str, lines: Option<String>) -> Markup {
    html! { p.subject { code { (path) } @if let Some(lines) = lines { " " (lines) } } }
}

fn lines(arguments: &Value) -> Option<String> {
    let number = |names: &[&str]| names.iter().find_map(|name| arguments.get(name)?.as_u64());
    let from = number(&["from_line", "offset"]);
    let to = number(&["to_line"])
        .or_else(|| Some(from.unwrap_or(1).saturating_add(number(&["limit"])?).saturating_sub(1)));
    match (from, to) {
        (None, None) => None,
        (from, Some(to)) => Some(format!("lines {} to {to}", from.unwrap_or(1))),
        (Some(from), None) => Some(format!("from line {from}")),
    }
}

fn address(text: &str) -> Markup {
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    html! {
        p.subject {
            @if is_address { a href=(text) rel="noopener noreferrer nofollow" target="_blank" { (text) } }
            @else { code { (text) } }
        }
    }
}

/// What a call has changed, as it says itself: with the lines around it and their numbers, which the
/// arguments do not have.
fn changes(call: &Call, arguments: &Value) -> Option<Markup> {
    let Diff { html, added, removed } = patched(call)?;
    Some(html! { (changed(first_text(arguments, PATHS), added, removed)) (html) })
}

/// What the result says in words is shown as a change, or as the file that was written.
pub(crate) fn tells_changes(call: &Call) -> bool {
    let is_told = |it: Value| it.get("structuredPatch").is_some() || pi_diff(&it).is_some();
    result(call).is_some_and(is_told)
}

fn pi_diff(result: &Value) -> Option<&str> {
    result.get("details")?.get("diff")?.as_str()
}

/// Claude Code gives hunks, Pi numbered lines.
fn patched(call: &Call) -> Option<Diff> {
    let result = result(call)?;
    if let Some(diff) = pi_diff(&result) {
        return diff::numbered(diff);
    }
    let hunks = result.get("structuredPatch")?.as_array()?;
    let mut patch = String::new();
    for hunk in hunks {
        let number = |name: &str| hunk.get(name).and_then(Value::as_u64);
        let (old, n_old) = (number("oldStart")?, number("oldLines")?);
        let (new, n_new) = (number("newStart")?, number("newLines")?);
        patch += &format!("@@ -{old},{n_old} +{new},{n_new} @@\n");
        for line in hunk.get("lines")?.as_array()? {
            patch += line.as_str()?;
            patch.push('\n');
        }
    }
    diff::patch(&patch)
}

/// One edit, several, a patch, or a list of changed files.
fn edit(arguments: &Value) -> Option<Markup> {
    if let Some(patch) = first_text(arguments, &["patch", "input", "diff", "unified_diff"]) {
        let Diff { html, added, removed } = diff::patch(patch)?;
        return Some(html! { (changed(None, added, removed)) (html) });
    }
    let path = first_text(arguments, PATHS);
    let one = |edit: &Value| {
        let old = first_text(edit, &["old_string", "oldText", "old", "old_text"])?;
        let new = first_text(edit, &["new_string", "newText", "new", "new_text"])?;
        Some(diff::texts(old, new, None))
    };
    let edits: Vec<Diff> = match arguments.get("edits").and_then(Value::as_array) {
        Some(edits) => edits.iter().filter_map(one).collect(),
        None => one(arguments).into_iter().collect(),
    };
    if edits.is_empty() {
        return None;
    }
    let added = edits.iter().map(|it| it.added).sum();
    let removed = edits.iter().map(|it| it.removed).sum();
    Some(html! {
        (changed(path, added, removed))
        @for edit in edits { (edit.html) }
    })
}

fn changed(path: Option<&str>, added: usize, removed: usize) -> Markup {
    html! {
        p.subject {
            @if let Some(path) = path { code { (path) } " " }
            span.added { "+" (added) } " " span.removed { "−" (removed) }
        }
    }
}

/// Empty while the answer has not come.
fn agents(call: &Call) -> Markup {
    let result = result(call).unwrap_or_default();
    let agents = result.get("agents").and_then(Value::as_array);
    let field = |agent, name| first_text(agent, &[name]).unwrap_or_default().to_owned();
    html! {
        ul.agents {
            @for agent in agents.into_iter().flatten() {
                li {
                    b { (field(agent, "id")) } " "
                    span.state { (field(agent, "state")) } " " (field(agent, "description"))
                }
            }
        }
    }
}

fn plan(arguments: &Value) -> Option<Markup> {
    let items = ["todos", "plan", "items"].iter().find_map(|it| arguments.get(it)?.as_array())?;
    Some(html! {
        ul.plan {
            @for item in items {
                @let words = first_text(item, &["content", "step", "text"]).unwrap_or_default();
                @let (class, state) = match first_text(item, &["status"]) {
                    Some("completed") => ("done", "done"),
                    Some("in_progress") => ("now", "now"),
                    _ if item.get("completed").and_then(Value::as_bool) == Some(true) => ("done", "done"),
                    _ => ("later", "to do"),
                };
                li class=(class) { span.state { (state) } " " (words) }
            }
        }
    })
}
