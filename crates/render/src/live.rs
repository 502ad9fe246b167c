//! Live patches: turns each batch of records into the operations that bring an open page up to date.
//!
//! Text and thinking grow by what was added. Other parts are drawn again when a record changes them, and are
//! compared with the version that was sent. The cost of a record depends on the parts that it changes, never
//! on the length of the answer or of the session: the rest comes from counters of the answer.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use transcript::{
    Change, Content, Event, Message, Record, ResponseId, RunMessage, Seq, Transcript,
};

use crate::html::element::{Element, replace_nul};
use crate::html::op::Op;
use crate::message::call::nested_id;
use crate::message::part::Growing;
use crate::message::shown_parts::{ShownParts, first_shown};
use crate::message::{badge, part};
use crate::message::{badge_id, badges_id, frame, list_id, message, part_id};
use crate::page::chrome::Chrome;
use crate::page::pulse::Pulse;
use crate::text::markdown::Stream;
use crate::view::{View, call_of};

/// Server-side state of the open pages of one session, from which their patches are made.
pub struct Live {
    view: View,
    transcript: Transcript,
    chrome: Chrome,
    /// Drawn elements of assistant messages that can still change, by index into the transcript's
    /// messages.
    drawn: HashMap<usize, Drawn>,
    /// Ids of assistant messages that records changed but that the transcript no longer contains.
    missed: BTreeSet<ResponseId>,
    /// Record up to which messages were replaced. A page drawn before it cannot be patched and has
    /// to be reloaded.
    rewound: Seq,
}

/// Elements of an assistant message as they were last sent to the pages.
struct Drawn {
    frame: Element,
    /// Link to the hidden parts of the message; `None` if all parts are shown.
    earlier: Option<Element>,
    /// Elements of the shown parts, by index into the message's parts.
    parts: BTreeMap<usize, DrawnPart>,
    n_parts: usize,
}

enum DrawnPart {
    /// A text or thinking block: its element without the content, and the content sent so far.
    Growing { shell: Element, growth: Growth, sent: String, open: bool },
    /// Any other part of an assistant message. A tool call also has its badge, with the tool name
    /// that the badge shows.
    Other { element: Element, badge: Option<(String, Element)> },
}

enum Growth {
    Markdown(Box<Stream>),
    Plain { id: String },
}

/// Messages and parts of a session that a batch of records changed.
#[derive(Default)]
struct Touched {
    added: BTreeSet<usize>,
    /// Changed messages by index: the indexes of their changed parts, and whether anything changed
    /// besides growing text, arguments or output.
    updated: BTreeMap<usize, (BTreeSet<usize>, bool)>,
    around: bool,
}

impl Live {
    /// Creates the state from the transcript that the pages show.
    pub fn new(view: View, transcript: Transcript) -> Self {
        let chrome = Chrome::new(&view, &transcript);
        let any_rewound = transcript.messages.iter().any(|it| it.superseded);
        let rewound = if any_rewound { transcript.head } else { Seq(0) };
        let (drawn, missed) = (HashMap::new(), BTreeSet::new());
        let mut live = Self { view, transcript, chrome, drawn, missed, rewound };
        for idx in 0..live.transcript.messages.len() {
            live.draw_if_open(idx);
        }
        live
    }

    /// Returns the session's transcript up to the last applied record.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns the operation that draws the status line of the agent's program; `None` clears the
    /// line.
    pub fn pulse(&self, pulse: Option<&Pulse>) -> Op {
        crate::page::pulse::pulse(&self.view, pulse).put()
    }

    /// Returns the sequence number of the last applied record.
    pub fn head(&self) -> Seq {
        self.transcript.head
    }

