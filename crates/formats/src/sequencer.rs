//! Texts that stream in parallel, for formats with one text at a time: the first to begin is sent, and the others
//! are held until all earlier ones have ended.

use std::collections::VecDeque;

use transcript::PartId;

#[derive(Debug, Default)]
pub(crate) struct TextSequencer {
    /// Parts that have not ended, in the order in which they began. Only the text of the first one
    /// is sent.
    open: VecDeque<OpenPart>,
}

#[derive(Debug)]
struct OpenPart {
    id: PartId,
    held: String,
    has_ended: bool,
}

/// A text that may be sent, and the id of the part that it belongs to.
pub(crate) type Words = (PartId, String);

impl TextSequencer {
    pub(crate) fn begin(&mut self, id: &PartId) {
        let held = String::new();
        self.open.push_back(OpenPart { id: id.clone(), held, has_ended: false });
    }

    pub(crate) fn grow(&mut self, id: &PartId, delta: &str) -> Option<Words> {
        let idx = self.open.iter().position(|it| it.id == *id)?;
        if idx == 0 {
            return Some((id.clone(), delta.to_owned()));
        }
        self.open[idx].held.push_str(delta);
        None
    }

    /// Ends a part, and returns the held texts of other parts that may be sent now.
    pub(crate) fn end(&mut self, id: &PartId) -> Vec<Words> {
        if let Some(part) = self.open.iter_mut().find(|it| it.id == *id) {
            part.has_ended = true;
        }
        let mut released = Vec::new();
        while self.open.front().is_some_and(|it| it.has_ended) {
            self.open.pop_front();
            let next = self.open.front_mut().filter(|it| !it.held.is_empty());
            released.extend(next.map(|it| (it.id.clone(), std::mem::take(&mut it.held))));
        }
        released
    }
}
