//! The policy: which calls may run, which need a person, and which never run.
//!
//! A rule is about a tool and about what the call is aimed at, its *subject*: the command, the path,
//! the address. What no rule and no default knows is asked about. `docs/approvals.md` says all of
//! this to users.

mod command;
mod file_tools;
mod pattern;
mod proposed;
mod read_only;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::iter::once;
use std::path::Path;

use serde_json::Value;
use transcript::GrantScope;

use crate::paths::real_path;
use crate::private_files::{PrivateFiles, Reach};

pub use file_tools::FileTool;
pub use pattern::Pattern;
pub use proposed::{Asker, Place, Proposed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug)]
pub struct Policy {
    /// By the tool's name, or a pattern for names; see [`Self::rule_for`].
    pub rules: BTreeMap<String, Rule>,
    /// How long a call waits for a decision. None: until somebody decides.
    pub timeout_ms: Option<u64>,
    /// A call that names these files, or may reach them, is for a person to decide about.
    pub private: PrivateFiles,
    /// `PATH` of commands.
    pub search_path: OsString,
}

/// The strictest list that has a fitting pattern decides.
#[derive(Debug, Default)]
pub struct Rule {
    pub deny: Vec<Pattern>,
    pub ask: Vec<Pattern>,
    pub allow: Vec<Pattern>,
    /// Where no pattern fits; the tool's default if left out.
    pub otherwise: Option<Verdict>,
}

/// The subject of a rule: the text that its patterns are matched against.
enum Subject<'a> {
    /// `is_bare`: there are no other arguments that matter.
    Command {
        line: &'a str,
        is_bare: bool,
    },
    Other(&'a str),
}

impl Policy {
    pub fn judge(&self, call: &Proposed<'_>) -> Verdict {
        let ruled = self.ruled(call);
        match (ruled, self.reach(call)) {
            (Some(Verdict::Deny), _) => Verdict::Deny,
            (_, Reach::Named | Reach::Possible) => Verdict::Ask,
            (Some(verdict), Reach::Elsewhere) => verdict,
            (None, Reach::Elsewhere) => self.by_default(call),
        }
    }

    /// The scope of a session or "always" decision; see [`GrantScope`]. None if it can be given only
    /// once.
    pub fn covers(&self, call: &Proposed<'_>) -> Option<String> {
        if self.reach(call) != Reach::Elsewhere {
            return None;
        }
        let covers = GrantScope {
            agent: call.place.agent.to_owned(),
            workspace: real_path(call.place.workspace)?.to_str()?.to_owned(),
            tool: call.tool.to_owned(),
            calls: call.extent()?,
        };
        Some(covers.to_text())
    }

    /// A program's shell is judged as `shell` is, unless there is a rule under its own name.
    fn ruled(&self, call: &Proposed<'_>) -> Option<Verdict> {
        if !call.is_shell() {
            return self.rule_for(call.tool)?.judge(&Subject::Other(&call.subject()));
        }
        let has_own_rule = self.rules.contains_key(call.tool);
        let rule = self.rule_for(if has_own_rule { call.tool } else { "shell" })?;
        match call.shell() {
            Some(shell) => {
                let (line, is_bare) = (&*shell.line(), shell.is_bare());
                rule.judge(&Subject::Command { line, is_bare })
            }
            None => {
                let line = &call.arguments.to_string();
                rule.judge(&Subject::Command { line, is_bare: false })
            }
        }
    }

    /// The tool's own, else that of the longest pattern which fits its name. `*` fits all.
    fn rule_for(&self, tool: &str) -> Option<&Rule> {
        let fitting = self.rules.iter().filter(|(name, _)| Pattern::new(name).fits(tool));
        let by_pattern = || fitting.max_by_key(|(name, _)| name.len()).map(|(_, rule)| rule);
        self.rules.get(tool).or_else(by_pattern)
    }

