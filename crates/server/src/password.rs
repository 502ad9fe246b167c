//! The password: a hash in the data folder, set with `callboard password`.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

use crate::config::Config;
use crate::files::write_private;

const SHORTEST: usize = 8;

pub(crate) fn is_set(data: &Path) -> bool {
    file(data).is_file()
}

/// Slow on purpose. Read anew each time, so that a change counts at once.
pub(crate) fn is_right(data: &Path, given: &str) -> bool {
    let Ok(hash) = std::fs::read_to_string(file(data)) else { return false };
    let Ok(hash) = PasswordHash::new(hash.trim()) else { return false };
    Argon2::default().verify_password(given.as_bytes(), &hash).is_ok()
}

/// `callboard password`: from a terminal without showing it, else the first line of the input.
pub(crate) fn run(config: &Config) -> anyhow::Result<()> {
    let password = if std::io::stdin().is_terminal() {
        rpassword::prompt_password("New password: ").context("reading the password")?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).context("reading the password")?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    set(&config.data, &password)?;
    #[expect(clippy::print_stdout, reason = "the answer to the command")]
    {
        println!("The password is set. It counts at once, also for a server that is running.");
    }
    Ok(())
}

fn set(data: &Path, password: &str) -> anyhow::Result<()> {
    let length = password.chars().count();
    ensure!(length >= SHORTEST, "that is too short: use at least {SHORTEST} characters");
    let hash = Argon2::default().hash_password(password.as_bytes());
    let hash = hash.map_err(|error| anyhow::anyhow!("hashing the password: {error}"))?;
    std::fs::create_dir_all(data).with_context(|| format!("making {}", data.display()))?;
    let path = file(data);
    write_private(&path, &format!("{hash}\n"))
        .with_context(|| format!("writing {}", path.display()))
}

fn file(data: &Path) -> PathBuf {
    data.join("password")
}

#[cfg(test)]
mod tests {
    //! What is right, and what is not taken.

    use super::*;

    #[test]
    fn only_the_password_that_was_set_is_right() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_set(data.path()) && !is_right(data.path(), ""));
        assert!(set(data.path(), "short").is_err());
        set(data.path(), "correct horse").unwrap();
        assert!(is_set(data.path()) && is_right(data.path(), "correct horse"));
        assert!(!is_right(data.path(), "Correct horse") && !is_right(data.path(), ""));
        let text = std::fs::read_to_string(file(data.path())).unwrap();
        assert!(text.starts_with("$argon2id$") && !text.contains("horse"));
        std::fs::write(file(data.path()), "rubbish").unwrap();
        assert!(!is_right(data.path(), "rubbish"));
    }
}
