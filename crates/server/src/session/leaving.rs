//! Sessions that are deleted in a moment: until then that can be taken back, wherever the reader is by
//! then, and nobody can use them.
//!
//! Nothing of this is in the log: a server that ends meanwhile has deleted nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use transcript::SessionId;

use super::{Command, Refused, Sessions};
use crate::live::ListChange;

#[derive(Default)]
pub(crate) struct Leaving {
    /// Who will delete them. Held for a look-up, never across an await.
    waiting: Mutex<HashMap<SessionId, AbortHandle>>,
}

impl Leaving {
    pub(crate) fn contains(&self, session: &SessionId) -> bool {
        self.waiting().contains_key(session)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<SessionId, AbortHandle>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    /// Stops the agent at once; what it said stays until the time is over.
    pub(crate) async fn delete_after(
        &self,
        session: &SessionId,
        time: Duration,
    ) -> Result<(), Refused> {
        let by = "user".to_owned();
        self.ask(session, |reply| Command::Cancel { by, unless_asking: false, reply }).await?;
        let (sessions, id) = (self.clone(), session.clone());
        let deletion = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            sessions.shared.leaving.waiting().remove(&id);
            if let Err(error) = sessions.ask(&id, |reply| Command::Delete { reply }).await {
                tracing::error!(session = %id, %error, "a session could not be deleted");
                sessions.tell_list(&id);
            }
        });
        let before = self.shared.leaving.waiting().insert(session.clone(), deletion.abort_handle());
        before.inspect(AbortHandle::abort);
        self.tell_list(session);
        Ok(())
    }

    /// False if it is too late, or was never asked for.
    pub(crate) fn restore(&self, session: &SessionId) -> bool {
        let deletion = self.shared.leaving.waiting().remove(session);
        let is_leaving = deletion.inspect(AbortHandle::abort).is_some();
        if is_leaving {
            self.tell_list(session);
        }
        is_leaving
    }

    /// Lists look different now, though no record says so.
    fn tell_list(&self, session: &SessionId) {
        if let Ok(Some((summary, head))) = self.shared.store.summary(session) {
            let (id, summary) = (session.clone(), Box::new(summary));
            self.shared.hub.publish_list_change(ListChange::Changed { id, summary, head });
        }
    }
}
