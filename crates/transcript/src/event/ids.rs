//! One newtype per kind of id, so that a call's id is never used as a part's.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Position of a record in its session's log: 1, 2, 3, ... with no gap. Zero is "before the first".
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the next position.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
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
            /// Returns an id without checking it.
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
    /// Id of a session: a uuid v7, or an id that a client chose, see [`SessionId::parse`].
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[A-Za-z0-9_-]{1,128}$")))]
    SessionId
    /// Id of a run, and of its assistant message.
    ResponseId
    /// Id of a message from a person or another agent.
    MessageId
    /// A client's idempotency key for a message, unique within its session.
    ClientId
    /// Id of a text or thinking block: `{responseId}.{n}`.
    PartId
    /// Id of a tool call: `{responseId}.{n}`, from the same counter as parts.
    CallId
    /// Id of an exchange between agents, the same in both logs.
    ExchangeId
}

impl SessionId {
    /// Accepts `[A-Za-z0-9_-]{1,128}`, which is safe in paths, URLs, element ids and file names.
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
    /// Returns the run that the call belongs to, if the id has the usual form.
    pub fn run(&self) -> Option<ResponseId> {
        self.0.rsplit_once('.').map(|(run, _)| ResponseId::new(run))
    }

    /// Returns the id of the `n`th part of a run.
    pub fn numbered(run: &ResponseId, n: u32) -> Self {
        Self(format!("{run}.{n}"))
    }
}
