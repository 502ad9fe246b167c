//! The state of an exchange, read from the log of the asked session.

use std::sync::Arc;

use session::{Outcome, answering};
use store::{Store, Stored, StoredRun};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use transcript::{
    CancelReason, ClientId, ErrorCode, ErrorInfo, ExchangeId, ExchangeState, Record, RunMessage,
    RunStatus, Sender, SessionId,
};

use crate::draw_pool::in_place;
use crate::hub::{Hub, ListChange};

/// State of an exchange.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Standing {
    /// The message is not in the log yet.
    Unknown,
    Open(ExchangeState),
    Ended(Outcome),
}

/// A watcher of the session that was asked.
pub(super) struct Follower {
    store: Store,
    asked: SessionId,
    id: ExchangeId,
    /// Changes of the session list: every change of state of an exchange is one.
    changes: Receiver<Arc<ListChange>>,
    last: Standing,
}

impl Follower {
    /// Subscribes before it reads, so that no change is missed between the two.
    pub(super) fn new(store: &Store, hub: &Hub, asked: &SessionId, id: &ExchangeId) -> Self {
        let changes = hub.watch_list();
        let (store, asked, id) = (store.clone(), asked.clone(), id.clone());
        Self { store, asked, id, changes, last: Standing::Unknown }
    }

    /// Waits until the state differs from the one before, and returns it.
    pub(super) async fn next(&mut self) -> Standing {
        loop {
            match self.read().await {
                Ok(standing) if standing != self.last => {
                    self.last = standing.clone();
                    return standing;
                }
                Ok(_) => (),
                Err(error) => tracing::warn!(exchange = %self.id, %error, "cannot follow"),
            }
            self.wait_for_change().await;
        }
    }

    async fn wait_for_change(&mut self) {
        loop {
            let is_about_it = match self.changes.recv().await {
                Ok(change) => match &*change {
                    ListChange::Changed { id, .. } | ListChange::Gone { id } => *id == self.asked,
                },
                Err(RecvError::Lagged(_)) => true,
                Err(RecvError::Closed) => std::future::pending().await,
            };
            if is_about_it {
                return;
            }
        }
    }

    async fn read(&self) -> Result<Standing, store::Error> {
        standing(&self.store, &self.asked, &self.id).await
    }
}

/// Reads the state. A message moves from the queue to its run in one commit, and the run is read after the
/// queue; so a message that is in neither was removed.
async fn standing(
    store: &Store,
    asked: &SessionId,
    id: &ExchangeId,
) -> Result<Standing, store::Error> {
    let ended = |message| Standing::Ended(Err(ErrorInfo::new(ErrorCode::AgentCancelled, message)));
    if store.head(asked).await?.is_none() {
        return Ok(ended("The session that was asked has been deleted."));
    }
    if store.message_of_client_id(asked, &ClientId::new(id.as_str())).await?.is_none() {
        return Ok(Standing::Unknown);
    }
    let is_it = |from: &Sender| from.exchange_id == *id && !from.is_answer;
    if store.queue(asked).await?.messages.iter().filter_map(|it| it.from.as_ref()).any(is_it) {
        return Ok(Standing::Open(ExchangeState::Queued));
    }
    let run = answering(id);
    let Some(StoredRun { summary, records, .. }) = store.run(asked, &run).await? else {
        return Ok(ended("The session that was asked has been deleted."));
    };
    if records.is_empty() {
        return Ok(ended("The message was taken out of the queue before it was answered."));
    }
    let answer = in_place(|| {
        let records: Vec<Record> = records.iter().map(Stored::record).collect();
        RunMessage::replay(&run, &records)
    });
    if let Some(outcome) = outcome(&answer) {
        return Ok(Standing::Ended(outcome));
    }
    Ok(Standing::Open(if summary.waits_for_person() {
        ExchangeState::AwaitingApproval
    } else {
        ExchangeState::Running
    }))
}

/// Returns the outcome of a run for the asker. `None` while it is open.
fn outcome(answer: &RunMessage) -> Option<Outcome> {
    let finish = answer.finish.as_ref()?;
    let agent = &answer.agent;
    let failed = |code, message: String| Some(Err(ErrorInfo::new(code, message)));
    match finish.status {
        RunStatus::Completed => {
            let content = answer.content();
            if content.trim().is_empty() {
                let message = format!("'{agent}' ended its work without saying anything.");
                return failed(ErrorCode::AgentEmpty, message);
            }
            Some(Ok(content))
        }
        RunStatus::Failed => {
            let why = finish.error.as_ref().map(|it| format!(": {} ({})", it.message, it.code));
            let message = format!("'{agent}' failed{}", why.unwrap_or_default());
            failed(ErrorCode::AgentFailed, message)
        }
        RunStatus::Cancelled => {
            let how = match (&answer.cancel_requested, answer.cancelled) {
                (Some((by, _)), _) => format!("by {by}"),
                (None, Some(CancelReason::Restart)) => "because the server stopped".to_owned(),
                (None, _) => "before it was done".to_owned(),
            };
            failed(ErrorCode::AgentCancelled, format!("'{agent}' was stopped {how}."))
        }
    }
}
