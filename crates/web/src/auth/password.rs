//! The password of the server, whose hash is stored in a file in the data folder.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use runtime::clock::new_salt;
use runtime::files::write_private;

const SHORTEST: usize = 8;

/// Returns whether a password for the server is set in the data folder.
pub fn is_set(data: &Path) -> bool {
    file(data).is_file()
}

/// Reads the hash of the server's password from the data folder; `None` if no password is set.
pub fn stored_hash(data: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(file(data)) {
        Ok(hash) => Ok(Some(hash)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether a password matches the stored hash. Takes long by design.
pub fn is_right(hash: &str, given: &str) -> bool {
    argon2::verify_encoded(hash.trim(), given.as_bytes()).unwrap_or(false)
}

/// Stores the hash of a new password for the server in the data folder. Fails if the password is
/// too short.
pub fn set(data: &Path, password: &str) -> anyhow::Result<()> {
    let length = password.chars().count();
    ensure!(length >= SHORTEST, "that is too short: use at least {SHORTEST} characters");
    // The default is OWASP's recommendation: Argon2id with 19 MiB and two passes.
    let hash = argon2::hash_encoded(password.as_bytes(), &new_salt(), &argon2::Config::default());
    let hash = hash.context("hashing the password")?;
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
        set(data.path(), "correct horse").unwrap();
        assert_ne!(stored_hash(data.path()).unwrap().unwrap(), hash, "each hash has its own salt");
    }

    /// Data folders may contain hashes of other implementations of Argon2.
    #[test]
    fn hashes_of_other_implementations_are_accepted() {
        let hash = "$argon2id$v=19$m=19456,t=2,p=1$pdTqSLU3ePqovWZuiVSeAQ\
                    $edV+sBOKihx9j8cU2wBb2VkcH3uA8+XHjrR1xOjFHP0";
        assert!(is_right(hash, "correct horse") && is_right(&format!("{hash}\n"), "correct horse"));
        assert!(
            !is_right(hash, "correct hors") && !is_right(&hash[..hash.len() - 2], "correct horse")
        );
    }
}
