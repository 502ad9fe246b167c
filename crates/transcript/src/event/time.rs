//! Timestamps in milliseconds. Nothing here reads a clock: the time is always an argument.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A timestamp in milliseconds since 1970, in JSON as RFC 3339 with three decimals. Records are
/// ordered by their sequence numbers, never by time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

impl Millis {
    /// Number of milliseconds in a day.
    pub const PER_DAY: i64 = 24 * 60 * 60 * 1000;

    /// Returns the milliseconds since `earlier`; zero if `earlier` is later, such as after the
    /// clock was set back.
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Returns the timestamp that is `ms` milliseconds later.
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// Returns the timestamp that is this number of days earlier.
    pub fn minus_days(self, days: u32) -> Self {
        Self(self.0.saturating_sub(i64::from(days) * Self::PER_DAY))
    }

    /// Parses a date in the format of HTTP headers, such as `Sun, 15 Nov 2026 18:44:28 GMT`.
    /// Returns `None` for other text.
    pub fn parse_http_date(text: &str) -> Option<Self> {
        let moment = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
        Some(Self(moment.timestamp().as_millisecond()))
    }

    /// Parses an RFC 3339 timestamp. Returns `None` for other text.
    pub fn parse(text: &str) -> Option<Self> {
        let moment = parse_ours(text.as_bytes()).or_else(|| text.parse().ok());
        moment.map(|it: Timestamp| Self(it.as_millisecond()))
    }
}

/// Parses a timestamp in the fixed-width format that [`Millis`] writes, which nearly every
/// timestamp has. Returns `None` for other formats.
fn parse_ours(text: &[u8]) -> Option<Timestamp> {
    let is_ours = text.len() == 24
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')]
            .iter()
            .all(|(at, sign)| text[*at] == *sign);
    if !is_ours {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0_i16, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i16::from(digit - b'0'))
        })
    };
    let small = |from: usize| number(from, from + 2).and_then(|it| i8::try_from(it).ok());
    let nanos = i32::from(number(20, 23)?) * 1_000_000;
    let moment = DateTime::new(
        number(0, 4)?,
        small(5)?,
        small(8)?,
        small(11)?,
        small(14)?,
        small(17)?,
        nanos,
    );
    Offset::UTC.to_timestamp(moment.ok()?).ok()
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => write!(f, "{:.3}", Timestamp::UNIX_EPOCH),
        }
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("not a moment: {text}")))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Millis {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}
