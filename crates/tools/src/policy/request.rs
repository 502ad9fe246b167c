//! A request for a judgement: the subject of its call, and the calls that a lasting decision would cover.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde_json::{Map, Value};
use transcript::GrantedCalls;

use super::file_tools::FileTool;
use crate::ParsedCall;
use crate::paths::real_path;

/// Names under which program agents offer the tool that runs a shell command.
const SHELLS: [&str; 6] = ["bash", "shell", "exec", "exec_command", "local_shell", "command"];

/// Shells that run the script given with `-c`, by names that refer to installed programs.
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

/// Names of shell tool arguments that do not change the effect of the command, except for its
/// timeout.
const HARMLESS: [&str; 4] = ["description", "timeout", "timeout_ms", "max_output_tokens"];

/// Names of shell tool arguments that count as absent if they are false.
const FLAGS: [&str; 2] = ["run_in_background", "dangerouslyDisableSandbox"];

/// Names of shell tool arguments that name the folder in which the command runs.
const FOLDERS: [&str; 2] = ["cwd", "workdir"];

/// Maximum length in bytes of the grant for a shell command. A command with a longer grant can only
/// be allowed once.
const MAX_REMEMBERED: usize = 1000;

/// Party that runs a tool call and asks the policy whether it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// Callboard runs the tool call.
    Callboard,
    /// The agent's program runs the tool call.
    Program {
        /// Whether the program allows harmless tool calls itself, so that a tool call that it asks
        /// about needs an approval even if it looks harmless: the program may know more (another
        /// folder, more rights).
        is_judged: bool,
    },
}

/// A tool call that the policy has to judge.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The parsed tool call that the policy has to judge.
    pub call: &'a ParsedCall,
    /// Id of the agent that makes the tool call.
    pub agent: &'a str,
    /// `PATH` of the agent's program; `None` for the `PATH` of the server's own commands.
    pub search_path: Option<&'a OsStr>,
    /// Party that runs the tool call.
    pub asker: Asker,
}

/// A shell tool call: its command and the arguments that influence the effect of the command.
#[derive(Debug, PartialEq)]
pub(super) struct ShellCall {
    /// The shell command, unchanged; a command that is given as a list of words is joined to a
    /// line.
    pub(super) text: String,
    /// Other arguments of the shell tool call that are not known to be harmless. Null replaces the
    /// value of an argument whose meaning is not certain.
    pub(super) options: BTreeMap<String, Value>,
    /// Folder in which the shell command runs, as given by the agent; `None` for the workspace.
    folder: Option<String>,
}

impl<'a> Request<'a> {
    pub(super) fn tool(&self) -> &'a str {
        &self.call.tool
    }

    pub(super) fn arguments(&self) -> &'a Value {
        &self.call.arguments
    }

    pub(super) fn workspace(&self) -> &'a Path {
        &self.call.workspace
    }

    /// Returns the path of the workspace with its links resolved; `None` if it is not certain.
    pub(super) fn root(&self) -> Option<&'a Path> {
        self.call.root.as_deref()
    }

    pub(super) fn is_shell(&self) -> bool {
        match self.asker {
            Asker::Callboard => self.tool() == "shell",
            Asker::Program { .. } => SHELLS.iter().any(|it| self.tool().eq_ignore_ascii_case(it)),
        }
    }

    /// Returns the command and the relevant arguments of a shell tool call; `None` for another
    /// tool, or if the arguments are not understood.
    pub(super) fn shell(&self) -> Option<ShellCall> {
        let arguments = self.arguments().as_object().filter(|_| self.is_shell())?;
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
            let real = real_path(&self.workspace().join(&given));
            if real.is_none() || real.as_deref() != self.root() {
                let real = real.as_deref().and_then(Path::to_str);
                options.insert(name.to_owned(), real.map_or(Value::Null, Value::from));
                folder.get_or_insert(given);
            }
        }
        Some(ShellCall { text, options, folder })
    }

    /// Returns whether this is a call of Pi's tool that reads one named file.
    pub(super) fn reads_one_file(&self) -> bool {
        self.asker == Asker::Program { is_judged: false } && self.tool() == "read"
    }

    pub(super) fn file_tool(&self) -> Option<&'static FileTool> {
        FileTool::find(self.tool(), self.asker == Asker::Callboard)
    }

    /// Returns the tool calls that an approval for the session or for always would cover: this
    /// command, this origin, files of this folder, or all calls of the tool. `None` if only this
    /// tool call can be approved.
    pub(super) fn granted_calls(&self) -> Option<GrantedCalls> {
        if self.is_shell() {
            let ShellCall { text, options, .. } = self.shell()?;
            if options.values().any(Value::is_null) {
                return None;
            }
            let calls = GrantedCalls::Command { text, options };
            let length = serde_json::to_string(&calls).ok()?.len();
            return (length <= MAX_REMEMBERED).then_some(calls);
        }
        if let Some(tool) = self.file_tool() {
            return tool.folder(self.call).map(GrantedCalls::Folder);
        }
        if self.tool() == "http_get" && self.asker == Asker::Callboard {
            let url = Url::parse(&self.subject()).ok()?;
            return Some(GrantedCalls::Origin(url.origin().ascii_serialization()));
        }
        (self.asker == Asker::Callboard || !self.is_unrestricted()).then_some(GrantedCalls::All)
    }

    /// Returns whether a program's tool can do anything, so that an approval of one tool call
    /// cannot cover another: Codex requests arbitrary rights, and any tool of a server as
    /// `SERVER__call`; a tool that takes a command runs it.
    fn is_unrestricted(&self) -> bool {
        let asks_for_rights = matches!(self.tool(), "network_access" | "request_permissions");
        let is_of_server = self.tool().starts_with("mcp__");
        let takes_command =
            ["command", "cmd", "script"].iter().any(|it| !self.arguments()[*it].is_null());
        asks_for_rights || self.tool().ends_with("__call") || takes_command && !is_of_server
    }

    /// Returns the normalised subject of a tool call, which policy rules are matched against. Not
    /// for a shell tool call.
    pub(super) fn subject(&self) -> String {
        let field = |name: &str| self.arguments()[name].as_str().unwrap_or_default().to_owned();
        match self.tool() {
            "http_get" => {
                let url = field("url");
                Url::parse(&url).map_or(url, |it| it.to_string())
            }
            "read_file" | "write_file" | "edit_file" | "list_files" | "search_files" => {
                self.call.subject_path()
            }
            _ => self.arguments().to_string(),
        }
    }
}

impl ShellCall {
    /// Returns the shell command as it would be written in the workspace, with a leading `cd` if it
    /// runs in another folder. With the `cd`, it is a different command for every policy rule, and
    /// never a read-only one.
    pub(super) fn line(&self) -> Cow<'_, str> {
        match &self.folder {
            Some(folder) => format!("cd {} && {}", quoted(folder), self.text).into(),
            None => (&*self.text).into(),
        }
    }

    /// Returns the folder in which the shell command starts.
    pub(super) fn folder_in(&self, workspace: &Path) -> PathBuf {
        workspace.join(self.folder.as_deref().unwrap_or_default())
    }

    /// Returns whether the shell tool call has only a command, which runs in the workspace.
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

/// Converts the words of a shell command to a line, and to a value that distinguishes it from the
/// same line given as text: the shell that runs it as a script, or else the words.
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

/// Quotes a word for a shell if needed.
pub(super) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+=:,@%".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}
