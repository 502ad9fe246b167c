//! Output lines of programs, kept beside the log.

use crate::{Millis, Seq};

/// A line of a program's stdout without its end, with the records that were made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLine {
    /// Time when the line was read.
    pub at: Millis,
    /// Number of the first record that was made of the line.
    pub from: Seq,
    /// Number of the last such record. Less than `from` if there is none.
    pub to: Seq,
    /// Content of the line.
    pub text: String,
}
