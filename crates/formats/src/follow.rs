//! A run while it happens: the additions of each record, in an order that every streaming format can express.
//!
//! [`Follow`] holds the reducer's state of the run and remembers the part of it that was sent, so a stream only
//! has to encode [`News`]. For every log:
//!
//! - `Begun` comes first, `Ended` last, and nothing after it.
//! - Parts begin in the order of the answer's parts, each in its step. Texts and thinking end before
//!   their step does, once, and their additions are never empty.
//! - A call begins, is written and ends, in that order and once each; it is written before its step
//!   ends.
//! - A step ends when its calls have, unless the next one begins first. Most agents report the end of the model's
//!   response before they run its calls.
//! - The news after every record add up to the news after all of them.
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
pub enum News<'a> {
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
    CallWritten(&'a Call),
    ApprovalAsked(&'a Call),
    ApprovalSettled(&'a Call),
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
    told: Told,
}

#[derive(Debug, Default)]
struct Told {
    begun: bool,
    ended: bool,
    /// State of each part of the run, by its index.
    parts: Vec<ToldPart>,
    /// Number of steps that were processed, including those of sub-agents; `n_steps` counts the
    /// others, which were sent.
    n_steps_seen: usize,
    n_steps: usize,
    open_step: Option<usize>,
}

#[derive(Debug, Clone)]
enum ToldPart {
    /// A part of a sub-agent, which is not sent.
    Hidden,
    Words {
        text: String,
        ended: bool,
    },
    Call(ToldCall),
    /// A part without a text that grows, as it was sent last; `None` before that.
    Aside(Option<Box<PartKind>>),
}

#[derive(Debug, Clone, Default)]
struct ToldCall {
    arguments: String,
    written: bool,
    asked: bool,
    settled: bool,
    ended: bool,
}

impl Follow {
    pub(crate) fn new(run: ResponseId) -> Self {
        Self {
            run,
            transcript: Transcript::whole(),
            touched: BTreeSet::new(),
            told: Told::default(),
        }
    }

    /// Applies a record and returns the changes of the run.
    pub(crate) fn apply(&mut self, record: &Record) -> Vec<News<'_>> {
        self.take_in(record);
        self.news()
    }

    /// Applies a record without returning its changes, which `news` does later. Records of other
    /// runs are ignored.
    pub(crate) fn take_in(&mut self, record: &Record) {
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
    pub(crate) fn news(&mut self) -> Vec<News<'_>> {
        let mut news = Vec::new();
        let Some(answer) = self.transcript.messages.first().and_then(Message::run) else {
            return news;
        };
        let touched = std::mem::take(&mut self.touched);
        self.told.tell(answer, &touched, &mut news);
        news
    }

    /// Returns the changes that a client already has, and marks them as sent, so that `news`
    /// returns only the rest.
    pub(crate) fn recall(&mut self, known: &Known) -> Vec<News<'_>> {
        let mut news = Vec::new();
        if let Some(answer) = self.transcript.messages.first().and_then(Message::run) {
            self.told.recall(answer, known, &mut news);
            self.touched.extend(0..answer.parts.len());
        }
        news
    }

    /// Returns the beginning of each part that was sent and has not ended.
    pub(crate) fn open_parts(&self) -> Vec<News<'_>> {
        let parts = self.answer().map(|it| it.parts.as_slice()).unwrap_or_default();
        let open = self.told.parts.iter().zip(parts).filter_map(|(told, part)| match told {
            ToldPart::Words { ended: false, .. } => begun(part),
            ToldPart::Call(ToldCall { written: false, .. }) => begun(part),
            ToldPart::Words { .. } | ToldPart::Call(_) | ToldPart::Hidden | ToldPart::Aside(_) => {
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
                    let is_told = part.parent.is_none();
                    waiting.push(Some(&**call).filter(|it| is_told && waits_for_client(it))?);
                }
                _ => (),
            }
        }
        waiting.reverse();
        (!waiting.is_empty()).then_some(waiting)
    }

    /// Returns the number of steps whose beginning was sent.
    pub(crate) fn n_steps(&self) -> usize {
        self.told.n_steps
    }

    /// Returns the step whose end was not sent yet, if the model has finished it.
    pub(crate) fn finished_step(&self) -> Option<&Step> {
        let step = self.answer()?.steps.get(self.told.open_step?)?;
        Some(step).filter(|it| it.finished.is_some())
    }
}

