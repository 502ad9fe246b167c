//! WebSocket subscriptions of pages, which receive patches.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use render::Element;
use store::Store;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use transcript::{Seq, SessionId};

use crate::error::{HttpError, RequestCode};
use crate::pages::{ListPart, PageState, listed_sessions};
use crate::ws::frames::{Notice, text_of};
use crate::ws::record_subscription::Outbox;
use runtime::export::page_settings;
use runtime::live::hub::{Hub, ListChange};
use runtime::live::views::{Joined, PagePatch, PageUpdate, Views};

/// Minimum time between two patches of the session list, because many sessions may change at the
/// same time.
const LIST_EVERY: Duration = Duration::from_millis(100);

/// WebSocket subscription of a page to the patches of one session.
pub(crate) struct HtmlSubscription {
    pub(crate) store: Store,
    pub(crate) views: Views,
    pub(crate) session: SessionId,
    pub(crate) outbox: Outbox,
}

impl HtmlSubscription {
    /// Sends patches of the session's page until the connection ends, the page has to reload, or
    /// the session is deleted.
    pub(crate) async fn run(self, seen: Seq) {
        let joined = match self.views.join(&self.session, seen).await {
            Ok(joined) => joined,
            Err(error) => {
                let session = Some(self.session.to_string());
                let _ = self.send(Notice::error(session, HttpError::from(error)).to_frame()).await;
                return;
            }
        };
        let Joined { first, mut live } = joined;
        let session_id = self.session.clone();
        let mut next = Some(first);
        while let Some(update) = next {
            let is_last = matches!(update, PageUpdate::Reload);
            if self.send(self.frame(update)).await.is_err() || is_last {
                return;
            }
            next = match live.recv().await {
                Ok(update) => Some(update),
                Err(RecvError::Lagged(_)) => Some(PageUpdate::Reload),
                Err(RecvError::Closed) => None,
            };
        }
        if matches!(self.store.head(&session_id).await, Ok(None)) {
            let _ = self.send(Notice::SessionDeleted { id: session_id }.to_frame()).await;
        }
    }

    fn frame(&self, update: PageUpdate) -> Utf8Bytes {
        let session_id = self.session.clone();
        match update {
            PageUpdate::Patch(patch) => text_of(patch.encoded(|PagePatch { seq, ops, .. }| {
                let (session_id, seq) = (Some(session_id), Some(*seq));
                Notice::Patch { session_id, sessions: None, seq, ops: ops.clone() }.to_json()
            })),
            PageUpdate::StorageFailed(why) => {
                let error = HttpError::new(RequestCode::Storage, &*why);
                Notice::error(Some(session_id.to_string()), error).to_frame()
            }
            PageUpdate::Reload => Notice::Reload { session_id }.to_frame(),
        }
    }

    async fn send(&self, frame: Utf8Bytes) -> Result<(), ()> {
        self.outbox.send(vec![frame]).await.map_err(|_| ())
    }
}

/// Sends a page the changes of its session list and of the page settings.
///
/// `shown` is the version of the list on the page. An unchanged list is not sent again, because an
/// element that is replaced between mouse down and mouse up gets no click.
pub(crate) async fn draw_list(
    pages: PageState,
    hub: Arc<Hub>,
    part: ListPart,
    shown: Option<String>,
    mut changes: Receiver<Arc<ListChange>>,
    outbox: Outbox,
) {
    // Subscribe first, then read: a change in between arrives twice.
    let mut settings = hub.watch_settings();
    let mut now = page_settings(&pages.store).await.ok();
    let mut drawn: Option<Element> = None;
    loop {
        if let Some(next) = read_list(&pages, &part).await {
            let mut ops = Vec::new();
            match &drawn {
                Some(before) => before.patch(&next, &mut ops),
                None if render::session_list_version(&next) == shown.as_deref() => (),
                // The list has changed since the page was drawn.
                None => ops.push(next.put()),
            }
            drawn = Some(next);
            if !ops.is_empty() {
                let (session_id, seq) = (None, None);
                let patch = Notice::Patch { session_id, sessions: Some(true), seq, ops };
                if outbox.send(vec![patch.to_frame()]).await.is_err() {
                    return;
                }
            }
        }
        loop {
            if let Some(settings) = now.take() {
                let notice = Notice::Settings { settings };
                if outbox.send(vec![notice.to_frame()]).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                changed = changes.recv() => match changed {
                    Err(RecvError::Closed) => return,
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                },
                Ok(()) = settings.changed() => now.clone_from(&settings.borrow_and_update()),
            }
        }
        tokio::time::sleep(LIST_EVERY).await;
        while changes.try_recv().is_ok() {}
    }
}

/// Reads and renders the session list. Returns `None` if that fails; the next change tries again.
async fn read_list(pages: &PageState, part: &ListPart) -> Option<Element> {
    let permit = pages.draws.permit().await;
    match listed_sessions(pages, part).await {
        Ok(list) => Some(permit.draw(move || render::session_list(&list, None)).await),
        Err(error) => {
            tracing::error!(%error, "cannot read the list of sessions");
            None
        }
    }
}
