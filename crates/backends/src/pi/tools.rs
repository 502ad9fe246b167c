//! A tool call, from its arguments to its result.

use serde_json::{Value, json};
use transcript::{CallId, ErrorCode, ErrorInfo, Event, Millis, OutputStream};

use super::bash::{self, CommandOutcome};
use super::questions;
use super::wire::{Content, Number, ToolOutput};
use crate::Verdict;
use crate::emitter::Emitter;

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    /// Id that the model service gave the tool call.
    pub(super) provider_id: String,
    name: String,
    /// Index of the tool call's block in the message that the model is writing. `None` after that
    /// message.
    pub(super) block: Option<usize>,
    /// Raw text of the arguments so far. Empty once the arguments are complete.
    pub(super) arguments: String,
    pub(super) arguments_done: bool,
    running_since: Option<Millis>,
    /// Output of the tool call as Pi sent it last: all of it, or its end.
    output: String,
    /// Number of bytes of output that were emitted, counted from the last restart of the output.
    printed: usize,
    /// Whether the tool call shows a question of an extension, and ends with the answer.
    pub(super) is_question: bool,
    /// Error code of the decision against the tool call. `None` if it may run.
    refused: Option<ErrorCode>,
    pub(super) has_ended: bool,
}

/// The end of a tool's execution, as Pi reports it.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) said: ToolOutput,
    pub(super) is_error: bool,
    pub(super) duration_ms: Option<Number>,
    /// Whether a person asked to stop the run.
    pub(super) is_interrupted: bool,
}

impl Call {
    pub(super) fn new(id: CallId, provider_id: &str, name: &str, block: Option<usize>) -> Self {
        Self {
            id,
            provider_id: provider_id.to_owned(),
            name: name.to_owned(),
            block,
            arguments: String::new(),
            arguments_done: false,
            running_since: None,
            output: String::new(),
            printed: 0,
            is_question: false,
            refused: None,
            has_ended: false,
        }
    }

    /// Handles the start of the tool call in Pi: ends its arguments, and marks it as running unless
    /// Pi asks for approvals first.
    pub(super) fn take_up(&mut self, args: Option<&Value>, asks: bool, out: &mut Emitter) {
        self.finish_arguments(args, out);
        if !asks {
            self.run(out);
        }
    }

    pub(super) fn run(&mut self, out: &mut Emitter) {
        if self.running_since.is_none() && !self.has_ended {
            self.running_since = Some(out.now());
            out.running(&self.id);
        }
    }

    /// Returns whether the tool call has its arguments and has not begun to run, so that a request
    /// may be about it.
    pub(super) fn may_be_asked_about(&self) -> bool {
        self.arguments_done && !self.has_ended && self.running_since.is_none()
    }

    pub(super) fn forbid(&mut self, code: ErrorCode) {
        self.refused = Some(code);
    }

    /// Emits new output of the tool call. `text` is all output so far, or the end of it.
    pub(super) fn print(&mut self, text: String, out: &mut Emitter) {
        if self.has_ended {
            return;
        }
        self.run(out);
        // For a long output Pi sends only its end, which begins later each time.
        let known = match text.starts_with(&self.output) {
            true => self.output.len(),
            false => overlap(&self.output, &text),
        };
        let offset = if known > 0 { self.printed } else { 0 };
        let delta = text[known..].to_owned();
        if delta.is_empty() {
            return;
        }
        self.printed = offset + delta.len();
        self.output = text;
        out.output(&self.id, OutputStream::Stdout, offset, delta);
    }

    pub(super) fn end(&mut self, ended: Ended, out: &mut Emitter) {
        if self.has_ended {
            return;
        }
        self.finish_arguments(None, out);
        let Ended { said, is_error, duration_ms, is_interrupted } = ended;
        let took = || self.running_since.map(|since| out.now().since(since));
        let duration_ms = duration_ms.map(Number::whole).or_else(took);
        let ran = (self.name == "bash").then(|| CommandOutcome::of(&said, is_error)).flatten();
        let error = is_error.then(|| self.what_failed(&said, ran.as_ref(), is_interrupted));
        let (result, output, truncated) = match ran {
            Some(ran) => {
                let result = ran.exit_code.map(|code| match &ran.kept_at {
                    Some(file) => json!({ "exitCode": code, "fullOutputPath": file }),
                    None => json!({ "exitCode": code }),
                });
                (result, (ran.output != self.output).then_some(ran.output), ran.truncated)
            }
            None if is_error => {
                (details(&said).map(|it| json!({ "details": it })), None, bash::truncated(&said))
            }
            None => (Some(result(&said)), None, bash::truncated(&said)),
        };
        self.has_ended = true;
        self.output = String::new();
        out.emit(Event::ToolResult {
            call_id: self.id.clone(),
            tool_name: self.name.clone(),
            ok: !is_error,
            result,
            output,
            error,
            summary: None,
            duration_ms,
            truncated,
        });
    }

