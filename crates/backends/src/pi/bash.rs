//! The outcome of a command: its output, apart from the text that Pi's `bash` tool adds for the model.

use transcript::Truncated;

use super::wire::ToolOutput;

#[derive(Debug)]
pub(super) struct CommandOutcome {
    pub(super) output: String,
    pub(super) exit_code: Option<i64>,
    /// Note that Pi adds to the output of a command that failed, such as `Command aborted`.
    pub(super) note: Option<String>,
    pub(super) truncated: Option<Truncated>,
    /// Path of the file with the whole output. `None` unless the output was cut.
    pub(super) kept_at: Option<String>,
}

impl CommandOutcome {
    /// Parses the result of Pi's `bash` tool. `None` if no command ran because the tool itself
    /// failed.
    pub(super) fn of(said: &ToolOutput, is_error: bool) -> Option<Self> {
        let text = said.content.text();
        let (text, note) = if is_error { without_note(&text) } else { (text.as_str(), None) };
        let structured = said.structured_content.as_ref();
        let emitted = structured.and_then(|it| it["exit_code"].as_i64());
        let exit_code = match (emitted, note) {
            (Some(code), _) => Some(code),
            (None, Some(note)) => exit_code(note),
            (None, None) if is_error => return None,
            (None, None) => Some(0),
        };
        let (output, truncated) = match structured.and_then(|it| it["output"].as_str()) {
            Some(whole) => (whole.to_owned(), None),
            None => (printed(text).to_owned(), truncated(said)),
        };
        let file = said.details.as_ref().and_then(|it| it.get("fullOutputPath")?.as_str());
        let kept_at = file.filter(|_| truncated.is_some()).map(str::to_owned);
        Some(Self { output, exit_code, note: note.map(str::to_owned), truncated, kept_at })
    }
}

/// Returns the truncation that a tool of Pi reports for its output, if any.
pub(super) fn truncated(said: &ToolOutput) -> Option<Truncated> {
    let truncation = said.details.as_ref()?.get("truncation")?;
    let number = |name: &str| truncation.get(name)?.as_u64();
    let is_cut = truncation.get("truncated")?.as_bool()?;
    is_cut.then_some(Truncated {
        total_bytes: number("totalBytes")?,
        total_lines: Some(number("totalLines")?),
        shown_bytes: number("outputBytes")?,
    })
}

/// Splits Pi's note, the last paragraph, off the text of a command that failed.
fn without_note(text: &str) -> (&str, Option<&str>) {
    let (before, last) = text.rsplit_once("\n\n").unwrap_or(("", text));
    if last.starts_with("Command ") { (before, Some(last)) } else { (text, None) }
}

fn exit_code(note: &str) -> Option<i64> {
    note.strip_prefix("Command exited with code ")?.parse().ok()
}

fn printed(text: &str) -> &str {
    match text.rsplit_once("\n\n[Showing ") {
        Some((before, rest)) if rest.contains("Full output: ") && rest.ends_with(']') => before,
        _ if text == "(no output)" => "",
        _ => text,
    }
}
