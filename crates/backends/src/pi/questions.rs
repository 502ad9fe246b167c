//! Dialogs of Pi's extensions: requests for a decision about a call, and other questions, which are shown as
//! calls that end with the answer.

use serde_json::{Value, json};
use transcript::{CallId, Level};

use super::tools::Call;
use super::wire::Dialog;
use super::{Cx, command, failure};
use crate::emitter::Emitter;
use crate::program::Ask;
use crate::{ProgramEffect, Verdict};

/// Title of the dialogs with which Callboard's Pi extension asks for approvals.
const OURS: &str = "callboard:tool_call";

/// Status key under which Callboard's Pi extension announces itself.
const OUR_STATUS: &str = "callboard";

/// A dialog of a Pi extension that waits for its answer.
#[derive(Debug)]
pub(super) struct Request {
    dialog: String,
    kind: Kind,
}

/// The form in which a dialog of a Pi extension takes its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Approval with a reason or edited arguments, as Callboard's extension takes it.
    Ours,
    YesOrNo,
    Words,
}

impl Request {
    pub(super) fn answer(&self, verdict: &Verdict) -> String {
        match self.kind {
            Kind::Ours => command::decide(&self.dialog, verdict),
            Kind::YesOrNo => command::confirm(&self.dialog, verdict),
            Kind::Words => match answer(verdict) {
                Some(words) => command::answer_dialog(&self.dialog, &words),
                None => command::cancel_dialog(&self.dialog),
            },
        }
    }
}

/// Cancels all open dialogs of Pi's extensions, and withdraws their requests.
pub(super) fn cancel_all(cx: &mut Cx) {
    for (call_id, request) in cx.approvals.take_all() {
        cx.out.write(command::cancel_dialog(&request.dialog));
        cx.out.push(ProgramEffect::Withdraw(call_id));
    }
}

/// Returns the text that a person entered in a dialog. `None` if the question was refused or has no
/// text as its answer.
pub(super) fn answer(verdict: &Verdict) -> Option<String> {
    let Verdict::Allowed { arguments, .. } = verdict else { return None };
    let given: Value = serde_json::from_str(arguments.as_deref()?).ok()?;
    let answers = given.get("answers").unwrap_or(&given);
    answers.get(ANSWER)?.as_str().map(str::to_owned)
}

/// Name of the only field in the form of a dialog.
const ANSWER: &str = "value";

impl Dialog {
    /// Asks a person about the tool call that the dialog names, or shows a dialog that is only a
    /// message. Returns the dialog if it is a question about no call.
    pub(super) fn ask_about_call(self, calls: &[Call], cx: &mut Cx) -> Option<Self> {
        if !self.is_question() {
            self.show(&mut cx.out);
            return None;
        }
        let Some(call_id) = self.call_of(calls, cx) else { return Some(self) };
        let kind = if self.is_ours() { Kind::Ours } else { Kind::YesOrNo };
        self.ask(call_id, kind, None, cx);
        None
    }

    /// Asks a person a question that is about no tool call; `call_id` is the call that shows the
    /// question.
    pub(super) fn ask_as_call(&self, call_id: CallId, cx: &mut Cx) {
        let form = self.form();
        let kind = if form.is_some() { Kind::Words } else { Kind::YesOrNo };
        self.ask(call_id, kind, form, cx);
    }

    fn ask(&self, call_id: CallId, kind: Kind, form: Option<Value>, cx: &mut Cx) {
        let is_ours = kind == Kind::Ours;
        // Our extension asks about every call without judging it, unlike other extensions.
        let ask = Ask { can_edit: is_ours, form, reason: None, is_judged: !is_ours };
        let request = Request { dialog: self.id.clone(), kind };
        cx.approvals.ask(call_id, request, ask, &mut cx.out);
    }

    /// Returns the id of the tool call that the dialog names, if it has not begun and no decision
    /// about it is pending.
    fn call_of(&self, calls: &[Call], cx: &Cx) -> Option<CallId> {
        let about = if self.is_ours() { &self.placeholder } else { &self.message };
        let about: Value = serde_json::from_str(about.as_deref()?).ok()?;
        let id = about.get("toolCallId")?.as_str()?;
        let call = calls.iter().find(|it| it.provider_id == id && it.may_be_asked_about())?;
        (!cx.approvals.is_asked(|it, _| *it == call.id)).then(|| call.id.clone())
    }

    /// Returns the provider id of the tool call that shows the dialog.
    pub(super) fn call_name(&self) -> String {
        format!("dialog-{}", self.id)
    }

    /// Returns the arguments of the tool call that shows the dialog. `None` if Callboard cannot
    /// show the dialog as a question.
    pub(super) fn asks(&self) -> Option<Value> {
        let is_known = ["confirm", "select", "input", "editor"].contains(&self.method.as_str());
        (is_known && !self.is_ours()).then(|| json!({ "message": self.words() }))
    }

    fn words(&self) -> String {
        let words = [Some(&self.title), self.message.as_ref()];
        let words = words.into_iter().flatten().filter(|it| !it.trim().is_empty());
        words.map(String::as_str).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the form in which a person answers the dialog. `None` for a dialog that takes only
    /// yes or no.
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

    /// Declines a dialog that cannot be shown, with a notice about it.
    pub(super) fn give_up(&self, out: &mut Emitter) {
        self.decline(out);
        let title = failure::shortened(&self.title);
        let text = format!(
            "An extension of Pi asks “{title}”. Callboard cannot show this question, and has declined."
        );
        out.notice(Level::Info, text);
    }

    /// Returns whether Pi waits for an answer to the dialog. A dialog with an unknown method counts
    /// as a question.
    fn is_question(&self) -> bool {
        let shows = ["notify", "setStatus", "setWidget", "setTitle", "set_editor_text"];
        !shows.contains(&self.method.as_str())
    }

    fn is_ours(&self) -> bool {
        self.method == "input" && self.title == OURS
    }

    /// Returns whether the dialog is the announcement of Callboard's Pi extension.
    pub(super) fn is_announcement(&self) -> bool {
        self.method == "setStatus" && self.status_key.as_deref() == Some(OUR_STATUS)
    }

    pub(super) fn decline(&self, out: &mut Emitter) {
        if self.is_question() {
            out.write(command::cancel_dialog(&self.id));
        }
    }

    /// Emits the message of a `notify` dialog as a notice. Titles and widgets are for a terminal,
    /// and ignored.
    fn show(self, out: &mut Emitter) {
        if let ("notify", Some(message)) = (self.method.as_str(), self.message) {
            let is_error = self.notify_type.as_deref() == Some("error");
            out.notice(if is_error { Level::Error } else { Level::Info }, message);
        }
    }
}