    /// Applies records and returns the patch that shows them on the open pages.
    ///
    /// Returns `None` if messages were replaced: the change then depends on which messages a page
    /// shows, so the page has to reload.
    pub fn apply<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> Option<Vec<Op>> {
        let mut touched = Touched::default();
        let before = self.rewound;
        for record in records {
            if matches!(record.event, Event::HistoryRewound { .. }) {
                self.rewound = record.seq;
            }
            self.draw_touched(record);
            let grows = self.only_grows(record);
            touched.note(self.transcript.apply(record), grows);
            self.note_missed(record);
            touched.around |= !grows || self.may_change_approvals(&record.event);
        }
        let mut ops = Vec::new();
        self.show(touched, &mut ops);
        self.drop_finished();
        (self.rewound == before).then_some(ops)
    }

    /// Takes the ids of assistant messages that changed but are no longer kept here; some page may
    /// still show them.
    pub fn take_missed(&mut self) -> Vec<ResponseId> {
        std::mem::take(&mut self.missed).into_iter().collect()
    }

    /// Returns the operation that replaces an assistant message on the pages that show it.
    pub fn put(&self, answer: &Message) -> Op {
        message(&self.view, answer).put()
    }

    /// Drops all but the last `n` messages of the transcript, so that a session that stays open for
    /// days does not grow in memory.
    pub fn keep_last(&mut self, n: usize) {
        let gone = self.transcript.messages.len().saturating_sub(n);
        if gone == 0 {
            return;
        }
        self.transcript.drop_earlier(gone);
        let drawn = std::mem::take(&mut self.drawn);
        let moved = drawn.into_iter().filter_map(|(idx, it)| Some((idx.checked_sub(gone)?, it)));
        self.drawn = moved.collect();
    }

    fn note_missed(&mut self, record: &Record) {
        let Some(id) = &record.response_id else { return };
        if !record.event.is_session_event() && self.transcript.index_of(id.as_str()).is_none() {
            self.missed.insert(id.clone());
        }
    }

    fn show(&mut self, touched: Touched, ops: &mut Vec<Op>) {
        let Touched { added, updated, around } = touched;
        self.add_messages(&added, ops);
        for (idx, (parts, more)) in &updated {
            if !added.contains(idx) {
                self.update(*idx, parts, *more, ops);
            }
        }
        if around {
            let next = Chrome::new(&self.view, &self.transcript);
            self.chrome.patch(&next, ops);
            self.chrome = next;
        }
    }

    /// Returns the patch that brings a page drawn at record `seen` up to date; `None` if the page
    /// has to reload.
    pub fn since(&self, seen: Seq) -> Option<Vec<Op>> {
        let first = self.transcript.messages.first().map_or(Seq(0), |it| it.first);
        if seen > self.head() || seen < first || seen < self.rewound {
            return None;
        }
        let mut ops = Vec::new();
        for item in self.transcript.messages.iter().filter(|it| it.changed > seen) {
            let html = message(&self.view, item).to_html();
            if item.first > seen {
                ops.push(Op::Add { parent: self.view.id("messages"), html });
            } else {
                ops.push(Op::Put { id: self.view.message_id(item), html });
            }
        }
        if seen < self.head() {
            self.chrome.put_all(&mut ops);
        }
        Some(ops)
    }

    /// Draws the assistant message that a record is about to change, if it is not kept. Finished
    /// messages are not kept, because records rarely change them.
    fn draw_touched(&mut self, record: &Record) {
        let Some(id) = &record.response_id else { return };
        if let Some(idx) = self.transcript.index_of(id.as_str()) {
            self.draw(idx);
        }
    }

    /// Returns whether a record only appends to existing text, thinking, arguments or output of an
    /// open run.
    fn only_grows(&self, record: &Record) -> bool {
        let run = record.response_id.as_ref();
        let answer = run.and_then(|id| self.transcript.message(id.as_str())?.run());
        // The actions of a finished answer may depend on its text.
        let Some(answer) = answer.filter(|it| it.is_open()) else { return false };
        match &record.event {
            Event::TextDelta { part_id, .. } => answer.has_text(part_id),
            Event::ThinkingDelta { part_id, .. } => answer.has_thinking(part_id),
            Event::ToolArgumentsDelta { call_id, .. } => {
                answer.call(call_id).is_some_and(|it| !it.arguments_done)
            }
            Event::ToolOutputDelta { call_id, .. } => answer.call(call_id).is_some(),
            _ => false,
        }
    }

