//! A call that an agent wants to make: what it is aimed at, and what an answer for more than once would
//! apply to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde_json::{Map, Value};
use transcript::GrantedCalls;

use super::file_tools::{FileTool, place};
use crate::paths::real_path;

/// Names under which programs offer the tool that runs a command.
const SHELLS: [&str; 6] = ["bash", "shell", "exec", "exec_command", "local_shell", "command"];

/// Programs that run the script given with `-c`, by the names that mean the installed ones.
const INTERPRETERS: [&str; 11] = [
    "sh",
    "bash",
    "zsh",
    "dash",
    "/bin/sh",
    "/bin/bash",
    "/bin/zsh",
    "/bin/dash",
    "/usr/bin/sh",
    "/usr/bin/bash",
    "/usr/bin/zsh",
];

/// Arguments that change nothing about what a command does, except how long it may take.
const HARMLESS: [&str; 4] = ["description", "timeout", "timeout_ms", "max_output_tokens"];

/// Arguments that are the same as none if they are false.
const FLAGS: [&str; 2] = ["run_in_background", "dangerouslyDisableSandbox"];

const FOLDERS: [&str; 2] = ["cwd", "workdir"];

/// A longer command can be allowed once, but not remembered.
const MAX_REMEMBERED: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// Callboard runs the tool.
    Us,
    /// The agent's program runs it. One that lets harmless calls pass by itself has judged this one: that
    /// it looks harmless to us decides nothing. The program may know more (another folder, more rights).
    Program { is_judged: bool },
}

/// The agent and the workspace of a call.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Id of the agent.
    pub agent: &'a str,
    pub workspace: &'a Path,
    /// `PATH` of the agent's program. None: that of the server's own commands.
    pub search_path: Option<&'a OsStr>,
}

pub struct Proposed<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: Value,
    pub(super) place: Place<'a>,
    pub(super) asker: Asker,
}

/// A command, with what else decides what it does.
#[derive(Debug, PartialEq)]
pub(super) struct ShellCall {
    /// To the letter.
    pub(super) text: String,
    /// Every other argument that is not known to be harmless. Null stands for one whose meaning is not
    /// certain.
    pub(super) options: BTreeMap<String, Value>,
    /// Where it runs, if that is not the workspace.
    folder: Option<String>,
}

impl<'a> Proposed<'a> {
    /// `arguments` as the agent wrote them.
    pub fn new(tool: &'a str, arguments: &str, place: Place<'a>, asker: Asker) -> Self {
        let arguments = serde_json::from_str(arguments).unwrap_or_default();
        Self { tool, arguments, place, asker }
    }

    pub(super) fn is_shell(&self) -> bool {
        match self.asker {
            Asker::Us => self.tool == "shell",
            Asker::Program { .. } => SHELLS.iter().any(|it| self.tool.eq_ignore_ascii_case(it)),
        }
    }

    /// None if this is no call of a shell, or none that can be read.
    pub(super) fn shell(&self) -> Option<ShellCall> {
        let arguments = self.arguments.as_object().filter(|_| self.is_shell())?;
        let (name, command) =
            ["command", "cmd"].iter().find_map(|it| Some((*it, arguments.get(*it)?)))?;
        let mut options = other_arguments(arguments, name);
        let text = match command {
            Value::String(text) => text.clone(),
            Value::Array(words) => {
                let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
                let (text, run_by) = command_line(&words?);
                // An argument of that name would look like ours.
                let is_taken = options.contains_key("argv");
                options.insert("argv".to_owned(), if is_taken { Value::Null } else { run_by });
                text
            }
            _ => return None,
        };
        let mut folder = None;
        for name in FOLDERS {
            let Some(given) = options.remove(name) else { continue };
            let given = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
            let real = real_path(&self.place.workspace.join(&given));
            if real.is_none() || real != real_path(self.place.workspace) {
                let real = real.as_deref().and_then(Path::to_str);
                options.insert(name.to_owned(), real.map_or(Value::Null, Value::from));
                folder.get_or_insert(given);
            }
        }
        Some(ShellCall { text, options, folder })
    }

    /// Whether this is Pi's tool that reads the one file it names.
    pub(super) fn reads_one_file(&self) -> bool {
        self.asker == Asker::Program { is_judged: false } && self.tool == "read"
    }

