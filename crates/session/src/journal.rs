//! The end of the log: records that are numbered and not yet committed, and the state derived from all of them.

use transcript::{
    Event, Millis, Queue, Record, ResponseId, RunMessage, Seq, SessionId, Summary, stream,
};

use crate::Effect;
use crate::queue::MessageQueue;

#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) session: SessionId,
    /// Sequence number of the last record, committed or not.
    pub(crate) head: Seq,
    pub(crate) summary: Summary,
    pub(crate) queue: MessageQueue,
    summary_changed: bool,
    pending: Vec<Record>,
    /// Lowest sequence number of the records that were added or extended since the last
    /// [`Self::take_touched`]. `None` if there are none.
    touched: Option<Seq>,
}

impl Journal {
    pub(crate) fn new(session: SessionId, head: Seq, summary: Summary, queue: Queue) -> Self {
        Self {
            session,
            head,
            summary,
            queue: MessageQueue(queue),
            summary_changed: false,
            pending: Vec::new(),
            touched: None,
        }
    }

    /// Makes an event a record, and applies it to the summary, the queue and the message of its
    /// run. A delta that continues the delta in the last pending record is merged into that record.
    pub(crate) fn push(
        &mut self,
        at: Millis,
        run: Option<&ResponseId>,
        event: Event,
        message: Option<&mut RunMessage>,
    ) {
        let is_merged = self.pending.last_mut().is_some_and(|last| {
            last.response_id.as_ref() == run && stream::merge(&mut last.event, &event)
        });
        let seq = if is_merged { self.head } else { self.head.next() };
        self.touched.get_or_insert(seq);
        let record = Record::new(seq, at, self.session.clone(), run.cloned(), event);
        if let Some(message) = message {
            message.apply(&record);
        }
        self.summary_changed |= self.summary.apply(&record);
        self.queue.0.apply(&record);
        if !is_merged {
            self.head = seq;
            self.pending.push(record);
        }
    }

    /// Returns the lowest sequence number of the records that were added or extended since this was
    /// called last. `None` if there are none.
    pub(crate) fn take_touched(&mut self) -> Option<Seq> {
        self.touched.take()
    }

    /// Returns the effect that appends all pending records. `None` if there are none.
    pub(crate) fn take_append(&mut self) -> Option<Effect> {
        if self.pending.is_empty() {
            return None;
        }
        let records = std::mem::take(&mut self.pending);
        let is_changed = std::mem::take(&mut self.summary_changed);
        let summary = is_changed.then(|| Box::new(self.summary.clone()));
        Some(Effect::Append { records, summary })
    }
}
