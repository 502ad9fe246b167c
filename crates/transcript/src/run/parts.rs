//! Parts of an assistant message: looked up by id, or created at the end when a record first names them.

use std::collections::HashMap;

use serde_json::Map;

use super::call::new_call;
use super::commentary::Scopes;
use super::reducer::PartRange;
use crate::{
    Call, CallId, Event, Exchange, ExchangeId, ExchangeMode, ExchangeOutcome, ExchangeState,
    MessageId, Millis, Part, PartId, PartKind, RunMessage, Seq, SteerState, Steered, Text,
    TextRole, Thinking,
};

/// Number of unrecognized parts of one message that are kept individually. One further part counts
/// the remaining lines.
pub const MAX_UNRECOGNIZED: usize = 50;

/// Source of the parts that an import keeps in their own format. Such parts are content, so
/// [`MAX_UNRECOGNIZED`] does not apply to them.
pub const FOREIGN_PART: &str = "part";

/// Positions of the parts of a message by their ids, so that the cost of applying a record does not
/// depend on the length of the message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartIndex {
    texts: HashMap<PartId, usize>,
    thinkings: HashMap<PartId, usize>,
    calls: HashMap<CallId, usize>,
    steered: HashMap<MessageId, usize>,
    pub(crate) exchanges: HashMap<ExchangeId, usize>,
    pub(crate) scopes: Scopes,
    /// Indexes of the completed texts that are JSON and may repeat the arguments of a tool call.
    pub(crate) json_texts: Vec<usize>,
    n_unrecognized: usize,
    last_unrecognized: usize,
    body_edge: usize,
}

impl PartIndex {
    pub(crate) fn keeping(body_edge: usize) -> Self {
        Self {
            texts: HashMap::new(),
            thinkings: HashMap::new(),
            calls: HashMap::new(),
            steered: HashMap::new(),
            exchanges: HashMap::new(),
            scopes: Scopes::default(),
            json_texts: Vec::new(),
            n_unrecognized: 0,
            last_unrecognized: 0,
            body_edge,
        }
    }

    /// Returns the number of bytes that the transcript keeps of each end of a body.
    pub(crate) fn body_edge(&self) -> usize {
        self.body_edge
    }
}

impl RunMessage {
    pub(crate) fn text(
        &mut self,
        id: &PartId,
        parent: Option<&CallId>,
        at: Millis,
        edit: impl FnOnce(&mut Text),
    ) -> PartRange {
        let idx = self.index.texts.get(id).copied();
        let idx = idx.unwrap_or_else(|| self.make_text(id, parent, at));
        if let PartKind::Text(text) = &mut self.parts[idx].kind {
            edit(text);
        }
        idx..idx + 1
    }

    fn make_text(&mut self, id: &PartId, parent: Option<&CallId>, at: Millis) -> usize {
        // After the end of the run no call can make the text commentary.
        let late = self.finish.is_some();
        let text = Text {
            id: id.clone(),
            text: String::new(),
            open: true,
            phase: None,
            role: if late { TextRole::Final } else { TextRole::Undecided },
            decided_at: late.then_some(at),
            leaked: false,
        };
        let idx = self.push(PartKind::Text(text), parent, at).start;
        self.index.texts.insert(id.clone(), idx);
        if !late {
            self.index.scopes.of(parent).pending.push(idx);
        }
        idx
    }

    pub(crate) fn thinking(
        &mut self,
        id: &PartId,
        parent: Option<&CallId>,
        at: Millis,
        edit: impl FnOnce(&mut Thinking),
    ) -> PartRange {
        let idx = self.index.thinkings.get(id).copied();
        let idx = idx.unwrap_or_else(|| self.make_thinking(id, parent, at));
        if let PartKind::Thinking(thinking) = &mut self.parts[idx].kind {
            edit(thinking);
        }
        idx..idx + 1
    }

