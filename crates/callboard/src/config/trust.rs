//! Decides whether a `callboard.toml` in the working folder is used.
//!
//! Such a file may be part of a foreign repository, and it can start programs. Therefore a person has to
//! agree to its content first. The list of agreements is in the user's own configuration folder, which a
//! repository cannot change. A file that is named with `--config` needs no agreement.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::describe::effects;
use super::{Environment, FILE_NAME};
use runtime::files::write_private;

const LIST_NAME: &str = "trusted.json";

/// Configuration file that was read once, so that the same bytes are hashed for the agreement and
/// parsed.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A person's agreement to one content of one configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Agreement {
    /// Canonical path of the configuration file, without symbolic links.
    path: String,
    blake3: String,
}

/// The list of configuration files that the user has agreed to, in the user's configuration folder.
pub(crate) struct TrustList {
    file: PathBuf,
}

impl TrustList {
    /// Creates the list of agreements. Returns `None` if the user has no configuration folder.
    pub(crate) fn new(environment: &Environment) -> Option<Self> {
        let file = environment.config_home()?.join("callboard").join(LIST_NAME);
        Some(Self { file })
    }

    /// Returns the user's agreements. The result is empty if the list cannot be read.
    fn agreements(&self) -> Vec<Agreement> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn contains(&self, candidate: &Candidate) -> bool {
        agreement_to(candidate).is_ok_and(|it| self.agreements().contains(&it))
    }

    /// Adds an agreement to the content of a configuration file; it replaces one to an earlier
    /// content of the file.
    fn add(&self, candidate: &Candidate) -> anyhow::Result<()> {
        let agreement = agreement_to(candidate)?;
        let mut agreements = self.agreements();
        agreements.retain(|it| it.path != agreement.path);
        agreements.push(agreement);
        self.write(&agreements)
    }

    /// Removes the agreement to a configuration file. Returns whether there was one.
    fn remove(&self, path: &Path) -> anyhow::Result<bool> {
        let path = real_path(path).or_else(|_| text_of(path))?;
        let mut agreements = self.agreements();
        let before = agreements.len();
        agreements.retain(|it| it.path != path);
        self.write(&agreements)?;
        Ok(agreements.len() < before)
    }

    fn write(&self, agreements: &[Agreement]) -> anyhow::Result<()> {
        let writing = || format!("writing {}", self.file.display());
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder).with_context(writing)?;
        }
        let text = serde_json::to_string_pretty(agreements)?;
        write_private(&self.file, &text).with_context(writing)
    }
}

fn agreement_to(Candidate { path, text }: &Candidate) -> anyhow::Result<Agreement> {
    let blake3 = blake3::hash(text.as_bytes()).to_hex().to_string();
    Ok(Agreement { path: real_path(path)?, blake3 })
}

fn real_path(path: &Path) -> anyhow::Result<String> {
    let real = path.canonicalize().with_context(|| format!("finding {}", path.display()))?;
    text_of(&real)
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(text.to_owned())
}

