//! Live pages: one task for each session with open pages renders its patches once for all of them.
//!
//! The task subscribes to committed records, independent of the session's driver, and renders at most
//! thirty times a second, or twenty if records arrive faster than people can read. A page that joins
//! gets the changes since it was rendered. A page that is too old or fell behind has to reload. The
//! task ends some time after the last page has disconnected.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use render::{Live, Op, Pulse};
use store::{Store, Stored};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use transcript::{Message, Record, ResponseId, Seq, SessionId, SessionState, Transcript};

use crate::draw_pool::{DrawPool, in_place};
use crate::live::hub::Hub;
use crate::live::page_context::PageContext;
use crate::live::record_stream::{Batch, RecordStream};
use crate::live::window;
use crate::sync::lock;

/// Minimum time between two patches of a page. The cost of a patch in the browser (layout and
/// paint) hardly depends on its size, and thirty patches a second look as smooth as sixty.
const FRAME: Duration = Duration::from_millis(33);
/// Maximum number of records in a patch that people can read as fast as it is shown. After a larger
/// patch, the next one is delayed for longer.
const READABLE: usize = 6;
const LONG_FRAME: Duration = Duration::from_millis(50);
/// Interval at which a program's activity is checked for changes to show.
const PULSE_INTERVAL: Duration = Duration::from_secs(1);
/// Number of messages that a view with open pages keeps in memory.
const MESSAGES_KEPT: usize = 8 * render::WINDOW;
/// Time for which a view without open pages is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of patches that a page may be behind before it has to reload.
const PATCHES_KEPT: usize = 256;
/// Number of records from which a patch is rendered with `block_in_place`.
const LARGE_PATCH: u64 = 64;

/// The views of all sessions with open pages. They render patches for the pages.
#[derive(Clone)]
pub struct Views {
    store: Store,
    hub: Arc<Hub>,
    draws: DrawPool,
    context: Arc<PageContext>,
    open: Arc<Mutex<HashMap<SessionId, mpsc::Sender<Join>>>>,
}

struct Join {
    seen: Seq,
    reply: oneshot::Sender<Result<Joined, store::Error>>,
}

/// First patch for a page that has joined a view, and the subscription to later ones.
pub struct Joined {
    pub first: PageUpdate,
    pub live: broadcast::Receiver<PageUpdate>,
}

/// Update that a view sends to the open pages of its session.
#[derive(Clone)]
pub enum PageUpdate {
    Patch(Arc<PagePatch>),
    /// The log of the session cannot be written, for this reason. No patches follow for now.
    StorageFailed(Arc<str>),
    /// The page cannot be patched and has to be loaded again.
    Reload,
}

/// Patch of a session's page, shared by all pages that receive it.
pub struct PagePatch {
    /// Sequence number of the last record that the patched page shows.
    pub seq: Seq,
    pub ops: Vec<Op>,
    encoded: OnceLock<Bytes>,
}

impl PagePatch {
    /// Returns the patch as text. The first receiver encodes it, and all others share the result.
    pub fn encoded(&self, encode: impl FnOnce(&Self) -> String) -> Bytes {
        self.encoded.get_or_init(|| encode(self).into()).clone()
    }
}

impl Views {
    pub fn new(store: Store, hub: Arc<Hub>, draws: DrawPool, context: Arc<PageContext>) -> Self {
        Self { store, hub, draws, context, open: Arc::default() }
    }

    /// Adds a page to the view of its session. `seen` is the number of the last record that the
    /// page shows.
    pub async fn join(&self, session: &SessionId, seen: Seq) -> Result<Joined, store::Error> {
        loop {
            let (reply, answer) = oneshot::channel();
            if self.task(session).send(Join { seen, reply }).await.is_ok()
                && let Ok(joined) = answer.await
            {
                return joined;
            }
            // The task ended because its last page had disconnected.
            self.store.head(session).await?;
        }
    }

