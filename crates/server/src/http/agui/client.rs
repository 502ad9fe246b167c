//! Who asks for a run, and how it is told to them: server-sent events, each with one AG-UI event.

use axum::body::Body;
use axum::response::Response;
use formats::agui::{Stream, Version, frame, messages, snapshots};
use formats::incoming::Known;
use serde_json::{Value, json};
use store::Window;
use transcript::{Attachment, Record, ResponseId, Seq, SessionId, Transcript};

use crate::http::App;
use crate::http::error::HttpError;
use crate::http::guest::{RunPlace, Spoken, Vocabulary, Voice, events, growing};
use crate::window;

pub(super) struct Client {
    pub(super) app: App,
    pub(super) session: SessionId,
    /// As the client calls the server.
    pub(super) host: String,
    /// The client's name for the run.
    pub(super) run: String,
    pub(super) version: Version,
    /// The messages that it has, by their ids.
    pub(super) known: Vec<String>,
    pub(super) reason: Reason,
}

pub(super) enum Reason {
    /// The conversation is new here. What it brought along it has.
    Begins,
    Says,
    /// It has run calls, or decided about them.
    GoesOn,
    /// It wants to know how things stand.
    ComesBack,
}

impl Spoken for Client {
    fn response(body: Body) -> Response {
        growing(events::CONTENT_TYPE, body)
    }
}

impl Vocabulary for Client {
    async fn voice(&self, run: ResponseId) -> Result<Box<dyn Voice>, HttpError> {
        let mut stream = Stream::new(run.clone(), self.session.as_str(), &self.run);
        let mut returning = None;
        match &self.reason {
            Reason::Begins | Reason::GoesOn => (),
            Reason::Says => {
                if let Some(all) = self.unknown(&run).await? {
                    stream.open_with(snapshots(&self.known, all));
                }
            }
            Reason::ComesBack => {
                let earlier = self.earlier(self.place(&run).await?).await?;
                returning = Some(Returning { known: self.known.clone(), earlier });
            }
        }
        Ok(Box::new(Telling { stream, returning }))
    }

    fn failure(&self, why: &str) -> String {
        frame(&json!({ "type": "RUN_ERROR", "message": why }))
    }

    fn sign_of_life(&self) -> &'static str {
        events::SIGN_OF_LIFE
    }
}

/// Of the messages before a run, how many are compared with those of the client: what it was told last
/// is among them, unless nothing but notices came since.
const LOOK_BACK: usize = 10;

impl Client {
    /// Where the run begins.
    async fn place(&self, run: &ResponseId) -> Result<Seq, HttpError> {
        let place = RunPlace::find(&self.app, &self.session, run).await?;
        Ok(place.map_or(Seq(0), |it| it.after()))
    }

    /// All messages before the run, if the client does not have them. The last two tell.
    async fn unknown(&self, run: &ResponseId) -> Result<Option<Vec<Value>>, HttpError> {
        let up_to = self.place(run).await?;
        let window = Window { before: Some(up_to.next()), limit: LOOK_BACK };
        let read = window::read_whole(self.app.store(), &self.session, window);
        let found = read.await?.map(|it| self.in_words(&it.transcript)).unwrap_or_default();
        let ends: Vec<Option<&str>> =
            found.iter().rev().take(2).map(|it| it["id"].as_str()).collect();
        let known: Vec<Option<&str>> =
            self.known.iter().rev().take(2).map(|it| Some(it.as_str())).collect();
        if ends == known { Ok(None) } else { self.earlier(up_to).await.map(Some) }
    }

    async fn earlier(&self, up_to: Seq) -> Result<Vec<Value>, HttpError> {
        let read =
            window::read_all(self.app.store(), &self.session, Some(up_to), Transcript::whole());
        Ok(read.await?.map(|it| self.in_words(&it)).unwrap_or_default())
    }

    fn in_words(&self, transcript: &Transcript) -> Vec<Value> {
        let file_url = |file: &Attachment| self.app.file_url(&self.host, file);
        let shown = transcript.messages.iter().filter(|it| !it.superseded);
        shown.flat_map(|it| messages(it, self.version, &file_url)).collect()
    }
}

/// One run, told to the client under the client's name for it.
struct Telling {
    stream: Stream,
    /// Until it knows how things stand.
    returning: Option<Returning>,
}

struct Returning {
    known: Vec<String>,
    /// The messages before the run.
    earlier: Vec<Value>,
}

impl Voice for Telling {
    fn tell(&mut self, records: &[Record]) -> String {
        let events = match self.returning.take() {
            Some(Returning { known, earlier }) => self.stream.rejoin(records, &known, earlier),
            None => self.stream.replay(records),
        };
        events.iter().map(frame).collect()
    }

    fn go_on(&mut self, records: &[Record], known: &Known) -> String {
        self.stream.go_on(records, known).iter().map(frame).collect()
    }

    fn is_over(&self) -> bool {
        self.stream.is_over()
    }
}
