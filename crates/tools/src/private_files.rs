//! Private files: the data folder with the token, the password hash and every log, which no tool may reach.
//!
//! File tools refuse them. A command can be written in many ways, so one that names them, or may reach them,
//! always needs an approval.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::iter::once;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use crate::paths::real_path;

/// The server's private files: the data folder with the token, the password hash and the logs.
#[derive(Debug, Clone, Default)]
pub struct PrivateFiles {
    /// The server's data folder; `None` if nothing is private, as in tests.
    folder: Option<PathBuf>,
    home: Option<PathBuf>,
}

/// Device and inode, which identify a file under all its names.
pub(crate) type Inode = (u64, u64);

/// Degree to which a tool call can reach the server's private files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The tool call names no private files and does not work near them.
    Elsewhere,
    /// The tool call may reach private files.
    Possible,
    /// The tool call names private files.
    Named,
}

/// Maximum length in bytes of a shell command that is searched for private files word by word.
const MAX_SEARCHED: usize = 16 * 1024;
/// Maximum number of distinct words of a shell command that is searched for private files.
const MAX_WORDS: usize = 1000;
/// Maximum length in bytes of a tool call's argument that may be a path.
const MAX_PATH: usize = 4096;
/// Maximum number of entries that are checked in each folder of the private files; there are a few
/// dozen.
const MAX_ENTRIES: usize = 10_000;
/// Characters that a shell expands, so that the rest of a word may become anything.
const UNCERTAIN: &[char] = &['*', '?', '[', '{', '$', '`'];
/// Characters in a shell command line after which another command may begin.
const SEPARATORS: &[char] = &[';', '&', '|', '\n', '(', ')', '{', '}', '`'];
/// Characters that end a word of a shell command, besides white space.
const ENDS_OF_WORDS: &str = ";&|<>$`(){}[]*?!#~=:,@\"'\\";

impl PrivateFiles {
    /// Creates the set of private files from the data folder and the home folder of the server's
    /// user.
    pub fn new(data: &Path, home: Option<&Path>) -> Self {
        Self { folder: Some(data.to_owned()), home: home.map(Path::to_owned) }
    }

    /// Returns the path of the data folder with its links resolved; `None` if it is not certain.
    pub fn real_folder(&self) -> Option<String> {
        Some(real_path(self.folder.as_ref()?)?.to_str()?.to_owned())
    }

    /// Returns whether a path leads to one of the server's private files, also through links and
    /// hard links, or may lead there.
    pub fn holds(&self, path: &Path) -> bool {
        let Some(folder) = &self.folder else { return false };
        let (Some(real), Some(folder)) = (real_path(path), real_path(folder)) else { return true };
        let is_inside = real.starts_with(folder);
        let has_other_names = |it: &Metadata| it.is_file() && it.nlink() > 1;
        let linked = path.metadata().ok().filter(has_other_names);
        is_inside || linked.is_some_and(|it| self.inodes().contains(&(it.dev(), it.ino())))
    }

    /// Returns the inodes of the server's data folder and of everything in it.
    pub fn inodes(&self) -> HashSet<Inode> {
        let mut found = HashSet::new();
        let mut waiting: Vec<PathBuf> = self.folder.iter().cloned().collect();
        while let Some(path) = waiting.pop() {
            let Ok(metadata) = path.metadata() else { continue };
            let is_new = found.insert((metadata.dev(), metadata.ino()));
            if !metadata.is_dir() || !is_new {
                continue;
            }
            let entries = path.read_dir().into_iter().flatten().flatten();
            waiting.extend(entries.take(MAX_ENTRIES).map(|it| it.path()));
        }
        found
    }

    /// Returns whether the data folder is inside the workspace or contains it. True if that is not
    /// certain.
    pub fn is_near(&self, workspace: &Path) -> bool {
        let Some(folder) = &self.folder else { return false };
        match (real_path(folder), real_path(workspace)) {
            (Some(folder), Some(workspace)) => {
                folder.starts_with(&workspace) || workspace.starts_with(folder)
            }
            _ => true,
        }
    }

    /// Returns whether a shell command that starts in `folder` names the private files or may reach
    /// them.
    pub fn reach_of_command(&self, command: &str, folder: &Path) -> Reach {
        // `da"ta"` is the word `data` to a shell.
        let unquoted: String = command.chars().filter(|it| !"\"'\\".contains(*it)).collect();
        let texts = [command, &unquoted].map(|it| self.with_home(it));
        if texts.iter().any(|it| self.is_named_in(it)) {
            return Reach::Named;
        }
        if command.len() > MAX_SEARCHED {
            return Reach::Possible;
        }
        let words: HashSet<&str> = texts.iter().flat_map(|it| words(it)).collect();
        if words.len() > MAX_WORDS {
            return Reach::Possible;
        }
        let home = self.home.as_ref().filter(|_| goes_home(&unquoted));
        let homes = home.map(|it| self.reach_of_path(it));
        let reaches = words.iter().map(|it| self.reach_of_word(it, folder)).chain(homes);
        reaches.max().unwrap_or(Reach::Elsewhere)
    }

    /// Returns whether a word of a shell command names the private files or may reach them. A word
    /// that the shell expands can become any path in the folder before its first uncertain
    /// character.
    fn reach_of_word(&self, word: &str, folder: &Path) -> Reach {
        let Some(at) = word.find(UNCERTAIN) else { return self.reach_of_path(&folder.join(word)) };
        let known = word[..at].rfind('/').map_or("", |it| &word[..=it]);
        self.reach_of_path(&folder.join(known)).min(Reach::Possible)
    }

