//! Which call a text belongs to, if any.
//!
//! Text belongs to the step it came in and is undecided while that step is open. A call takes the
//! text before it, since the call before that one, as its commentary. A step that ends without a
//! call makes its text final. Text after the last call of a step is carried into the next step and
//! decided there, or becomes final with the run; so does what its provider calls commentary, where
//! no call follows it and there is no answer. What a sub-agent says is decided among its own
//! steps and calls: each parent call is a scope of its own.

use std::collections::HashMap;

use crate::answer::Touched;
use crate::call::as_json;
use crate::{Answer, CallId, Millis, Part, PartKind, Phase, Text, TextRole};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scopes {
    outer: Scope,
    nested: HashMap<CallId, Scope>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scope {
    /// Into the answer's steps.
    pub(crate) open_step: Option<usize>,
    pub(crate) last_step: Option<usize>,
    step_has_calls: bool,
    /// Texts that the next call would take.
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

    /// Steps that have begun and not ended, with the call they are nested under; inner ones first.
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

impl Answer {
    /// Gives the pending texts of that scope to a call that begins now.
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

    pub(crate) fn decide_step_end(&mut self, parent: Option<&CallId>, at: Millis) -> Touched {
        let scope = self.index.scopes.of(parent);
        if scope.open_step.take().is_none() || scope.step_has_calls {
            return 0..0;
        }
        let pending = std::mem::take(&mut scope.pending);
        let (touched, kept) = self.make_final(pending, at);
        self.index.scopes.of(parent).pending = kept;
        touched
    }

    /// At the end of the run there is no next call.
    pub(crate) fn decide_the_rest(&mut self, at: Millis) -> Touched {
        let mut scopes = std::mem::take(&mut self.index.scopes);
        let mut touched = 0..0;
        for scope in scopes.nested.values_mut().chain([&mut scopes.outer]) {
            scope.open_step = None;
            let (finals, kept) = self.make_final(std::mem::take(&mut scope.pending), at);
            touched = crate::answer::union(touched, finals);
            touched = crate::answer::union(touched, self.answer_with(&kept, at));
        }
        self.index.scopes = scopes;
        touched
    }

    /// Commentary that led to no call, where there is no answer: it is all there is of one.
    fn answer_with(&mut self, commentary: &[usize], at: Millis) -> Touched {
        let Some(&first) = commentary.first() else { return 0..0 };
        let parent = &self.parts[first].parent;
        let mut beside = self.parts.iter().filter(|it| it.parent == *parent);
        let is_final = |it: &Part| match &it.kind {
            PartKind::Text(text) => text.role == TextRole::Final,
            _ => false,
        };
        if beside.any(is_final) {
            return 0..0;
        }
        for &idx in commentary {
            self.decide(idx, TextRole::Final, at);
        }
        first..self.parts.len()
    }

    /// What only its provider calls commentary stays that, and waits for a call: the second value.
    fn make_final(&mut self, texts: Vec<usize>, at: Millis) -> (Touched, Vec<usize>) {
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

    /// A text has closed: if the provider says what it is, that stands.
    pub(crate) fn decide_closed_text(
        &mut self,
        idx: usize,
        discarded: bool,
        at: Millis,
    ) -> Touched {
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

    /// Takes a text away from the call that has it, or would get it.
    fn withdraw(&mut self, idx: usize, role: TextRole, at: Millis) -> Touched {
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

    /// A closed text that is JSON may be a call's arguments that slipped into the text.
    fn mark_leaked_text(&mut self, idx: usize) {
        let Some(value) = self.text_at(idx).and_then(|text| as_json(&text.text)) else { return };
        let leaked = self.calls().any(|call| call.arguments_are(&value));
        self.index.json_texts.push(idx);
        if let PartKind::Text(text) = &mut self.parts[idx].kind {
            text.leaked = leaked;
        }
    }

    /// The same, seen from the call. Texts that are JSON are rare, so this looks at few.
    pub(crate) fn mark_leaked_arguments(&mut self, arguments: &str) -> Touched {
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
                touched = crate::answer::union(touched, idx..idx + 1);
            }
        }
        touched
    }
}
