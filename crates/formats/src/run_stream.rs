//! A run as a stream in a foreign format: the part that all formats share.

use transcript::{Call, Record, ResponseId};

use crate::follow::{Follow, News};
use crate::known::Known;
use crate::sse;

/// Encodes one run in a foreign format, as text that is ready to be sent.
///
/// A response ends with its run, or where the run waits for the client: for decisions or for
/// results of tools that the client runs. The client then sends a request that resumes the run, and
/// the answer to that is the next response.
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
    fn add(&mut self, news: &News<'_>, items: &mut Vec<Self::Item>);

    /// Ends the response if the client can act on the tool calls that the run waits for.
    fn pause(&mut self, calls: &[&Call], follow: &Follow, items: &mut Vec<Self::Item>);

    fn is_over(&self) -> bool;

    /// Receives each record of a run that is resumed, before the record is applied.
    fn note_earlier(&mut self, _record: &Record, _follow: &Follow, _known: &Known) {}

    /// Updates the state with a change that the client already has. Adds items only for details
    /// that the client lacks.
    fn skip(&mut self, news: &News<'_>, _items: &mut Vec<Self::Item>) {
        self.add(news, &mut Vec::new());
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
        records.into_iter().for_each(|record| self.follow.take_in(record));
        self.news(Vec::new())
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
            self.follow.take_in(record);
        }
        let mut items = Vec::new();
        for news in self.follow.recall(known) {
            self.format.skip(&news, &mut items);
        }
        self.format.begin_next_response(&self.follow, known);
        self.news(items)
    }

    /// Returns whether the response has ended: the run has ended, or it waits for the client.
    pub fn is_over(&self) -> bool {
        self.format.is_over()
    }

    fn news(&mut self, mut items: Vec<F::Item>) -> Vec<F::Item> {
        let Self { follow, format } = self;
        for news in follow.news() {
            format.add(&news, &mut items);
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
