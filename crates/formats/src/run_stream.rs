//! A run as a stream in a foreign format: the part that all formats share.

use transcript::{Call, Record, ResponseId};

use crate::follow::{Follow, RunChange};
use crate::known::Known;
use crate::sse;

/// Encodes one run in a foreign format, as text that is ready to be sent.
///
/// A response ends with its run, or where the run waits for the client: for decisions or for
/// results of tools that the client runs. The client then sends a request that resumes the run, and
/// the answer to that is the next response.
///
/// ```
/// use formats::{Encoder, ui_v4};
/// use transcript::{Event, Millis, Record, ResponseId, Seq, SessionId};
///
/// let run = ResponseId::new("run-1");
/// let events = r#"[
///     { "type": "run_start", "agent": "demo", "trigger": "user" },
///     { "type": "text_start", "partId": "p1" },
///     { "type": "text_done", "partId": "p1", "text": "Hello" },
///     { "type": "run_finish", "status": "completed" }
/// ]"#;
/// let events: Vec<Event> = serde_json::from_str(events)?;
/// let record = |(seq, event)| {
///     Record::new(Seq(seq), Millis(0), SessionId::new("s"), Some(run.clone()), event)
/// };
/// let records: Vec<Record> = (1..).zip(events).map(record).collect();
///
/// let mut stream = ui_v4::Stream::new(run.clone());
/// assert!(stream.encode(&records).contains("0:\"Hello\"\n"));
/// assert!(stream.is_over());
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait Encoder: Send + 'static {
    /// Media type of the HTTP responses.
    const MEDIA_TYPE: &'static str;
    /// Name and value of the response header by which clients recognize the format; `None` if it
    /// has none.
    const MARKER: Option<(&'static str, &'static str)>;
    /// Text that keeps a connection open; clients ignore it.
    const KEEP_ALIVE: &'static str;

    /// Encodes an error that ends the response, with the reason.
    fn failure(why: &str) -> String;

    /// Encodes the changes that all of these records together make to the run.
    fn encode(&mut self, records: &[Record]) -> String;

    /// Encodes the next response: the run up to these records, without the parts that the client
    /// has.
    fn resume(&mut self, records: &[Record], known: &Known) -> String;

    /// Returns whether the response has ended: the run has ended, or it waits for the client.
    fn is_over(&self) -> bool;
}

/// The state of one run in one foreign format: turns the changes of the run into items of the
/// stream.
pub trait Format: Send + 'static {
    /// One item of the stream: an event, a chunk or a line.
    type Item;

    const MEDIA_TYPE: &'static str = sse::MEDIA_TYPE;
    const MARKER: Option<(&'static str, &'static str)> = None;
    const KEEP_ALIVE: &'static str = sse::KEEP_ALIVE;

    fn failure(why: &str) -> String;

    /// Encodes items as text, with the end mark of the stream after the last item of a response.
    fn write(items: &[Self::Item], is_last: bool) -> String;

    /// Adds the items for a change of the run, unless the response has ended.
    fn add(&mut self, change: &RunChange<'_>, items: &mut Vec<Self::Item>);

    /// Ends the response if the client can act on the tool calls that the run waits for.
    fn pause(&mut self, calls: &[&Call], follow: &Follow, items: &mut Vec<Self::Item>);

    fn is_over(&self) -> bool;

    /// Receives each record of a run that is resumed, before the record is applied.
    fn note_earlier(&mut self, _record: &Record, _follow: &Follow, _known: &Known) {}

    /// Updates the state with a change that the client already has. Adds items only for details
    /// that the client lacks.
    fn skip(&mut self, change: &RunChange<'_>, _items: &mut Vec<Self::Item>) {
        self.add(change, &mut Vec::new());
    }

    /// Begins the next response, after all changes that the client has were skipped.
    fn begin_next_response(&mut self, follow: &Follow, known: &Known);

    /// Returns the items to send instead of `items`, if the client reconnects to the run.
    fn rejoin(&mut self, _follow: &Follow, items: Vec<Self::Item>) -> Vec<Self::Item> {
        items
    }
}

/// A run as the items of a stream in a foreign format.
#[derive(Debug)]
pub struct RunStream<F> {
    pub(crate) follow: Follow,
    pub(crate) format: F,
}

impl<F: Format> RunStream<F> {
    pub(crate) fn of(run: ResponseId, format: F) -> Self {
        Self { follow: Follow::new(run), format }
    }

    /// Applies a record and returns the items that it adds to the stream.
    pub fn apply(&mut self, record: &Record) -> Vec<F::Item> {
        self.replay([record])
    }

    /// Applies records and returns the items that they add to the stream together.
    pub fn replay<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> Vec<F::Item> {
        records.into_iter().for_each(|record| self.follow.add(record));
        self.add_changes(Vec::new())
    }

    /// Applies the records of a run that is resumed, and returns the items of the next response,
    /// without the parts that the client already has.
    pub fn replay_unknown<'a>(
        &mut self,
        records: impl IntoIterator<Item = &'a Record>,
        known: &Known,
    ) -> Vec<F::Item> {
        for record in records {
            self.format.note_earlier(record, &self.follow, known);
            self.follow.add(record);
        }
        let mut items = Vec::new();
        for change in self.follow.mark_known(known) {
            self.format.skip(&change, &mut items);
        }
        self.format.begin_next_response(&self.follow, known);
        self.add_changes(items)
    }

    /// Returns whether the response has ended: the run has ended, or it waits for the client.
    pub fn is_over(&self) -> bool {
        self.format.is_over()
    }

    /// Adds the items for the changes since the last call.
    fn add_changes(&mut self, mut items: Vec<F::Item>) -> Vec<F::Item> {
        let Self { follow, format } = self;
        for change in follow.changes() {
            format.add(&change, &mut items);
        }
        if let Some(calls) = follow.waiting() {
            format.pause(&calls, follow, &mut items);
        }
        format.rejoin(follow, items)
    }
}

impl<F: Format> Encoder for RunStream<F> {
    const MEDIA_TYPE: &'static str = F::MEDIA_TYPE;
    const MARKER: Option<(&'static str, &'static str)> = F::MARKER;
    const KEEP_ALIVE: &'static str = F::KEEP_ALIVE;

    fn failure(why: &str) -> String {
        F::failure(why)
    }

    fn encode(&mut self, records: &[Record]) -> String {
        let was_over = self.is_over();
        let items = self.replay(records);
        F::write(&items, self.is_over() && !was_over)
    }

    fn resume(&mut self, records: &[Record], known: &Known) -> String {
        let items = self.replay_unknown(records, known);
        F::write(&items, self.is_over())
    }

    fn is_over(&self) -> bool {
        self.format.is_over()
    }
}

/// Encodes JSON items as server-sent events, with the end mark after the last item of a response.
pub(crate) fn write_events(items: &[serde_json::Value], is_last: bool) -> String {
    let mut events: String = items.iter().map(sse::event).collect();
    if is_last {
        events += sse::DONE;
    }
    events
}
