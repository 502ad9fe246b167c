//! Output lines of programs, kept beside the log.

use crate::{Millis, Seq};

/// A line of a program's stdout, without its line ending, and the range of records that were made
/// of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLine {
    /// Time at which the line was read.
    pub at: Millis,
    /// Sequence number of the first record that was made of the line.
    pub from: Seq,
    /// Sequence number of the last record that was made of the line. Less than `from` if there is
    /// none.
    pub to: Seq,
    /// Text of the line.
    pub text: String,
}
