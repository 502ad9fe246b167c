//! Dialogs that extensions of Pi open: questions about calls, which somebody decides, and questions of their
//! own, which are calls here and end with the answer.

use serde_json::{Value, json};
use transcript::{CallId, Level};

use super::tools::Call;
use super::wire::Dialog;
use super::{command, failure};
use crate::emitter::Emitter;
use crate::{Effect, Verdict};

/// The title of our own extension's dialogs.
const OURS: &str = "callboard:tool_call";

/// Whose status it is when our extension says that it asks.
const OUR_STATUS: &str = "callboard";

/// Those about calls that are open.
#[derive(Debug, Default)]
pub(super) struct Questions(Vec<Question>);

#[derive(Debug)]
struct Question {
    call_id: CallId,
    dialog: String,
    kind: Kind,
}

/// What the answer consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Our extension asks, which takes more than a yes or no.
    Ours,
    YesOrNo,
    Words,
}

impl Questions {
    /// Gives back a question that is about no call.
    pub(super) fn hear(
        &mut self,
        dialog: Dialog,
        calls: &[Call],
        out: &mut Emitter,
    ) -> Option<Dialog> {
        if !dialog.is_question() {
            dialog.show(out);
            return None;
        }
        let Some(call_id) = self.call_of(&dialog, calls) else { return Some(dialog) };
        let kind = if dialog.is_ours() { Kind::Ours } else { Kind::YesOrNo };
        self.ask(Question { call_id, dialog: dialog.id, kind }, None, out);
        None
    }

    /// A question of its own: `call` is what it is told as.
    pub(super) fn put(&mut self, dialog: &Dialog, call: CallId, out: &mut Emitter) {
        let form = dialog.form();
        let kind = if form.is_some() { Kind::Words } else { Kind::YesOrNo };
        self.ask(Question { call_id: call, dialog: dialog.id.clone(), kind }, form, out);
    }

    fn ask(&mut self, question: Question, form: Option<Value>, out: &mut Emitter) {
        let is_ours = question.kind == Kind::Ours;
        out.push(Effect::Ask {
            call_id: question.call_id.clone(),
            can_edit: is_ours,
            form,
            reason: None,
            // Our extension asks about every call.
            is_judged: !is_ours,
        });
        self.0.push(question);
    }

    /// False if nobody asked.
    pub(super) fn decide(
        &mut self,
        call_id: &CallId,
        verdict: &Verdict,
        out: &mut Emitter,
    ) -> bool {
        let Some(Question { dialog, kind, .. }) = self.take(call_id) else { return false };
        out.write(match kind {
            Kind::Ours => command::decide(&dialog, verdict),
            Kind::YesOrNo => command::confirm(&dialog, verdict),
            Kind::Words => match answer(verdict) {
                Some(words) => command::answer_dialog(&dialog, &words),
                None => command::cancel_dialog(&dialog),
            },
        });
        true
    }

    pub(super) fn are_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// The call is over without an answer.
    pub(super) fn withdraw(&mut self, call_id: &CallId, out: &mut Emitter) {
        out.extend(self.take(call_id).map(|it| Effect::Withdraw(it.call_id)));
    }

    pub(super) fn cancel_all(&mut self, out: &mut Emitter) {
        for question in self.0.drain(..) {
            out.write(command::cancel_dialog(&question.dialog));
            out.push(Effect::Withdraw(question.call_id));
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

/// What somebody has filled in. None: they do not answer.
pub(super) fn answer(verdict: &Verdict) -> Option<String> {
    let Verdict::Allowed { arguments, .. } = verdict else { return None };
    let given: Value = serde_json::from_str(arguments.as_deref()?).ok()?;
    let answers = given.get("answers").unwrap_or(&given);
    answers.get(ANSWER)?.as_str().map(str::to_owned)
}

/// The name of the one field that a dialog has.
const ANSWER: &str = "value";

impl Dialog {
    /// Under what it is told as a call.
    pub(super) fn call_name(&self) -> String {
        format!("dialog-{}", self.id)
    }

    /// What it asks, if a person can be asked it.
    pub(super) fn asks(&self) -> Option<Value> {
        let is_known = ["confirm", "select", "input", "editor"].contains(&self.method.as_str());
        (is_known && !self.is_ours()).then(|| json!({ "message": self.words() }))
    }

    fn words(&self) -> String {
        let words = [Some(&self.title), self.message.as_ref()];
        let words = words.into_iter().flatten().filter(|it| !it.trim().is_empty());
        words.map(String::as_str).collect::<Vec<_>>().join("\n\n")
    }

    /// None where it only takes a yes or a no.
    fn form(&self) -> Option<Value> {
        let mut field = json!({ "type": "string", "title": self.title });
        match self.method.as_str() {
            "select" => field["enum"] = json!(self.options),
            "input" => field["description"] = json!(self.placeholder),
            "editor" => field["default"] = json!(self.prefill),
            _ => return None,
        }
        if let Some(fields) = field.as_object_mut() {
            fields.retain(|_, it| !it.is_null());
        }
        let schema =
            json!({ "type": "object", "properties": { ANSWER: field }, "required": [ANSWER] });
        Some(json!({ "message": self.words(), "requestedSchema": schema }))
    }

    /// Nobody can be asked it.
    pub(super) fn give_up(&self, out: &mut Emitter) {
        self.decline(out);
        let title = failure::shortened(&self.title);
        let text = format!(
            "An extension of Pi asks “{title}”. Callboard cannot show this question, and has declined."
        );
        out.notice(Level::Info, text);
    }

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

    pub(super) fn decline(&self, out: &mut Emitter) {
        if self.is_question() {
            out.write(command::cancel_dialog(&self.id));
        }
    }

    /// What is for a terminal (titles, widgets) is not for us.
    fn show(self, out: &mut Emitter) {
        if let ("notify", Some(message)) = (self.method.as_str(), self.message) {
            let is_error = self.notify_type.as_deref() == Some("error");
            out.notice(if is_error { Level::Error } else { Level::Info }, message);
        }
    }
}
