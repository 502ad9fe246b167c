//! `search_files`: finds the lines in the workspace that match a pattern.
//!
//! Files that git ignores are skipped, unless the search starts there. Links are not followed, so the walk
//! ends; unreadable files are skipped.

mod ignored;
mod lines;

use std::path::Path;
use std::rc::Rc;

use ignore::gitignore::Gitignore;
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, Work};
use crate::ToolContext;
use crate::workspace::{FilePath, Workspace, display};
use ignored::{Ignored, globs};
use lines::{Case, Lines};

pub(super) const TOOL: Tool = Tool {
    name: "search_files",
    description: "Finds the lines in the workspace's text files that match a regular expression. \
                  Skips files that .gitignore excludes, hidden folders, target and node_modules, \
                  unless path is in one of them.",
    parameters,
    may_repeat: false,
    work: Work::InWorkspace(run),
};

const DEFAULT_RESULTS: usize = 200;
const MAX_RESULTS: usize = 1000;
const MAX_CONTEXT: usize = 10;
const MAX_COUNT: usize = 10_000;
const SKIPPED_FOLDERS: &[&str] = &["target", "node_modules"];

#[derive(Deserialize)]
struct SearchFiles {
    query: String,
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
    let globs = |purpose: &str| {
        let description = format!(
            "{purpose}, as in .gitignore: \"*.rs\" in any folder, \"src/**\" relative to the workspace."
        );
        json!({"type": "array", "items": {"type": "string", "minLength": 1}, "description": description})
    };
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "A regular expression, matched within a line. Put a backslash before ( [ { . * + ? | ^ $ \\ to match them literally."},
            "path": {"type": "string", "description": "The file or folder to search. Default: the whole workspace."},
            "include": globs("Search only these files"),
            "exclude": globs("Skip these files"),
            "case": {"type": "string", "enum": ["smart", "sensitive", "insensitive"], "description": "Default: smart, which is case-sensitive only if the query has a capital letter."},
            "context": {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "description": "Number of lines before and after each match to return."},
            "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "description": "Maximum number of matches to return. Default: 200."},
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

fn run(
    arguments: &Arguments,
    context: &ToolContext,
    workspace: &Workspace,
    path: &FilePath,
) -> Result<Value, ErrorInfo> {
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
        workspace,
        context,
        matches: Vec::new(),
        total: 0,
        files: 0,
    };
    if workspace.is_file(path)? {
        search.file(path);
    } else {
        // Errors are reported only for the start of the search.
        workspace.folder(path)?;
        search.folders(path.clone())?;
    }
    Ok(json!({
        "query": wanted.query,
        "matches": search.matches,
        "total": search.total,
        "files": search.files,
    }))
}

struct Search<'a> {
    lines: Lines,
    /// Glob patterns of the files to search; `None` for all files.
    include: Option<Gitignore>,
    exclude: Gitignore,
    max_results: usize,
    workspace: &'a Workspace,
    context: &'a ToolContext,
    matches: Vec<Value>,
    total: usize,
    files: usize,
}

impl Search<'_> {
    /// Searches a folder and its subfolders. Pending folders are kept as paths, not as handles,
    /// because there may be more than a process can open.
    fn folders(&mut self, start: FilePath) -> Result<(), ErrorInfo> {
        let ignored = Ignored::above(self.workspace, &start);
        let mut waiting = vec![(start, ignored)];
        while let Some((folder, above)) = waiting.pop() {
            self.context.check_stopped()?;
            let ignored = Ignored::within(self.workspace, &folder, above);
            let (files, folders) = contents(self.workspace, &folder);
            for file in files {
                self.context.check_stopped()?;
                if self.total >= MAX_COUNT {
                    return Ok(());
                }
                if self.takes(&file.given, &ignored) {
                    self.file(&file);
                }
            }
            let folders = folders.into_iter().filter(|it| self.enters(&it.given, &ignored));
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

    fn file(&mut self, path: &FilePath) {
        let Ok(text) = self.workspace.text(path) else { return };
        self.files += 1;
        let Self { lines, matches, total, max_results, .. } = self;
        lines.find(&text, |found| {
            *total += 1;
            if matches.len() < *max_results {
                matches.push(found.describe(&display(&path.given)));
            }
            *total < MAX_COUNT
        });
    }
}

/// Returns the files and the subfolders of a folder, each sorted by name; both lists are empty if
/// the folder cannot be read.
fn contents(workspace: &Workspace, folder: &FilePath) -> (Vec<FilePath>, Vec<FilePath>) {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let Ok(opened) = workspace.folder(folder) else { return (files, folders) };
    for (name, kind) in opened.entries().into_iter().flatten() {
        match kind {
            FileType::RegularFile => files.push(folder.join(name)),
            FileType::Directory => folders.push(folder.join(name)),
            _ => (),
        }
    }
    files.sort_by(|a, b| a.given.cmp(&b.given));
    folders.sort_by(|a, b| a.given.cmp(&b.given));
    (files, folders)
}