    pub(super) fn file_tool(&self) -> Option<&'static FileTool> {
        FileTool::find(self.tool, self.asker == Asker::Us)
    }

    /// Which calls an answer for more than once would apply to: this command, this host, files of this
    /// folder, or the tool. None if it can be given only once.
    pub(super) fn extent(&self) -> Option<GrantedCalls> {
        if self.is_shell() {
            let ShellCall { text, options, .. } = self.shell()?;
            if options.values().any(Value::is_null) {
                return None;
            }
            let extent = GrantedCalls::Command { text, options };
            let length = serde_json::to_string(&extent).ok()?.len();
            return (length <= MAX_REMEMBERED).then_some(extent);
        }
        if let Some(tool) = self.file_tool() {
            return tool.folder(&self.arguments, self.place.workspace).map(GrantedCalls::Folder);
        }
        if self.tool == "http_get" && self.asker == Asker::Us {
            let url = Url::parse(&self.subject()).ok()?;
            return Some(GrantedCalls::Origin(url.origin().ascii_serialization()));
        }
        (self.asker == Asker::Us || !self.means_anything()).then_some(GrantedCalls::All)
    }

    /// Whether a program's tool can do anything, so that an answer for one call says nothing about another:
    /// Codex asks for more rights, whatever they are, and under `SERVER__call` for any tool of a server; a tool
    /// that takes a command runs it.
    fn means_anything(&self) -> bool {
        let asks_for_rights = matches!(self.tool, "network_access" | "request_permissions");
        let is_of_server = self.tool.starts_with("mcp__");
        let takes_command =
            ["command", "cmd", "script"].iter().any(|it| !self.arguments[*it].is_null());
        asks_for_rights || self.tool.ends_with("__call") || takes_command && !is_of_server
    }

    /// The subject of a call of a tool other than a shell, written in one way however the agent wrote
    /// it.
    pub(super) fn subject(&self) -> String {
        let field = |name: &str| self.arguments[name].as_str().unwrap_or_default().to_owned();
        match self.tool {
            "http_get" => {
                let url = field("url");
                Url::parse(&url).map_or(url, |it| it.to_string())
            }
            "read_file" | "write_file" | "edit_file" | "list_files" | "search_files" => {
                place(&field("path"), self.place.workspace)
            }
            _ => self.arguments.to_string(),
        }
    }
}

impl ShellCall {
    /// The command as it would be written in the workspace: one for another folder goes there first. So it
    /// is another command for every rule, and never one that only looks at the workspace.
    pub(super) fn line(&self) -> Cow<'_, str> {
        match &self.folder {
            Some(folder) => format!("cd {} && {}", quoted(folder), self.text).into(),
            None => (&*self.text).into(),
        }
    }

    /// Where it begins.
    pub(super) fn folder_in(&self, workspace: &Path) -> PathBuf {
        workspace.join(self.folder.as_deref().unwrap_or_default())
    }

    /// Nothing but the command, in the workspace.
    pub(super) fn is_bare(&self) -> bool {
        self.options.is_empty()
    }
}

fn other_arguments(arguments: &Map<String, Value>, command: &str) -> BTreeMap<String, Value> {
    let is_absent = |name: &str, value: &Value| {
        value.is_null() || (FLAGS.contains(&name) && *value == Value::Bool(false))
    };
    let others = arguments.iter().filter(|(name, value)| {
        *name != command && !HARMLESS.contains(&name.as_str()) && !is_absent(name, value)
    });
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A list of words as a line, and what tells the line from the same one as a text: the shell that gets
/// it as a script, else the words.
fn command_line(words: &[&str]) -> (String, Value) {
    match words {
        [shell, flag @ ("-c" | "-lc"), script] if INTERPRETERS.contains(shell) => {
            ((*script).to_owned(), Value::from(vec![*shell, *flag]))
        }
        words => {
            let line: Vec<Cow<'_, str>> = words.iter().map(|it| quoted(it)).collect();
            (line.join(" "), Value::from(words.to_vec()))
        }
    }
}

/// As one word for a shell.
pub(super) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+=:,@%".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}
