//! What clients send, whatever their vocabulary: something said, or what was decided and done about
//! calls. Reading it is total: what cannot be read is refused with a reason.

use std::fmt;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    Said(Said),
    /// The last message is the assistant's.
    Decided(Vec<Decided>),
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub id: Option<String>,
    pub text: String,
    pub files: Vec<File>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub media_type: String,
    pub name: Option<String>,
    /// May be a `data:` address.
    pub url: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    Approval {
        call: String,
        approved: bool,
        reason: Option<String>,
        /// As edited, where the client can do that.
        arguments: Option<Value>,
    },
    Output {
        call: String,
        output: Value,
    },
    Error {
        call: String,
        error: String,
    },
}

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