/// Returns all changes of a run from its beginning.
pub(crate) fn tell_all(answer: &RunMessage) -> Vec<News<'_>> {
    let mut news = Vec::new();
    Told::default().tell(answer, &BTreeSet::new(), &mut news);
    news
}

/// Returns the beginning of a part that is sent in deltas; `None` for other parts.
fn begun(part: &Part) -> Option<News<'_>> {
    match &part.kind {
        PartKind::Text(text) => Some(News::TextBegun(text)),
        PartKind::Thinking(thinking) => Some(News::ThinkingBegun(thinking)),
        PartKind::Call(call) => Some(News::CallBegun(call)),
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

impl Told {
    fn tell<'a>(
        &mut self,
        answer: &'a RunMessage,
        touched: &BTreeSet<usize>,
        news: &mut Vec<News<'a>>,
    ) {
        if self.ended {
            return;
        }
        if !std::mem::replace(&mut self.begun, true) {
            news.push(News::Begun(answer));
        }
        let n_told = self.parts.len();
        for &idx in touched.range(..n_told) {
            self.tell_more(idx, &answer.parts[idx].kind, news);
        }
        for (idx, part) in answer.parts.iter().enumerate().skip(n_told) {
            if part.parent.is_some() {
                self.parts.push(ToldPart::Hidden);
                continue;
            }
            self.move_on(answer, part.step.map_or(0, |step| step + 1), news);
            self.begin(part, news);
            self.tell_more(idx, &part.kind, news);
        }
        self.move_on(answer, answer.steps.len(), news);
        if let Some(step) = self.open_step
            && answer.steps[step].finished.is_some()
            && !is_at_work(answer, step)
        {
            self.end_step(answer, news);
        }
        if answer.finish.is_some() {
            self.end(answer, news);
        }
    }

    fn recall<'a>(&mut self, answer: &'a RunMessage, known: &Known, news: &mut Vec<News<'a>>) {
        self.begun = true;
        news.push(News::Begun(answer));
        for (idx, part) in answer.parts.iter().enumerate().take(known.n_parts(answer)) {
            if part.parent.is_some() {
                self.parts.push(ToldPart::Hidden);
                continue;
            }
            self.move_on(answer, part.step.map_or(0, |step| step + 1), news);
            self.begin(part, news);
            match (&mut self.parts[idx], &part.kind) {
                (ToldPart::Call(told), PartKind::Call(call)) => told.recall(call, known, news),
                // These may have changed since.
                (_, PartKind::Exchange(_) | PartKind::Steered(_)) => (),
                (_, kind) => self.tell_more(idx, kind, news),
            }
        }
        while self.n_steps < known.n_steps && self.n_steps_seen < answer.steps.len() {
            self.move_on(answer, self.n_steps_seen + 1, news);
        }
    }

    /// Adds the beginnings of the steps before index `up_to`, and the end of each step before them.
    fn move_on<'a>(&mut self, answer: &'a RunMessage, up_to: usize, news: &mut Vec<News<'a>>) {
        while self.n_steps_seen < up_to {
            let step = self.n_steps_seen;
            self.n_steps_seen += 1;
            if answer.steps[step].parent.is_none() {
                self.end_step(answer, news);
                self.open_step = Some(step);
                self.n_steps += 1;
                news.push(News::StepBegun { number: self.n_steps });
            }
        }
    }

    fn end_step<'a>(&mut self, answer: &'a RunMessage, news: &mut Vec<News<'a>>) {
        let Some(step) = self.open_step.take() else { return };
        self.close_parts(answer, news);
        let step = &answer.steps[step];
        news.push(News::StepEnded { number: self.n_steps, step, answer });
    }

    fn close_parts<'a>(&mut self, answer: &'a RunMessage, news: &mut Vec<News<'a>>) {
        for (told, part) in self.parts.iter_mut().zip(&answer.parts) {
            match (told, &part.kind) {
                (ToldPart::Words { ended, .. }, PartKind::Text(text)) => {
                    let is_open = !std::mem::replace(ended, true);
                    news.extend(is_open.then_some(News::TextEnded(text)));
                }
                (ToldPart::Words { ended, .. }, PartKind::Thinking(thinking)) => {
                    let is_open = !std::mem::replace(ended, true);
                    news.extend(is_open.then_some(News::ThinkingEnded(thinking)));
                }
                (ToldPart::Call(told), PartKind::Call(call)) => {
                    let is_open = !std::mem::replace(&mut told.written, true);
                    news.extend(is_open.then_some(News::CallWritten(call)));
                }
                _ => (),
            }
        }
    }

    fn end<'a>(&mut self, answer: &'a RunMessage, news: &mut Vec<News<'a>>) {
        self.end_step(answer, news);
        self.close_parts(answer, news);
        self.ended = true;
        news.push(News::Ended(answer));
    }

    fn begin<'a>(&mut self, part: &'a Part, news: &mut Vec<News<'a>>) {
        self.parts.push(match &part.kind {
            PartKind::Text(_) | PartKind::Thinking(_) => {
                ToldPart::Words { text: String::new(), ended: false }
            }
            PartKind::Call(_) => ToldPart::Call(ToldCall::default()),
            PartKind::Steered(_)
            | PartKind::Exchange(_)
            | PartKind::Notice { .. }
            | PartKind::Unrecognized { .. } => ToldPart::Aside(None),
        });
        news.extend(begun(part));
    }

    fn tell_more<'a>(&mut self, idx: usize, kind: &'a PartKind, news: &mut Vec<News<'a>>) {
        match (&mut self.parts[idx], kind) {
            (ToldPart::Words { text: told, ended: ended @ false }, PartKind::Text(text)) => {
                let more = more(told, &text.text, text.open);
                news.extend(more.map(|more| News::TextGrown(text, more)));
                *ended = !text.open;
                news.extend((!text.open).then_some(News::TextEnded(text)));
            }
            (
                ToldPart::Words { text: told, ended: ended @ false },
                PartKind::Thinking(thinking),
            ) => {
                let more = more(told, &thinking.text, thinking.open);
                news.extend(more.map(|more| News::ThinkingGrown(thinking, more)));
                *ended = !thinking.open;
                news.extend((!thinking.open).then_some(News::ThinkingEnded(thinking)));
            }
            (ToldPart::Call(told), PartKind::Call(call)) => told.tell_more(call, news),
            (ToldPart::Aside(last), kind) if last.as_deref() != Some(kind) => {
                *last = Some(Box::new(kind.clone()));
                let told = self.parts[..idx].iter().filter(|it| !matches!(it, ToldPart::Hidden));
                news.push(News::Aside(told.count(), kind));
            }
            _ => (),
        }
    }
}

