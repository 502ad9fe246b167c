//! Names of things: one newtype per kind, so that a call's id never lands where a part's belongs.

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
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

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
    /// A conversation. Ours are uuid v7; a client may bring its own, see [`SessionId::parse`].
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[A-Za-z0-9_-]{1,128}$")))]
    SessionId
    /// One run of an agent, which is one assistant message.
    ResponseId
    /// A message from a person or another agent.
    MessageId
    /// A client's own name for a message, unique within its session: sending twice is sending once.
    ClientId
    /// A piece of text or thinking: `{responseId}.{n}`.
    PartId
    /// A tool call: `{responseId}.{n}`, from the same counter as parts.
    CallId
    /// A question from one agent to another, in both their logs.
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
    pub fn numbered(run: &ResponseId, n: u32) -> Self {
        Self(format!("{run}.{n}"))
    }
}

impl CallId {
    pub fn numbered(run: &ResponseId, n: u32) -> Self {
        Self(format!("{run}.{n}"))
    }
}
