//! One newtype per kind of id, so that a call's id is never used as a part's.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Sequence number of a record: its position in the session's log, from 1 and without gaps. Zero is
/// the position before the first record.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the sequence number that follows this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the sequence number before this one, after which a range that begins here is read.
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! ids {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        $(#[$attribute])*
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Creates an id from text, without checking it.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// Id of a session: a UUID v7, or an id that a client chose.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[A-Za-z0-9_-]{1,128}$")))]
    SessionId
    /// Id of a run and of its assistant message.
    ResponseId
    /// Id of a message from a person or another agent.
    MessageId
    /// Idempotency key that a client gives to a message, unique within its session.
    ClientId
    /// Id of a text or a thinking block: `{responseId}.{n}`.
    PartId
    /// Id of a tool call: `{responseId}.{n}`, from the same counter as the ids of texts and
    /// thinking blocks.
    CallId
    /// Id of an exchange between two agents, the same in the logs of both sessions.
    ExchangeId
}

impl SessionId {
    /// Form of a session id, for error messages.
    pub const FORM: &str = "1 to 128 letters, digits, '-' or '_'";

    /// Parses a session id. Accepts `[A-Za-z0-9_-]{1,128}`, which is safe in paths, URLs, element
    /// ids and file names; returns `None` for other text.
    pub fn parse(id: &str) -> Option<Self> {
        let fits = (1..=128).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        fits.then(|| Self::new(id))
    }
}

impl PartId {
    /// Returns the id of the `n`th part of a run.
    pub fn numbered(run: &ResponseId, n: u32) -> Self {
        Self(format!("{run}.{n}"))
    }
}

impl CallId {
    /// Returns the id of the run that made the tool call: the part of the call's id before the last
    /// dot. Returns `None` if there is no dot.
    pub fn run(&self) -> Option<ResponseId> {
        self.0.rsplit_once('.').map(|(run, _)| ResponseId::new(run))
    }

    /// Returns the id of the run in which to look the tool call up. If the call's id names no run,
    /// the result is not the id of any run either, so nothing is found.
    pub fn run_to_search(&self) -> ResponseId {
        self.run().unwrap_or_else(|| ResponseId::new(self.as_str()))
    }

    /// Returns the id of the tool call that is the `n`th part of a run.
    pub fn numbered(run: &ResponseId, n: u32) -> Self {
        Self(format!("{run}.{n}"))
    }
}
