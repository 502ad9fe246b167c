//! Which tool message tells the result of which call.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::import::{as_text, items};

/// A call's key: the index of its message, and its index in that message.
type Place = (usize, usize);

/// Calls and results are matched by id. Where one of them has none they are matched by name: the oldest
/// call without a result, of the newest turn that has one.
pub(super) struct Pairs {
    results: HashMap<Place, usize>,
    paired: HashSet<usize>,
}

#[derive(Default)]
struct Open<'a> {
    turn: usize,
    by_id: HashMap<&'a str, Vec<(usize, Place)>>,
    by_name: HashMap<&'a str, Vec<(usize, Place)>>,
    without_id: HashMap<&'a str, Vec<(usize, Place)>>,
}

impl Pairs {
    pub(super) fn of(messages: &[Value]) -> Self {
        let mut pairs = Self { results: HashMap::new(), paired: HashSet::new() };
        let mut open = Open::default();
        for (idx, message) in messages.iter().enumerate() {
            match message["role"].as_str() {
                Some("user") => open.turn += 1,
                Some("assistant") => open.add(idx, message),
                Some("tool") => {
                    if let Some(place) = open.take(&message["metadata"], &pairs.results) {
                        pairs.results.insert(place, idx);
                        pairs.paired.insert(idx);
                    }
                }
                _ => (),
            }
        }
        pairs
    }

    /// The message that tells what came of a call.
    pub(super) fn result_of(&self, message: usize, nth: usize) -> Option<usize> {
        self.results.get(&(message, nth)).copied()
    }

    /// Whether a message tells the result of a call that is known.
    pub(super) fn is_result(&self, message: usize) -> bool {
        self.paired.contains(&message)
    }
}

impl<'a> Open<'a> {
    fn add(&mut self, idx: usize, message: &'a Value) {
        for (nth, call) in items(&message["metadata"]["tool_calls"]).iter().enumerate() {
            let (id, name) = (as_text(call, "id"), as_text(call, "name").unwrap_or_default());
            let place = (self.turn, (idx, nth));
            self.by_name.entry(name).or_default().push(place);
            match id {
                Some(id) => self.by_id.entry(id).or_default().push(place),
                None => self.without_id.entry(name).or_default().push(place),
            }
        }
    }

    fn take(&mut self, metadata: &'a Value, taken: &HashMap<Place, usize>) -> Option<Place> {
        let name = as_text(metadata, "tool_name").unwrap_or_default();
        match as_text(metadata, "tool_call_id") {
            Some(id) => {
                let by_id = self.by_id.get_mut(id).and_then(|it| take_oldest(it, taken));
                by_id.or_else(|| take_oldest(self.without_id.get_mut(name)?, taken))
            }
            None => take_oldest(self.by_name.get_mut(name)?, taken),
        }
    }
}

/// The oldest unmatched call of the newest turn.
fn take_oldest(places: &mut Vec<(usize, Place)>, taken: &HashMap<Place, usize>) -> Option<Place> {
    while let Some(&(newest, _)) = places.last() {
        let first = places.partition_point(|(turn, _)| *turn < newest);
        let (_, place) = places.remove(first);
        if !taken.contains_key(&place) {
            return Some(place);
        }
    }
    None
}
