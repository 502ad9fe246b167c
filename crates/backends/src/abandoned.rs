//! What a program began and never ended. A few things are open at a time; who has begun so many more since
//! has left the first behind.

use transcript::{ErrorCode, ErrorInfo};

/// How many calls, and how many texts, may be open at once.
pub(crate) const MOST_OPEN: usize = 128;
/// How many agents of its own a program may go back to.
pub(crate) const MOST_AGENTS: usize = 64;

/// Why a call that was left behind has no result.
pub(crate) fn abandoned() -> ErrorInfo {
    let why = "Nothing more was heard of this call, while many others began.";
    ErrorInfo::new(ErrorCode::ToolInterrupted, why)
}
