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
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde_json::{Value, json};

use crate::tools::plain;

pub(crate) use pattern::Pattern;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug)]
pub(crate) struct Approvals {
    /// By the tool's name, or a pattern for names; see [`Self::rule_for`].
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

/// As many as Linux follows.
const MAX_LINKS: u32 = 40;
/// A command beyond this can be allowed once, but not remembered.
const MAX_COVERS: usize = 1000;

impl Approvals {
    pub(crate) fn judge(&self, call: &Proposed<'_>) -> Verdict {
        let subject = call.subject();
        let ruled = self.rule_for(call.tool).and_then(|it| it.judge(call.tool, &subject));
        ruled.unwrap_or_else(|| by_default(call, &subject))
    }

    /// The tool's own, else that of the longest pattern which fits its name. `*` fits all.
    fn rule_for(&self, tool: &str) -> Option<&Rule> {
        let fitting = self.rules.iter().filter(|(name, _)| Pattern::new(name).fits(tool));
        let by_pattern = || fitting.max_by_key(|(name, _)| name.len()).map(|(_, rule)| rule);
        self.rules.get(tool).or_else(by_pattern)
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
        workspace: &Path,
    ) -> (Cow<'a, str>, Cow<'a, str>) {
        let is_shell = SHELLS.iter().any(|it| tool.eq_ignore_ascii_case(it));
        let has_own_rule = tool != "shell" && self.rules.contains_key(tool);
        match line_in(arguments, workspace).filter(|_| is_shell && !has_own_rule) {
            Some(line) => ("shell".into(), json!({ "command": line }).to_string().into()),
            None => (tool.into(), arguments.into()),
        }
    }
}

/// The command as it would be written in the workspace: one for another folder goes there first. So it is
/// another command for every rule and every answer, and never one that only looks at the workspace.
fn line_in(arguments: &str, workspace: &Path) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let command = command_in(&arguments)?;
    let folder = arguments.get("cwd").or_else(|| arguments.get("workdir"));
    let folder = folder.filter(|it| !it.is_null());
    let folder = folder.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    Some(match folder.filter(|it| !is_same_folder(Path::new(it), workspace)) {
        Some(folder) => format!("cd {} && {command}", quoted(&folder)),
        None => command,
    })
}

fn is_same_folder(folder: &Path, workspace: &Path) -> bool {
    let real = |it: &Path| it.canonicalize().unwrap_or_else(|_| it.to_owned());
    real(&workspace.join(folder)) == real(workspace)
}

/// As one word for a shell.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+=:,@%".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}

/// `{"command": "ls"}`, or `{"command": ["bash", "-lc", "ls"]}`.
fn command_in(arguments: &Value) -> Option<String> {
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
        "time" | "list_files" | "read_file" | "search_files" => Verdict::Allow,
        "agents_list" | "agents_message" | "callboard_note" => Verdict::Allow,
        "shell" if !call.is_judged && read_only::is_read_only(subject, call.workspace) => {
            Verdict::Allow
        }
        _ => Verdict::Ask,
    }
}

/// A call that an agent wants to make.
pub(crate) struct Proposed<'a> {
    pub(crate) tool: &'a str,
    /// Raw, as the agent wrote them.
    pub(crate) arguments: &'a str,
    pub(crate) workspace: &'a Path,
    /// By the agent's program, which lets harmless calls pass by itself and asks about this one: that it
    /// looks harmless to us decides nothing. The program may know more (another folder, more rights).
    pub(crate) is_judged: bool,
}

impl Proposed<'_> {
    /// What an answer for more than once holds for: this very command, this host, files of this
    /// folder, or the tool. None if it can be given only once.
    pub(crate) fn covers(&self) -> Option<String> {
        let covers = match self.tool {
            "shell" => format!("shell: {}", self.subject()),
            "http_get" => {
                let url = Url::parse(&self.subject()).ok()?;
                format!("http_get: {}", url.origin().ascii_serialization())
            }
            "write_file" | "edit_file" => {
                let path = PathBuf::from(self.subject());
                let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                format!("{}: {}/", self.tool, folder.display())
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
                place(&field("path"), self.workspace)
            }
            _ => arguments.to_string(),
        }
    }
}

/// Where a path leads, from the workspace on: by its letters, and then by the links that are there
/// now. One that leads out stays as it is, for the tool to refuse.
fn place(path: &str, workspace: &Path) -> String {
    let path = plain(Path::new(path));
    let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let real = real_path(&root.join(&path));
    real.strip_prefix(&root).unwrap_or(&path).display().to_string()
}

/// Step by step through every link, as the system goes, also one whose end does not exist yet.
fn real_path(path: &Path) -> PathBuf {
    let steps = |path: &Path| path.iter().rev().map(OsStr::to_owned).collect::<Vec<_>>();
    let (mut real, mut ahead) = (PathBuf::new(), steps(path));
    let mut n_links = 0;
    while let Some(step) = ahead.pop() {
        if step == ".." {
            real.pop();
            continue;
        }
        // A step that is the root begins anew.
        let next = real.join(&step);
        match next.read_link() {
            Ok(target) if n_links < MAX_LINKS => {
                n_links += 1;
                ahead.extend(steps(&target));
            }
            _ => real = next,
        }
    }
    real
}
