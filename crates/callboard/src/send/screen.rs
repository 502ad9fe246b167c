//! Renders a run as lines for a terminal: the text of the agent, and its activity.
//!
//! Pure: takes records and returns pieces of text. Printed text cannot be changed, so records are rendered
//! as they arrive. The state of a call is read from the run's [`RunMessage`].

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use transcript::{
    Call, CallId, CallState, ErrorInfo, Event, OutputStream, PartId, Record, ResponseId,
    RunMessage, RunStatus, TextRole,
};

use super::clean::{Cleaner, visible, visible_line};

/// Text for `callboard send` to print, and its destination.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// Text of the agent's answer, for standard output.
    Stdout(String),
    /// Any other text, for standard error.
    Stderr(String),
}

pub(super) struct Screen {
    answer: RunMessage,
    colours: bool,
    /// Whether texts of the agent are held until their role is known, because redirected output
    /// must contain only the answer.
    holds: bool,
    /// Ids of texts that were held and then shown.
    released: HashSet<PartId>,
    streams: HashMap<Stream, Progress>,
    /// Stream of the unfinished line on the terminal; `None` at the beginning of a line.
    open_line: Option<Stream>,
    /// Whether activity was shown after the last text of the agent.
    was_aside: bool,
    pieces: Vec<Piece>,
}

/// Stream of incremental output on the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Stream {
    Text(PartId),
    /// Thinking, commentary or a text of a sub-agent, shown on standard error.
    Quiet(PartId),
    Output(CallId, OutputStream),
    Prompt,
}

#[derive(Default)]
struct Progress {
    cleaner: Cleaner,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ink {
    Plain,
    Dim,
    Green,
    Red,
    Yellow,
}

/// Maximum number of characters shown of an argument of a tool call. Only the ends of a longer
/// argument are shown; the page shows all of it.
const MAX_SHOWN: usize = 4000;
const MAX_END: usize = 1000;

impl Screen {
    pub(super) fn new(run: &ResponseId, colours: bool) -> Self {
        Self {
            answer: RunMessage::replay(run, []),
            colours,
            holds: false,
            released: HashSet::new(),
            streams: HashMap::new(),
            open_line: None,
            was_aside: false,
            pieces: Vec::new(),
        }
    }

    pub(super) fn holding(self, holds: bool) -> Self {
        Self { holds, ..self }
    }

    /// Returns the final status of the run; `None` until it has ended.
    pub(super) fn status(&self) -> Option<RunStatus> {
        self.answer.finish.as_ref().map(|it| it.status)
    }

    /// Returns the terminal output for a record of the run.
    pub(super) fn show(&mut self, record: &Record) -> Vec<Piece> {
        self.answer.apply(record);
        if self.holds {
            self.release();
        }
        self.render_event(&record.event);
        std::mem::take(&mut self.pieces)
    }

    /// Returns the terminal output for a message of the command itself, on its own line.
    pub(super) fn message(&mut self, ink: Ink, text: &str) -> Vec<Piece> {
        self.line(ink, &visible_line(text));
        std::mem::take(&mut self.pieces)
    }

    /// Returns the terminal output for a prompt, after which the user types the reply.
    pub(super) fn ask(&mut self, question: &str) -> Vec<Piece> {
        self.switch_to(&Stream::Prompt);
        self.aside(Ink::Yellow, question);
        self.open_line = Some(Stream::Prompt);
        std::mem::take(&mut self.pieces)
    }

    /// Notes that the user has typed a line break after the prompt.
    pub(super) fn answered(&mut self) {
        self.open_line = None;
    }

    /// Returns the terminal output with the name and the arguments of a tool call, for a person who
    /// decides about it.
    pub(super) fn propose(&mut self, call_id: &CallId) -> Vec<Piece> {
        let Some(call) = self.answer.call(call_id) else { return Vec::new() };
        let (name, arguments) = (visible_line(&call.name), describe_arguments(call));
        self.line(Ink::Yellow, &format!("? {name} wants to run with"));
        self.aside(Ink::Plain, &arguments);
        std::mem::take(&mut self.pieces)
    }

    /// Returns the name of a tool call and the summary of its arguments, as one line.
    pub(super) fn name_of(&self, call_id: &CallId) -> String {
        self.answer.call(call_id).map(title).unwrap_or_default()
    }