    fn make_thinking(&mut self, id: &PartId, parent: Option<&CallId>, at: Millis) -> usize {
        let thinking = Thinking {
            id: id.clone(),
            text: String::new(),
            open: true,
            finished_at: None,
            discarded: false,
        };
        let idx = self.push(PartKind::Thinking(thinking), parent, at).start;
        self.index.thinkings.insert(id.clone(), idx);
        idx
    }

    pub(crate) fn call_mut(
        &mut self,
        id: &CallId,
        parent: Option<&CallId>,
        at: Millis,
        edit: impl FnOnce(&mut Call),
    ) -> PartRange {
        let (idx, touched) = match self.index.calls.get(id) {
            Some(&idx) => (idx, idx..idx + 1),
            None => self.make_call(id, parent, at),
        };
        self.edit_call(idx, edit);
        touched
    }

    /// Adds a tool call, which takes the text before it as its commentary. Returns the index of the
    /// call and the range of changed parts.
    fn make_call(
        &mut self,
        id: &CallId,
        parent: Option<&CallId>,
        at: Millis,
    ) -> (usize, PartRange) {
        let commentary = self.take_commentary(id, parent, at);
        let first_touched = commentary.first().copied();
        let number = self.index.calls.len() as u32 + 1;
        let call = new_call(id, number, commentary, self.index.body_edge);
        let idx = self.push(PartKind::Call(Box::new(call)), parent, at).start;
        self.index.calls.insert(id.clone(), idx);
        (idx, first_touched.unwrap_or(idx)..idx + 1)
    }

    pub(crate) fn edit_call(&mut self, idx: usize, edit: impl FnOnce(&mut Call)) {
        if let Some(PartKind::Call(call)) = self.parts.get_mut(idx).map(|part| &mut part.kind) {
            edit(call);
        }
    }

    /// Returns the index of a tool call in [`RunMessage::parts`]; `None` if the run has no such
    /// call.
    pub fn call_index(&self, id: &CallId) -> Option<usize> {
        self.index.calls.get(id).copied()
    }

    /// Returns whether the run has a text with this id.
    pub fn has_text(&self, id: &PartId) -> bool {
        self.index.texts.contains_key(id)
    }

    /// Returns whether the run has a thinking block with this id.
    pub fn has_thinking(&self, id: &PartId) -> bool {
        self.index.thinkings.contains_key(id)
    }

    pub(crate) fn steer(&mut self, steered: Steered, at: Millis) -> PartRange {
        let id = steered.id.clone();
        match self.index.steered.get(&id).copied() {
            Some(idx) => {
                if let PartKind::Steered(known) = &mut self.parts[idx].kind {
                    known.state = steered.state;
                }
                idx..idx + 1
            }
            // The message never reached the run.
            None if steered.state == SteerState::Returned => 0..0,
            None => {
                let touched = self.push(PartKind::Steered(steered), None, at);
                self.index.steered.insert(id, touched.start);
                touched
            }
        }
    }

    pub(crate) fn exchange(&mut self, event: &Event, at: Millis) -> PartRange {
        let Some(PartKind::Exchange(news)) = standalone_part(event, at) else { return 0..0 };
        let id = news.id.clone();
        match self.index.exchanges.get(&id).copied() {
            Some(idx) => {
                if let PartKind::Exchange(known) = &mut self.parts[idx].kind {
                    known.update(*news);
                }
                idx..idx + 1
            }
            None => {
                let call = news.call_id.clone();
                let touched = self.push(PartKind::Exchange(news), call.as_ref(), at);
                self.index.exchanges.insert(id, touched.start);
                touched
            }
        }
    }

    /// Sets the progress of an open exchange; ignores an exchange that is unknown or has ended.
    pub(crate) fn exchange_progress(&mut self, id: &ExchangeId, state: ExchangeState) -> PartRange {
        let Some(idx) = self.index.exchanges.get(id).copied() else { return 0..0 };
        match &mut self.parts[idx].kind {
            PartKind::Exchange(exchange) if exchange.outcome.is_none() => {
                exchange.state = Some(state);
                idx..idx + 1
            }
            _ => 0..0,
        }
    }

