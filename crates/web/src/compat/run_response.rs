//! A run as a streamed response of a compatibility API. The body ends when the run has ended or the client
//! has to act.
//!
//! A client that disconnects does not stop the run. A client that reconnects receives the run from its
//! beginning, and a client that resumes it receives the parts that it lacks.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use formats::Encoder;
use formats::incoming::Known;
use futures_util::stream;
use tokio::time::Interval;
use transcript::{Event, MessageId, Record, ResponseId, Seq, SteerState};

use super::Conversation;
use crate::error::HttpError;
use crate::listener::StopSignal;
use crate::streaming;
use runtime::live::record_stream::Records;

/// Response header that disables the buffering of a streamed response in proxies.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// Protocol of a compatibility API, in which runs are sent to its clients.
pub(crate) trait Protocol: Send + Sync + 'static {
    type Encoder: Encoder;

    /// Creates the encoder of a run. May read the messages that the client needs before the run.
    fn encoder(
        &self,
        run: ResponseId,
    ) -> impl Future<Output = Result<Self::Encoder, HttpError>> + Send;
}

/// Returns a streamed HTTP response in the format of the encoder `E`.
pub(crate) fn streamed<E: Encoder>(body: Body) -> Response {
    let mut response = streaming::response(E::MEDIA_TYPE, body);
    let marker = E::MARKER
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    response.headers_mut().extend([UNBUFFERED].into_iter().chain(marker));
    response
}

/// Streamed response of a compatibility API that contains a run.
pub(crate) struct RunResponse<P: Protocol> {
    conversation: Conversation,
    feed: Records,
    protocol: P,
    state: State<P::Encoder>,
    /// Encoded text of the run that is sent next.
    unsent: String,
    keep_alive: Interval,
    stop: StopSignal,
}

enum State<E> {
    /// The run that answers the message has not started. The message may be queued.
    Waiting { message: MessageId, is_sent: bool },
    /// The run has started, and may have ended.
    Running(E),
    /// The response has failed for this reason, and nothing more of the answer is sent.
    Failed(String),
}

impl<P: Protocol> IntoResponse for RunResponse<P> {
    fn into_response(self) -> Response {
        streamed::<P::Encoder>(self.into_body())
    }
}

impl<P: Protocol> RunResponse<P> {
    /// Creates the response with the answer to a message, which is or will be logged after the
    /// record number `after`.
    pub(super) async fn of_answer(
        conversation: Conversation,
        message: MessageId,
        after: Seq,
        protocol: P,
    ) -> Result<Self, HttpError> {
        let is_held = conversation.is_held(&message).await?;
        let feed = conversation.feed(after);
        let state = State::Waiting { message, is_sent: false };
        let mut response = Self::new(conversation, feed, state, protocol);
        if is_held {
            response.unsent = response.fail_as_held();
        }
        Ok(response)
    }

    /// Creates the response with a run: its existing records in one chunk, and then live events.
    /// Parts that the client has are omitted.
    pub(super) async fn of_run(
        conversation: Conversation,
        run: RunPosition,
        known: Option<&Known>,
        protocol: P,
    ) -> Result<Self, HttpError> {
        let mut encoder = protocol.encoder(run.id).await?;
        let mut feed = conversation.feed(run.after);
        let records = feed.catch_up().await?;
        let unsent = match known {
            Some(known) => encoder.resume(&records, known),
            None => encoder.encode(&records),
        };
        let response = Self::new(conversation, feed, State::Running(encoder), protocol);
        Ok(Self { unsent, ..response })
    }

    fn new(
        conversation: Conversation,
        feed: Records,
        state: State<P::Encoder>,
        protocol: P,
    ) -> Self {
        Self {
            feed,
            protocol,
            state,
            unsent: String::new(),
            keep_alive: streaming::keep_alive(),
            stop: conversation.server.stop.clone(),
            conversation,
        }
    }

    fn into_body(mut self) -> Body {
        // The headers are sent with the first chunk, and the first event may take long.
        if self.unsent.is_empty() {
            P::Encoder::KEEP_ALIVE.clone_into(&mut self.unsent);
        }
        streaming::body(stream::unfold(self, |mut response| async {
            let piece = response.next().await?;
            Some((piece, response))
        }))
    }

