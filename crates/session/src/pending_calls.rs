//! Tool calls that wait for somebody outside the server, with their time limits.

use std::collections::BTreeMap;

use transcript::{CallId, Millis};

use crate::Asker;

/// Tool calls of the open run that wait for a person's decision or for a client's result.
#[derive(Debug, Default)]
pub(crate) struct PendingCalls {
    approvals: BTreeMap<CallId, PendingApproval>,
    /// Tool calls that the client runs, with the times at which they time out.
    client_calls: BTreeMap<CallId, Millis>,
}

/// A tool call that waits for a person's decision.
#[derive(Debug, Clone)]
pub(crate) struct PendingApproval {
    pub(crate) arguments: String,
    pub(crate) asker: Asker,
    /// Tool calls that a decision for the session or for always would cover. `None` if this tool
    /// call can only be allowed once.
    pub(crate) covers: Option<String>,
    /// Time at which the approval times out. `None` if there is no time limit.
    pub(crate) until: Option<Millis>,
}

impl PendingCalls {
    pub(crate) fn add_approval(&mut self, call_id: CallId, approval: PendingApproval) {
        self.approvals.insert(call_id, approval);
    }

    pub(crate) fn approval(&self, call_id: &CallId) -> Option<&PendingApproval> {
        self.approvals.get(call_id)
    }

    pub(crate) fn take_approval(&mut self, call_id: &CallId) -> Option<PendingApproval> {
        self.approvals.remove(call_id)
    }

    pub(crate) fn has_approvals(&self) -> bool {
        !self.approvals.is_empty()
    }

    /// Returns the tool calls that wait for a person, in the order of their ids.
    pub(crate) fn approvals(&self) -> impl Iterator<Item = (&CallId, &PendingApproval)> {
        self.approvals.iter()
    }

    pub(crate) fn add_client_call(&mut self, call_id: CallId, until: Millis) {
        self.client_calls.insert(call_id, until);
    }

    /// Removes a tool call that waits for a client's result. Returns whether there was one.
    pub(crate) fn take_client_call(&mut self, call_id: &CallId) -> bool {
        self.client_calls.remove(call_id).is_some()
    }

    /// Returns the earliest time limit of all pending calls.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.limits().map(|(until, _)| until).min()
    }

    /// Returns the tool calls whose time limit has passed, in the order of their limits.
    pub(crate) fn overdue(&self, now: Millis) -> Vec<CallId> {
        let mut overdue: Vec<_> = self.limits().filter(|(until, _)| *until <= now).collect();
        overdue.sort_unstable();
        overdue.into_iter().map(|(_, id)| id.clone()).collect()
    }

    fn limits(&self) -> impl Iterator<Item = (Millis, &CallId)> {
        let approvals = self.approvals.iter().filter_map(|(id, it)| Some((it.until?, id)));
        approvals.chain(self.client_calls.iter().map(|(id, until)| (*until, id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overdue_calls_are_in_the_order_of_their_limits() {
        let mut pending = PendingCalls::default();
        assert_eq!(pending.deadline(), None);
        for (id, until) in [("a", Some(30)), ("b", None), ("c", Some(10))] {
            let until = until.map(Millis);
            let asker = Asker::Callboard;
            let approval = PendingApproval { arguments: String::new(), asker, covers: None, until };
            pending.add_approval(CallId::new(id), approval);
        }
        pending.add_client_call(CallId::new("d"), Millis(20));
        assert_eq!(pending.deadline(), Some(Millis(10)));
        assert_eq!(pending.overdue(Millis(9)), []);
        assert_eq!(pending.overdue(Millis(20)), ["c", "d"].map(CallId::new));
        assert_eq!(pending.overdue(Millis(99)), ["c", "d", "a"].map(CallId::new));
        assert!(pending.take_client_call(&CallId::new("d")));
        assert!(!pending.take_client_call(&CallId::new("d")), "the first result counts");
    }
}