    pub(crate) fn aside(&mut self, event: &Event, at: Millis) -> PartRange {
        match standalone_part(event, at) {
            Some(kind) => self.push(kind, None, at),
            None => 0..0,
        }
    }

    /// Adds an unrecognized part. Only the first [`MAX_UNRECOGNIZED`] are kept individually and one
    /// more part counts the rest, so that a message stays small even if its program prints a lot of
    /// unreadable output.
    pub(crate) fn unrecognized(&mut self, event: &Event, at: Millis) -> PartRange {
        let Some(kind) = standalone_part(event, at) else { return 0..0 };
        let PartKind::Unrecognized { source, lines: more, .. } = &kind else { return 0..0 };
        if source == FOREIGN_PART {
            return self.push(kind, None, at);
        }
        let last = self.index.last_unrecognized;
        if self.index.n_unrecognized > MAX_UNRECOGNIZED
            && let Some(PartKind::Unrecognized { lines, .. }) =
                self.parts.get_mut(last).map(|part| &mut part.kind)
        {
            *lines = lines.saturating_add(*more);
            return last..last + 1;
        }
        let touched = self.push(kind, None, at);
        self.index.n_unrecognized += 1;
        self.index.last_unrecognized = touched.start;
        touched
    }

    fn push(&mut self, kind: PartKind, parent: Option<&CallId>, at: Millis) -> PartRange {
        let step = self.index.scopes.of(parent).last_step;
        self.parts.push(Part {
            started_at: at,
            first: Seq(0),
            changed: Seq(0),
            parent: parent.cloned(),
            step,
            kind,
            extras: Map::new(),
        });
        self.parts.len() - 1..self.parts.len()
    }
}

impl Exchange {
    fn update(&mut self, news: Self) {
        self.peer_session_id = news.peer_session_id.or_else(|| self.peer_session_id.take());
        self.peer_response_id = news.peer_response_id.or_else(|| self.peer_response_id.take());
        if self.text.is_empty() {
            self.text = news.text;
        }
        self.state = self.state.or(news.state);
        // The first outcome wins.
        self.outcome = self.outcome.take().or(news.outcome);
    }
}

/// Returns the content of a part for an event that can also be shown outside a run; `None` for
/// other events.
pub(crate) fn standalone_part(event: &Event, at: Millis) -> Option<PartKind> {
    match event {
        Event::Notice { level, text } => {
            Some(PartKind::Notice { level: *level, text: text.clone() })
        }
        Event::Unrecognized { source, raw, lines } => {
            Some(PartKind::Unrecognized { source: source.clone(), raw: raw.clone(), lines: *lines })
        }
        Event::AgentMessage {
            exchange_id,
            direction,
            call_id,
            mode,
            depth: _,
            agent,
            peer_session_id,
            peer_response_id,
            text,
        } => Some(PartKind::Exchange(Box::new(Exchange {
            id: exchange_id.clone(),
            direction: *direction,
            call_id: call_id.clone(),
            mode: *mode,
            agent: agent.clone(),
            peer_session_id: peer_session_id.clone(),
            peer_response_id: peer_response_id.clone(),
            text: text.clone(),
            state: None,
            outcome: None,
        }))),
        Event::AgentCallbackResult {
            exchange_id,
            direction,
            agent,
            peer_session_id,
            peer_response_id,
            ok,
            result,
            error,
        } => Some(PartKind::Exchange(Box::new(Exchange {
            id: exchange_id.clone(),
            direction: *direction,
            call_id: None,
            mode: ExchangeMode::default(),
            agent: agent.clone(),
            peer_session_id: peer_session_id.clone(),
            peer_response_id: peer_response_id.clone(),
            text: String::new(),
            state: None,
            outcome: Some(ExchangeOutcome {
                at,
                ok: *ok,
                result: result.clone(),
                error: error.clone(),
            }),
        }))),
        _ => None,
    }
}