    /// Returns whether an event may change the text on an approval card: its reason or the
    /// arguments.
    fn may_change_approvals(&self, event: &Event) -> bool {
        let is_shown = matches!(event, Event::TextDelta { .. } | Event::ToolArgumentsDelta { .. });
        is_shown && self.chrome.has_approvals()
    }

    fn draw_if_open(&mut self, idx: usize) {
        if self.transcript.messages[idx].run().is_some_and(RunMessage::is_open) {
            self.draw(idx);
        }
    }

    fn draw(&mut self, idx: usize) {
        let item = &self.transcript.messages[idx];
        if self.drawn.contains_key(&idx) {
            return;
        }
        if let Some(answer) = item.run() {
            let drawn = Drawn::new(&self.view, &self.view.message_id(item), answer);
            self.drawn.insert(idx, drawn);
        }
    }

    fn add_messages(&mut self, added: &BTreeSet<usize>, ops: &mut Vec<Op>) {
        for &idx in added {
            let html = message(&self.view, &self.transcript.messages[idx]).to_html();
            ops.push(Op::Add { parent: self.view.id("messages"), html });
            self.drawn.remove(&idx);
            self.draw(idx);
        }
    }

    fn update(&mut self, idx: usize, parts: &BTreeSet<usize>, more: bool, ops: &mut Vec<Op>) {
        let item = &self.transcript.messages[idx];
        let Content::Run(answer) = &item.content else { return };
        let id = self.view.message_id(item);
        let Some(drawn) = self.drawn.get_mut(&idx) else { return };
        let shown = drawn
            .may_show_other_parts(&self.view, answer)
            .then(|| ShownParts::new(&self.view, answer));
        if shown.as_ref().is_some_and(|it| drawn.lacks_shown_part(it)) {
            // A hidden call has to be shown again, because a new part belongs to it.
            ops.push(message(&self.view, item).put());
            *drawn = Drawn::new(&self.view, &id, answer);
            return;
        }
        let mut more = more;
        for &part in parts {
            let is_shown = shown.as_ref().is_none_or(|it| it.contains(part));
            if is_shown {
                more |= drawn.update_part(&self.view, &id, answer, part, ops);
            }
        }
        drawn.n_parts = answer.parts.len();
        if let Some(shown) = &shown {
            drawn.drop_hidden(&self.view, &id, answer, shown, ops);
        }
        if more {
            let next = frame(&self.view, &id, answer);
            drawn.frame.patch(&next, ops);
            drawn.frame = next;
            drawn.update_badges(&self.view, &id, answer, parts, ops);
        }
    }

    fn drop_finished(&mut self) {
        let messages = &self.transcript.messages;
        self.drawn.retain(|&idx, _| messages[idx].run().is_some_and(RunMessage::is_open));
    }
}

impl Touched {
    fn note(&mut self, change: Change, grows: bool) {
        match change {
            Change::None | Change::Session | Change::Queue | Change::Rewound { .. } => (),
            Change::Added { message } => {
                self.added.insert(message);
            }
            Change::Updated { message, parts } => {
                let (touched, more) = self.updated.entry(message).or_default();
                touched.extend(parts);
                *more |= !grows;
            }
        }
    }
}

impl Drawn {
    fn new(view: &View, id: &str, answer: &RunMessage) -> Self {
        let shown = ShownParts::new(view, answer);
        let parts = shown.iter().map(|idx| (idx, DrawnPart::new(view, id, answer, idx))).collect();
        let (earlier, n_parts) = (shown.earlier(view, id, answer), answer.parts.len());
        Self { frame: frame(view, id, answer), earlier, parts, n_parts }
    }

