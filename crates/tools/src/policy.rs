//! The policy: which calls may run, which need an approval, and which never run.
//!
//! A rule applies to a tool and to the *subject* of a call: its command, path or URL. A call that no rule and
//! no default covers needs an approval. `docs/approvals.md` describes this for users.

mod command;
mod file_tools;
mod pattern;
mod read_only;
mod request;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::iter::once;
use std::path::Path;

use serde_json::Value;
use transcript::GrantScope;

use crate::private_files::{PrivateFiles, Reach};

pub use file_tools::FileTool;
pub use pattern::Pattern;
pub use request::{Asker, Request};

/// Verdict of the policy about a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The tool call may run.
    Allow,
    /// The tool call needs an approval.
    Ask,
    /// The tool call never runs.
    Deny,
}

/// The policy: rules and defaults that decide which tool calls may run.
#[derive(Debug)]
pub struct Policy {
    /// Rules of the policy by tool name, or by a pattern for tool names.
    pub rules: BTreeMap<String, Rule>,
    /// Milliseconds that a tool call waits for an approval; `None` for no limit.
    pub timeout_ms: Option<u64>,
    /// The server's private files. A tool call that names them, or may reach them, needs an
    /// approval.
    pub private: PrivateFiles,
    /// `PATH` of the commands that the server runs, to find out which program a command means.
    pub search_path: OsString,
}

/// A policy rule for the calls of a tool. The strictest list with a pattern that matches the
/// subject of the tool call decides.
#[derive(Debug, Default)]
pub struct Rule {
    /// Patterns for the subjects of tool calls that are denied.
    pub deny: Vec<Pattern>,
    /// Patterns for the subjects of tool calls that need an approval.
    pub ask: Vec<Pattern>,
    /// Patterns for the subjects of tool calls that are allowed.
    pub allow: Vec<Pattern>,
    /// Verdict about a tool call whose subject matches no pattern; `None` for the tool's default.
    pub otherwise: Option<Verdict>,
}

/// Subject of a tool call: the text that the patterns of a policy rule are matched against.
enum Subject<'a> {
    /// The command of a shell tool call.
    Command {
        line: &'a str,
        /// Whether the shell tool call has no other arguments that influence its effect.
        is_bare: bool,
    },
    Other(&'a str),
}

impl Policy {
    /// Decides whether a tool call may run, needs an approval, or is denied.
    pub fn judge(&self, call: &Request<'_>) -> Verdict {
        let ruled = self.ruled(call);
        match (ruled, self.reach(call)) {
            (Some(Verdict::Deny), _) => Verdict::Deny,
            (_, Reach::Named | Reach::Possible) => Verdict::Ask,
            (Some(verdict), Reach::Elsewhere) => verdict,
            (None, Reach::Elsewhere) => self.by_default(call),
        }
    }

    /// Returns the [`GrantScope`], as text, of an approval of the tool call for the session or for
    /// always. `None` if only this tool call can be approved.
    pub fn covers(&self, call: &Request<'_>) -> Option<String> {
        if self.reach(call) != Reach::Elsewhere {
            return None;
        }
        let covers = GrantScope {
            agent: call.agent.to_owned(),
            workspace: call.root()?.to_str()?.to_owned(),
            tool: call.tool().to_owned(),
            calls: call.granted_calls()?,
        };
        Some(covers.to_text())
    }

    /// Returns the verdict of the configured rules about a tool call; `None` if they decide
    /// nothing. The shell tool of a program is judged like `shell`, unless there is a rule for its
    /// own name.
    fn ruled(&self, call: &Request<'_>) -> Option<Verdict> {
        if !call.is_shell() {
            return self.rule_for(call.tool())?.judge(&Subject::Other(&call.subject()));
        }
        let has_own_rule = self.rules.contains_key(call.tool());
        let rule = self.rule_for(if has_own_rule { call.tool() } else { "shell" })?;
        match call.shell() {
            Some(shell) => {
                let (line, is_bare) = (&*shell.line(), shell.is_bare());
                rule.judge(&Subject::Command { line, is_bare })
            }
            None => {
                let line = &call.arguments().to_string();
                rule.judge(&Subject::Command { line, is_bare: false })
            }
        }
    }

    /// Returns the policy rule for the name of a tool, else the rule with the longest pattern that
    /// matches the name.
    fn rule_for(&self, tool: &str) -> Option<&Rule> {
        let fitting = self.rules.iter().filter(|(name, _)| Pattern::new(name).fits(tool));
        let by_pattern = || fitting.max_by_key(|(name, _)| name.len()).map(|(_, rule)| rule);
        self.rules.get(tool).or_else(by_pattern)
    }

