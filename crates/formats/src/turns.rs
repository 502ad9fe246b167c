//! Texts that stream in parallel, for formats with one text at a time: the first to begin is sent, and the others
//! are held until it is their turn.

use std::collections::VecDeque;

use transcript::PartId;

#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Parts that have not ended, in the order in which they began. Only the text of the first one
    /// is sent.
    speakers: VecDeque<Speaker>,
}

#[derive(Debug)]
struct Speaker {
    id: PartId,
    held: String,
    has_ended: bool,
}

/// A text that may be sent, and the id of the part that it belongs to.
pub(crate) type Words = (PartId, String);

impl Turns {
    pub(crate) fn begin(&mut self, id: &PartId) {
        let held = String::new();
        self.speakers.push_back(Speaker { id: id.clone(), held, has_ended: false });
    }

    pub(crate) fn grow(&mut self, id: &PartId, delta: &str) -> Option<Words> {
        let idx = self.speakers.iter().position(|it| it.id == *id)?;
        if idx == 0 {
            return Some((id.clone(), delta.to_owned()));
        }
        self.speakers[idx].held.push_str(delta);
        None
    }

    /// Ends a part, and returns the held texts of other parts that may be sent now.
    pub(crate) fn end(&mut self, id: &PartId) -> Vec<Words> {
        if let Some(speaker) = self.speakers.iter_mut().find(|it| it.id == *id) {
            speaker.has_ended = true;
        }
        let mut said = Vec::new();
        while self.speakers.front().is_some_and(|it| it.has_ended) {
            self.speakers.pop_front();
            let next = self.speakers.front_mut().filter(|it| !it.held.is_empty());
            said.extend(next.map(|it| (it.id.clone(), std::mem::take(&mut it.held))));
        }
        said
    }
}
