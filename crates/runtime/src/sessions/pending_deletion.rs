//! Pending deletions: the time in which a deletion can be undone from any page. The session cannot be used
//! during that time.
//!
//! They are not in the log, so a restart of the server cancels them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::task::AbortHandle;
use transcript::SessionId;

use super::Sessions;
use crate::live::hub::ListChange;
use crate::sync::lock;
use session::{Command, Refused};

#[derive(Default)]
pub(crate) struct PendingDeletions {
    /// Tasks that will delete the sessions after the delay. Locked for a look-up or an insertion
    /// only, never across an await.
    waiting: Mutex<HashMap<SessionId, AbortHandle>>,
}

impl PendingDeletions {
    pub(crate) fn contains(&self, session: &SessionId) -> bool {
        self.waiting().contains_key(session)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<SessionId, AbortHandle>> {
        lock(&self.waiting)
    }
}

impl Sessions {
    /// Stops the session's run immediately, and deletes the session after this time.
    pub async fn delete_after(&self, session: &SessionId, time: Duration) -> Result<(), Refused> {
        let by = "user".to_owned();
        self.ask(session, |reply| Command::Cancel { by, unless_asking: false, reply }).await?;
        let (sessions, id) = (self.clone(), session.clone());
        let deletion = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            sessions.inner.pending_deletions.waiting().remove(&id);
            if let Err(error) = sessions.ask(&id, |reply| Command::Delete { reply }).await {
                tracing::error!(session = %id, %error, "cannot delete a session");
                sessions.publish_line(&id).await;
            }
        });
        let pending = &self.inner.pending_deletions;
        let before = pending.waiting().insert(session.clone(), deletion.abort_handle());
        before.inspect(AbortHandle::abort);
        self.publish_line(session).await;
        Ok(())
    }

    /// Undoes the pending deletion of a session. Returns false if there is none.
    pub async fn restore(&self, session: &SessionId) -> bool {
        let deletion = self.inner.pending_deletions.waiting().remove(session);
        let is_pending = deletion.inspect(AbortHandle::abort).is_some();
        if is_pending {
            self.publish_line(session).await;
        }
        is_pending
    }

    /// Publishes the session's entry in the session list, which has changed without a record.
    async fn publish_line(&self, session: &SessionId) {
        if let Ok(Some((summary, head))) = self.inner.store.summary(session).await {
            let (id, summary) = (session.clone(), Box::new(summary));
            self.inner.hub.publish_list_change(ListChange::Changed { id, summary, head });
        }
    }
}