    /// Returns whether the set of shown parts of the message may change: parts become hidden, or a
    /// new part belongs to a hidden tool call.
    fn may_show_other_parts(&self, view: &View, answer: &RunMessage) -> bool {
        let (before, now) = (self.n_parts, answer.parts.len());
        let is_orphan = |idx| {
            answer.parent_of(idx).is_some_and(|it| it < before && !self.parts.contains_key(&it))
        };
        first_shown(view, before) != first_shown(view, now) || (before..now).any(is_orphan)
    }

    fn lacks_shown_part(&self, shown: &ShownParts) -> bool {
        shown.iter().any(|idx| idx < self.n_parts && !self.parts.contains_key(&idx))
    }

    /// Removes the parts that are no longer shown, and updates the link to the hidden parts.
    fn drop_hidden(
        &mut self,
        view: &View,
        id: &str,
        answer: &RunMessage,
        shown: &ShownParts,
        ops: &mut Vec<Op>,
    ) {
        let gone: Vec<usize> =
            self.parts.keys().copied().filter(|it| !shown.contains(*it)).collect();
        for idx in gone {
            ops.push(Op::Drop { id: part_id(id, idx) });
            ops.push(Op::Drop { id: badge_id(id, idx) });
            self.parts.remove(&idx);
        }
        let next = shown.earlier(view, id, answer);
        match (&self.earlier, &next, shown.first_at_top(answer)) {
            (Some(old), Some(new), _) => old.patch(new, ops),
            (None, Some(new), Some(first)) => {
                ops.push(Op::Before { next: part_id(id, first), html: new.to_html() });
            }
            _ => (),
        }
        self.earlier = next;
    }

    /// Updates or adds a part of an assistant message. Returns true if the message's frame has to
    /// be drawn again.
    fn update_part(
        &mut self,
        view: &View,
        id: &str,
        answer: &RunMessage,
        idx: usize,
        ops: &mut Vec<Op>,
    ) -> bool {
        if let Some(drawn) = self.parts.get_mut(&idx) {
            return drawn.update(view, id, answer, idx, ops);
        }
        if idx < self.n_parts {
            // The part is hidden.
            return true;
        }
        let list = match answer.parent_of(idx) {
            Some(call) => nested_id(&part_id(id, call)),
            None => list_id(id),
        };
        let element = part::part(view, &part_id(id, idx), &answer.parts[idx]);
        ops.push(Op::Add { parent: list, html: element.to_html() });
        let mut drawn = DrawnPart::new(view, id, answer, idx);
        // The badge is added later, after the list that contains it.
        if let DrawnPart::Other { badge, .. } = &mut drawn {
            *badge = None;
        }
        self.parts.insert(idx, drawn);
        true
    }

    /// Updates the badges of changed tool calls. A tool name that arrives late also changes the
    /// numbers of later calls with the same name.
    fn update_badges(
        &mut self,
        view: &View,
        id: &str,
        answer: &RunMessage,
        touched: &BTreeSet<usize>,
        ops: &mut Vec<Op>,
    ) {
        let renamed = touched.iter().copied().find(|&idx| self.is_renamed(answer, idx));
        let later = renamed.map_or(0..0, |idx| idx + 1..self.n_parts);
        for idx in touched.iter().copied().chain(later) {
            let Some(call) = call_of(answer, idx) else { continue };
            let Some(DrawnPart::Other { badge: drawn, .. }) = self.parts.get_mut(&idx) else {
                continue;
            };
            let next = badge::badge(view, id, idx, answer, call);
            match drawn {
                Some((_, badge)) => badge.patch(&next, ops),
                None => ops.push(Op::Add { parent: badges_id(id), html: next.to_html() }),
            }
            *drawn = Some((call.name.clone(), next));
        }
    }