    /// Returns whether a tool call names the server's private files or may reach them.
    fn reach(&self, call: &Request<'_>) -> Reach {
        let workspace = call.workspace();
        let is_built_in = call.asker == Asker::Callboard && !call.tool().contains("__");
        // Our own tools refuse those files themselves.
        if is_built_in && !call.is_shell() {
            return Reach::Elsewhere;
        }
        let shell = call.shell();
        // Not every tool works in the folder that its arguments name, so both folders are checked.
        let named = shell.as_ref().map(|it| it.folder_in(workspace));
        let folders: Vec<&Path> = once(workspace).chain(named.as_deref()).collect();
        let texts = strings(call.arguments()).flat_map(|text| {
            folders.iter().map(move |folder| (text, *folder)).map(|(text, folder)| match &shell {
                Some(_) => self.private.reach_of_command(text, folder),
                None => self.private.reach_of_text(text, folder),
            })
        });
        let nearest = texts.max().unwrap_or(Reach::Elsewhere);
        let is_known = call.file_tool().is_some()
            || call.reads_one_file()
            || self.runs_read_only_command(call);
        match nearest {
            Reach::Elsewhere if !is_known && folders.iter().any(|it| self.private.is_near(it)) => {
                Reach::Possible
            }
            nearest => nearest,
        }
    }
}

impl Policy {
    /// Returns whether the tool call runs a read-only shell command inside the workspace.
    fn runs_read_only_command(&self, call: &Request<'_>) -> bool {
        let workspace = call.workspace();
        let search_path = call.search_path.unwrap_or(&self.search_path);
        let is_read_only = |text: &str| read_only::is_read_only(text, workspace, search_path);
        call.shell().is_some_and(|it| it.is_bare() && is_read_only(&it.text))
    }

    /// Returns the verdict about a tool call that no policy rule decides. A program's tool with the
    /// name of a built-in tool is treated as a different tool.
    fn by_default(&self, call: &Request<'_>) -> Verdict {
        let is_harmless = match (call.asker, call.tool()) {
            (Asker::Callboard, "time" | "list_files" | "read_file" | "search_files") => true,
            (Asker::Callboard, "agents_list" | "agents_message" | "callboard_note") => true,
            (Asker::Callboard, _) => self.runs_read_only_command(call),
            // Pi's own shell. Another tool that takes commands may do anything with them, and so may a shell
            // that is configured by files of the workspace.
            (Asker::Program { is_judged: false }, "bash") => {
                self.runs_read_only_command(call) && !has_entry(call.workspace(), ".pi")
            }
            // Pi's own read-only tools.
            (Asker::Program { is_judged: false }, "read" | "grep" | "find" | "ls") => true,
            (Asker::Program { .. }, _) => false,
        };
        if is_harmless { Verdict::Allow } else { Verdict::Ask }
    }
}

/// Returns whether the folder has an entry of this name. True if that is not certain.
fn has_entry(folder: &Path, name: &str) -> bool {
    let found = folder.join(name).symlink_metadata();
    !found.is_err_and(|it| it.kind() == ErrorKind::NotFound)
}

/// Returns the id that a session's grant has in the API, which is a hash of what the grant covers.
pub fn grant_id(covers: &str) -> String {
    blake3::hash(covers.as_bytes()).to_hex()[..16].to_owned()
}

/// Iterates over all strings in a JSON value, including the names of its fields.
fn strings(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(once(text.as_str())),
        Value::Array(list) => Box::new(list.iter().flat_map(strings)),
        Value::Object(fields) => {
            Box::new(fields.iter().flat_map(|(name, it)| once(name.as_str()).chain(strings(it))))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Box::new(std::iter::empty()),
    }
}

impl Rule {
    fn judge(&self, subject: &Subject<'_>) -> Option<Verdict> {
        let readings = subject.readings();
        let fits = |patterns: &[Pattern]| {
            patterns.iter().any(|it| readings.iter().any(|reading| it.fits(reading)))
        };
        if fits(&self.deny) {
            return Some(Verdict::Deny);
        }
        if fits(&self.ask) {
            return Some(Verdict::Ask);
        }
        if self.allow.iter().any(|it| subject.is_matched_by(it)) {
            return Some(Verdict::Allow);
        }
        // If every command is allowed regardless of its text, unusual characters cannot mislead.
        let depends_on_text = !self.deny.is_empty() || !self.ask.is_empty();
        match self.otherwise {
            Some(Verdict::Allow) if depends_on_text && !subject.is_plain() => Some(Verdict::Ask),
            otherwise => otherwise,
        }
    }
}

impl Subject<'_> {
    /// Returns the texts of the subject that the patterns of `deny` and `ask` are matched against.
    fn readings(&self) -> Vec<String> {
        match self {
            Self::Command { line, .. } => command::readings(line),
            Self::Other(text) => vec![(*text).to_owned()],
        }
    }

    /// Returns whether a pattern of `allow` matches the subject. In a command, a star matches
    /// neither a second command nor an invisible character, and other arguments prevent a match.
    fn is_matched_by(&self, pattern: &Pattern) -> bool {
        match self {
            Self::Command { is_bare: false, .. } => false,
            Self::Command { line, .. } => {
                pattern.is_exactly(line) || (command::is_single(line) && pattern.fits(line))
            }
            Self::Other(text) => pattern.fits(text),
        }
    }

    fn is_plain(&self) -> bool {
        match self {
            Self::Command { line, .. } => command::is_plain(line),
            Self::Other(_) => true,
        }
    }
}
