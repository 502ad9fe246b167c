//! Values: what goes into a statement as a parameter and comes out of a row.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A parameter of a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A value of a row.
pub(crate) type Cell<'a> = Value<'a>;

/// A type whose values can be parameters.
pub(crate) trait Param {
    fn value(&self) -> Value<'_>;
}

/// A type that can be read from a row.
pub(crate) trait Column: Sized {
    /// Returns `None` if the value has another type.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

impl<'a> Value<'a> {
    /// Returns the text. PostgreSQL has texts from outside as bytes, because its own texts have no NUL.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            Self::Null | Self::Int(_) | Self::Real(_) => None,
        }
    }

    /// Returns the bytes, of a text as well.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Bytes(bytes) => Some(bytes),
            Self::Null | Self::Int(_) | Self::Real(_) => None,
        }
    }
}

impl<'a> From<ValueRef<'a>> for Value<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(it) => Self::Int(it),
            ValueRef::Real(it) => Self::Real(it),
            ValueRef::Text(it) => std::str::from_utf8(it).map_or(Self::Bytes(it), Self::Text),
            ValueRef::Blob(it) => Self::Bytes(it),
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Int(it) => ValueRef::Integer(it),
            Self::Real(it) => ValueRef::Real(it),
            Self::Text(it) => ValueRef::Text(it.as_bytes()),
            Self::Bytes(it) => ValueRef::Blob(it),
        }))
    }
}

macro_rules! number {
    ($($type:ty),*) => { $(
        impl Param for $type {
            fn value(&self) -> Value<'_> {
                Value::Int(i64::from(*self))
            }
        }
        impl Column for $type {
            fn from_cell(cell: Cell<'_>) -> Option<Self> {
                match cell {
                    Value::Int(it) => Self::try_from(it).ok(),
                    _ => None,
                }
            }
        }
    )* };
}
number!(i64, u32);

impl Param for bool {
    fn value(&self) -> Value<'_> {
        Value::Int(i64::from(*self))
    }
}

impl Column for bool {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).map(|it| it != 0)
    }
}

impl Param for f64 {
    fn value(&self) -> Value<'_> {
        Value::Real(*self)
    }
}

impl Column for f64 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Value::Real(it) => Some(it),
            Value::Int(it) => Some(it as Self),
            _ => None,
        }
    }
}

impl Param for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Param for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Column for String {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        cell.text().map(str::to_owned)
    }
}

impl Param for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Param for Vec<u8> {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Column for Vec<u8> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Value::Bytes(it) => Some(it.to_vec()),
            _ => None,
        }
    }
}

impl<const N: usize> Param for [u8; N] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl<const N: usize> Column for [u8; N] {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Value::Bytes(it) => it.try_into().ok(),
            _ => None,
        }
    }
}

impl Param for Value<'_> {
    fn value(&self) -> Value<'_> {
        *self
    }
}

impl<T: Param + ?Sized> Param for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Param> Param for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, T::value)
    }
}

impl<T: Column> Column for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Value::Null => Some(None),
            cell => T::from_cell(cell).map(Some),
        }
    }
}
