//! What a message of the model consists of, as far as it has come.

use std::hash::{DefaultHasher, Hash, Hasher};

use transcript::{CallId, Event, PartId};

use crate::telling::Telling;

#[derive(Debug)]
pub(super) struct Piece {
    /// The model's own; a block that only came finished has none.
    pub(super) index: Option<u64>,
    /// The model has said that nothing is added to it.
    pub(super) is_stopped: bool,
    pub(super) block: Spoken,
}

#[derive(Debug)]
pub(super) enum Spoken {
    Words(Words),
    /// By the provider's id.
    Call(String),
}

/// Where a finished block of words belongs.
#[derive(Debug)]
pub(super) enum Place {
    Here(usize),
    /// It has come before.
    Again,
    Nowhere,
}

impl Piece {
    pub(super) fn new(index: Option<u64>, block: Spoken) -> Self {
        Self { index, is_stopped: false, block }
    }

    fn words(&self, is_thinking: bool) -> Option<&Words> {
        match &self.block {
            Spoken::Words(words) => Some(words).filter(|it| it.is_thinking == is_thinking),
            Spoken::Call(_) => None,
        }
    }
}

pub(super) fn has_call(pieces: &[Piece], id: &str) -> bool {
    pieces.iter().any(|it| matches!(&it.block, Spoken::Call(listed) if listed == id))
}

/// Where its words do not tell, it is the block that was begun last.
pub(super) fn place_of(pieces: &[Piece], is_thinking: bool, text: &str) -> Place {
    let words = || {
        let pieces = pieces.iter().enumerate();
        pieces.filter_map(|(at, it)| Some((at, it.words(is_thinking)?)))
    };
    let waits = |(_, it): &(usize, &Words)| !it.is_confirmed;
    let is_same = |(_, it): &(usize, &Words)| it.says(text);
    if let Some((at, _)) = words().filter(waits).find(is_same) {
        return Place::Here(at);
    }
    if words().any(|it| is_same(&it)) {
        return Place::Again;
    }
    words().rfind(waits).map_or(Place::Nowhere, |(at, _)| Place::Here(at))
}

/// A text or a thought.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) is_thinking: bool,
    /// There is none before there is a word to see.
    part: Option<PartId>,
    text: String,
    /// Of its text, once it is closed.
    digest: Option<u64>,
    /// The finished block has come.
    is_confirmed: bool,
    /// It was closed as something that counts for nothing.
    is_discarded: bool,
}

impl Words {
    pub(super) fn new(is_thinking: bool) -> Self {
        Self {
            is_thinking,
            part: None,
            text: String::new(),
            digest: None,
            is_confirmed: false,
            is_discarded: false,
        }
    }

    /// No finished block says that it stands.
    pub(super) fn is_open(&self) -> bool {
        self.part.is_some() && self.digest.is_none()
    }

    pub(super) fn is_shown(&self) -> bool {
        self.part.is_some()
    }

    fn says(&self, text: &str) -> bool {
        self.digest.map_or(self.text == text, |it| it == digest(text))
    }

    pub(super) fn grow(&mut self, delta: &str, parent: Option<&CallId>, telling: &mut Telling) {
        if self.digest.is_some() || delta.is_empty() {
            return;
        }
        self.text.push_str(delta);
        let (part_id, delta) = match &self.part {
            Some(part) => (part.clone(), delta.to_owned()),
            None if self.text.trim().is_empty() => return,
            None => (self.start(parent, telling), self.text.clone()),
        };
        let parent_call_id = parent.cloned();
        telling.emit(match self.is_thinking {
            true => Event::ThinkingDelta { part_id, parent_call_id, delta },
            false => Event::TextDelta { part_id, parent_call_id, delta },
        });
    }

    fn start(&mut self, parent: Option<&CallId>, telling: &mut Telling) -> PartId {
        let (part_id, parent_call_id) = (telling.next_part(), parent.cloned());
        self.part = Some(part_id.clone());
        telling.emit(match self.is_thinking {
            true => Event::ThinkingStart { part_id: part_id.clone(), parent_call_id },
            false => Event::TextStart { part_id: part_id.clone(), parent_call_id },
        });
        part_id
    }

    /// The finished block has come, and this is what it says. False if that was shown before.
    pub(super) fn confirm(
        &mut self,
        text: String,
        parent: Option<&CallId>,
        telling: &mut Telling,
    ) -> bool {
        self.is_confirmed = true;
        // It counts after all, and is said anew: what is in the log is there.
        if std::mem::take(&mut self.is_discarded) {
            self.part = None;
        }
        // What was closed otherwise stays as it was shown.
        let is_news = self.digest.is_none() || self.part.is_none();
        if is_news {
            self.close(text, false, parent, telling);
        }
        is_news
    }

    /// Nothing more of it will come. `discarded`: what comes instead says it anew.
    pub(super) fn close_as_it_is(
        &mut self,
        discarded: bool,
        parent: Option<&CallId>,
        telling: &mut Telling,
    ) {
        if self.digest.is_none() {
            let text = std::mem::take(&mut self.text);
            self.close(text, discarded, parent, telling);
        }
    }

    fn close(
        &mut self,
        text: String,
        discarded: bool,
        parent: Option<&CallId>,
        telling: &mut Telling,
    ) {
        self.digest = Some(digest(&text));
        self.is_discarded = discarded;
        self.text = String::new();
        let part_id = match self.part.clone() {
            Some(part_id) => part_id,
            None if text.trim().is_empty() => return,
            None => self.start(parent, telling),
        };
        let parent_call_id = parent.cloned();
        telling.emit(match self.is_thinking {
            true => Event::ThinkingDone { part_id, parent_call_id, text, discarded },
            false => Event::TextDone { part_id, parent_call_id, text, phase: None, discarded },
        });
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
