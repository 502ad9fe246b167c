//! Why something that came in cannot be read.

use std::fmt;

/// Names the field and what is wrong with it, for the person who wrote the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest(String);

impl BadRequest {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadRequest {}
