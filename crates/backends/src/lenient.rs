//! Reading what stands beside the point of a line.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Keeps what cannot be read from taking the rest of its line along.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}
