//! OpenRouter's record of a model's reasoning, partly encrypted, assembled from its fragments.
//!
//! It has to be sent back unchanged, or some models refuse to continue after their calls.

use serde_json::{Map, Value};

/// Fields of a reasoning block whose values in further fragments are appended. All other fields
/// keep the last value.
const GROWING: [&str; 3] = ["text", "summary", "data"];

#[derive(Debug, Default)]
pub(super) struct ReasoningDetails {
    blocks: Vec<Map<String, Value>>,
}

impl ReasoningDetails {
    pub(super) fn add(&mut self, piece: &Value) {
        let Value::Object(piece) = piece else { return };
        let continued = self
            .blocks
            .last_mut()
            .filter(|block| ["type", "index"].iter().all(|key| block.get(*key) == piece.get(*key)));
        match continued {
            Some(block) => grow(block, piece),
            None => self.blocks.push(piece.clone()),
        }
    }

    pub(super) fn take(&mut self) -> Option<Value> {
        let blocks = std::mem::take(&mut self.blocks);
        (!blocks.is_empty()).then(|| blocks.into_iter().map(Value::Object).collect())
    }
}

fn grow(block: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (key, value) in piece.iter().filter(|(_, value)| !value.is_null()) {
        match (block.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&key.as_str()) => {
                text.push_str(more);
            }
            _ => {
                block.insert(key.clone(), value.clone());
            }
        }
    }
}
