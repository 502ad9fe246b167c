//! Values with several notations, or with notations that are easily confused.
//!
//! Each has a `Visitor`, because an untagged enum would lose the position and the cause of an
//! error.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use crate::args;

/// Deserializes the address to listen on, in the notation of the flag `--listen`, or a port as a
/// number.
pub(super) fn listen<'de, D: Deserializer<'de>>(given: D) -> Result<Option<SocketAddr>, D::Error> {
    struct Listen;

    impl Visitor<'_> for Listen {
        type Value = SocketAddr;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an address and a port, such as \"127.0.0.1:4520\", or a port")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<SocketAddr, E> {
            args::listen(text).map_err(E::custom)
        }

        fn visit_i64<E: Error>(self, port: i64) -> Result<SocketAddr, E> {
            self.visit_str(&port.to_string())
        }
    }

    given.deserialize_any(Listen).map(Some)
}

pub(super) fn agents<'de, D, T>(given: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    given.deserialize_any(Tables { name: "agents", of: PhantomData })
}

pub(super) fn mcp_servers<'de, D, T>(given: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    given.deserialize_any(Tables { name: "mcp_servers", of: PhantomData })
}

/// Visitor for an array of tables of one kind, such as `[[agents]]`.
struct Tables<T> {
    name: &'static str,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Tables<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[[{}]], in two brackets, for each", self.name)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, tables: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(tables))
    }
}
