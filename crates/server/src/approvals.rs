//! The policy: which calls may run, which need a person, and which never run.
//!
//! A rule is about a tool and about what the call is aimed at, its *subject*: the command, the path,
//! the address. What no rule and no default knows is asked about. `docs/approvals.md` says all of
//! this to users.

mod pattern;
mod read_only;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use reqwest::Url;
use serde_json::{Value, json};

pub(crate) use pattern::Pattern;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug)]
pub(crate) struct Approvals {
    /// By the tool's name; `*` is for tools without a rule of their own.
    pub(crate) rules: BTreeMap<String, Rule>,
    /// How long a call waits for a decision.
    pub(crate) timeout_ms: u64,
}

/// The strictest list that has a fitting pattern decides.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    pub(crate) deny: Vec<Pattern>,
    pub(crate) ask: Vec<Pattern>,
    pub(crate) allow: Vec<Pattern>,
    /// Where no pattern fits; the tool's default if left out.
    pub(crate) otherwise: Option<Verdict>,
}

/// A command beyond this can be allowed once, but not remembered.
const MAX_COVERS: usize = 1000;

impl Approvals {
    pub(crate) fn judge(&self, call: &Proposed<'_>) -> Verdict {
        let subject = call.subject();
        let rule = self.rules.get(call.tool).or_else(|| self.rules.get("*"));
        let ruled = rule.and_then(|it| it.judge(call.tool, &subject));
        ruled.unwrap_or_else(|| by_default(call, &subject))
    }
}

/// What programs call the tool that runs a command.
const SHELLS: [&str; 6] = ["bash", "shell", "exec", "exec_command", "local_shell", "command"];

impl Approvals {
    /// A call of a program's own tool, as the policy knows it: what runs a command is judged as `shell`
    /// is, unless there is a rule under the program's own name for it.
    pub(crate) fn as_known<'a>(
        &self,
        tool: &'a str,
        arguments: &'a str,
    ) -> (Cow<'a, str>, Cow<'a, str>) {
        let is_shell = SHELLS.iter().any(|it| tool.eq_ignore_ascii_case(it));
        let command = command_in(arguments).filter(|_| is_shell && !self.rules.contains_key(tool));
        match command {
            Some(command) => ("shell".into(), json!({ "command": command }).to_string().into()),
            None => (tool.into(), arguments.into()),
        }
    }
}

/// `{"command": "ls"}`, or `{"command": ["bash", "-lc", "ls"]}`.
fn command_in(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let command = arguments.get("command").or_else(|| arguments.get("cmd"))?;
    if let Some(command) = command.as_str() {
        return Some(command.to_owned());
    }
    let words: Option<Vec<&str>> = command.as_array()?.iter().map(Value::as_str).collect();
    match words?.as_slice() {
        [_, "-c" | "-lc", script] => Some((*script).to_owned()),
        // Quotes are lost here, so nothing but the whole line can be allowed.
        words => Some(words.join(" ")),
    }
}

impl Rule {
    fn judge(&self, tool: &str, subject: &str) -> Option<Verdict> {
        let fits = |patterns: &[Pattern]| {
            let mut parts = vec![subject];
            if tool == "shell" {
                parts.extend(read_only::parts(subject));
            }
            patterns.iter().any(|it| parts.iter().any(|part| it.fits(part)))
        };
        if fits(&self.deny) {
            return Some(Verdict::Deny);
        }
        if fits(&self.ask) {
            return Some(Verdict::Ask);
        }
        if self.allow.iter().any(|it| it.is_exactly(subject) || may_match(it, tool, subject)) {
            return Some(Verdict::Allow);
        }
        self.otherwise
    }
}

/// A star must not stand for a second command.
fn may_match(pattern: &Pattern, tool: &str, subject: &str) -> bool {
    (tool != "shell" || read_only::is_single_command(subject)) && pattern.fits(subject)
}

fn by_default(call: &Proposed<'_>, subject: &str) -> Verdict {
    match call.tool {
        "time" | "list_files" | "read_file" | "search_files" | "http_get" => Verdict::Allow,
        "shell" if read_only::is_read_only(subject, call.workspace) => Verdict::Allow,
        _ => Verdict::Ask,
    }
}

/// A call that an agent wants to make.
pub(crate) struct Proposed<'a> {
    pub(crate) tool: &'a str,
    /// Raw, as the agent wrote them.
    pub(crate) arguments: &'a str,
    pub(crate) workspace: &'a Path,
}

impl Proposed<'_> {
    /// What an answer for more than once holds for: this very command, this host, or the tool.
    /// None if it can be given only once.
    pub(crate) fn covers(&self) -> Option<String> {
        let covers = match self.tool {
            "shell" => format!("shell: {}", self.subject()),
            "http_get" => {
                let url = Url::parse(&self.subject()).ok()?;
                format!("http_get: {}", url.origin().ascii_serialization())
            }
            tool => tool.to_owned(),
        };
        (covers.len() <= MAX_COVERS).then_some(covers)
    }

    /// What the call is aimed at, written in one way however the agent wrote it.
    fn subject(&self) -> String {
        let arguments: Value = serde_json::from_str(self.arguments).unwrap_or_default();
        let field = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        match self.tool {
            "shell" => field("command").trim().to_owned(),
            "http_get" => {
                let url = field("url");
                Url::parse(&url).map_or(url, |it| it.to_string())
            }
            "read_file" | "write_file" | "edit_file" | "list_files" | "search_files" => {
                plain_path(&field("path"), self.workspace)
            }
            _ => arguments.to_string(),
        }
    }
}

/// Relative to the workspace, without detours.
fn plain_path(path: &str, workspace: &Path) -> String {
    let path = Path::new(path);
    let path = path.strip_prefix(workspace).unwrap_or(path);
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => (),
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain.display().to_string()
}
