//! `search_files`: finds the lines in the workspace that match a pattern.
//!
//! Files that git ignores are skipped, unless the search starts there. Links are not followed, so the walk
//! ends; unreadable files are skipped.

mod ignored;
mod lines;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::gitignore::Gitignore;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, Work};
use crate::ToolContext;
use crate::workspace::{Workspace, display};
use ignored::{Ignored, globs};
use lines::{Case, Lines};

pub(super) const TOOL: Tool = Tool {
    name: "search_files",
    description: "Finds the lines in the workspace's text files that fit a regular expression. What \
                  .gitignore names is left out, and so are hidden folders, target and node_modules, \
                  unless path leads there.",
    parameters,
    may_repeat: false,
    work: Work::Blocking(run),
};

const DEFAULT_RESULTS: usize = 200;
const MAX_RESULTS: usize = 1000;
const MAX_CONTEXT: usize = 10;
const MAX_COUNT: usize = 10_000;
const SKIPPED_FOLDERS: &[&str] = &["target", "node_modules"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchFiles {
    query: String,
    path: Option<String>,
    #[serde(default)]
    include: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    case: Case,
    #[serde(default)]
    context: usize,
    max_results: Option<usize>,
}

fn parameters() -> Value {
    let globs = |what: &str| {
        let description = format!(
            "{what}, as in .gitignore: \"*.rs\" in any folder, \"src/**\" from the workspace on."
        );
        json!({"type": "array", "items": {"type": "string", "minLength": 1}, "description": description})
    };
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "A regular expression, matched within a line. Put a backslash before ( [ { . * + ? | ^ $ \\ where they stand for themselves."},
            "path": {"type": "string", "description": "The file or folder to search. The whole workspace if left out."},
            "include": globs("Only these files"),
            "exclude": globs("None of these files"),
            "case": {"type": "string", "enum": ["smart", "sensitive", "insensitive"], "description": "smart, the default: capital letters matter if the query has any."},
            "context": {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "description": "How many lines before and after each match to give too."},
            "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "description": "How many matches to give, 200 if left out."},
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

fn run(arguments: &Arguments, context: &ToolContext) -> Result<Value, ErrorInfo> {
    let wanted: SearchFiles = arguments.parse()?;
    let read_globs = |list: &[String], name: &str| {
        globs(list).map_err(|why| arguments.invalid(format!("{name}: {why}")))
    };
    let mut search = Search {
        lines: Lines::new(&wanted.query, wanted.case, wanted.context)
            .map_err(|why| arguments.invalid(format!("query: {why}")))?,
        include: (!wanted.include.is_empty())
            .then(|| read_globs(&wanted.include, "include"))
            .transpose()?,
        exclude: read_globs(&wanted.exclude, "exclude")?,
        max_results: wanted.max_results.unwrap_or(DEFAULT_RESULTS),
        workspace: Workspace::open(&context.workspace, &context.private)?,
        matches: Vec::new(),
        total: 0,
        files: 0,
    };
    let path = search.workspace.relative(wanted.path.as_deref().unwrap_or("."))?;
    if search.workspace.is_file(&path)? {
        search.file(&path);
    } else {
        // Errors are reported only for the start of the search.
        search.workspace.folder(&path)?;
        search.folders(path, context)?;
    }
    Ok(json!({
        "query": wanted.query,
        "matches": search.matches,
        "total": search.total,
        "files": search.files,
    }))
}

struct Search {
    lines: Lines,
    /// Patterns of files to search; `None` for all files.
    include: Option<Gitignore>,
    exclude: Gitignore,
    max_results: usize,
    workspace: Workspace,
    matches: Vec<Value>,
    total: usize,
    files: usize,
}

impl Search {
    /// Searches folders. They are kept as paths, not as handles, because there may be more than a process
    /// can open.
    fn folders(&mut self, start: PathBuf, context: &ToolContext) -> Result<(), ErrorInfo> {
        let ignored = Ignored::above(&self.workspace, &start);
        let mut waiting = vec![(start, ignored)];
        while let Some((folder, above)) = waiting.pop() {
            context.check_stopped()?;
            let ignored = Ignored::within(&self.workspace, &folder, above);
            let (files, folders) = contents(&self.workspace, &folder);
            for file in files {
                context.check_stopped()?;
                if self.total >= MAX_COUNT {
                    return Ok(());
                }
                if self.takes(&file, &ignored) {
                    self.file(&file);
                }
            }
            let folders = folders.into_iter().filter(|it| self.enters(it, &ignored));
            // The last in the list is searched next.
            waiting.extend(folders.rev().map(|it| (it, Some(Rc::clone(&ignored)))));
        }
        Ok(())
    }

    fn takes(&self, file: &Path, ignored: &Ignored) -> bool {
        let fits = |globs: &Gitignore| globs.matched_path_or_any_parents(file, false).is_ignore();
        !ignored.has(file, false) && !fits(&self.exclude) && self.include.as_ref().is_none_or(fits)
    }

    fn enters(&self, folder: &Path, ignored: &Ignored) -> bool {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.')
            && !SKIPPED_FOLDERS.contains(&&*name)
            && !ignored.has(folder, true)
            && !self.exclude.matched(folder, true).is_ignore()
    }

    fn file(&mut self, path: &Path) {
        let Ok(text) = self.workspace.text(path) else { return };
        self.files += 1;
        let Self { lines, matches, total, max_results, .. } = self;
        lines.find(&text, |found| {
            *total += 1;
            if matches.len() < *max_results {
                matches.push(found.describe(&display(path)));
            }
            *total < MAX_COUNT
        });
    }
}

/// Returns the files and folders in a folder by name; none if it cannot be read.
fn contents(workspace: &Workspace, folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let entries = workspace
        .folder(folder)
        .and_then(|it| it.entries().map_err(|error| workspace.explain(&error, folder, "folder")));
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let path = if folder == Path::new(".") { PathBuf::from(&name) } else { folder.join(&name) };
        match entry.file_type() {
            Ok(kind) if kind.is_file() => files.push(path),
            Ok(kind) if kind.is_dir() => folders.push(path),
            _ => (),
        }
    }
    files.sort();
    folders.sort();
    (files, folders)
}
