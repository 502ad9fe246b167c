//! The arguments of a call that its view has not drawn. A view takes the arguments that it draws; an approval
//! card lists the rest, so that the choice of a view cannot hide an argument.

use std::collections::VecDeque;

use serde_json::Value;

pub(crate) struct RemainingArguments<'a>(VecDeque<(String, &'a Value)>);

impl<'a> RemainingArguments<'a> {
    /// Creates the list of all fields of a tool call's arguments; empty unless they are an object.
    pub(crate) fn of(value: &'a Value) -> Self {
        let fields = value.as_object().into_iter().flatten();
        Self(fields.map(|(name, it)| (name.clone(), it)).collect())
    }

    /// Takes the argument with the first of these names whose value satisfies `is_fit`.
    pub(crate) fn take(
        &mut self,
        names: &[&str],
        is_fit: impl Fn(&Value) -> bool,
    ) -> Option<&'a Value> {
        let place = |name: &&str| self.0.iter().position(|(it, value)| it == name && is_fit(value));
        let at = names.iter().find_map(place)?;
        self.0.remove(at).map(|(_, value)| value)
    }

    pub(crate) fn text(&mut self, names: &[&str]) -> Option<&'a str> {
        self.take(names, Value::is_string)?.as_str()
    }

    pub(crate) fn number(&mut self, names: &[&str]) -> Option<u64> {
        self.take(names, Value::is_u64)?.as_u64()
    }

    pub(crate) fn list(&mut self, names: &[&str]) -> Option<&'a [Value]> {
        self.take(names, Value::is_array)?.as_array().map(Vec::as_slice)
    }

    /// Adds the remaining fields of a nested value, with `place` as a prefix of their names.
    pub(crate) fn put_back(&mut self, place: &str, rest: Self) {
        self.0.extend(rest.0.into_iter().map(|(name, it)| (format!("{place}.{name}"), it)));
    }

    pub(crate) fn put_back_value(&mut self, place: String, value: &'a Value) {
        self.0.push_back((place, value));
    }

    pub(crate) fn into_fields(self) -> Vec<(String, &'a Value)> {
        self.0.into()
    }
}
