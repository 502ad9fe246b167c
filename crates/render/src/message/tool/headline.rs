//! Headlines of approval cards, which describe a call: "Run a command in project/", "Overwrite
//! note.txt".
//!
//! For a tool of an MCP server the headline only names the tool, because its name does not prove what it
//! does.

use std::path::Path;

use maud::{Markup, html};
use serde_json::Value;
use transcript::Call;

use super::remaining_arguments::RemainingArguments;
use super::{ADDRESSES, Kind, PATTERNS, arguments, first_text, folders, paths};
use crate::text::invisible::marked;
use crate::view::one_line;

/// Maximum number of characters of a file name, URL or pattern in the headline of an approval card.
const MAX_SUBJECT: usize = 80;

pub(crate) struct Headline {
    words: &'static str,
    /// File name, URL, pattern or other subject of the tool call, shown as code.
    subject: Option<String>,
    /// Text of the headline after the subject.
    then: Option<String>,
}

impl Headline {
    pub(crate) fn html(&self) -> Markup {
        html! {
            (self.words)
            @if let Some(subject) = &self.subject { " " code { (marked(subject)) } }
            @if let Some(then) = &self.then { " " (marked(then)) }
        }
    }
}

/// Returns the headline of a tool call's approval card; `workspace` is the folder of the session.
pub(crate) fn headline(call: &Call, workspace: Option<&str>) -> Headline {
    if let Some((server, tool)) = foreign(&call.name) {
        let (subject, then) = (Some(tool.to_owned()), Some(format!("of {server}")));
        return Headline { words: "Use", subject, then };
    }
    let empty = Value::Null;
    let mut rest = RemainingArguments::of(arguments(call).unwrap_or(&empty));
    let cut = |text: &str| one_line(text, MAX_SUBJECT).into_owned();
    let about = |words, subject: Option<String>| Headline { words, subject, then: None };
    let target = call.approval.as_ref().and_then(|it| it.options.as_ref()?.target.as_ref());
    let mut path = || match target {
        Some(target) => Some(cut(&within(&target.path, workspace))),
        None => rest.text(paths(&call.name)).map(|it| cut(&within(it, workspace))),
    };
    match Kind::of(&call.name) {
        Kind::Shell => {
            let folder = rest.text(folders(&call.name)).map(str::to_owned);
            let folder = folder.or_else(|| workspace.map(last_of));
            let folder = folder.map(|it| format!("{}/", cut(&it).trim_end_matches('/')));
            about(if folder.is_some() { "Run a command in" } else { "Run a command" }, folder)
        }
        Kind::Write => match target.map(|it| it.size) {
            Some(Some(_)) => about("Overwrite", path()),
            Some(None) => about("Create", path()),
            None => about("Write", path()),
        },
        Kind::Edit => {
            let patch = first_text(arguments(call).unwrap_or(&empty), &["patch", "input"]);
            match (patch.and_then(renamed), path()) {
                (Some((old, None)), _) => about("Delete", Some(cut(&within(old, workspace)))),
                (Some((old, Some(new))), _) => {
                    let then = Some(format!("to {}", cut(&within(new, workspace))));
                    Headline { then, ..about("Move", Some(cut(&within(old, workspace)))) }
                }
                (None, Some(path)) => about("Edit", Some(path)),
                (None, None) => about("Edit files", None),
            }
        }
        Kind::Read => about("Read", path()),
        Kind::List => about("List the files of", path().or_else(|| Some(".".to_owned()))),
        Kind::Search => about("Search for", rest.text(PATTERNS).map(cut)),
        Kind::Fetch => match rest.text(&["url"]) {
            Some(url) => about("Fetch", Some(cut(url))),
            None => about("Search the web for", rest.text(ADDRESSES).map(cut)),
        },
        Kind::Plan => about("Update the plan", None),
        Kind::Agent => about("Give a task to", rest.text(&["agent", "agentId"]).map(cut))
            .or_plain("Start a sub-agent"),
        Kind::Agents => about("List the agents", None),
        Kind::Other => match &*call.name {
            "ExitPlanMode" => about("Leave plan mode and start to work", None),
            "network_access" => {
                let context = rest.take(&["networkApprovalContext"], Value::is_object);
                let host = context.and_then(|it| it["host"].as_str()).map(cut);
                about("Allow network access to", host).or_plain("Allow network access")
            }
            "request_permissions" => about("Grant more permissions", None),
            _ => about("Use", Some(call.label().to_owned())),
        },
    }
}

impl Headline {
    fn or_plain(self, words: &'static str) -> Self {
        match self.subject {
            Some(_) => self,
            None => Self { words, ..self },
        }
    }
}

/// Returns the file that a patch of one file deletes or moves, and its new path (`None` if
/// deleted). `None` for any other patch.
fn renamed(patch: &str) -> Option<(&str, Option<&str>)> {
    let all = |prefix: &'static str| patch.lines().filter_map(move |it| it.strip_prefix(prefix));
    let only = |prefix: &'static str| {
        let mut found = all(prefix);
        found.next().filter(|_| found.next().is_none())
    };
    if patch.trim_start().starts_with("*** Begin Patch") {
        let n_files = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];
        if n_files.iter().map(|it| all(it).count()).sum::<usize>() != 1 {
            return None;
        }
        let moved = || Some((only("*** Update File: ")?, Some(only("*** Move to: ")?)));
        return only("*** Delete File: ").map(|it| (it, None)).or_else(moved);
    }
    match (only("--- ")?, only("+++ ")?) {
        ("/dev/null", _) => None,
        (old, "/dev/null") => Some((old, None)),
        (old, new) => (Path::new(old).is_absolute() && old != new).then_some((old, Some(new))),
    }
}

/// Returns whether the headline of an approval card names `subject` completely, so that the view
/// can omit it.
pub(super) fn headline_names(call: &Call, subject: &str) -> bool {
    foreign(&call.name).is_none() && one_line(subject, MAX_SUBJECT) == subject
}

/// Splits the name of an MCP tool into server and tool; `None` for other tools.
fn foreign(tool: &str) -> Option<(&str, &str)> {
    tool.strip_prefix("mcp__").unwrap_or(tool).rsplit_once("__")
}

/// Returns the path relative to the workspace if it is inside, else unchanged.
fn within(path: &str, workspace: Option<&str>) -> String {
    let inside = workspace.and_then(|it| Path::new(path).strip_prefix(it).ok());
    let inside = inside.filter(|it| !it.as_os_str().is_empty());
    inside.map_or_else(|| path.to_owned(), |it| it.display().to_string())
}

fn last_of(folder: &str) -> String {
    let name = Path::new(folder).file_name().and_then(|it| it.to_str());
    name.unwrap_or(folder).to_owned()
}
