//! What a run says to the driver, in order, and the ids that it gives.

use serde_json::Value;
use transcript::{CallId, Event, Level, PartId, ResponseId, Usage};

use super::wire::TokenCounts;
use crate::Effect;

pub(super) struct Telling {
    response_id: ResponseId,
    ids_given: u32,
    pub(super) effects: Vec<Effect>,
    /// Since it was last looked at.
    pub(super) has_words: bool,
}

impl Telling {
    pub(super) fn new(response_id: ResponseId) -> Self {
        Self { response_id, ids_given: 0, effects: Vec::new(), has_words: false }
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.has_words |= matches!(event, Event::TextStart { parent_call_id: None, .. });
        self.effects.push(Effect::Emit(event));
    }

    pub(super) fn write(&mut self, line: String) {
        self.effects.push(Effect::Write(line));
    }

    pub(super) fn notice(&mut self, level: Level, text: impl Into<String>) {
        self.emit(Event::Notice { level, text: text.into() });
    }

    pub(super) fn unrecognized(&mut self, line: &str) {
        self.emit(Event::Unrecognized { source: "claude".to_owned(), raw: line.to_owned() });
    }

    /// Text that came whole, from outside of any message.
    pub(super) fn text(&mut self, text: String) {
        let (part_id, parent_call_id) = (self.next_part(), None);
        self.emit(Event::TextStart { part_id: part_id.clone(), parent_call_id: None });
        let (phase, discarded) = (None, false);
        self.emit(Event::TextDone { part_id, parent_call_id, text, phase, discarded });
    }

    pub(super) fn next_part(&mut self) -> PartId {
        self.ids_given += 1;
        PartId::numbered(&self.response_id, self.ids_given)
    }

    pub(super) fn next_call(&mut self) -> CallId {
        self.ids_given += 1;
        CallId::numbered(&self.response_id, self.ids_given)
    }
}

/// The program counts what was read from its cache, and what was put there, apart.
pub(super) fn usage(tokens: TokenCounts) -> Usage {
    let cached = tokens.cache_read_input_tokens;
    let parts = [tokens.input_tokens, tokens.cache_creation_input_tokens, cached];
    let input_tokens = parts.into_iter().flatten().fold(0, u64::saturating_add);
    let output_tokens = tokens.output_tokens.unwrap_or(0);
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        cached_tokens: cached,
        reasoning_tokens: tokens.output_tokens_details.and_then(|it| it.thinking_tokens),
    }
}

/// The words in what the program calls content: a text, or blocks of which some are texts.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|it| it.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// As much of a text as fits into a line for a person.
pub(super) fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    let text = text.trim();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
