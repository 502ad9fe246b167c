//! The password of the server: its hash is a file in the data folder.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use runtime::files::write_private;

const SHORTEST: usize = 8;

/// Returns whether a password is set.
pub fn is_set(data: &Path) -> bool {
    file(data).is_file()
}

/// Reads the hash from disk; `None` if no password is set.
pub fn stored_hash(data: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(file(data)) {
        Ok(hash) => Ok(Some(hash)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the password matches the hash. Slow on purpose.
pub fn is_right(hash: &str, given: &str) -> bool {
    let Ok(hash) = PasswordHash::new(hash.trim()) else { return false };
    Argon2::default().verify_password(given.as_bytes(), &hash).is_ok()
}

/// Stores the hash of a new password.
pub fn set(data: &Path, password: &str) -> anyhow::Result<()> {
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
    //! Accepted and refused passwords.

    use super::*;

    #[test]
    fn only_the_current_password_is_accepted() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_set(data.path()) && stored_hash(data.path()).unwrap().is_none());
        assert!(set(data.path(), "short").is_err());
        set(data.path(), "correct horse").unwrap();
        let hash = stored_hash(data.path()).unwrap().unwrap();
        assert!(is_set(data.path()) && is_right(&hash, "correct horse"));
        assert!(!is_right(&hash, "Correct horse") && !is_right(&hash, ""));
        assert!(hash.starts_with("$argon2id$") && !hash.contains("horse"));
        assert!(!is_right("rubbish", "rubbish") && !is_right("", ""));
    }
}