    /// Shows held texts of the agent whose role is known by now.
    fn release(&mut self) {
        let texts = self.answer.texts().filter(|(part, _)| part.parent.is_none());
        let decided = texts.filter_map(|(_, text)| {
            let id = text.id.clone();
            let stream = match text.role {
                TextRole::Undecided => return None,
                TextRole::Final if text.open => return None,
                TextRole::Final => Stream::Text(id),
                TextRole::Commentary { .. } | TextRole::Discarded => Stream::Quiet(id),
            };
            (!self.released.contains(&text.id))
                .then(|| (stream, text.id.clone(), text.text.clone()))
        });
        for (stream, id, text) in decided.collect::<Vec<_>>() {
            self.released.insert(id);
            self.rest_of(stream, &text);
        }
    }

    fn render_event(&mut self, event: &Event) {
        match event {
            Event::TextDelta { parent_call_id: None, .. }
            | Event::TextDone { parent_call_id: None, .. }
                if self.holds => {}
            Event::TextDelta { part_id, parent_call_id, delta } => {
                self.stream(text_stream(part_id, parent_call_id.as_ref()), delta);
            }
            Event::TextDone { part_id, parent_call_id, text, .. } => {
                self.rest_of(text_stream(part_id, parent_call_id.as_ref()), text);
            }
            Event::ThinkingDelta { part_id, delta, .. } => {
                self.stream(Stream::Quiet(part_id.clone()), delta);
            }
            Event::ThinkingDone { part_id, text, .. } => {
                self.rest_of(Stream::Quiet(part_id.clone()), text);
            }
            Event::ToolArgumentsDone { call_id, .. } => self.call_begins(call_id),
            Event::ToolOutputDelta { call_id, stream, offset, delta } => {
                self.output(Stream::Output(call_id.clone(), *stream), *offset, delta);
            }
            Event::ToolRetry { attempt, max_attempts, error, .. } => {
                let why = visible_line(&error.message);
                self.line(Ink::Dim, &format!("  retry {attempt} of {max_attempts}: {why}"));
            }
            Event::ToolResult { call_id, output, .. } => {
                if let Some(output) = output {
                    self.rest_of(Stream::Output(call_id.clone(), OutputStream::Stdout), output);
                }
                self.call_ends(call_id);
            }
            Event::Notice { text, .. } => self.line(Ink::Dim, &format!("· {}", visible_line(text))),
            Event::MessageSteered { text, .. } => {
                self.line(Ink::Dim, &format!("> {}", visible_line(text)));
            }
            Event::AgentMessage { agent, text, .. } => {
                let (agent, text) = (visible_line(agent), visible_line(text));
                self.line(Ink::Dim, &format!("@ {agent}: {text}"));
            }
            Event::RunFinish { status, error, .. } => self.run_ends(*status, error.as_ref()),
            _ => (),
        }
    }

    fn call_begins(&mut self, call_id: &CallId) {
        let Some(call) = self.answer.call(call_id) else { return };
        let title = title(call);
        self.line(Ink::Plain, &format!("▸ {title}"));
    }

    fn call_ends(&mut self, call_id: &CallId) {
        let Some(call) = self.answer.call(call_id) else { return };
        let Some(outcome) = &call.outcome else { return };
        let title = title(call);
        let why = outcome.error.as_ref().map(|it| visible_line(&it.message)).unwrap_or_default();
        let (ink, line) = match call.state {
            _ if outcome.ok => {
                let took = outcome.duration_ms.map(|it| format!(" ({it} ms)")).unwrap_or_default();
                (Ink::Green, format!("✓ {title}{took}"))
            }
            CallState::Denied => (Ink::Red, format!("✗ {title}: not allowed")),
            CallState::Interrupted => (Ink::Red, format!("✗ {title}: stopped")),
            _ => (Ink::Red, format!("✗ {title}: {why}")),
        };
        self.line(ink, &line);
    }

    fn run_ends(&mut self, status: RunStatus, error: Option<&ErrorInfo>) {
        self.end_line();
        match (status, error) {
            (RunStatus::Completed, _) => (),
            (RunStatus::Cancelled, _) => self.line(Ink::Red, "stopped"),
            (RunStatus::Failed, Some(ErrorInfo { code, message, .. })) => {
                let message = visible_line(message);
                self.line(Ink::Red, &format!("failed ({}): {message}", code.as_str()));
            }
            (RunStatus::Failed, None) => self.line(Ink::Red, "failed"),
        }
    }

