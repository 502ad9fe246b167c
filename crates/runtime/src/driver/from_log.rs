//! Start parameters that come from a session's log: the folder of the program, and which of the program's
//! own conversations it resumes.
//!
//! A log may have been imported, now or by an earlier version, so nothing of it is used as it stands: a
//! workspace counts when a person of this server chose it, an id when it has the right shape.

use std::path::Path;

use backends::ResumeId;
use transcript::Summary;

/// A conversation that could not be resumed so often in a row is given up.
const MAX_FAILED_RESUMES: u32 = 2;

/// The program's own conversation, or why it cannot be resumed. None if there is none.
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