    /// Returns the text of a tool call with the home folder in place of `~`, `$HOME` and `${HOME}`.
    fn with_home(&self, text: &str) -> String {
        let Some(home) = self.home.as_ref().and_then(|it| it.to_str()) else {
            return text.to_owned();
        };
        let user = Path::new(home).file_name().and_then(OsStr::to_str).unwrap_or_default();
        let mut text = text.replace("${HOME}", home).replace("$HOME", home);
        for tilde in ["~".to_owned(), format!("~{user}")] {
            text = text.replace(&format!("{tilde}/"), &format!("{home}/"));
            let is_tilde = |it: &str| it == tilde || it.ends_with(&format!("={tilde}"));
            if text.split_whitespace().any(|it| is_tilde(it.trim_end_matches(SEPARATORS))) {
                text.push_str(&format!(" {home}"));
            }
        }
        text
    }

    /// Returns whether a path leads to private files, or to a folder that contains them and may be
    /// searched or copied with them.
    fn reach_of_path(&self, path: &Path) -> Reach {
        let Some(folder) = &self.folder else { return Reach::Elsewhere };
        let is_around = || match (real_path(path), real_path(folder)) {
            (Some(path), Some(folder)) => folder.starts_with(path),
            _ => true,
        };
        match self.holds(path) {
            true => Reach::Named,
            false if is_around() => Reach::Possible,
            false => Reach::Elsewhere,
        }
    }

    /// Returns whether an argument of a tool call that is or contains a path names the private
    /// files or may reach them.
    pub fn reach_of_text(&self, text: &str, folder: &Path) -> Reach {
        if self.is_named_in(&self.with_home(text)) {
            return Reach::Named;
        }
        let paths = self.paths_of(text).into_iter().filter(|it| !it.contains('\0'));
        let reaches = paths.map(|it| self.reach_of_path(&folder.join(it)));
        reaches.max().unwrap_or(Reach::Elsewhere)
    }

    /// Returns all paths that a program may take a tool call's argument for: unchanged, without a
    /// leading `@`, with plain spaces, relative to the home folder, or from a `file:` URL.
    fn paths_of(&self, text: &str) -> Vec<String> {
        if text.is_empty() || text.len() > MAX_PATH {
            return Vec::new();
        }
        let bare = text.strip_prefix('@').unwrap_or(text);
        let spaced: String =
            bare.chars().map(|it| if it.is_whitespace() { ' ' } else { it }).collect();
        let in_home = spaced.strip_prefix('~').zip(self.home.as_ref());
        let in_home = in_home.map(|(rest, home)| format!("{}{rest}", home.display()));
        let address = text.strip_prefix("file://").and_then(|it| it.find('/').map(|at| &it[at..]));
        let address = address.map(|it| percent_decode_str(it).decode_utf8_lossy().into_owned());
        let paths = [Some(text.to_owned()), Some(bare.to_owned()), Some(spaced), in_home, address];
        paths.into_iter().flatten().collect()
    }

    fn is_named_in(&self, text: &str) -> bool {
        self.names().iter().any(|it| has_path(text, it))
    }

    /// Returns the paths by which a tool call may name the data folder: as configured, its real
    /// path, and both relative to the home folder, as after `~` and `$HOME`.
    fn names(&self) -> Vec<String> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let both = |it: &PathBuf| [Some(it.clone()), real_path(it)].into_iter().flatten();
        let mut names: Vec<PathBuf> = both(folder).collect();
        for home in self.home.iter().flat_map(both) {
            let in_home: Vec<PathBuf> = names
                .iter()
                .filter_map(|it| it.strip_prefix(&home).ok())
                .map(Path::to_owned)
                .collect();
            // A single word would match too much.
            names.extend(in_home.into_iter().filter(|it| it.components().count() > 1));
        }
        names.iter().filter_map(|it| it.to_str().map(str::to_owned)).collect()
    }
}

/// Returns the texts in a shell command that may be paths: between blanks, between characters that
/// end words in a shell, and from each of those characters to the next blank, because names may
/// contain them.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let is_blank = |it: char| it.is_whitespace() || it.is_control();
    let is_end = move |it: char| is_blank(it) || ENDS_OF_WORDS.contains(it);
    let tails = command.split(is_blank).flat_map(move |word| {
        let ends = word.char_indices().filter(move |(_, it)| ENDS_OF_WORDS.contains(*it));
        let starts = once(0).chain(ends.map(|(at, it)| at + it.len_utf8()));
        starts.map(move |it| &word[it..])
    });
    tails.chain(command.split(is_end)).filter(|it| !it.is_empty())
}

/// Returns whether a part of a shell command is a bare `cd`, which changes to the home folder.
fn goes_home(command: &str) -> bool {
    command.split(SEPARATORS).any(|it| {
        let mut words = it.split_whitespace();
        words.next() == Some("cd") && words.all(|it| it.starts_with('-'))
    })
}

/// Returns whether a text contains the path, not only as a part of a longer name. An absolute path
/// may follow any character, as in `-C/srv/data`.
fn has_path(text: &str, path: &str) -> bool {
    let is_absolute = path.starts_with('/');
    let is_of_name = |it: char| it.is_alphanumeric() || "_-.".contains(it);
    text.match_indices(path).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let goes_on_before = !is_absolute && before.is_some_and(is_of_name);
        let goes_on_after = after.is_some_and(|it| it.is_alphanumeric() || "_-".contains(it));
        !goes_on_before && !goes_on_after
    })
}

#[cfg(test)]
mod tests;
