//! A run as a stream in a foreign format: the part that all formats share.

use transcript::{Call, Record, ResponseId};

use crate::follow::{Follow, News};
use crate::known::Known;
use crate::sse;

/// Encodes one run in a foreign format, as text that is ready to be sent.
///
/// A response ends with its run, or where the run waits for the client: for decisions or for results of
/// tools that the client runs. The client then sends a request that resumes the run, and the answer to
/// that is the next response.
pub trait Encoder: Send + 'static {
    /// Media type of the responses.
    const MEDIA_TYPE: &'static str;
    /// Header by which clients recognize the format.
    const MARKER: Option<(&'static str, &'static str)>;
    /// Text that keeps a connection open; clients ignore it.
    const KEEP_ALIVE: &'static str;

    /// Encodes the end of a response that failed, with the reason.
    fn failure(why: &str) -> String;

    /// Encodes the additions of these records to the run, all in one go.
    fn encode(&mut self, records: &[Record]) -> String;

    /// Encodes the run up to these records, without the parts that the client already has.
    fn resume(&mut self, records: &[Record], known: &Known) -> String;

    /// Returns whether the response has ended: the run has, or it waits for the client.
    fn is_over(&self) -> bool;
}

/// The run-specific state of a format: turns the news of a run into items of the stream.
pub trait Format: Send + 'static {
    /// One event, chunk or line.
    type Item;

    const MEDIA_TYPE: &'static str = sse::MEDIA_TYPE;
    const MARKER: Option<(&'static str, &'static str)> = None;
    const KEEP_ALIVE: &'static str = sse::KEEP_ALIVE;

    fn failure(why: &str) -> String;

    /// Writes items as they are sent, and the end of the stream after the last of a response.
    fn write(items: &[Self::Item], is_last: bool) -> String;

    /// Encodes news, unless the response has ended.
    fn add(&mut self, news: &News<'_>, items: &mut Vec<Self::Item>);

    /// Ends the response if the client can act on the calls that the run waits for.
    fn pause(&mut self, calls: &[&Call], follow: &Follow, items: &mut Vec<Self::Item>);

    fn is_over(&self) -> bool;

    /// Notes a record of a run that is resumed, before it is applied.
    fn note_earlier(&mut self, _record: &Record, _follow: &Follow, _known: &Known) {}

    /// Takes over news that the client already has. Adds items only for details that it lacks.
    fn skip(&mut self, news: &News<'_>, _items: &mut Vec<Self::Item>) {
        self.add(news, &mut Vec::new());
    }

    /// Begins the next response, after everything that the client has was skipped.
    fn begin_next_response(&mut self, follow: &Follow, known: &Known);

    /// Replaces the items for a client that rejoins the run.
    fn rejoin(&mut self, _follow: &Follow, items: Vec<Self::Item>) -> Vec<Self::Item> {
        items
    }
}

/// A run as the items of a foreign stream.
#[derive(Debug)]
pub struct RunStream<F> {
    pub(crate) follow: Follow,
    pub(crate) format: F,
}

impl<F: Format> RunStream<F> {
    pub(crate) fn of(run: ResponseId, format: F) -> Self {
        Self { follow: Follow::new(run), format }
    }

    /// Returns the items that this record adds.
    pub fn apply(&mut self, record: &Record) -> Vec<F::Item> {
        self.replay([record])
    }

    /// Returns the items that these records add, all in one go.
    pub fn replay<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> Vec<F::Item> {
        records.into_iter().for_each(|record| self.follow.take_in(record));
        self.news(Vec::new())
    }

    /// Returns the run up to these records, without the parts that the client already has.
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

    /// Returns whether the response has ended: the run has, or it waits for the client.
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

/// Writes JSON items as server-sent events, with the end mark after the last of a response.
pub(crate) fn write_events(items: &[serde_json::Value], is_last: bool) -> String {
    let mut events: String = items.iter().map(sse::event).collect();
    if is_last {
        events += sse::DONE;
    }
    events
}
