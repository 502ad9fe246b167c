//! A run told to a client of another vocabulary, while it happens: the body of a response that ends
//! when it is the client's turn.
//!
//! The connection is a listener and no more: a client that goes away stops nothing. Who comes back is
//! told the run from its beginning, and who goes on with it what they do not have.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use formats::incoming::Known;
use futures_util::stream;
use store::MessageKind;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, interval_at};
use transcript::{Event, MessageId, Record, ResponseId, Seq, SessionId, SteerState};

use crate::http::App;
use crate::http::error::HttpError;
use crate::http::feed::Feed;

const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// Proxies that collect a response before they pass it on are told not to.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// A response whose body grows while the run goes on.
pub(in crate::http) fn growing(content_type: &'static str, body: Body) -> Response {
    let headers = [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache"), UNBUFFERED];
    (headers, body).into_response()
}

/// What the vocabularies have in common that are server-sent events.
pub(in crate::http) mod events {
    pub(in crate::http) const CONTENT_TYPE: &str = "text/event-stream";
    pub(in crate::http) const SIGN_OF_LIFE: &str = ": still there\n\n";
    /// The last one, of those that have a last one.
    pub(in crate::http) const DONE: &str = "data: [DONE]\n\n";

    pub(in crate::http) fn event(data: &serde_json::Value) -> String {
        format!("data: {data}\n\n")
    }

    pub(in crate::http) fn all(data: &[serde_json::Value], is_over: bool) -> String {
        let events: String = data.iter().map(event).collect();
        if is_over { events + DONE } else { events }
    }
}

/// How runs are told to a kind of client. Pieces are as they go over the wire.
pub(in crate::http) trait Vocabulary: Send + Sync + 'static {
    /// May look up what the client must know before.
    fn voice(
        &self,
        run: ResponseId,
    ) -> impl Future<Output = Result<Box<dyn Voice>, HttpError>> + Send;

    /// That there is nothing to tell, and why.
    fn failure(&self, why: &str) -> String;

    /// Nothing to the client, but proof that somebody is there.
    fn sign_of_life(&self) -> &'static str;
}

/// One that responses are written in while the run goes on.
pub(in crate::http) trait Spoken: Vocabulary {
    fn response(body: Body) -> Response;
}

/// Tells one run.
pub(in crate::http) trait Voice: Send {
    /// What these records add, told at once.
    fn tell(&mut self, records: &[Record]) -> String;

    /// The same, to a client that has some of it and asks again.
    fn go_on(&mut self, records: &[Record], known: &Known) -> String;

    /// The response has ended: the run too, or it waits for the client.
    fn is_over(&self) -> bool;
}

pub(in crate::http) struct Telling<V> {
    app: App,
    session: SessionId,
    feed: Feed,
    vocabulary: V,
    subject: Subject,
    /// Said already, and to be sent first.
    unsent: String,
    has_ended: bool,
    signs: Interval,
    stopping: watch::Receiver<bool>,
}

enum Subject {
    /// The run that answers a message, which may wait for its turn.
    AnswerTo {
        message: MessageId,
        is_said: bool,
    },
    Run(Box<dyn Voice>),
}

impl<V: Spoken> IntoResponse for Telling<V> {
    fn into_response(self) -> Response {
        V::response(self.into_body())
    }
}

impl<V: Vocabulary> Telling<V> {
    /// The answer to a message that was said, or will be, after that number.
    pub(in crate::http) async fn of_answer(
        app: App,
        session: SessionId,
        message: MessageId,
        after: Seq,
        vocabulary: V,
    ) -> Result<Self, HttpError> {
        let is_held = is_held(&app, &session, &message).await?;
        let subject = Subject::AnswerTo { message, is_said: false };
        let mut telling = Self::new(app, session, after, subject, vocabulary);
        if is_held {
            telling.unsent = telling.fail_as_held();
        }
        Ok(telling)
    }

    /// A run from its beginning to where it stands, told at once and without pauses, and then live:
    /// for a client that comes back. What it knows of the run is left out.
    pub(in crate::http) async fn of_run(
        app: App,
        session: SessionId,
        run: RunPlace,
        known: Option<&Known>,
        vocabulary: V,
    ) -> Result<Self, HttpError> {
        let mut voice = vocabulary.voice(run.id).await?;
        let mut feed = Feed::after(app.clone(), session.clone(), run.after);
        let records = feed.catch_up().await?;
        let unsent = match known {
            Some(known) => voice.go_on(&records, known),
            None => voice.tell(&records),
        };
        let has_ended = voice.is_over();
        let telling = Self::new(app, session, run.after, Subject::Run(voice), vocabulary);
        Ok(Self { feed, unsent, has_ended, ..telling })
    }

