//! A run while it happens: the additions of each record, in an order that every streaming format can express.
//!
//! [`Follow`] holds the reducer's state of the run and remembers the part of it that was sent, so a stream only
//! has to encode [`RunChange`]. For every log:
//!
//! - `Begun` comes first, `Ended` last, and nothing after it.
//! - Parts begin in the order of the answer's parts, each in its step. Texts and thinking end before
//!   their step does, once, and their additions are never empty.
//! - A call begins, has its arguments and ends, in that order and once each; it has its arguments
//!   before its step ends.
//! - A step ends when its calls have, unless the next one begins first. Most agents report the end of the model's
//!   response before they run its calls.
//! - The changes after every record add up to the changes after all of them.
//!
//! The actions of sub-agents are left out: the result of the outer call contains theirs. So is a closing text
//! that replaces one that was sent: no format here can express that.

use std::collections::BTreeSet;

use transcript::{
    Call, Change, Message, Part, PartKind, Record, ResponseId, RunMessage, Step, Text, Thinking,
    Transcript,
};

use crate::known::Known;

/// A change of a run that a stream has to send.
#[derive(Debug)]
pub enum RunChange<'a> {
    Begun(&'a RunMessage),
    StepBegun {
        number: usize,
    },
    StepEnded {
        number: usize,
        step: &'a Step,
        answer: &'a RunMessage,
    },
    TextBegun(&'a Text),
    TextGrown(&'a Text, &'a str),
    TextEnded(&'a Text),
    ThinkingBegun(&'a Thinking),
    ThinkingGrown(&'a Thinking, &'a str),
    ThinkingEnded(&'a Thinking),
    CallBegun(&'a Call),
    ArgumentsGrown(&'a Call, &'a str),
    /// The arguments of a tool call are complete.
    ArgumentsDone(&'a Call),
    ApprovalRequested(&'a Call),
    ApprovalResolved(&'a Call),
    CallEnded(&'a Call),
    /// A steered message, an exchange, a notice or something unrecognized began or changed. The
    /// number is its index among the parts that are sent.
    Aside(usize, &'a PartKind),
    Ended(&'a RunMessage),
}

/// Applies the records of a run and returns the changes that a stream has to send.
#[derive(Debug)]
pub struct Follow {
    run: ResponseId,
    /// Transcript of this run alone, with whole bodies.
    transcript: Transcript,
    touched: BTreeSet<usize>,
    sent: SentState,
}

#[derive(Debug, Default)]
struct SentState {
    begun: bool,
    ended: bool,
    /// State of each part of the run, by its index.
    parts: Vec<SentPart>,
    /// Number of steps that were processed, including those of sub-agents; `n_steps` counts the
    /// others, which were sent.
    n_steps_seen: usize,
    n_steps: usize,
    open_step: Option<usize>,
}

#[derive(Debug, Clone)]
enum SentPart {
    /// A part of a sub-agent, which is not sent.
    Hidden,
    Words {
        text: String,
        ended: bool,
    },
    Call(SentCall),
    /// A part without a text that grows, as it was sent last; `None` before that.
    Aside(Option<Box<PartKind>>),
}

#[derive(Debug, Clone, Default)]
struct SentCall {
    arguments: String,
    arguments_done: bool,
    approval_requested: bool,
    approval_resolved: bool,
    ended: bool,
}

impl Follow {
    pub(crate) fn new(run: ResponseId) -> Self {
        Self {
            run,
            transcript: Transcript::whole(),
            touched: BTreeSet::new(),
            sent: SentState::default(),
        }
    }

    /// Applies a record and returns the changes of the run.
    pub(crate) fn apply(&mut self, record: &Record) -> Vec<RunChange<'_>> {
        self.add(record);
        self.changes()
    }

    /// Applies a record without returning its changes, which `changes` does later. Records of other
    /// runs are ignored.
    pub(crate) fn add(&mut self, record: &Record) {
        if record.response_id.as_ref() != Some(&self.run) || record.event.is_session_event() {
            return;
        }
        if let Change::Updated { parts, .. } = self.transcript.apply(record) {
            self.touched.extend(parts);
        }
    }

    pub(crate) fn answer(&self) -> Option<&RunMessage> {
        self.transcript.messages.first().and_then(Message::run)
    }

    /// Returns the changes of the run since this was last called.
    pub(crate) fn changes(&mut self) -> Vec<RunChange<'_>> {
        let mut changes = Vec::new();
        let Some(answer) = self.transcript.messages.first().and_then(Message::run) else {
            return changes;
        };
        let touched = std::mem::take(&mut self.touched);
        self.sent.advance(answer, &touched, &mut changes);
        changes
    }

    /// Returns the changes that a client already has, and marks them as sent, so that `changes`
    /// returns only the rest.
    pub(crate) fn mark_known(&mut self, known: &Known) -> Vec<RunChange<'_>> {
        let mut changes = Vec::new();
        if let Some(answer) = self.transcript.messages.first().and_then(Message::run) {
            self.sent.mark_known(answer, known, &mut changes);
            self.touched.extend(0..answer.parts.len());
        }
        changes
    }

    /// Returns the beginning of each part that was sent and has not ended.
    pub(crate) fn open_parts(&self) -> Vec<RunChange<'_>> {
        let parts = self.answer().map(|it| it.parts.as_slice()).unwrap_or_default();
        let open = self.sent.parts.iter().zip(parts).filter_map(|(sent, part)| match sent {
            SentPart::Words { ended: false, .. } => begun(part),
            SentPart::Call(SentCall { arguments_done: false, .. }) => begun(part),
            SentPart::Words { .. } | SentPart::Call(_) | SentPart::Hidden | SentPart::Aside(_) => {
                None
            }
        });
        open.collect()
    }

    /// Returns the tool calls that wait for the client: for a decision, or for the result of a tool
    /// that the client runs. `None` if the run does anything else.
    pub(crate) fn waiting(&self) -> Option<Vec<&Call>> {
        let answer = self.answer().filter(|it| it.is_open())?;
        let mut waiting = Vec::new();
        // From the end, where an active run has an open part: that ends the search early.
        for part in answer.parts.iter().rev() {
            match &part.kind {
                PartKind::Text(text) if text.open => return None,
                PartKind::Thinking(thinking) if thinking.open => return None,
                PartKind::Call(call) if call.is_open() => {
                    let is_sent = part.parent.is_none();
                    waiting.push(Some(&**call).filter(|it| is_sent && waits_for_client(it))?);
                }
                _ => (),
            }
        }
        waiting.reverse();
        (!waiting.is_empty()).then_some(waiting)
    }

    /// Returns the number of steps whose beginning was sent.
    pub(crate) fn n_steps(&self) -> usize {
        self.sent.n_steps
    }

    /// Returns the step whose end was not sent yet, if the model has finished it.
    pub(crate) fn finished_step(&self) -> Option<&Step> {
        let step = self.answer()?.steps.get(self.sent.open_step?)?;
        Some(step).filter(|it| it.finished.is_some())
    }
}

/// Returns all changes of a run from its beginning.
pub(crate) fn all_changes(answer: &RunMessage) -> Vec<RunChange<'_>> {
    let mut changes = Vec::new();
    SentState::default().advance(answer, &BTreeSet::new(), &mut changes);
    changes
}

/// Returns the beginning of a part that is sent in deltas; `None` for other parts.
fn begun(part: &Part) -> Option<RunChange<'_>> {
    match &part.kind {
        PartKind::Text(text) => Some(RunChange::TextBegun(text)),
        PartKind::Thinking(thinking) => Some(RunChange::ThinkingBegun(thinking)),
        PartKind::Call(call) => Some(RunChange::CallBegun(call)),
        PartKind::Steered(_)
        | PartKind::Exchange(_)
        | PartKind::Notice { .. }
        | PartKind::Unrecognized { .. } => None,
    }
}

/// Returns whether a step, or a later one, has tool calls that have not ended.
fn is_at_work(answer: &RunMessage, step: usize) -> bool {
    let parts = answer.parts.iter().rev().filter(|part| part.parent.is_none());
    let mut of_it = parts.take_while(|part| part.step.is_none_or(|it| it >= step));
    of_it.any(|part| matches!(&part.kind, PartKind::Call(call) if call.is_open()))
}

/// Returns whether a tool call waits for the client: for a decision or for a result.
fn waits_for_client(call: &Call) -> bool {
    call.waits_for_approval() || call.waits_for_client()
}

/// Returns the number of a part's step, from 1, without counting those of sub-agents. Parts before
/// the first step belong to it.
pub(crate) fn step_number(answer: &RunMessage, part: &Part) -> usize {
    let Some(step) = part.step else { return 1 };
    let outer = answer.steps.iter().take(step + 1).filter(|step| step.parent.is_none());
    outer.count().max(1)
}

impl SentState {
    fn advance<'a>(
        &mut self,
        answer: &'a RunMessage,
        touched: &BTreeSet<usize>,
        changes: &mut Vec<RunChange<'a>>,
    ) {
        if self.ended {
            return;
        }
        if !std::mem::replace(&mut self.begun, true) {
            changes.push(RunChange::Begun(answer));
        }
        let n_sent = self.parts.len();
        for &idx in touched.range(..n_sent) {
            self.advance_part(idx, &answer.parts[idx].kind, changes);
        }
        for (idx, part) in answer.parts.iter().enumerate().skip(n_sent) {
            if part.parent.is_some() {
                self.parts.push(SentPart::Hidden);
                continue;
            }
            self.begin_steps(answer, part.step.map_or(0, |step| step + 1), changes);
            self.begin(part, changes);
            self.advance_part(idx, &part.kind, changes);
        }
        self.begin_steps(answer, answer.steps.len(), changes);
        if let Some(step) = self.open_step
            && answer.steps[step].finished.is_some()
            && !is_at_work(answer, step)
        {
            self.end_step(answer, changes);
        }
        if answer.finish.is_some() {
            self.end(answer, changes);
        }
    }

    fn mark_known<'a>(
        &mut self,
        answer: &'a RunMessage,
        known: &Known,
        changes: &mut Vec<RunChange<'a>>,
    ) {
        self.begun = true;
        changes.push(RunChange::Begun(answer));
        for (idx, part) in answer.parts.iter().enumerate().take(known.n_parts(answer)) {
            if part.parent.is_some() {
                self.parts.push(SentPart::Hidden);
                continue;
            }
            self.begin_steps(answer, part.step.map_or(0, |step| step + 1), changes);
            self.begin(part, changes);
            match (&mut self.parts[idx], &part.kind) {
                (SentPart::Call(sent), PartKind::Call(call)) => {
                    sent.mark_known(call, known, changes)
                }
                // These may have changed since.
                (_, PartKind::Exchange(_) | PartKind::Steered(_)) => (),
                (_, kind) => self.advance_part(idx, kind, changes),
            }
        }
        while self.n_steps < known.n_steps && self.n_steps_seen < answer.steps.len() {
            self.begin_steps(answer, self.n_steps_seen + 1, changes);
        }
    }

    /// Adds the beginnings of the steps before index `up_to`, and the end of each step before them.
    fn begin_steps<'a>(
        &mut self,
        answer: &'a RunMessage,
        up_to: usize,
        changes: &mut Vec<RunChange<'a>>,
    ) {
        while self.n_steps_seen < up_to {
            let step = self.n_steps_seen;
            self.n_steps_seen += 1;
            if answer.steps[step].parent.is_none() {
                self.end_step(answer, changes);
                self.open_step = Some(step);
                self.n_steps += 1;
                changes.push(RunChange::StepBegun { number: self.n_steps });
            }
        }
    }

    fn end_step<'a>(&mut self, answer: &'a RunMessage, changes: &mut Vec<RunChange<'a>>) {
        let Some(step) = self.open_step.take() else { return };
        self.close_parts(answer, changes);
        let step = &answer.steps[step];
        changes.push(RunChange::StepEnded { number: self.n_steps, step, answer });
    }

    fn close_parts<'a>(&mut self, answer: &'a RunMessage, changes: &mut Vec<RunChange<'a>>) {
        for (sent, part) in self.parts.iter_mut().zip(&answer.parts) {
            match (sent, &part.kind) {
                (SentPart::Words { ended, .. }, PartKind::Text(text)) => {
                    let is_open = !std::mem::replace(ended, true);
                    changes.extend(is_open.then_some(RunChange::TextEnded(text)));
                }
                (SentPart::Words { ended, .. }, PartKind::Thinking(thinking)) => {
                    let is_open = !std::mem::replace(ended, true);
                    changes.extend(is_open.then_some(RunChange::ThinkingEnded(thinking)));
                }
                (SentPart::Call(sent), PartKind::Call(call)) => {
                    let is_open = !std::mem::replace(&mut sent.arguments_done, true);
                    changes.extend(is_open.then_some(RunChange::ArgumentsDone(call)));
                }
                _ => (),
            }
        }
    }

    fn end<'a>(&mut self, answer: &'a RunMessage, changes: &mut Vec<RunChange<'a>>) {
        self.end_step(answer, changes);
        self.close_parts(answer, changes);
        self.ended = true;
        changes.push(RunChange::Ended(answer));
    }

    fn begin<'a>(&mut self, part: &'a Part, changes: &mut Vec<RunChange<'a>>) {
        self.parts.push(match &part.kind {
            PartKind::Text(_) | PartKind::Thinking(_) => {
                SentPart::Words { text: String::new(), ended: false }
            }
            PartKind::Call(_) => SentPart::Call(SentCall::default()),
            PartKind::Steered(_)
            | PartKind::Exchange(_)
            | PartKind::Notice { .. }
            | PartKind::Unrecognized { .. } => SentPart::Aside(None),
        });
        changes.extend(begun(part));
    }

    fn advance_part<'a>(
        &mut self,
        idx: usize,
        kind: &'a PartKind,
        changes: &mut Vec<RunChange<'a>>,
    ) {
        match (&mut self.parts[idx], kind) {
            (SentPart::Words { text: sent, ended: ended @ false }, PartKind::Text(text)) => {
                let more = more(sent, &text.text, text.open);
                changes.extend(more.map(|more| RunChange::TextGrown(text, more)));
                *ended = !text.open;
                changes.extend((!text.open).then_some(RunChange::TextEnded(text)));
            }
            (
                SentPart::Words { text: sent, ended: ended @ false },
                PartKind::Thinking(thinking),
            ) => {
                let more = more(sent, &thinking.text, thinking.open);
                changes.extend(more.map(|more| RunChange::ThinkingGrown(thinking, more)));
                *ended = !thinking.open;
                changes.extend((!thinking.open).then_some(RunChange::ThinkingEnded(thinking)));
            }
            (SentPart::Call(sent), PartKind::Call(call)) => sent.advance(call, changes),
            (SentPart::Aside(last), kind) if last.as_deref() != Some(kind) => {
                *last = Some(Box::new(kind.clone()));
                let sent = self.parts[..idx].iter().filter(|it| !matches!(it, SentPart::Hidden));
                changes.push(RunChange::Aside(sent.count(), kind));
            }
            _ => (),
        }
    }
}

