//! Index of a message's parts by their properties, updated when a part changes, so that queries do not
//! scan all parts of a long message.

use std::collections::{BTreeSet, HashMap};

use crate::{Call, CallState, Exchange, Part, PartKind, RunMessage, Text, TextRole};

/// Index of the parts of a message that have each [`Trait`], and of the tool calls of each tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PartTraits {
    traits: Vec<Traits>,
    having: [BTreeSet<usize>; Trait::ALL.len()],
    /// Tool name of each part; empty if the part is not a tool call.
    names: Vec<String>,
    /// Indexes of the tool calls in the message by tool name, ascending.
    named: HashMap<String, Vec<usize>>,
}

/// A set of the traits of one part: one bit for each trait.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Traits(u16);

/// A property of a part by which the parts of a message are looked up or counted.
#[derive(Debug, Clone, Copy)]
enum Trait {
    Call,
    OpenCall,
    WaitingCall,
    RunningCall,
    FailedCall,
    DeniedCall,
    InterruptedCall,
    OpenExchange,
    /// The part is at the top level: it does not belong to a sub-agent or another tool call. The
    /// traits of texts imply this.
    AtTop,
    LeakedText,
    UndecidedText,
    FinalText,
}

impl Trait {
    const ALL: [Self; 12] = [
        Self::Call,
        Self::OpenCall,
        Self::WaitingCall,
        Self::RunningCall,
        Self::FailedCall,
        Self::DeniedCall,
        Self::InterruptedCall,
        Self::OpenExchange,
        Self::AtTop,
        Self::LeakedText,
        Self::UndecidedText,
        Self::FinalText,
    ];

    fn is_of(self, part: &Part, is_at_top: bool) -> bool {
        match (self, &part.kind) {
            (Self::AtTop, _) => is_at_top,
            (Self::Call, PartKind::Call(_)) => true,
            (Self::OpenCall, PartKind::Call(call)) => call.is_open(),
            (Self::WaitingCall, PartKind::Call(call)) => call.waits_for_approval(),
            (Self::RunningCall, PartKind::Call(call)) => call.state == CallState::Running,
            (Self::FailedCall, PartKind::Call(call)) => call.state == CallState::Failed,
            (Self::DeniedCall, PartKind::Call(call)) => call.state == CallState::Denied,
            (Self::InterruptedCall, PartKind::Call(call)) => call.state == CallState::Interrupted,
            (Self::OpenExchange, PartKind::Exchange(exchange)) => exchange.outcome.is_none(),
            (Self::LeakedText, PartKind::Text(text)) => is_at_top && text.leaked,
            (Self::UndecidedText, PartKind::Text(text)) => {
                is_at_top && text.role == TextRole::Undecided
            }
            (Self::FinalText, PartKind::Text(text)) => is_at_top && text.role == TextRole::Final,
            _ => false,
        }
    }
}

impl Traits {
    fn of(part: &Part, is_at_top: bool) -> Self {
        let bit = |it: Trait| u16::from(it.is_of(part, is_at_top)) << it as u16;
        Self(Trait::ALL.into_iter().map(bit).sum())
    }

    fn has(self, it: Trait) -> bool {
        self.0 >> it as u16 & 1 == 1
    }
}

impl PartTraits {
    /// Updates the index for a part of the message that may have changed.
    pub(crate) fn note(&mut self, idx: usize, part: &Part, is_at_top: bool) {
        if self.traits.len() <= idx {
            self.traits.resize(idx + 1, Traits::default());
            self.names.resize(idx + 1, String::new());
        }
        let (before, now) = (self.traits[idx], Traits::of(part, is_at_top));
        if before != now {
            for it in Trait::ALL.into_iter().filter(|it| before.has(*it) != now.has(*it)) {
                let having = &mut self.having[it as usize];
                let _ = if now.has(it) { having.insert(idx) } else { having.remove(&idx) };
            }
            self.traits[idx] = now;
        }
        if let PartKind::Call(call) = &part.kind {
            self.note_name(idx, call.name.trim());
        }
    }

    fn note_name(&mut self, idx: usize, name: &str) {
        if self.names[idx] == name {
            return;
        }
        if let Some(places) = self.named.get_mut(&self.names[idx]) {
            places.retain(|it| *it != idx);
        }
        let places = self.named.entry(name.to_owned()).or_default();
        places.insert(places.partition_point(|it| *it < idx), idx);
        name.clone_into(&mut self.names[idx]);
    }

