//! Matches tool messages with the calls whose results they are.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use crate::import::{as_text, items};

/// Position of a tool call: the index of its message, and its index in that message.
type Place = (usize, usize);

/// Matches between tool calls and tool messages, by id. If one side has no id, they are matched by
/// name: the oldest call without a result, of the newest turn that has one.
pub(super) struct Pairs {
    results: HashMap<Place, usize>,
    paired: HashSet<usize>,
}

/// Tool calls that may still get a result: a queue for each turn that has any, oldest turn first.
#[derive(Default)]
struct TextSequencer(Vec<(usize, VecDeque<Place>)>);

#[derive(Default)]
struct Open<'a> {
    turn: usize,
    by_id: HashMap<&'a str, TextSequencer>,
    by_name: HashMap<&'a str, TextSequencer>,
    without_id: HashMap<&'a str, TextSequencer>,
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

    /// Returns the index of the message with the result of a tool call, the `nth` call of a
    /// message.
    pub(super) fn result_of(&self, message: usize, nth: usize) -> Option<usize> {
        self.results.get(&(message, nth)).copied()
    }

    /// Returns whether the message at this index is the result of a known tool call.
    pub(super) fn is_result(&self, message: usize) -> bool {
        self.paired.contains(&message)
    }
}

impl<'a> Open<'a> {
    fn add(&mut self, idx: usize, message: &'a Value) {
        for (nth, call) in items(&message["metadata"]["tool_calls"]).iter().enumerate() {
            let (id, name) = (as_text(call, "id"), as_text(call, "name").unwrap_or_default());
            let by_id = match id {
                Some(id) => self.by_id.entry(id).or_default(),
                None => self.without_id.entry(name).or_default(),
            };
            by_id.push(self.turn, (idx, nth));
            self.by_name.entry(name).or_default().push(self.turn, (idx, nth));
        }
    }

    fn take(&mut self, metadata: &'a Value, taken: &HashMap<Place, usize>) -> Option<Place> {
        let name = as_text(metadata, "tool_name").unwrap_or_default();
        match as_text(metadata, "tool_call_id") {
            Some(id) => {
                let by_id = self.by_id.get_mut(id).and_then(|it| it.take_oldest(taken));
                by_id.or_else(|| self.without_id.get_mut(name)?.take_oldest(taken))
            }
            None => self.by_name.get_mut(name)?.take_oldest(taken),
        }
    }
}

impl TextSequencer {
    fn push(&mut self, turn: usize, place: Place) {
        match self.0.last_mut() {
            Some((newest, places)) if *newest == turn => places.push_back(place),
            _ => self.0.push((turn, VecDeque::from([place]))),
        }
    }

    /// Removes and returns the oldest unmatched tool call of the newest turn that has one.
    fn take_oldest(&mut self, taken: &HashMap<Place, usize>) -> Option<Place> {
        while let Some((_, places)) = self.0.last_mut() {
            match places.pop_front() {
                Some(place) if !taken.contains_key(&place) => return Some(place),
                Some(_) => (),
                None => drop(self.0.pop()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// With a cost that grows with the square of the number of calls, this would not end in a test's time.
    #[test]
    fn many_calls_of_one_name_are_paired_in_linear_time() {
        const CALLS: usize = 500_000;
        let call = json!({ "name": "t" });
        let calls = json!({ "role": "assistant", "metadata": { "tool_calls": vec![call; CALLS] } });
        let result = json!({ "role": "tool", "metadata": { "tool_name": "t" } });
        let messages: Vec<Value> =
            std::iter::once(calls).chain(std::iter::repeat_n(result, CALLS)).collect();
        let pairs = Pairs::of(&messages);
        for nth in [0, CALLS / 2, CALLS - 1] {
            assert_eq!(pairs.result_of(0, nth), Some(nth + 1));
        }
    }
}
