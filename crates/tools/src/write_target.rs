//! The file that a call would overwrite, for its approval card.

use std::io::ErrorKind;

use transcript::WriteTarget;

use crate::policy::FileTool;
use crate::workspace::{FilePath, Workspace, normalize};
use crate::{ParsedCall, PrivateFiles};

/// Names of the tools that replace a whole file: the built-in one, and those of program agents.
const WRITERS: [&str; 3] = ["write_file", "Write", "write"];
/// Maximum size in bytes of a file whose current text is shown on the approval card for overwriting
/// it, and so gets into the log.
const MAX_SHOWN: u64 = 64 * 1024;

/// Returns the file that a tool call would write, following links. `None` if the tool call writes
/// no file, or the file is not certain or private.
///
/// The arguments of an edit already show the replaced text, so for an edit the file is returned
/// only if it is not the one that the path names.
pub fn write_target(call: &ParsedCall, private: &PrivateFiles) -> Option<WriteTarget> {
    let ParsedCall { tool, arguments, workspace, root, .. } = call;
    let file_tool = FileTool::find(tool, true).or_else(|| FileTool::find(tool, false))?;
    let target = file_tool.target(call)?;
    let (whole, is_inside) = (workspace.join(&target), target.is_relative());
    let is_writer = WRITERS.contains(&&**tool);
    let given = workspace.join(file_tool.path(arguments)?);
    if private.holds(&whole) || !is_writer && normalize(&given) == whole {
        return None;
    }
    let size = match whole.metadata() {
        Ok(metadata) if metadata.is_file() => Some(metadata.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        _ => return None,
    };
    let is_shown = is_writer && is_inside && size.is_some_and(|it| it <= MAX_SHOWN);
    let root = root.as_ref().filter(|_| is_shown);
    let folder = root.and_then(|it| Workspace::open(it, private).ok());
    let path = FilePath { given: target.clone(), real: target };
    let text = folder.and_then(|it| it.text(&path).ok());
    Some(WriteTarget { path: whole.display().to_string(), size, text })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn links_are_followed() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let (workspace, outside) = (home.join("ws"), home.join(".bashrc"));
        fs::create_dir(&workspace).unwrap();
        fs::write(&outside, "secret").unwrap();
        fs::write(workspace.join("Makefile"), "all:").unwrap();
        symlink("../.bashrc", workspace.join("out")).unwrap();
        symlink("Makefile", workspace.join("in")).unwrap();
        symlink("../new", workspace.join("dangling")).unwrap();
        symlink("loop", workspace.join("loop")).unwrap();
        let target = |tool: &str, key: &str, path: &str| {
            let arguments = json!({ key: workspace.join(path), "content": "" }).to_string();
            write_target(&ParsedCall::new(tool, &arguments, &workspace), &PrivateFiles::default())
        };
        let found = |path: &Path, size, text: Option<&str>| {
            let text = text.map(str::to_owned);
            Some(WriteTarget { path: path.display().to_string(), size, text })
        };
        for (tool, key) in [("Write", "file_path"), ("write", "path")] {
            let makefile = workspace.join("Makefile");
            assert_eq!(target(tool, key, "in"), found(&makefile, Some(4), Some("all:")));
            assert_eq!(target(tool, key, "out"), found(&outside, Some(6), None));
            assert_eq!(target(tool, key, "dangling"), found(&home.join("new"), None, None));
            assert_eq!(target(tool, key, "a/b"), found(&workspace.join("a/b"), None, None));
            assert_eq!(target(tool, key, "loop"), None);
        }
        for (tool, key) in [("Edit", "file_path"), ("edit", "path")] {
            assert_eq!(target(tool, key, "out"), found(&outside, Some(6), None));
            assert_eq!(target(tool, key, "Makefile"), None, "the path names it");
        }
        assert_eq!(target("write_file", "path", "out"), None, "the tool refuses it");
        let makefile = workspace.join("Makefile");
        assert_eq!(target("write_file", "path", "in"), found(&makefile, Some(4), Some("all:")));
    }
}
