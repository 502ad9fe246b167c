//! Calls that were judged and may still run.

use std::collections::HashMap;
use std::sync::Arc;

use session::ProposedCall;
use tools::PreparedCall;
use transcript::{CallId, ResponseId};

/// Tool calls of the open run that were judged and may still run. A call has several entries if a
/// person has edited its arguments.
#[derive(Default)]
pub(super) struct PreparedCalls {
    run: Option<ResponseId>,
    calls: HashMap<CallId, Vec<(String, Arc<PreparedCall>)>>,
}

impl PreparedCalls {
    /// Removes the tool calls of all runs except this one.
    pub(super) fn keep_only(&mut self, run: &ResponseId) {
        if self.run.as_ref() != Some(run) {
            *self = Self { run: Some(run.clone()), calls: HashMap::new() };
        }
    }

    /// Returns the tool call as it was prepared with these arguments. `None` if it was not.
    pub(super) fn get(&self, call_id: &CallId, arguments: &str) -> Option<Arc<PreparedCall>> {
        let prepared = self.calls.get(call_id)?.iter().find(|(text, _)| text == arguments);
        prepared.map(|(_, prepared)| Arc::clone(prepared))
    }

    pub(super) fn add(&mut self, call: ProposedCall, prepared: Arc<PreparedCall>) {
        self.calls.entry(call.call_id).or_default().push((call.arguments, prepared));
    }

    /// Removes a tool call, and returns it as it was prepared with these arguments. `None` if it
    /// was not.
    pub(super) fn take(&mut self, call_id: &CallId, arguments: &str) -> Option<Arc<PreparedCall>> {
        let prepared = self.get(call_id, arguments);
        self.calls.remove(call_id);
        prepared
    }
}