    /// Whether the call can come near the server's own files.
    fn reach(&self, call: &Proposed<'_>) -> Reach {
        let workspace = call.place.workspace;
        let is_built_in = call.asker == Asker::Us && !call.tool.contains("__");
        // Our own tools refuse those files themselves, and know of no others.
        if is_built_in && !call.is_shell() {
            return Reach::Elsewhere;
        }
        let shell = call.shell();
        // Whether a tool really works in the folder that its arguments name is for the tool to say.
        let named = shell.as_ref().map(|it| it.folder_in(workspace));
        let folders: Vec<&Path> = once(workspace).chain(named.as_deref()).collect();
        let texts = strings(&call.arguments).flat_map(|text| {
            folders.iter().map(move |folder| (text, *folder)).map(|(text, folder)| match &shell {
                Some(_) => self.private.reach_of_command(text, folder),
                None => self.private.reach_of_text(text, folder),
            })
        });
        let nearest = texts.max().unwrap_or(Reach::Elsewhere);
        let is_known = call.file_tool().is_some() || call.reads_one_file() || self.only_looks(call);
        match nearest {
            Reach::Elsewhere if !is_known && folders.iter().any(|it| self.private.is_near(it)) => {
                Reach::Possible
            }
            nearest => nearest,
        }
    }
}

impl Policy {
    /// Whether the call runs a command that plainly only looks at files of the workspace.
    fn only_looks(&self, call: &Proposed<'_>) -> bool {
        let workspace = call.place.workspace;
        let search_path = call.place.search_path.unwrap_or(&self.search_path);
        let is_read_only = |text: &str| read_only::is_read_only(text, workspace, search_path);
        call.shell().is_some_and(|it| it.is_bare() && is_read_only(&it.text))
    }

    /// A tool of a program that has the name of one of ours is another tool.
    fn by_default(&self, call: &Proposed<'_>) -> Verdict {
        let is_harmless = match (call.asker, call.tool) {
            (Asker::Us, "time" | "list_files" | "read_file" | "search_files") => true,
            (Asker::Us, "agents_list" | "agents_message" | "callboard_note") => true,
            (Asker::Us, _) => self.only_looks(call),
            // Pi's own shell. Another tool that takes commands may do anything with them, and so may a shell
            // that is configured by files of the workspace.
            (Asker::Program { is_judged: false }, "bash") => {
                self.only_looks(call) && !has_entry(call.place.workspace, ".pi")
            }
            // Pi's own tools that read.
            (Asker::Program { is_judged: false }, "read" | "grep" | "find" | "ls") => true,
            (Asker::Program { .. }, _) => false,
        };
        if is_harmless { Verdict::Allow } else { Verdict::Ask }
    }
}

/// Whether the folder has an entry of this name. True where that is not certain.
fn has_entry(folder: &Path, name: &str) -> bool {
    let found = folder.join(name).symlink_metadata();
    !found.is_err_and(|it| it.kind() == ErrorKind::NotFound)
}

/// The name of a session's grant in the API.
pub fn grant_id(covers: &str) -> String {
    blake3::hash(covers.as_bytes()).to_hex()[..16].to_owned()
}

/// All texts in a value, the names of its fields among them.
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
        // Where every command is allowed whatever its text, no text can mislead.
        let depends_on_text = !self.deny.is_empty() || !self.ask.is_empty();
        match self.otherwise {
            Some(Verdict::Allow) if depends_on_text && !subject.is_plain() => Some(Verdict::Ask),
            otherwise => otherwise,
        }
    }
}

impl Subject<'_> {
    /// Texts that patterns of `deny` and `ask` are tried on.
    fn readings(&self) -> Vec<String> {
        match self {
            Self::Command { line, .. } => command::readings(line),
            Self::Other(text) => vec![(*text).to_owned()],
        }
    }

    /// A star must stand neither for a second command nor for a character that nobody sees, and a
    /// pattern is about the command alone.
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