impl Candidate {
    pub(super) fn read(path: PathBuf) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(&path);
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        Ok(Self { path, text })
    }

    /// Reads a configuration file that a person has to agree to. A symbolic link is refused,
    /// because an agreement in one folder would apply in another, where the same names may refer to
    /// different programs.
    fn read_to_trust(path: PathBuf) -> anyhow::Result<Self> {
        ensure!(!path.is_symlink(), "{} is a link; name the file itself", path.display());
        Self::read(path)
    }

    /// Reads the configuration file of a working folder. An unreadable file is skipped with a
    /// message, and its path is the error.
    pub(super) fn found(path: PathBuf) -> Result<Self, PathBuf> {
        Self::read_to_trust(path.clone()).map_err(|error| {
            skip(&path, &format!("{error:#}"));
            path
        })
    }

    /// Returns whether the configuration file may be used, because it has no effects, it was agreed
    /// to, or the person at the terminal agrees now. `own` is the user's own file, which it would
    /// replace.
    pub(super) fn is_trusted(
        &self,
        own: Option<&Path>,
        environment: &Environment,
    ) -> anyhow::Result<bool> {
        let mut effects = effects(&self.text, self.folder());
        effects.extend(own.map(|it| format!("be used instead of your own {}", it.display())));
        let list = TrustList::new(environment);
        if effects.is_empty() || list.as_ref().is_some_and(|it| it.contains(self)) {
            return Ok(true);
        }
        let Some(list) = list.filter(|_| has_terminal()) else {
            self.tell_skipped();
            return Ok(false);
        };
        if !self.ask(&effects)? {
            self.tell_skipped();
            return Ok(false);
        }
        list.add(self)?;
        Ok(true)
    }

    /// Returns the folder that contains the configuration file.
    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn ask(&self, effects: &[String]) -> anyhow::Result<bool> {
        let mut err = std::io::stderr().lock();
        writeln!(err, "This folder has a {FILE_NAME} that you have not agreed to. It would:")?;
        for effect in effects {
            writeln!(err, "  - {effect}")?;
        }
        write!(err, "Use {}? [y/N] ", self.path.display())?;
        err.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).context("reading the answer")?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    fn tell_skipped(&self) {
        let path = self.path.display();
        let why = format!(
            "you have not agreed to what it says. Look at it, then run 'callboard trust {path}', or \
             start with '--config {path}'."
        );
        skip(&self.path, &why);
    }
}

#[expect(clippy::print_stderr, reason = "for the person who started the command")]
fn skip(path: &Path, why: &str) {
    eprintln!("callboard: skipped {}: {why}", path.display());
}

/// Returns whether a person at a terminal can see a question and answer it.
fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Runs `callboard trust`: agrees to the current content of a configuration file.
#[expect(clippy::print_stdout, reason = "the answer to the command")]
pub(crate) fn agree(path: Option<&Path>, environment: &Environment) -> anyhow::Result<()> {
    let candidate = Candidate::read_to_trust(file_at(path, environment))?;
    for effect in effects(&candidate.text, candidate.folder()) {
        println!("It may {effect}");
    }
    list_of(environment)?.add(&candidate)?;
    println!("{} is trusted as it is now.", candidate.path.display());
    Ok(())
}

/// Runs `callboard trust --revoke`: removes the agreement to a configuration file.
#[expect(clippy::print_stdout, reason = "the answer to the command")]
pub(crate) fn revoke(path: Option<&Path>, environment: &Environment) -> anyhow::Result<()> {
    let path = file_at(path, environment);
    let was_trusted = list_of(environment)?.remove(&path)?;
    ensure!(was_trusted, "{} was not trusted", path.display());
    println!("{} is no longer trusted.", path.display());
    Ok(())
}

/// Runs `callboard trust --list`: prints the trusted configuration files.
#[expect(clippy::print_stdout, reason = "the answer to the command")]
pub(crate) fn list(environment: &Environment) -> anyhow::Result<()> {
    for Agreement { path, blake3 } in list_of(environment)?.agreements() {
        let now = std::fs::read(&path).map(|it| blake3::hash(&it).to_hex().to_string());
        let state = match now {
            Ok(now) if now == blake3 => "",
            Ok(_) => " (changed since: will be asked again)",
            Err(_) => " (not there)",
        };
        println!("{path}{state}");
    }
    Ok(())
}

fn list_of(environment: &Environment) -> anyhow::Result<TrustList> {
    TrustList::new(environment).context("no home folder: name the file with --config instead")
}

/// Returns the path of the named configuration file, or of the configuration file in the named
/// folder. The default is the working folder.
fn file_at(path: Option<&Path>, environment: &Environment) -> PathBuf {
    let path = environment.working_dir.join(path.unwrap_or(Path::new(FILE_NAME)));
    if path.is_dir() { path.join(FILE_NAME) } else { path }
}
