//! Requests of a program that a person decides about.

use serde_json::Value;
use transcript::CallId;

use crate::ProgramEffect;
use crate::emitter::Emitter;

/// The open requests of a program for a decision, each about a tool call. `R` is the adapter's data
/// to answer one.
#[derive(Debug)]
pub(crate) struct Approvals<R> {
    open: Vec<(CallId, R)>,
}

/// The fields of a [`ProgramEffect::Ask`] other than the tool call's id.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) can_edit: bool,
    pub(crate) form: Option<Value>,
    pub(crate) reason: Option<String>,
    pub(crate) is_judged: bool,
}

impl<R> Default for Approvals<R> {
    fn default() -> Self {
        Self { open: Vec::new() }
    }
}

impl<R> Approvals<R> {
    /// Asks the driver for a decision about a tool call. A second request about the same call
    /// replaces the first, and the decision answers the second.
    pub(crate) fn ask(&mut self, call_id: CallId, request: R, ask: Ask, out: &mut Emitter) {
        if let Some((_, known)) = self.open.iter_mut().find(|(it, _)| *it == call_id) {
            *known = request;
            return;
        }
        let Ask { can_edit, form, reason, is_judged } = ask;
        out.push(ProgramEffect::Ask {
            call_id: call_id.clone(),
            can_edit,
            form,
            reason,
            is_judged,
        });
        self.open.push((call_id, request));
    }

    pub(crate) fn take(&mut self, call_id: &CallId) -> Option<R> {
        let at = self.open.iter().position(|(it, _)| it == call_id)?;
        Some(self.open.remove(at).1)
    }

    pub(crate) fn take_all(&mut self) -> Vec<(CallId, R)> {
        std::mem::take(&mut self.open)
    }

    /// Withdraws the first open request that matches, and returns it: the program no longer waits
    /// for its answer.
    pub(crate) fn withdraw(
        &mut self,
        is_it: impl Fn(&CallId, &R) -> bool,
        out: &mut Emitter,
    ) -> Option<(CallId, R)> {
        let at = self.open.iter().position(|(call_id, request)| is_it(call_id, request))?;
        let (call_id, request) = self.open.remove(at);
        out.push(ProgramEffect::Withdraw(call_id.clone()));
        Some((call_id, request))
    }

    pub(crate) fn is_asked(&self, is_it: impl Fn(&CallId, &R) -> bool) -> bool {
        self.open.iter().any(|(call_id, request)| is_it(call_id, request))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