impl SentCall {
    fn mark_known<'a>(&mut self, call: &'a Call, known: &Known, changes: &mut Vec<RunChange<'a>>) {
        let mut call_changes = Vec::new();
        self.advance(call, &mut call_changes);
        if known.has_outcome(call) {
            return changes.append(&mut call_changes);
        }
        // A response has ended since it was sent, and with that its arguments.
        (self.arguments_done, self.approval_resolved, self.ended) = (true, false, false);
        call_changes
            .retain(|it| !matches!(it, RunChange::ApprovalResolved(_) | RunChange::CallEnded(_)));
        changes.append(&mut call_changes);
    }

    fn advance<'a>(&mut self, call: &'a Call, changes: &mut Vec<RunChange<'a>>) {
        let is_complete = call.arguments_done || call.approval.is_some() || call.outcome.is_some();
        if !self.arguments_done {
            // A whole transcript keeps all of a body in its head.
            let more = more(&mut self.arguments, call.arguments.head(), !call.arguments_done);
            changes.extend(more.map(|more| RunChange::ArgumentsGrown(call, more)));
        }
        if is_complete && !std::mem::replace(&mut self.arguments_done, true) {
            changes.push(RunChange::ArgumentsDone(call));
        }
        let resolved = call.approval.as_ref().is_some_and(|it| it.resolved.is_some());
        if call.waits_for_approval() && !std::mem::replace(&mut self.approval_requested, true) {
            changes.push(RunChange::ApprovalRequested(call));
        }
        if resolved && !std::mem::replace(&mut self.approval_resolved, true) {
            changes.push(RunChange::ApprovalResolved(call));
        }
        if call.outcome.is_some() && !std::mem::replace(&mut self.ended, true) {
            changes.push(RunChange::CallEnded(call));
        }
    }
}

/// Returns the text that `now` has after `sent`, and appends it to `sent`. `None` if there is none,
/// or if `now` does not begin with `sent`, which is only checked if `now` may have been replaced.
fn more<'a>(sent: &mut String, now: &'a str, has_only_grown: bool) -> Option<&'a str> {
    if !has_only_grown && !now.starts_with(sent.as_str()) {
        return None;
    }
    let more = now.get(sent.len()..).filter(|it| !it.is_empty())?;
    sent.push_str(more);
    Some(more)
}