    fn new(app: App, session: SessionId, after: Seq, subject: Subject, vocabulary: V) -> Self {
        Self {
            feed: Feed::after(app.clone(), session.clone(), after),
            session,
            vocabulary,
            subject,
            unsent: String::new(),
            has_ended: false,
            signs: interval_at(Instant::now() + SIGN_OF_LIFE, SIGN_OF_LIFE),
            stopping: app.stopping.clone(),
            app,
        }
    }

    pub(in crate::http) fn into_body(mut self) -> Body {
        // The headers go out with the first piece, and that may take long.
        if self.unsent.is_empty() {
            self.vocabulary.sign_of_life().clone_into(&mut self.unsent);
        }
        Body::from_stream(stream::unfold(self, |mut telling| async {
            let piece = telling.next().await?;
            Some((Ok::<_, Infallible>(Bytes::from(piece)), telling))
        }))
    }

    /// Nothing more is told than is there already.
    pub(in crate::http) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// All of it, for a client that waits for the end.
    pub(in crate::http) async fn into_text(mut self) -> String {
        let mut text = String::new();
        while let Some(piece) = self.next().await {
            text.push_str(&piece);
        }
        text
    }

    async fn next(&mut self) -> Option<String> {
        while self.unsent.is_empty() {
            if self.has_ended {
                return None;
            }
            let record = tokio::select! {
                biased;
                record = self.feed.next() => Some(record),
                _ = self.signs.tick() => None,
                // The only change there is.
                _ = self.stopping.changed() => return Some(self.fail("The server is stopping.")),
            };
            self.unsent = match record {
                Some(Ok(record)) => match self.hear(&record).await {
                    Ok(piece) => piece,
                    Err(error) => self.fail(&error.message),
                },
                Some(Err(lost)) => self.fail(&lost.to_string()),
                None => self.vocabulary.sign_of_life().to_owned(),
            };
        }
        Some(std::mem::take(&mut self.unsent))
    }

    async fn hear(&mut self, record: &Record) -> Result<String, HttpError> {
        let (message, is_said) = match &mut self.subject {
            Subject::Run(voice) => {
                let piece = voice.tell(std::slice::from_ref(record));
                self.has_ended = voice.is_over();
                return Ok(piece);
            }
            Subject::AnswerTo { message, is_said } => (message, is_said),
        };
        match (&record.event, &record.response_id) {
            (Event::UserMessage { message_id, .. }, _) if message_id == message => *is_said = true,
            (Event::RunStart { .. }, Some(run)) if *is_said => {
                return self.begin(run.clone(), record).await;
            }
            (Event::MessageDropped { message_id, .. }, _) if message_id == message => {
                return Ok(self.fail("The message was taken back before it was answered."));
            }
            (Event::QueueHeld { .. } | Event::MessageQueued { held: true, .. }, _)
                if is_held(&self.app, &self.session, message).await? =>
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

    async fn begin(&mut self, run: ResponseId, start: &Record) -> Result<String, HttpError> {
        let mut voice = self.vocabulary.voice(run).await?;
        let piece = voice.tell(std::slice::from_ref(start));
        self.has_ended = voice.is_over();
        self.subject = Subject::Run(voice);
        Ok(piece)
    }

    /// The message went into a run that is under way, so that is the answer to it.
    async fn begin_earlier(&mut self, run: &ResponseId) -> Result<(), HttpError> {
        if let Some(RunPlace { id, after }) = RunPlace::find(&self.app, &self.session, run).await? {
            self.subject = Subject::Run(self.vocabulary.voice(id).await?);
            self.feed = Feed::after(self.app.clone(), self.session.clone(), after);
        }
        Ok(())
    }

    /// Nothing will come until somebody decides, which may be never.
    fn fail_as_held(&mut self) -> String {
        let id = &self.session;
        self.fail(&format!(
            "The message waits: a run was stopped, which holds what is queued. To have it answered, \
             release the queue (on the page, or POST /api/sessions/{id}/queue/release)."
        ))
    }

    fn fail(&mut self, why: &str) -> String {
        self.has_ended = true;
        self.vocabulary.failure(why)
    }
}

/// A run and where it stands in the log.
pub(in crate::http) struct RunPlace {
    id: ResponseId,
    /// It begins after this number.
    after: Seq,
}

impl RunPlace {
    pub(in crate::http) fn after(&self) -> Seq {
        self.after
    }

    pub(in crate::http) async fn find(
        app: &App,
        session: &SessionId,
        run: &ResponseId,
    ) -> Result<Option<Self>, HttpError> {
        let row = app.store().message_row(session, run.as_str()).await?;
        let row = row.filter(|it| it.kind == MessageKind::Answer);
        Ok(row.map(|it| Self { id: run.clone(), after: before(it.first) }))
    }
}

/// Whether it is so now; what the log says of before may be over.
async fn is_held(app: &App, session: &SessionId, message: &MessageId) -> Result<bool, HttpError> {
    let queue = app.store().queue(session).await?;
    Ok(queue.messages.iter().any(|it| it.id == *message && it.held))
}

pub(in crate::http) fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}
