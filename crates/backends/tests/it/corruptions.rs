//! Corruptions of a recording: lines are lost, doubled, swapped, cut, changed and inserted.

use proptest::prelude::*;
use serde_json::{Value, json};

/// A corruption. Positions are taken modulo the number of lines, bytes or values.
#[derive(Debug, Clone)]
pub(crate) enum Corruption {
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    Cut(usize, usize),
    /// Replaces the value at a position of the line's JSON.
    Change(usize, usize, Value),
    Insert(usize, String),
}

/// Returns a strategy for corruptions of up to `lines` lines, where inserted lines are `nonsense`.
pub(crate) fn corruption(
    lines: usize,
    nonsense: impl Strategy<Value = String> + 'static,
) -> impl Strategy<Value = Corruption> {
    let n = move || 0..lines;
    prop_oneof![
        n().prop_map(Corruption::Drop),
        n().prop_map(Corruption::Double),
        (n(), n()).prop_map(|(a, b)| Corruption::Swap(a, b)),
        (n(), 0..400usize).prop_map(|(a, b)| Corruption::Cut(a, b)),
        (n(), 0..400usize, value()).prop_map(|(a, b, value)| Corruption::Change(a, b, value)),
        (n(), nonsense).prop_map(|(a, line)| Corruption::Insert(a, line)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("")),
        Just(json!("toolu_s0_1")),
        Just(json!(-1)),
        Just(json!(u64::MAX)),
        Just(json!(1e300)),
        Just(json!([])),
        Just(json!({ "type": "text", "text": " " })),
        Just(json!([{ "type": "tool_use", "id": "x", "name": "y" }])),
        any::<bool>().prop_map(Value::from),
    ]
}

impl Corruption {
    pub(crate) fn happen_to(&self, lines: &mut Vec<String>) {
        let n = lines.len();
        if n == 0 {
            return;
        }
        match self {
            Self::Drop(at) => {
                lines.remove(at % n);
            }
            Self::Double(at) => lines.insert(at % n, lines[at % n].clone()),
            Self::Swap(a, b) => lines.swap(a % n, b % n),
            Self::Cut(at, to) => {
                let line = &mut lines[at % n];
                let to = (0..=to % (line.len() + 1)).rev().find(|it| line.is_char_boundary(*it));
                line.truncate(to.unwrap_or(0));
            }
            Self::Change(at, place, value) => {
                if let Ok(mut line) = serde_json::from_str::<Value>(&lines[at % n]) {
                    let mut places = count(&line);
                    places = place % places.max(1);
                    change(&mut line, &mut places, value);
                    lines[at % n] = line.to_string();
                }
            }
            Self::Insert(at, line) => lines.insert(at % n, line.clone()),
        }
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the value at position `places`, in depth-first order.
fn change(value: &mut Value, places: &mut usize, new: &Value) -> bool {
    if *places == 0 {
        *value = new.clone();
        return true;
    }
    *places -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|it| change(it, places, new)),
        Value::Object(fields) => fields.values_mut().any(|it| change(it, places, new)),
        _ => false,
    }
}
