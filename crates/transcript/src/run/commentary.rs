//! Assignment of texts to calls: which text is the commentary of a call, and which is final.
//!
//! A text belongs to its step and is undecided while the step is open. A call takes the texts since the
//! call before as its commentary. A step that ends without a call makes its texts final. Texts after the
//! last call of a step are carried into the next step and decided there, or become final with the run.
//! If a run ends without final text, its last texts become final: those without a call, and those of the
//! last step that has any. Each sub-agent's call is a separate scope with its own steps and texts.

use std::collections::HashMap;

use super::call::as_json;
use super::reducer::{PartRange, union};
use crate::{CallId, Millis, PartKind, Phase, RunMessage, Text, TextRole};

/// The scopes in which texts are assigned to tool calls: the run itself and each of its sub-agents.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scopes {
    outer: Scope,
    nested: HashMap<CallId, Scope>,
}

/// The open step and the pending texts of the run itself or of one sub-agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scope {
    /// Index into [`RunMessage::steps`] of the step that has not ended; `None` if there is none.
    pub(crate) open_step: Option<usize>,
    /// Index into [`RunMessage::steps`] of the newest step; `None` before the first one.
    pub(crate) last_step: Option<usize>,
    step_has_calls: bool,
    /// Indexes of the texts that the next tool call takes as its commentary.
    pub(crate) pending: Vec<usize>,
}

impl Scopes {
    pub(crate) fn of(&mut self, parent: Option<&CallId>) -> &mut Scope {
        match parent {
            None => &mut self.outer,
            Some(call) if self.nested.contains_key(call) => {
                self.nested.get_mut(call).expect("the guard has just found it")
            }
            Some(call) => self.nested.entry(call.clone()).or_default(),
        }
    }

    /// Returns the indexes of the steps that have not ended, newest first, each with the tool call
    /// that started its sub-agent (`None` for the agent itself).
    pub(crate) fn open_steps(&self) -> Vec<(Option<&CallId>, usize)> {
        let nested = self.nested.iter().map(|(call, scope)| (Some(call), scope));
        let mut open: Vec<_> = nested
            .chain([(None, &self.outer)])
            .filter_map(|(parent, scope)| Some((parent, scope.open_step?)))
            .collect();
        open.sort_by_key(|&(_, step)| std::cmp::Reverse(step));
        open
    }
}

impl Scope {
    pub(crate) fn start_step(&mut self, idx: usize) {
        self.open_step = Some(idx);
        self.last_step = Some(idx);
        self.step_has_calls = false;
    }
}

impl RunMessage {
    /// Makes the pending texts of the scope the commentary of a tool call that starts, and returns
    /// their indexes.
    pub(crate) fn take_commentary(
        &mut self,
        call: &CallId,
        parent: Option<&CallId>,
        at: Millis,
    ) -> Vec<usize> {
        let scope = self.index.scopes.of(parent);
        scope.step_has_calls = true;
        let taken = std::mem::take(&mut scope.pending);
        for &idx in &taken {
            self.decide(idx, TextRole::Commentary { call: Some(call.clone()) }, at);
        }
        taken
    }

    pub(crate) fn decide_step_end(&mut self, parent: Option<&CallId>, at: Millis) -> PartRange {
        let scope = self.index.scopes.of(parent);
        if scope.open_step.take().is_none() || scope.step_has_calls {
            return 0..0;
        }
        let pending = std::mem::take(&mut scope.pending);
        let (touched, kept) = self.make_final(pending, at);
        self.index.scopes.of(parent).pending = kept;
        touched
    }

    /// Makes the texts that are still undecided at the end of the run final.
    pub(crate) fn decide_remaining(&mut self, at: Millis) -> PartRange {
        let mut scopes = std::mem::take(&mut self.index.scopes);
        let mut touched = 0..0;
        for scope in scopes.nested.values_mut().chain([&mut scopes.outer]) {
            scope.open_step = None;
            let (finals, _) = self.make_final(std::mem::take(&mut scope.pending), at);
            touched = union(touched, finals);
        }
        self.index.scopes = scopes;
        union(touched, self.promote_last_texts(at))
    }

    /// Makes the last texts final in each scope that has no final text, even if they are
    /// commentary, so that they are not hidden together with their tool call.
    fn promote_last_texts(&mut self, at: Millis) -> PartRange {
        let mut texts: HashMap<Option<&CallId>, Vec<usize>> = HashMap::new();
        for (idx, part) in self.parts.iter().enumerate() {
            // An open text counts even while it is empty: it may still grow.
            if part.kind.has_visible_text() || self.text_at(idx).is_some_and(|it| it.open) {
                texts.entry(part.parent.as_ref()).or_default().push(idx);
            }
        }
        let last_texts: Vec<usize> =
            texts.into_values().flat_map(|texts| self.last_texts(texts)).collect();
        let mut touched = 0..0;
        for idx in last_texts {
            touched = union(touched, self.withdraw(idx, TextRole::Final, at));
        }
        touched
    }