    /// Returns whether the response is complete: the run has ended, the client has to act, or the
    /// response has failed.
    pub(crate) fn has_ended(&self) -> bool {
        match &self.state {
            State::Waiting { .. } => false,
            State::Running(encoder) => encoder.is_over(),
            State::Failed(_) => true,
        }
    }

    /// Waits until the response is complete and returns the encoder of the run, for a client that
    /// does not stream. Returns an error if the answer is incomplete.
    pub(crate) async fn finish(mut self) -> Result<P::Encoder, String> {
        loop {
            match self.state {
                State::Running(encoder) if encoder.is_over() => return Ok(encoder),
                State::Failed(why) => return Err(why),
                State::Running(_) | State::Waiting { .. } => {
                    self.unsent.clear();
                    self.next().await;
                }
            }
        }
    }

    async fn next(&mut self) -> Option<String> {
        while self.unsent.is_empty() {
            if self.has_ended() {
                return None;
            }
            let record = tokio::select! {
                biased;
                record = self.feed.next() => Some(record),
                _ = self.keep_alive.tick() => None,
                () = self.stop.wait() => return Some(self.fail("The server is stopping.")),
            };
            self.unsent = match record {
                Some(Ok(record)) => match self.encode(&record).await {
                    Ok(piece) => piece,
                    Err(error) => self.fail(&error.message),
                },
                Some(Err(lost)) => self.fail(&lost.to_string()),
                None => P::Encoder::KEEP_ALIVE.to_owned(),
            };
        }
        Some(std::mem::take(&mut self.unsent))
    }

    async fn encode(&mut self, record: &Record) -> Result<String, HttpError> {
        let (message, is_sent) = match &mut self.state {
            State::Running(encoder) => return Ok(encoder.encode(std::slice::from_ref(record))),
            State::Failed(_) => return Ok(String::new()),
            State::Waiting { message, is_sent } => (message, is_sent),
        };
        match (&record.event, &record.response_id) {
            (Event::UserMessage { message_id, .. }, _) if message_id == message => *is_sent = true,
            (Event::RunStart { .. }, Some(run)) if *is_sent => {
                let mut encoder = self.protocol.encoder(run.clone()).await?;
                let piece = encoder.encode(std::slice::from_ref(record));
                self.state = State::Running(encoder);
                return Ok(piece);
            }
            (Event::MessageDropped { message_id, .. }, _) if message_id == message => {
                return Ok(self.fail("The message was removed before it was answered."));
            }
            (Event::QueueHeld { .. } | Event::MessageQueued { held: true, .. }, _)
                if self.conversation.is_held(message).await? =>
            {
                return Ok(self.fail_as_held());
            }
            (
                Event::MessageSteered { message_id, state: SteerState::HandedOver, .. },
                Some(run),
            ) if message_id == message => self.begin_earlier(run).await?,
            _ => (),
        }
        Ok(String::new())
    }

    /// Switches the response to the run that the message has steered, which began before the
    /// message.
    async fn begin_earlier(&mut self, run: &ResponseId) -> Result<(), HttpError> {
        if let Some(RunPosition { id, after }) = self.conversation.find_run(run).await? {
            self.state = State::Running(self.protocol.encoder(id).await?);
            self.feed = self.conversation.feed(after);
        }
        Ok(())
    }

    /// Ends the response with an error, because its message is held until a person releases the
    /// queue.
    fn fail_as_held(&mut self) -> String {
        let id = &self.conversation.session;
        self.fail(&format!(
            "The message is held, because a run was stopped. To get an answer, release the queue (on \
             the page, or POST /api/sessions/{id}/queue/release)."
        ))
    }

    fn fail(&mut self, why: &str) -> String {
        self.state = State::Failed(why.to_owned());
        P::Encoder::failure(why)
    }
}

/// A run and its position in the log of its session.
pub(crate) struct RunPosition {
    pub(super) id: ResponseId,
    /// Number of the record before the run's first record.
    pub(crate) after: Seq,
}
