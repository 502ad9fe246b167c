//! `search_files`: which lines in the workspace contain a text.
//!
//! Links are not followed, so the walk ends; files that cannot be read are passed over.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::workspace::{Workspace, display};
use super::{Arguments, Tool, ToolContext, Work};

pub(super) const TOOL: Tool = Tool {
    name: "search_files",
    description: "Finds the lines in the workspace's text files that contain a text. It is plain \
                  text, not a pattern; in lower case it matches capital letters too. Hidden folders, \
                  target and node_modules are left out.",
    parameters,
    may_repeat: false,
    work: Work::Blocking(run),
};

const MAX_MATCHES: usize = 200;
const MAX_COUNT: usize = 10_000;
const MAX_LINE_CHARS: usize = 200;
const SKIPPED_FOLDERS: &[&str] = &["target", "node_modules"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchFiles {
    query: String,
    path: Option<String>,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "The text to look for."},
            "path": {"type": "string", "description": "The file or folder to search. The whole workspace if left out."},
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

fn run(arguments: &Arguments, context: &ToolContext) -> Result<Value, ErrorInfo> {
    let SearchFiles { query, path } = arguments.parse()?;
    if query.is_empty() {
        return Err(arguments.invalid("query is empty"));
    }
    let workspace = Workspace::open(&context.workspace)?;
    let path = workspace.relative(path.as_deref().unwrap_or("."))?;
    let mut search = Search::new(&query);
    if workspace.is_file(&path)? {
        search.file(&workspace, &path);
    } else {
        // Only where the search begins is an error worth telling.
        workspace.folder(&path)?;
        search.folders(&workspace, path, context)?;
    }
    Ok(json!({
        "query": query,
        "matches": search.matches,
        "total": search.total,
        "files": search.files,
    }))
}

struct Search<'a> {
    query: &'a str,
    ignores_case: bool,
    matches: Vec<Value>,
    total: usize,
    files: usize,
}

impl<'a> Search<'a> {
    fn new(query: &'a str) -> Self {
        let ignores_case = query == query.to_lowercase();
        Self { query, ignores_case, matches: Vec::new(), total: 0, files: 0 }
    }

    /// Folders are kept as paths, not as handles: there may be more of them than a process can open.
    fn folders(
        &mut self,
        workspace: &Workspace,
        start: PathBuf,
        context: &ToolContext,
    ) -> Result<(), ErrorInfo> {
        let mut waiting = vec![start];
        while let Some(folder) = waiting.pop() {
            context.check_stopped()?;
            let (files, folders) = contents(workspace, &folder);
            for file in files {
                context.check_stopped()?;
                if self.total >= MAX_COUNT {
                    return Ok(());
                }
                self.file(workspace, &file);
            }
            // The last of the list is the next to be searched.
            waiting.extend(folders.into_iter().rev());
        }
        Ok(())
    }

    fn file(&mut self, workspace: &Workspace, path: &Path) {
        let Ok(text) = workspace.text(path) else { return };
        self.files += 1;
        for (number, line) in (1..).zip(text.lines()) {
            if self.total < MAX_COUNT && self.fits(line) {
                self.add(path, number, line);
            }
        }
    }

    fn fits(&self, line: &str) -> bool {
        line.contains(self.query) || (self.ignores_case && line.to_lowercase().contains(self.query))
    }

    fn add(&mut self, path: &Path, number: u64, line: &str) {
        self.total += 1;
        if self.matches.len() < MAX_MATCHES {
            let text: String = line.chars().take(MAX_LINE_CHARS).collect();
            self.matches.push(json!({"path": display(path), "line": number, "text": text}));
        }
    }
}

/// Files and folders in the order of their names. A folder that cannot be read has none.
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
            Ok(kind) if kind.is_dir() && !is_skipped(&name.to_string_lossy()) => folders.push(path),
            _ => (),
        }
    }
    files.sort();
    folders.sort();
    (files, folders)
}

fn is_skipped(folder_name: &str) -> bool {
    folder_name.starts_with('.') || SKIPPED_FOLDERS.contains(&folder_name)
}
