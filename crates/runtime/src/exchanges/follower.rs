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
use crate::live::hub::{Hub, ListChange};

/// Progress of an exchange, as the asked session's log shows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Progress {
    /// The message of the exchange is not in the asked session's log yet.
    Unknown,
    Open(ExchangeState),
    Ended(Outcome),
}

/// Subscriber that follows an exchange in the log of the asked session.
pub(super) struct Follower {
    store: Store,
    asked: SessionId,
    id: ExchangeId,
    /// Changes of the session list. Each change of state of an exchange causes one.
    changes: Receiver<Arc<ListChange>>,
    last: Progress,
}

impl Follower {
    /// Subscribes to changes of the asked session, before the first read, so that no change is
    /// missed.
    pub(super) fn new(store: &Store, hub: &Hub, asked: &SessionId, id: &ExchangeId) -> Self {
        let changes = hub.watch_list();
        let (store, asked, id) = (store.clone(), asked.clone(), id.clone());
        Self { store, asked, id, changes, last: Progress::Unknown }
    }

    /// Waits until the progress of the exchange changes, and returns the new progress.
    pub(super) async fn next(&mut self) -> Progress {
        loop {
            match self.read().await {
                Ok(progress) if progress != self.last => {
                    self.last = progress.clone();
                    return progress;
                }
                Ok(_) => (),
                Err(error) => {
                    tracing::warn!(exchange = %self.id, %error, "cannot read an exchange");
                }
            }
            self.wait_for_change().await;
        }
    }

    async fn wait_for_change(&mut self) {
        loop {
            let is_relevant = match self.changes.recv().await {
                Ok(change) => match &*change {
                    ListChange::Changed { id, .. } | ListChange::Gone { id } => *id == self.asked,
                },
                Err(RecvError::Lagged(_)) => true,
                Err(RecvError::Closed) => std::future::pending().await,
            };
            if is_relevant {
                return;
            }
        }
    }

    async fn read(&self) -> Result<Progress, store::Error> {
        progress(&self.store, &self.asked, &self.id).await
    }
}

/// Reads the progress of an exchange from the log of the asked session. A message moves from the
/// queue to its run in one commit, and the run is read after the queue, so a message that is in
/// neither was removed.
async fn progress(
    store: &Store,
    asked: &SessionId,
    id: &ExchangeId,
) -> Result<Progress, store::Error> {
    let ended = |message| Progress::Ended(Err(ErrorInfo::new(ErrorCode::AgentCancelled, message)));
    if store.head(asked).await?.is_none() {
        return Ok(ended("The session of the other agent was deleted."));
    }
    if store.message_of_client_id(asked, &ClientId::new(id.as_str())).await?.is_none() {
        return Ok(Progress::Unknown);
    }
    let is_message = |from: &Sender| from.exchange_id == *id && !from.is_answer;
    if store.queue(asked).await?.messages.iter().filter_map(|it| it.from.as_ref()).any(is_message) {
        return Ok(Progress::Open(ExchangeState::Queued));
    }
    let run = answering(id);
    let Some(StoredRun { summary, records, .. }) = store.run(asked, &run).await? else {
        return Ok(ended("The session of the other agent was deleted."));
    };
    if records.is_empty() {
        return Ok(ended("The message was removed from the queue before it was answered."));
    }
    let answer = in_place(|| {
        let records: Vec<Record> = records.iter().map(Stored::record).collect();
        RunMessage::replay(&run, &records)
    });
    if let Some(outcome) = outcome(&answer) {
        return Ok(Progress::Ended(outcome));
    }
    Ok(Progress::Open(if summary.waits_for_person() {
        ExchangeState::AwaitingApproval
    } else {
        ExchangeState::Running
    }))
}

/// Returns the outcome of the run that answers an exchange. `None` while the run is open.
fn outcome(answer: &RunMessage) -> Option<Outcome> {
    let finish = answer.finish.as_ref()?;
    let agent = &answer.agent;
    let failed = |code, message: String| Some(Err(ErrorInfo::new(code, message)));
    match finish.status {
        RunStatus::Completed => {
            let content = answer.content();
            if content.trim().is_empty() {
                let message = format!("'{agent}' finished without an answer.");
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