    /// Returns which of the texts of one scope become final at the end of the run; none if a closed
    /// text of the scope is final already.
    fn last_texts(&self, mut texts: Vec<usize>) -> Vec<usize> {
        let role = |idx: usize| self.text_at(idx).map(|it| &it.role);
        let is_open = |idx: usize| self.text_at(idx).is_some_and(|it| it.open);
        let closed = || texts.iter().copied().filter(|&idx| !is_open(idx));
        if closed().any(|idx| role(idx) == Some(&TextRole::Final)) {
            return Vec::new();
        }
        let last_step = closed().next_back().map(|idx| self.parts[idx].step);
        texts.retain(|&idx| {
            let led_nowhere = role(idx) == Some(&TextRole::Commentary { call: None });
            led_nowhere || is_open(idx) || Some(self.parts[idx].step) == last_step
        });
        texts
    }

    /// Makes the undecided texts final. Also returns the other texts, which are commentary by the
    /// provider's phase and stay pending for a tool call.
    fn make_final(&mut self, texts: Vec<usize>, at: Millis) -> (PartRange, Vec<usize>) {
        let (finals, kept): (Vec<_>, Vec<_>) = texts
            .into_iter()
            .partition(|&idx| self.text_at(idx).is_some_and(|it| it.role == TextRole::Undecided));
        for &idx in &finals {
            self.decide(idx, TextRole::Final, at);
        }
        match (finals.first(), finals.last()) {
            (Some(&first), Some(&last)) => (first..last + 1, kept),
            _ => (0..0, kept),
        }
    }

    /// Sets the role of a text that was completed, if it was discarded or the provider classified
    /// it. Otherwise checks whether the text repeats the arguments of a tool call.
    pub(crate) fn decide_closed_text(
        &mut self,
        idx: usize,
        discarded: bool,
        at: Millis,
    ) -> PartRange {
        let Some(text) = self.text_at(idx) else { return 0..0 };
        let (role, phase) = (text.role.clone(), text.phase);
        match phase {
            _ if discarded => self.withdraw(idx, TextRole::Discarded, at),
            Some(Phase::Final) if role != TextRole::Final => {
                self.withdraw(idx, TextRole::Final, at)
            }
            Some(Phase::Commentary) if !matches!(role, TextRole::Commentary { .. }) => {
                self.decide(idx, TextRole::Commentary { call: None }, at);
                idx..idx + 1
            }
            _ => {
                self.mark_leaked_text(idx);
                idx..idx + 1
            }
        }
    }

    /// Gives a text another role, and removes it from the commentary of its tool call and from the
    /// pending texts.
    fn withdraw(&mut self, idx: usize, role: TextRole, at: Millis) -> PartRange {
        let parent = self.parts[idx].parent.clone();
        self.index.scopes.of(parent.as_ref()).pending.retain(|&it| it != idx);
        let mut touched = idx..idx + 1;
        if let Some(TextRole::Commentary { call: Some(call) }) =
            self.text_at(idx).map(|it| it.role.clone())
            && let Some(call_idx) = self.call_index(&call)
        {
            self.edit_call(call_idx, |call| call.commentary.retain(|&it| it != idx));
            touched.end = touched.end.max(call_idx + 1);
        }
        self.decide(idx, role, at);
        touched
    }

    fn decide(&mut self, idx: usize, role: TextRole, at: Millis) {
        if let Some(PartKind::Text(text)) = self.parts.get_mut(idx).map(|part| &mut part.kind) {
            text.role = role;
            text.decided_at = Some(at);
        }
    }

    fn text_at(&self, idx: usize) -> Option<&Text> {
        match &self.parts.get(idx)?.kind {
            PartKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Marks a completed text as leaked if it repeats the arguments of a tool call.
    fn mark_leaked_text(&mut self, idx: usize) {
        let Some(value) = self.text_at(idx).and_then(|text| as_json(&text.text)) else { return };
        let leaked = self.calls().any(|call| call.arguments_are(&value));
        self.index.json_texts.push(idx);
        if let PartKind::Text(text) = &mut self.parts[idx].kind {
            text.leaked = leaked;
        }
    }

    /// Marks the texts that repeat the given arguments of a tool call as leaked. Compares only
    /// texts that are JSON, which are rare.
    pub(crate) fn mark_leaked_arguments(&mut self, arguments: &str) -> PartRange {
        if self.index.json_texts.is_empty() {
            return 0..0;
        }
        let Some(value) = as_json(arguments) else { return 0..0 };
        let mut touched = 0..0;
        for idx in self.index.json_texts.clone() {
            if let PartKind::Text(text) = &mut self.parts[idx].kind
                && as_json(&text.text).as_ref() == Some(&value)
            {
                text.leaked = true;
                touched = union(touched, idx..idx + 1);
            }
        }
        touched
    }
}