    fn is_renamed(&self, answer: &RunMessage, idx: usize) -> bool {
        match (self.parts.get(&idx), call_of(answer, idx)) {
            (Some(DrawnPart::Other { badge: Some((name, _)), .. }), Some(call)) => {
                *name != call.name
            }
            _ => false,
        }
    }
}

impl DrawnPart {
    fn new(view: &View, message: &str, answer: &RunMessage, idx: usize) -> Self {
        let id = part_id(message, idx);
        let part = &answer.parts[idx];
        let Some(growing) = part::growing(view, &id, part) else {
            let badge = call_of(answer, idx)
                .map(|call| (call.name.clone(), badge::badge(view, message, idx, answer, call)));
            return Self::Other { element: part::part(view, &id, part), badge };
        };
        let Growing { shell, text, open, is_markdown } = growing;
        let mut growth = match is_markdown {
            true => Growth::Markdown(Box::new(Stream::new(&id))),
            false => Growth::Plain { id: part::thought_id(&id) },
        };
        if open {
            growth.push(text);
        }
        Self::Growing { shell, growth, sent: text.to_owned(), open }
    }

    fn update(
        &mut self,
        view: &View,
        message: &str,
        answer: &RunMessage,
        idx: usize,
        ops: &mut Vec<Op>,
    ) -> bool {
        let id = part_id(message, idx);
        let part = &answer.parts[idx];
        let mut is_another_kind = false;
        let (next, is_patched) = match (&mut *self, part::growing(view, &id, part)) {
            (Self::Growing { shell, growth, sent, open }, Some(next))
                if shell.has_same_children(&next.shell) =>
            {
                let before = ops.len();
                shell.patch(&next.shell, ops);
                is_another_kind = next.is_markdown && ops.len() > before;
                *shell = next.shell.clone();
                (None, grow(growth, sent, open, &next, ops))
            }
            (Self::Other { element, .. }, None) => {
                let next = part::part(view, &id, part);
                element.patch(&next, ops);
                *element = next;
                (None, true)
            }
            // A part never changes its kind, but a text can become long, or short again when it closes, and
            // the elements before its content can change.
            _ => {
                is_another_kind = true;
                (Some(Self::new(view, message, answer, idx)), false)
            }
        };
        if !is_patched {
            let html = part::part(view, &id, part).to_html();
            ops.push(Op::Put { id, html });
            *self = next.unwrap_or_else(|| Self::new(view, message, answer, idx));
        }
        is_another_kind
    }
}

/// Appends new text to a text or thinking part, and draws the final text once when the part closes.
/// Returns false if the part has to be drawn again.
fn grow(
    growth: &mut Growth,
    sent: &mut String,
    open: &mut bool,
    next: &Growing<'_>,
    ops: &mut Vec<Op>,
) -> bool {
    if !*open {
        return next.text == sent;
    }
    *open = next.open;
    if !next.open {
        let is_closed = growth.close(sent, next.text, ops);
        next.text.clone_into(sent);
        return is_closed;
    }
    // Open text only grows, so the beginning is not compared.
    let Some(more) = next.text.get(sent.len()..) else { return false };
    ops.extend(growth.push(more));
    sent.push_str(more);
    true
}

impl Growth {
    fn push(&mut self, more: &str) -> Vec<Op> {
        match self {
            Self::Markdown(stream) => stream.push(more),
            Self::Plain { .. } if more.is_empty() => Vec::new(),
            Self::Plain { id } => vec![Op::Text { id: id.clone(), text: replace_nul(more) }],
        }
    }

    /// Shows the final text of a closed part. Returns false if the part has to be drawn again.
    fn close(&mut self, sent: &str, text: &str, ops: &mut Vec<Op>) -> bool {
        match self {
            Self::Markdown(stream) => ops.extend(std::mem::take(&mut **stream).close(text)),
            Self::Plain { .. } => match text.strip_prefix(sent) {
                Some(more) => ops.extend(self.push(more)),
                None => return false,
            },
        }
        true
    }
}