    fn having(&self, it: Trait) -> &BTreeSet<usize> {
        &self.having[it as usize]
    }
}

impl RunMessage {
    /// Returns the index of the tool call in [`Part::parent`]; `None` for a part at the top level.
    /// Ignores a call that started after the part, which only a broken log contains.
    pub fn parent_of(&self, idx: usize) -> Option<usize> {
        let call = self.parts[idx].parent.as_ref()?;
        self.call_index(call).filter(|&it| it < idx)
    }

    /// Returns the number of tool calls of the run, including those of sub-agents.
    pub fn n_calls(&self) -> usize {
        self.part_traits.having(Trait::Call).len()
    }

    /// Returns the number of failed tool calls of the run.
    pub fn n_failed(&self) -> usize {
        self.part_traits.having(Trait::FailedCall).len()
    }

    /// Returns the number of denied tool calls of the run.
    pub fn n_denied(&self) -> usize {
        self.part_traits.having(Trait::DeniedCall).len()
    }

    /// Returns the number of interrupted tool calls of the run.
    pub fn n_interrupted(&self) -> usize {
        self.part_traits.having(Trait::InterruptedCall).len()
    }

    /// Iterates over the failed tool calls of the run.
    pub fn failed_calls(&self) -> impl Iterator<Item = &Call> {
        self.part_traits.having(Trait::FailedCall).iter().filter_map(|&idx| self.call_at(idx))
    }

    /// Iterates over the tool calls of the run that wait for a person's decision.
    pub fn waiting_calls(&self) -> impl Iterator<Item = &Call> {
        self.part_traits.having(Trait::WaitingCall).iter().filter_map(|&idx| self.call_at(idx))
    }

    /// Returns the running tool call that started last; `None` if none is running.
    pub fn current_call(&self) -> Option<&Call> {
        self.call_at(*self.part_traits.having(Trait::RunningCall).last()?)
    }

    /// Returns the last tool call without a result; `None` if all have one.
    pub fn last_open_call(&self) -> Option<&Call> {
        self.call_at(*self.part_traits.having(Trait::OpenCall).last()?)
    }

    /// Returns how many tool calls of the same tool started before this one in the run.
    pub fn n_before(&self, call: &Call) -> usize {
        let places = self.part_traits.named.get(call.name.trim());
        let idx = self.call_index(&call.id);
        places.zip(idx).map_or(0, |(places, idx)| places.partition_point(|it| *it < idx))
    }

    /// Iterates over the exchanges of the run that have not ended.
    pub fn open_exchanges(&self) -> impl Iterator<Item = &Exchange> {
        let open = self.part_traits.having(Trait::OpenExchange).iter();
        open.filter_map(|&idx| match &self.parts[idx].kind {
            PartKind::Exchange(exchange) => Some(&**exchange),
            _ => None,
        })
    }

    /// Returns the last part that belongs to no sub-agent or other tool call; `None` if there is
    /// none.
    pub fn last_top_level(&self) -> Option<&Part> {
        self.parts.get(*self.part_traits.having(Trait::AtTop).last()?)
    }

    /// Returns whether all parts are texts that only repeat tool arguments. Parts that belong to a
    /// sub-agent or another tool call do not count.
    pub fn has_only_leaked(&self) -> bool {
        self.part_traits.having(Trait::AtTop).len()
            == self.part_traits.having(Trait::LeakedText).len()
    }

    /// Returns whether the agent itself wrote a final text. Texts of sub-agents do not count.
    pub fn has_final_text(&self) -> bool {
        !self.part_traits.having(Trait::FinalText).is_empty()
    }

    /// Iterates over the texts whose role is undecided, except those of sub-agents.
    pub fn undecided_texts(&self) -> impl Iterator<Item = &Text> {
        let undecided = self.part_traits.having(Trait::UndecidedText).iter();
        undecided.filter_map(|&idx| match &self.parts[idx].kind {
            PartKind::Text(text) => Some(text),
            _ => None,
        })
    }

    fn call_at(&self, idx: usize) -> Option<&Call> {
        match &self.parts.get(idx)?.kind {
            PartKind::Call(call) => Some(call),
            _ => None,
        }
    }
}
