//! Resolution of paths through links.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Number of symbolic links that Linux follows in one path.
const MAX_LINKS: u32 = 40;
/// Maximum length of a file name in bytes.
const MAX_NAME: usize = 255;
/// Maximum length in bytes of an absolute path that can be given to the system. The system itself
/// resolves links step by step and can reach longer paths.
const MAX_PATH: usize = 4000;

/// Resolves every symbolic link in a path as the system does, even if the target does not exist
/// yet.
///
/// Returns `None` if the target is not certain: too many links, a path that is too long or
/// unreadable, or one through `/proc`, where names differ between processes.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    let steps = |path: &Path| path.iter().rev().map(OsStr::to_owned).collect::<Vec<_>>();
    let (mut real, mut ahead) = (PathBuf::new(), steps(path));
    let mut n_links = 0;
    while let Some(step) = ahead.pop() {
        if step == ".." {
            real.pop();
            continue;
        }
        // An absolute step replaces the path.
        let next = real.join(&step);
        if step.len() <= MAX_NAME && next.as_os_str().len() > MAX_PATH || next.starts_with("/proc")
        {
            return None;
        }
        match next.read_link() {
            Ok(_) if n_links == MAX_LINKS => return None,
            Ok(target) => {
                n_links += 1;
                ahead.extend(steps(&target));
            }
            Err(error) if is_no_link(error.kind()) || step.len() > MAX_NAME => real = next,
            Err(_) => return None,
        }
    }
    Some(real)
}

/// Returns whether this error of `readlink` means that the path is no symbolic link.
fn is_no_link(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidInput | ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Returns whether the path, with links resolved, is the folder or lies inside it. False if that is
/// not certain.
pub(crate) fn leads_into(path: &Path, folder: &Path) -> bool {
    match (real_path(path), real_path(folder)) {
        (Some(path), Some(folder)) => path.starts_with(folder),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn uncertain_paths_have_no_real_path() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join("target"), "").unwrap();
        symlink("target", root.join("l0")).unwrap();
        for n in 1..=MAX_LINKS {
            symlink(format!("l{}", n - 1), root.join(format!("l{n}"))).unwrap();
        }
        assert_eq!(real_path(&root.join("l39")), Some(root.join("target")));
        assert_eq!(real_path(&root.join("l40")), None, "one link too many");
        assert_eq!(real_path(Path::new("/proc/self/cwd/x")), None);
        symlink("/proc/self/root/etc", root.join("by-proc")).unwrap();
        assert_eq!(real_path(&root.join("by-proc/passwd")), None);
        assert_eq!(real_path(&root.join("new/../target")), Some(root.join("target")));
        assert_eq!(real_path(&root.join("target/below")), Some(root.join("target/below")));
        let long = root.join("n".repeat(MAX_NAME + 1));
        assert_eq!(real_path(&long), Some(long.clone()), "no file can have such a name");
    }

    /// The absolute path of the link is too long for one system call.
    #[test]
    fn a_link_at_the_end_of_a_very_long_path_is_not_missed() {
        let dir = tempfile::tempdir().unwrap();
        let name = "d".repeat(250);
        let deep: PathBuf = std::iter::repeat_n(name.as_str(), 8).collect();
        std::fs::create_dir_all(dir.path().join(&deep)).unwrap();
        symlink(&deep, dir.path().join("s")).unwrap();
        let path = dir.path().join("s").join(&deep).join("link");
        assert_eq!(real_path(&path), None);
    }
}
