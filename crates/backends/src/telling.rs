//! What the run of a program says to the driver, in order, and the ids that it gives.

use transcript::{CallId, Event, Level, PartId, ResponseId};

use crate::Effect;

#[derive(Debug)]
pub(crate) struct Telling {
    response_id: ResponseId,
    /// Whose words they are that nobody could read.
    source: &'static str,
    ids_given: u32,
    effects: Vec<Effect>,
}

impl Telling {
    pub(crate) fn new(response_id: ResponseId, source: &'static str) -> Self {
        Self { response_id, source, ids_given: 0, effects: Vec::new() }
    }

    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn extend(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.effects.extend(effects);
    }

    pub(crate) fn emit(&mut self, event: Event) {
        self.push(Effect::Emit(event));
    }

    pub(crate) fn write(&mut self, line: String) {
        self.push(Effect::Write(line));
    }

    pub(crate) fn notice(&mut self, level: Level, text: impl Into<String>) {
        self.emit(Event::Notice { level, text: text.into() });
    }

    pub(crate) fn unrecognized(&mut self, raw: &str) {
        let (source, raw) = (self.source.to_owned(), raw.to_owned());
        self.emit(Event::Unrecognized { source, raw, lines: 1 });
    }

    pub(crate) fn next_part(&mut self) -> PartId {
        self.ids_given += 1;
        PartId::numbered(&self.response_id, self.ids_given)
    }

    pub(crate) fn next_call(&mut self) -> CallId {
        self.ids_given += 1;
        CallId::numbered(&self.response_id, self.ids_given)
    }

    /// A name for something that the program gives none.
    pub(crate) fn unused_name(&self) -> String {
        format!("{}+{}", self.response_id, self.ids_given)
    }
}