    /// Ends a tool call that shows a question with a person's answer.
    pub(super) fn answered(&mut self, verdict: &Verdict, out: &mut Emitter) {
        let (code, why) = match verdict {
            Verdict::Allowed { .. } => {
                self.run(out);
                let content = Content::Text(questions::answer(verdict).unwrap_or_default());
                let said = ToolOutput { content, ..ToolOutput::default() };
                let (is_error, duration_ms, is_interrupted) = (false, None, false);
                return self.end(Ended { said, is_error, duration_ms, is_interrupted }, out);
            }
            Verdict::Denied { feedback } => {
                (ErrorCode::ToolDenied, feedback.as_deref().unwrap_or("It was not answered."))
            }
            Verdict::TimedOut => (ErrorCode::ApprovalTimeout, "Nobody answered in time."),
        };
        self.refuse(ErrorInfo::new(code, why), out);
    }

    /// Ends a tool call that never ran, with an error of Callboard as its result.
    pub(super) fn refuse(&mut self, error: ErrorInfo, out: &mut Emitter) {
        if !std::mem::replace(&mut self.has_ended, true) {
            out.refuse_call(&self.id, &self.name, error);
        }
    }

    fn what_failed(
        &self,
        said: &ToolOutput,
        ran: Option<&CommandOutcome>,
        is_interrupted: bool,
    ) -> ErrorInfo {
        let text = || said.content.text().trim().to_owned();
        match (&self.refused, ran) {
            (Some(code), _) => ErrorInfo::new(code.clone(), text()),
            _ if is_interrupted => {
                let tool_text = ran.map_or_else(text, |it| it.note.clone().unwrap_or_default());
                interrupted(&tool_text)
            }
            (None, Some(CommandOutcome { exit_code: Some(code), .. })) => {
                let why = format!("The command ended with exit code {code}.");
                ErrorInfo::new(ErrorCode::ToolError, why)
            }
            (None, Some(CommandOutcome { note: Some(note), .. }))
                if note.starts_with("Command timed out") =>
            {
                ErrorInfo::new(ErrorCode::ToolTimeout, note)
            }
            (None, Some(CommandOutcome { note: Some(note), .. })) => {
                ErrorInfo::new(ErrorCode::ToolError, note)
            }
            (None, _) if text().is_empty() => {
                ErrorInfo::new(ErrorCode::ToolFailed, "The tool failed and did not say why.")
            }
            (None, _) => ErrorInfo::new(ErrorCode::ToolError, text()),
        }
    }
}

/// Returns the error of a tool call that a person interrupted, with the tool's own text if it says
/// more.
fn interrupted(tool_text: &str) -> ErrorInfo {
    let why = match tool_text {
        "" | "Command aborted" | "Operation aborted" => {
            "Tool call was interrupted by the user".to_owned()
        }
        words => format!("Tool call was interrupted by the user. It said: {words}"),
    };
    ErrorInfo::new(ErrorCode::ToolInterrupted, why)
}

/// Returns the result of a tool call for the log: a string if the tool gave only text.
fn result(said: &ToolOutput) -> Value {
    // Most tools repeat the text in it.
    let structured = said.structured_content.as_ref().filter(|it| it.is_object());
    let details = details(said);
    let content = match said.content.is_text() {
        true => said.content.text().into(),
        false => json!(said.content),
    };
    if said.content.is_text() && structured.is_none() && details.is_none() {
        return content;
    }
    let mut result = json!({ "content": content });
    let more = [("structuredContent", structured), ("details", details.as_ref())];
    for (name, value) in more.into_iter().filter_map(|(name, it)| Some((name, it?))) {
        result[name] = value.clone();
    }
    result
}

/// Returns the fields that a tool gives in addition to the model's text, such as the lines that an
/// edit changed. Truncation is recorded separately.
fn details(said: &ToolOutput) -> Option<Value> {
    let mut details = said.details.clone()?;
    if let Some(fields) = details.as_object_mut() {
        fields.shift_remove("truncation");
        return (!fields.is_empty()).then_some(details);
    }
    (!details.is_null()).then_some(details)
}

/// Returns the number of bytes at the start of `new` that are the end of `old`; zero if they end
/// within a character.
fn overlap(old: &str, new: &str) -> usize {
    let (old, bytes) = (old.as_bytes(), new.as_bytes());
    // Knuth-Morris-Pratt: the length of the longest prefix that is also a suffix, for each prefix.
    let mut borders = vec![0; bytes.len()];
    for at in 1..bytes.len() {
        let mut border = borders[at - 1];
        while border > 0 && bytes[border] != bytes[at] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(bytes[border] == bytes[at]);
    }
    let mut same = 0;
    for byte in old {
        while same > 0 && (same == bytes.len() || bytes[same] != *byte) {
            same = borders[same - 1];
        }
        same += usize::from(bytes.get(same) == Some(byte));
    }
    // A text that was cut by bytes may begin within a character.
    if new.is_char_boundary(same) { same } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn overlap_is_the_longest_shared_end_and_start() {
        let texts = ["", "a", "aa", "ab", "aba", "abab", "baba", "ä", "äöä", "xäöäx", "aabaaab"];
        for old in texts {
            for new in texts {
                let cuts = (0..=new.len()).filter(|it| new.is_char_boundary(*it));
                let longest = cuts.filter(|it| old.ends_with(&new[..*it])).max();
                assert_eq!(Some(overlap(old, new)), longest, "{old:?} {new:?}");
            }
        }
    }
}
