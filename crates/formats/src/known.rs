//! The parts of a run that a client has, as its request shows.
//!
//! Clients send back the parts that they received. So a response that resumes a run needs no memory of the
//! earlier responses: it contains the parts that the client does not have, independent of the sender of the
//! others and of everything that happened in between.
//!
//! Parts are sent in the order of the run, and a response ends where nothing is open. So a client has all parts
//! up to the last one that it names.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use transcript::{Call, CallId, Part, PartKind, RunMessage};

use crate::call;

/// The parts of a run that a client has, according to its request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    pub(crate) calls: HashMap<CallId, KnownCall>,
    pub(crate) words: KnownWords,
    /// Number of steps that the client has; 0 if its requests do not contain steps.
    pub(crate) n_steps: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct KnownCall {
    /// Whether the client got an approval request for the tool call.
    pub(crate) asked: bool,
    pub(crate) outcome: KnownOutcome,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum KnownOutcome {
    #[default]
    None,
    /// The client has an outcome of the tool call, which counts as the right one.
    Any,
    Output(Value),
    Error(String),
}

/// The texts and thinking blocks that a client has, besides those before its last tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KnownWords {
    /// The client has this number of texts and thinking blocks after its last tool call.
    After(usize),
    /// The client has this number of texts and thinking blocks that are not empty after its last
    /// tool call.
    SpokenAfter(usize),
    Named(HashSet<String>),
    /// The client has all texts and thinking blocks up to the end of the step of its last tool
    /// call.
    OfSteps,
}

impl Default for KnownWords {
    fn default() -> Self {
        Self::After(0)
    }
}

impl Known {
    pub(crate) fn asked(&self) -> HashSet<CallId> {
        self.calls.iter().filter(|(_, it)| it.asked).map(|(id, _)| id.clone()).collect()
    }

    /// Returns whether the client has the outcome of a tool call. If its request does not name the
    /// call, it has the outcome that there is.
    pub(crate) fn has_outcome(&self, call: &Call) -> bool {
        let Some(known) = self.calls.get(&call.id) else { return call.outcome.is_some() };
        call.outcome.is_some()
            && match &known.outcome {
                KnownOutcome::None => false,
                KnownOutcome::Any => true,
                KnownOutcome::Output(output) => {
                    call::error_text(call).is_none() && call::output(call) == *output
                }
                KnownOutcome::Error(error) => call::error_text(call).as_ref() == Some(error),
            }
    }

    pub(crate) fn has_run(&self, call: &CallId) -> bool {
        self.calls.contains_key(call)
    }

    /// Returns the number of the run's parts that the client has. A part that is not complete does
    /// not count, so it is sent again from its beginning.
    pub(crate) fn n_parts(&self, answer: &RunMessage) -> usize {
        let last_call = answer.parts.iter().rposition(|it| self.has_call(it));
        let n_called = last_call.map_or(0, |idx| idx + 1);
        let n_named = match &self.words {
            KnownWords::After(n_words) => {
                nth_after(answer, n_called, *n_words, |part| words(part).is_some())
            }
            KnownWords::SpokenAfter(n_words) => {
                let is_spoken = |part: &Part| words(part).is_some_and(|it| !it.is_empty());
                nth_after(answer, n_called, *n_words, is_spoken)
            }
            KnownWords::Named(names) => {
                let is_named = |part: &Part| id_of(part).is_some_and(|id| names.contains(id));
                answer.parts.iter().rposition(is_named).map_or(0, |idx| idx + 1)
            }
            KnownWords::OfSteps => {
                let step = last_call.and_then(|idx| answer.parts[idx].step);
                let is_of_it = |part: &Part| step.is_some() && part.step <= step;
                answer.parts.iter().rposition(is_of_it).map_or(0, |idx| idx + 1)
            }
        };
        let is_open = |part: &Part| part.parent.is_none() && is_open(part);
        let n_whole = answer.parts.iter().position(is_open).unwrap_or(answer.parts.len());
        n_called.max(n_named).min(n_whole)
    }

    fn has_call(&self, part: &Part) -> bool {
        matches!(&part.kind, PartKind::Call(call) if self.calls.contains_key(&call.id))
    }
}

/// Returns the index after the n-th part that counts, among those after the first `n_parts`. If
/// fewer count, it is the index after the last of them; 0 if none does.
fn nth_after(
    answer: &RunMessage,
    n_parts: usize,
    n: usize,
    counts: impl Fn(&Part) -> bool,
) -> usize {
    let later = answer.parts.iter().enumerate().skip(n_parts);
    let counted = later.filter(|(_, part)| part.parent.is_none() && counts(part));
    counted.take(n).last().map_or(0, |(idx, _)| idx + 1)
}

fn words(part: &Part) -> Option<&str> {
    match &part.kind {
        PartKind::Text(text) => Some(&text.text),
        PartKind::Thinking(thinking) => Some(&thinking.text),
        _ => None,
    }
}

fn is_open(part: &Part) -> bool {
    match &part.kind {
        PartKind::Text(text) => text.open,
        PartKind::Thinking(thinking) => thinking.open,
        _ => false,
    }
}

fn id_of(part: &Part) -> Option<&str> {
    match &part.kind {
        PartKind::Text(text) => Some(text.id.as_str()),
        PartKind::Thinking(thinking) => Some(thinking.id.as_str()),
        _ => None,
    }
}