    fn task(&self, session: &SessionId) -> mpsc::Sender<Join> {
        let mut open = self.open();
        if let Some(joins) = open.get(session).filter(|joins| !joins.is_closed()) {
            return joins.clone();
        }
        let (joins, joining) = mpsc::channel(16);
        open.insert(session.clone(), joins.clone());
        let (views, session) = (self.clone(), session.clone());
        tokio::spawn(async move {
            if let Err(error) = Drawing::run(&views, session.clone(), joining).await {
                tracing::error!(%error, "cannot render a page");
            }
            views.open().retain(|_, joins| !joins.is_closed());
        });
        joins
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, mpsc::Sender<Join>>> {
        lock(&self.open)
    }
}

struct Drawing<'a> {
    views: &'a Views,
    session: SessionId,
    page: Live,
    /// Committed records of the session that are not rendered yet.
    waiting: Vec<Record>,
    drawn_at: Instant,
    /// Minimum time between the last patch and the next one.
    frame: Duration,
    /// Last time at which a page of the session was connected.
    watched_at: Instant,
    /// Activity of the session's program, as it was shown last. `None` if none is shown.
    pulse: Option<Pulse>,
    pulse_at: Instant,
    watchers: broadcast::Sender<PageUpdate>,
}

impl<'a> Drawing<'a> {
    async fn run(
        views: &'a Views,
        session: SessionId,
        mut joining: mpsc::Receiver<Join>,
    ) -> Result<(), store::Error> {
        let mut stream = RecordStream::after(&views.store, &views.hub, &session, Seq(0));
        let page = match Self::load(views, &session).await {
            Ok(page) => page,
            Err(error) => {
                // The first caller gets the error; other callers try again.
                if let Some(Join { reply, .. }) = joining.recv().await {
                    let _ = reply.send(Err(error));
                }
                return Ok(());
            }
        };
        stream.skip_to(page.head());
        let (watchers, _) = broadcast::channel(PATCHES_KEPT);
        let (waiting, now) = (Vec::new(), Instant::now());
        let (drawn_at, watched_at, pulse_at, pulse) = (now, now, now, None);
        let mut drawing = Self {
            views,
            session,
            page,
            waiting,
            drawn_at,
            frame: FRAME,
            watched_at,
            pulse,
            pulse_at,
            watchers,
        };
        loop {
            if drawing.watchers.receiver_count() > 0 {
                drawing.watched_at = Instant::now();
            }
            let (due, pulse_due) =
                (drawing.drawn_at + drawing.frame, drawing.pulse_at + PULSE_INTERVAL);
            tokio::select! {
                join = joining.recv() => match join {
                    Some(join) => drawing.join(join).await?,
                    None => return Ok(()),
                },
                batch = stream.next() => {
                    if !drawing.take_batch(batch?, &mut stream).await? {
                        return Ok(());
                    }
                }
                () = sleep_until(due), if !drawing.waiting.is_empty() => {
                    drawing.draw().await?;
                    if drawing.watchers.receiver_count() == 0 && joining.is_empty() {
                        return Ok(());
                    }
                }
                () = sleep_until(pulse_due), if drawing.needs_pulse() => drawing.update_pulse(),
                () = sleep_until(drawing.watched_at + IDLE_TIMEOUT) => {
                    if drawing.watchers.receiver_count() == 0 && joining.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn needs_pulse(&self) -> bool {
        let state = self.page.transcript().summary.state();
        let is_at_work = matches!(state, SessionState::Running | SessionState::Waiting);
        (is_at_work || self.pulse.is_some()) && self.watchers.receiver_count() > 0
    }

    /// Sends a patch to the pages if the activity of the session's program has changed, which
    /// includes lines that produce no records.
    fn update_pulse(&mut self) {
        self.pulse_at = Instant::now();
        let pulse = self.views.context.pulse_of(&self.session, self.page.transcript());
        if pulse != self.pulse {
            let update = self.update(Some(vec![self.page.pulse(pulse.as_ref())]));
            let _ = self.watchers.send(update);
            self.pulse = pulse;
        }
    }

    async fn load(views: &Views, session: &SessionId) -> Result<Live, store::Error> {
        let window = store::Window { before: None, limit: render::WINDOW };
        let permit = views.draws.permit().await;
        let read = window::read(&views.store, session, window).await?;
        let transcript = read.map(|it| it.transcript).unwrap_or_default();
        let view = views.context.view_of(session, &transcript.summary);
        Ok(permit.draw(move || Live::new(view, transcript)).await)
    }

    /// Adds a page to the view, and sends it the changes after the record `seen`. Pending records
    /// are rendered first, so that the patches that follow continue this one.
    async fn join(&mut self, Join { seen, reply }: Join) -> Result<(), store::Error> {
        self.draw_waiting().await?;
        let live = self.watchers.subscribe();
        let transcript = self.page.transcript();
        let is_program = self.views.context.is_program(&transcript.summary.agent);
        let pulse = self.views.context.pulse_of(&self.session, transcript);
        let pulse = is_program.then(|| self.page.pulse(pulse.as_ref()));
        let missed = self.page.head().0.saturating_sub(seen.0);
        let first = self.draw_large(missed, |it| {
            it.update(it.page.since(seen).map(|mut ops| {
                ops.extend(pulse);
                ops
            }))
        });
        // Fails if the page has disconnected.
        let _ = reply.send(Ok(Joined { first, live }));
        Ok(())
    }

    /// Handles a batch of the session's records, and further batches that are already available.
    /// Returns whether the view continues.
    async fn take_batch(
        &mut self,
        batch: Batch,
        stream: &mut RecordStream,
    ) -> Result<bool, store::Error> {
        let mut next = Some(batch);
        while let Some(batch) = next {
            match batch {
                Batch::Stored { records, .. } => {
                    self.waiting.extend(records.iter().map(Stored::record));
                }
                Batch::Committed { commit, after } => {
                    self.waiting.extend(commit.records_after(after).iter().cloned());
                }
                Batch::StorageFailed(why) => {
                    let _ = self.watchers.send(PageUpdate::StorageFailed(why));
                }
                Batch::Deleted => return Ok(false),
                Batch::Missed => (),
            }
            next = match stream.is_behind() {
                true => Some(stream.next().await?),
                false => stream.try_next(),
            };
        }
        Ok(true)
    }

    async fn draw(&mut self) -> Result<(), store::Error> {
        self.frame = if self.waiting.len() > READABLE { LONG_FRAME } else { FRAME };
        self.draw_waiting().await?;
        self.drawn_at = Instant::now();
        if self.page.transcript().messages.len() > MESSAGES_KEPT {
            self.page.keep_last(MESSAGES_KEPT / 2);
        }
        Ok(())
    }

    async fn draw_waiting(&mut self) -> Result<(), store::Error> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let mut patch = self.draw_large(waiting.len() as u64, |it| it.page.apply(&waiting));
        for run in self.page.take_missed() {
            let answer = self.read_answer(run).await?;
            if let (Some(ops), Some(answer)) = (&mut patch, answer) {
                ops.push(self.page.put(&answer));
            }
        }
        // Fails only without subscribers.
        let _ = self.watchers.send(self.update(patch));
        Ok(())
    }

    /// Reads an answer that precedes the messages that the view keeps in memory. A page may have
    /// loaded it.
    async fn read_answer(&self, run: ResponseId) -> Result<Option<Message>, store::Error> {
        let records = self.views.store.records_of_run(&self.session, &run).await?;
        Ok(in_place(|| {
            let records: Vec<Record> = records.iter().map(Stored::record).collect();
            let transcript = Transcript::replay(&records);
            transcript.message(run.as_str()).cloned()
        }))
    }

    /// Runs `draw`, which renders a patch of this number of records. A large patch is rendered with
    /// `block_in_place`, so that it does not block other tasks of this thread.
    fn draw_large<T>(&mut self, n_records: u64, draw: impl FnOnce(&mut Self) -> T) -> T {
        if n_records > LARGE_PATCH { in_place(|| draw(self)) } else { draw(self) }
    }

    fn update(&self, patch: Option<Vec<Op>>) -> PageUpdate {
        let Some(ops) = patch else { return PageUpdate::Reload };
        let patch = PagePatch { seq: self.page.head(), ops, encoded: OnceLock::new() };
        PageUpdate::Patch(Arc::new(patch))
    }
}