impl ToldCall {
    fn recall<'a>(&mut self, call: &'a Call, known: &Known, news: &mut Vec<News<'a>>) {
        let mut told = Vec::new();
        self.tell_more(call, &mut told);
        if known.has_outcome(call) {
            return news.append(&mut told);
        }
        // A response has ended since it was sent, and with that its arguments.
        (self.written, self.settled, self.ended) = (true, false, false);
        told.retain(|it| !matches!(it, News::ApprovalSettled(_) | News::CallEnded(_)));
        news.append(&mut told);
    }

    fn tell_more<'a>(&mut self, call: &'a Call, news: &mut Vec<News<'a>>) {
        let is_written = call.arguments_done || call.approval.is_some() || call.outcome.is_some();
        if !self.written {
            // A whole transcript keeps all of a body in its head.
            let more = more(&mut self.arguments, call.arguments.head(), !call.arguments_done);
            news.extend(more.map(|more| News::ArgumentsGrown(call, more)));
        }
        if is_written && !std::mem::replace(&mut self.written, true) {
            news.push(News::CallWritten(call));
        }
        let resolved = call.approval.as_ref().is_some_and(|it| it.resolved.is_some());
        if call.waits_for_approval() && !std::mem::replace(&mut self.asked, true) {
            news.push(News::ApprovalAsked(call));
        }
        if resolved && !std::mem::replace(&mut self.settled, true) {
            news.push(News::ApprovalSettled(call));
        }
        if call.outcome.is_some() && !std::mem::replace(&mut self.ended, true) {
            news.push(News::CallEnded(call));
        }
    }
}

/// Returns the text that `now` has after `told`, and appends it to `told`. `None` if there is none,
/// or if `now` does not begin with `told`, which is only checked if `now` may have been replaced.
fn more<'a>(told: &mut String, now: &'a str, has_only_grown: bool) -> Option<&'a str> {
    if !has_only_grown && !now.starts_with(told.as_str()) {
        return None;
    }
    let more = now.get(told.len()..).filter(|it| !it.is_empty())?;
    told.push_str(more);
    Some(more)
}
