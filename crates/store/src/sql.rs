//! Numbers as SQLite has them: 64 bits with a sign.

use transcript::Seq;

/// One that no log can reach is as good as the largest.
pub(crate) fn int(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

pub(crate) fn seq(int: i64) -> Seq {
    Seq(u64::try_from(int).unwrap_or(0))
}
