//! Dialogs that extensions of Pi open: questions about calls, which somebody decides, and others.

use serde_json::Value;
use transcript::{CallId, Level};

use super::tools::Call;
use super::wire::Dialog;
use super::{Out, command, failure};
use crate::{Effect, Verdict};

/// The title of our own extension's dialogs.
const OURS: &str = "callboard:tool_call";

/// Whose status it is when our extension says that it asks.
const OUR_STATUS: &str = "callboard";

/// Those about calls that are open.
#[derive(Default)]
pub(super) struct Questions(Vec<Question>);

struct Question {
    call_id: CallId,
    dialog: String,
    /// Our extension asks, which takes more than a yes or no.
    is_ours: bool,
}

impl Questions {
    pub(super) fn hear(&mut self, dialog: Dialog, calls: &[Call], out: &mut Out) {
        if !dialog.is_question() {
            return dialog.show(out);
        }
        let is_ours = dialog.is_ours();
        let Some(call_id) = self.call_of(&dialog, calls) else {
            dialog.decline(out);
            let title = failure::shortened(&dialog.title);
            let text = format!(
                "An extension of Pi asks “{title}”. Callboard cannot show its questions, and has \
                 declined."
            );
            return out.notice(Level::Info, text);
        };
        out.effects.push(Effect::Ask {
            call_id: call_id.clone(),
            can_edit: is_ours,
            form: None,
            reason: None,
            // Our extension asks about every call.
            is_judged: !is_ours,
        });
        self.0.push(Question { call_id, dialog: dialog.id, is_ours });
    }

    /// False if nobody asked.
    pub(super) fn decide(&mut self, call_id: &CallId, verdict: &Verdict, out: &mut Out) -> bool {
        let Some(Question { dialog, is_ours, .. }) = self.take(call_id) else { return false };
        out.write(match is_ours {
            true => command::decide(&dialog, verdict),
            false => command::confirm(&dialog, verdict),
        });
        true
    }

    /// The call is over without an answer.
    pub(super) fn withdraw(&mut self, call_id: &CallId, out: &mut Out) {
        out.effects.extend(self.take(call_id).map(|it| Effect::Withdraw(it.call_id)));
    }

    pub(super) fn cancel_all(&mut self, out: &mut Out) {
        for question in self.0.drain(..) {
            out.write(command::cancel_dialog(&question.dialog));
            out.effects.push(Effect::Withdraw(question.call_id));
        }
    }

    /// The call that a dialog names, if nobody was asked about it yet.
    fn call_of(&self, dialog: &Dialog, calls: &[Call]) -> Option<CallId> {
        let about = if dialog.is_ours() { &dialog.placeholder } else { &dialog.message };
        let about: Value = serde_json::from_str(about.as_deref()?).ok()?;
        let id = about.get("toolCallId")?.as_str()?;
        let call = calls.iter().find(|it| it.provider_id == id && it.may_be_asked_about())?;
        let is_asked = self.0.iter().any(|it| it.call_id == call.id);
        (!is_asked).then(|| call.id.clone())
    }

    fn take(&mut self, call_id: &CallId) -> Option<Question> {
        let idx = self.0.iter().position(|it| it.call_id == *call_id)?;
        Some(self.0.swap_remove(idx))
    }
}

impl Dialog {
    /// Pi waits for an answer, for ever. What nobody knows may be a question.
    fn is_question(&self) -> bool {
        let shows = ["notify", "setStatus", "setWidget", "setTitle", "set_editor_text"];
        !shows.contains(&self.method.as_str())
    }

    fn is_ours(&self) -> bool {
        self.method == "input" && self.title == OURS
    }

    /// Our extension is there, and asks.
    pub(super) fn is_announcement(&self) -> bool {
        self.method == "setStatus" && self.status_key.as_deref() == Some(OUR_STATUS)
    }

    pub(super) fn decline(&self, out: &mut Out) {
        if self.is_question() {
            out.write(command::cancel_dialog(&self.id));
        }
    }

    /// What is for a terminal (titles, widgets) is not for us.
    fn show(self, out: &mut Out) {
        if let ("notify", Some(message)) = (self.method.as_str(), self.message) {
            let is_error = self.notify_type.as_deref() == Some("error");
            out.notice(if is_error { Level::Error } else { Level::Info }, message);
        }
    }
}
