//! The files in which programs keep their conversations.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use backends::ProgramKind;
use backends::import::{SideFile, detect};

use crate::config::Environment;
use runtime::import::Conversation;

/// Number of bytes at the start of a file that identify the program that wrote the file.
const HEAD: u64 = 64 * 1024;

/// File in which a program keeps a conversation.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) kind: ProgramKind,
}

/// Returns the folders in which Claude Code, Codex and Pi keep conversations, whether they exist or
/// not.
pub(super) fn default_folders(environment: &Environment) -> Vec<PathBuf> {
    let home = environment.home.as_deref();
    let folder_of = |variable: &str, folder: &str, inside: &str| {
        let named = (environment.variable)(variable).filter(|it| !it.is_empty()).map(PathBuf::from);
        Some(named.or_else(|| Some(home?.join(folder)))?.join(inside))
    };
    let folders = [
        folder_of("CLAUDE_CONFIG_DIR", ".claude", "projects"),
        folder_of("CODEX_HOME", ".codex", "sessions"),
        folder_of("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"),
    ];
    folders.into_iter().flatten().collect()
}

/// Returns the conversation files at a path: one file, or all files in a folder and below, sorted
/// by name.
pub(super) fn find(path: &Path) -> anyhow::Result<Vec<Found>> {
    if path.is_dir() {
        let mut found = Vec::new();
        for path in files_in(path)? {
            let is_log = path.extension().is_some_and(|it| it == "jsonl");
            let kind = if is_log { kind_of(&path)? } else { None };
            found.extend(kind.map(|kind| Found { path, kind }));
        }
        return Ok(found);
    }
    let kind = kind_of(path)?.with_context(|| {
        format!(
            "{} is no conversation of Claude Code, Codex or Pi; if it is something else, name its \
             format with --format",
            path.display()
        )
    })?;
    Ok(vec![Found { path: path.to_owned(), kind }])
}

pub(super) fn load(found: &Found, is_final: bool) -> anyhow::Result<Conversation> {
    let Found { path, kind } = found;
    let text = read_text(path)?;
    let mut side_files = Vec::new();
    let beside = path.with_extension("");
    if *kind == ProgramKind::Claude && beside.is_dir() {
        for path in files_in(&beside)? {
            let name = path.strip_prefix(&beside).unwrap_or(&path).to_string_lossy().into_owned();
            side_files.push(SideFile { name, text: read_text(&path)? });
        }
    }
    Ok(Conversation { kind: *kind, text, side_files, is_final })
}

fn kind_of(path: &Path) -> anyhow::Result<Option<ProgramKind>> {
    let mut head = Vec::new();
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    file.take(HEAD)
        .read_to_end(&mut head)
        .with_context(|| format!("reading {}", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(detect(&name, &String::from_utf8_lossy(&head)))
}

/// Reads a text file; invalid UTF-8 is replaced.
pub(super) fn read_text(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns all files in a folder and below. Symbolic links are not followed, because they could
/// form cycles.
fn files_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let reading = || format!("reading the folder {}", folder.display());
        for entry in std::fs::read_dir(&folder).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let kind = entry.file_type().with_context(reading)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}