    /// Shows output of a tool call. Output that was already shown and is repeated from an earlier
    /// offset is skipped.
    fn output(&mut self, stream: Stream, offset: u64, delta: &str) {
        let shown = self.streams.get(&stream).map_or(0, |it| it.bytes);
        let skipped = shown.saturating_sub(usize::try_from(offset).unwrap_or(usize::MAX));
        if let Some(new) = delta.get(skipped..) {
            self.stream(stream, new);
        }
    }

    /// Shows the rest of a complete text that its deltas have not shown.
    fn rest_of(&mut self, stream: Stream, whole: &str) {
        let shown = self.streams.get(&stream).map_or(0, |it| it.bytes);
        if let Some(rest) = whole.get(shown..) {
            self.stream(stream, rest);
        }
    }

    fn stream(&mut self, stream: Stream, delta: &str) {
        let progress = self.streams.entry(stream.clone()).or_default();
        progress.bytes += delta.len();
        let clean = progress.cleaner.feed(delta);
        if clean.is_empty() {
            return;
        }
        self.switch_to(&stream);
        let is_fresh = self.open_line.is_none();
        match stream {
            Stream::Text(_) => {
                if std::mem::take(&mut self.was_aside) {
                    self.pieces.push(Piece::Stderr("\n".to_owned()));
                }
                self.pieces.push(Piece::Stdout(clean.clone()));
            }
            Stream::Quiet(_) | Stream::Prompt => self.aside(Ink::Dim, &clean),
            Stream::Output(..) => self.aside(Ink::Dim, &indented(&clean, is_fresh)),
        }
        self.open_line = (!clean.ends_with('\n')).then_some(stream);
    }

    /// Adds a complete line to the output for standard error.
    fn line(&mut self, ink: Ink, text: &str) {
        self.end_line();
        self.aside(ink, text);
        self.pieces.push(Piece::Stderr("\n".to_owned()));
    }

    fn switch_to(&mut self, stream: &Stream) {
        if self.open_line.as_ref().is_some_and(|it| it != stream) {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let end = "\n".to_owned();
        match self.open_line.take() {
            Some(Stream::Text(_)) => self.pieces.push(Piece::Stdout(end)),
            Some(_) => self.pieces.push(Piece::Stderr(end)),
            None => (),
        }
    }

    fn aside(&mut self, ink: Ink, text: &str) {
        self.was_aside = true;
        let text = if self.colours { ink.paint(text) } else { text.to_owned() };
        self.pieces.push(Piece::Stderr(text));
    }
}

impl Ink {
    fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Dim => 2,
            Self::Green => 32,
            Self::Red => 31,
            Self::Yellow => 33,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

fn text_stream(part: &PartId, parent: Option<&CallId>) -> Stream {
    match parent {
        Some(_) => Stream::Quiet(part.clone()),
        None => Stream::Text(part.clone()),
    }
}

fn title(call: &Call) -> String {
    format!("{} {}", visible_line(&call.name), visible_line(&call.summary)).trim_end().to_owned()
}

/// Indents each line of a tool call's output, so that it cannot be mistaken for a line of this
/// command.
fn indented(text: &str, is_fresh: bool) -> String {
    const MARGIN: &str = "    ";
    let margin = if is_fresh { MARGIN } else { "" };
    let (body, end) = text.strip_suffix('\n').map_or((text, ""), |it| (it, "\n"));
    format!("{margin}{}{end}", body.replace('\n', &format!("\n{MARGIN}")))
}

/// Describes the arguments of a tool call, each on its own line; line breaks in values are kept.
fn describe_arguments(call: &Call) -> String {
    let Some(arguments) = call.arguments.whole() else {
        return indented("too long to show here: see the page\n", true);
    };
    let Ok(Value::Object(fields)) = serde_json::from_str(&arguments) else {
        return indented(&format!("{}\n", cut(&visible(&arguments))), true);
    };
    let lines = fields.iter().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}: {}\n", visible_line(name), cut(&visible(&value)))
    });
    indented(&lines.collect::<String>(), true)
}

fn cut(text: &str) -> String {
    let byte_offset = |letter: usize| text.char_indices().nth(letter).map(|(at, _)| at);
    if byte_offset(MAX_SHOWN).is_none() {
        return text.to_owned();
    }
    let n_letters = text.chars().count();
    let (start, end) = (byte_offset(MAX_SHOWN - MAX_END), byte_offset(n_letters - MAX_END));
    let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
    let hidden = n_letters - MAX_SHOWN;
    format!(
        "{}\n[{hidden} characters hidden; the page shows them]\n{}",
        &text[..start],
        &text[end..]
    )
}
