//! Start parameters from a session's log: the workspace of a program, and the id of the program's own
//! conversation to resume.
//!
//! A log may have been imported, so it is not trusted: a workspace is used only if a user of this server has
//! chosen it, and an id only if it is well-formed.

use std::path::Path;

use backends::ResumeId;
use transcript::Summary;

/// Number of consecutive failed attempts after which a program's conversation is not resumed any
/// more.
const MAX_FAILED_RESUMES: u32 = 2;

/// Returns the id of the program's own conversation to resume, or the reason why it cannot be
/// resumed. `None` if the log knows of no such conversation.
pub(crate) fn resume_id(
    summary: &Summary,
    workspace: &Path,
) -> Option<Result<ResumeId, &'static str>> {
    let linked = summary.linked.as_ref()?;
    if summary.resuming.failed >= MAX_FAILED_RESUMES {
        return Some(Err("The program could not resume its conversation"));
    }
    let is_here = linked.cwd.as_ref().is_some_and(|it| is_same_folder(it, workspace));
    if summary.suggested_workspace().is_some() && !is_here {
        return Some(Err("The program's conversation belongs to a folder that is not confirmed"));
    }
    let id = ResumeId::parse(&linked.cli_session_id);
    Some(id.ok_or("The log's id of the program's conversation is not valid"))
}

fn is_same_folder(one: &str, other: &Path) -> bool {
    let real = |it: &Path| it.canonicalize().unwrap_or_else(|_| it.to_owned());
    real(Path::new(one)) == real(other)
}
