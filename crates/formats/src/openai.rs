//! A transcript as OpenAI chat messages: the history that every model gets.
//!
//! Total: for every log, cut anywhere, the result is one that a strict provider accepts. Every call is followed by
//! its result, in call order, right after the message that made it. After the system message, user and assistant
//! messages alternate, beginning with a user message. Within a run, user messages contain only steered messages and
//! pictures from tools. Superseded, discarded and leaked text is left out.

mod attachments;
mod call_ids;
mod chunks;
mod incoming;
mod one_message;
pub(crate) mod stored;

use serde_json::{Map, Value, json};
use transcript::{
    Attachment, Body, Call, CancelReason, Content, MessageRole, Part, PartKind, RunMessage,
    SteerState, TextRole, Transcript, UserMessage,
};

pub use chunks::{Chunks, Completion, Options, OtherCalls, failure};
pub use incoming::{Request, request};
pub use one_message::history_in_one_message;
pub use stored::{import, stored};

use self::call_ids::CallIds;

/// The agent for which a conversation is written as chat messages.
pub struct Reader<'a> {
    /// Id of the agent. Ids and provider data of tool calls are only sent back to their origin: the
    /// same agent and model.
    pub agent: &'a str,
    /// Name of the agent's model; `None` if it is not known.
    pub model: Option<&'a str>,
    /// Text of the system message that precedes the history; `None` for no such message.
    pub system: Option<&'a str>,
    /// Treatment of attached and linked files.
    pub files: Files<'a>,
}

/// Treatment of the files of messages when a conversation is written as chat messages.
pub enum Files<'a> {
    /// Files are left out.
    LeftOut,
    /// Text files are included, and pictures if the model accepts them. A remark replaces other
    /// files.
    GoAlong {
        /// Whether the model accepts pictures.
        sees: bool,
        /// Function that returns the content of a file; `None` if the file is no longer stored.
        read: &'a dyn Fn(&Attachment) -> Option<Vec<u8>>,
    },
}

/// Text of a user message that is inserted where the API requires one.
const NUDGE: &str = "Continue.";

/// Returns a conversation as the messages of a request to a model. Users and assistants alternate,
/// and the last message is one that the model has to answer.
///
/// ```
/// use formats::openai::{Files, Reader, history};
/// use serde_json::json;
/// use transcript::{Millis, Record, Seq, SessionId, Transcript};
///
/// let message =
///     json!({ "type": "user_message", "messageId": "m1", "role": "user", "text": "Hello" });
/// let event = serde_json::from_value(message)?;
/// let mut transcript = Transcript::whole();
/// transcript.apply(&Record::new(Seq(1), Millis(0), SessionId::new("s"), None, event));
///
/// let system = Some("Be brief.");
/// let reader = Reader { agent: "demo", model: None, system, files: Files::LeftOut };
/// let request = [
///     json!({ "role": "system", "content": "Be brief." }),
///     json!({ "role": "user", "content": "Hello" }),
/// ];
/// assert_eq!(history(&transcript, &reader), request);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn history(transcript: &Transcript, reader: &Reader<'_>) -> Vec<Value> {
    to_json(in_turns(entries(transcript, reader, newest_input(transcript))))
}

/// Returns a conversation as chat messages, without the additions of [`history`]. A linked file is
/// included as its URL alone: the reader keeps the messages, and could not continue if the file
/// became unreachable.
pub fn conversation(transcript: &Transcript, reader: &Reader<'_>) -> Vec<Value> {
    to_json(entries(transcript, reader, None))
}

/// Returns the newest user message, the only one whose linked pictures are included. A provider
/// refuses a whole request if it cannot fetch a picture, so only the answer to this message is at
/// risk.
fn newest_input(transcript: &Transcript) -> Option<&UserMessage> {
    let newest_first = transcript.messages.iter().rev().filter(|message| !message.superseded);
    let mut input = newest_first.filter_map(|message| match &message.content {
        Content::User(input) => Some(input),
        Content::Run(_) | Content::Aside(_) => None,
    });
    input.find(|input| input.role == MessageRole::User)
}

/// A chat message before it is converted to JSON.
enum Entry<'a> {
    System(String),
    /// A user message, as content parts of the API.
    User(Vec<Value>),
    Assistant(Turn<'a>),
}

/// An assistant message that is being built. In the API its text precedes its tool calls, so a text
/// that came after the calls ends the text of the message.
#[derive(Default)]
struct Turn<'a> {
    step: Option<usize>,
    texts: Vec<&'a str>,
    calls: Vec<&'a Call>,
    ends_with_text: bool,
    /// Whether the message comes from the agent and model for which the history is written.
    is_native: bool,
    /// Why the run was cut off in this message; `None` if it was not.
    cut_off: Option<CancelReason>,
}

fn entries<'a>(
    transcript: &'a Transcript,
    reader: &Reader<'_>,
    newest: Option<&UserMessage>,
) -> Vec<Entry<'a>> {
    let mut entries = Vec::new();
    entries.extend(reader.system.map(|it| Entry::System(it.to_owned())));
    for message in transcript.messages.iter().filter(|message| !message.superseded) {
        match &message.content {
            Content::User(input) => {
                let is_newest = newest.is_some_and(|it| std::ptr::eq(it, input));
                entries.extend(input_entry(input, &reader.files, is_newest));
            }
            Content::Run(answer) => entries.extend(answer_entries(answer, reader)),
            Content::Aside(_) => (),
        }
    }
    entries
}

fn input_entry<'a>(input: &UserMessage, files: &Files<'_>, is_newest: bool) -> Option<Entry<'a>> {
    let mut content = Vec::new();
    if !input.text.trim().is_empty() {
        // A model has no other way to know that no person speaks.
        let introduced = input.from.as_ref().map(|it| it.attribute(&input.text));
        content.push(text_piece(introduced.as_ref().unwrap_or(&input.text)));
    }
    if let Files::GoAlong { sees, read } = files {
        content.extend(input.attachments.iter().map(|it| attachments::piece(it, *sees, *read)));
        content.extend(input.links().flat_map(|it| attachments::linked(it, *sees && is_newest)));
    }
    match input.role {
        _ if content.is_empty() => None,
        MessageRole::User => Some(Entry::User(content)),
        MessageRole::System => Some(Entry::System(input.text.clone())),
    }
}

/// Converts a run to an assistant message per step, each with its tool calls, and to user messages
/// for steered messages. The actions of sub-agents are left out, because the result of the outer
/// call contains theirs.
fn answer_entries<'a>(answer: &'a RunMessage, reader: &Reader<'_>) -> Vec<Entry<'a>> {
    let is_native = answer.agent == reader.agent && answer.model.as_deref() == reader.model;
    let new_turn = || Turn { is_native, ..Turn::default() };
    let mut entries = Vec::new();
    let mut turn = new_turn();
    for part in answer.parts.iter().filter(|part| part.parent.is_none()) {
        if turn.is_over_before(part) {
            entries.extend(std::mem::replace(&mut turn, new_turn()).into_entries(&reader.files));
        }
        entries.extend(steered_text(part).map(|it| Entry::User(vec![text_piece(it)])));
        turn.add(part);
    }
    turn.cut_off = answer.cancelled;
    entries.extend(turn.into_entries(&reader.files));
    entries
}

/// Returns the text of a part that is a steered message; `None` for other parts, for empty messages
/// and for messages that were returned to the queue.
fn steered_text(part: &Part) -> Option<&str> {
    match &part.kind {
        PartKind::Steered(it) if it.state != SteerState::Returned => {
            Some(it.text.as_str()).filter(|it| !it.trim().is_empty())
        }
        _ => None,
    }
}

impl<'a> Turn<'a> {
    /// Returns whether the model received input before this part: a message, or the result of a
    /// tool call. Until then its texts belong to the same message, so that no two messages of one
    /// run follow each other.
    fn is_over_before(&self, part: &Part) -> bool {
        match &part.kind {
            PartKind::Steered(_) => steered_text(part).is_some(),
            PartKind::Text(_) => self.calls.iter().any(|call| {
                part.step != self.step
                    || call.outcome.as_ref().is_some_and(|it| it.seq < part.first)
            }),
            _ => !self.calls.is_empty() && part.step != self.step,
        }
    }

    fn add(&mut self, part: &'a Part) {
        self.step = part.step;
        match &part.kind {
            PartKind::Text(text) if text.role != TextRole::Discarded && !text.leaked => {
                self.texts.push(&text.text);
                self.ends_with_text |= !text.text.trim().is_empty();
            }
            PartKind::Call(call) => {
                self.calls.push(call);
                self.ends_with_text = false;
            }
            _ => (),
        }
    }

    /// Returns the assistant message, and a user message with the pictures that its tool calls
    /// returned, because tool results can only be text.
    fn into_entries(self, files: &Files<'_>) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let is_empty = self.calls.is_empty() && self.texts.iter().all(|it| it.trim().is_empty());
        let pictures = self.pictures(files);
        let pictures = (!pictures.is_empty()).then_some(Entry::User(pictures));
        (!is_empty).then_some(Entry::Assistant(self)).into_iter().chain(pictures)
    }

    fn pictures(&self, files: &Files<'_>) -> Vec<Value> {
        let Files::GoAlong { sees: true, read } = files else { return Vec::new() };
        let given = self.calls.iter().filter_map(|it| Some((*it, it.outcome.as_ref()?)));
        let pieces = given.flat_map(|(call, outcome)| {
            let pictures = outcome.files.iter().filter(|it| attachments::is_picture(it));
            let pictures: Vec<Value> =
                pictures.map(|it| attachments::piece(it, true, *read)).collect();
            let title = format!("What {} gave:", tool_name(call));
            let title = (!pictures.is_empty()).then(|| text_piece(&title));
            title.into_iter().chain(pictures)
        });
        pieces.collect()
    }

    fn content(&self) -> String {
        let texts = self.texts.iter().filter(|it| !it.trim().is_empty());
        let content = texts.copied().collect::<Vec<_>>().join("\n\n");
        match self.cut_off {
            // The results of the calls contain the interruption.
            _ if !self.ends_with_text => content,
            None => content,
            Some(CancelReason::UserCancel) => content + "\n\n[interrupted by the user]",
            Some(_) => content + "\n\n[interrupted]",
        }
    }
}

/// Makes user and assistant messages alternate, from a user message to one that the assistant has
/// to answer.
fn in_turns(entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    let nudge = || Entry::User(vec![text_piece(NUDGE)]);
    let mut sequencer: Vec<Entry<'_>> = Vec::new();
    for entry in entries {
        match (sequencer.last_mut(), entry) {
            (Some(Entry::System(before)), Entry::System(text)) => *before += &format!("\n\n{text}"),
            (None, Entry::System(text)) => sequencer.push(Entry::System(text)),
            (Some(Entry::User(before)), Entry::User(content)) => before.extend(content),
            // Only the first message may be the system's.
            (Some(Entry::User(before)), Entry::System(text)) => before.push(text_piece(&text)),
            (Some(Entry::Assistant(_)), Entry::System(text)) => {
                sequencer.push(Entry::User(vec![text_piece(&text)]));
            }
            (Some(Entry::Assistant(before)), Entry::Assistant(turn)) => {
                if before.calls.is_empty() {
                    sequencer.push(nudge());
                }
                sequencer.push(Entry::Assistant(turn));
            }
            (None | Some(Entry::System(_)), Entry::Assistant(turn)) => {
                sequencer.extend([nudge(), Entry::Assistant(turn)]);
            }
            (_, entry) => sequencer.push(entry),
        }
    }
    let is_their_turn = match sequencer.last() {
        Some(Entry::User(_)) => true,
        Some(Entry::Assistant(turn)) => !turn.calls.is_empty(),
        Some(Entry::System(_)) | None => false,
    };
    if !is_their_turn {
        sequencer.push(nudge());
    }
    sequencer
}

fn to_json(entries: Vec<Entry<'_>>) -> Vec<Value> {
    let mut ids = CallIds::default();
    let mut messages = Vec::new();
    for entry in entries {
        match entry {
            Entry::System(text) => messages.push(json!({ "role": "system", "content": text })),
            Entry::User(content) => {
                messages.push(json!({ "role": "user", "content": user_content(content) }));
            }
            Entry::Assistant(turn) => assistant_messages(&turn, &mut ids, &mut messages),
        }
    }
    messages
}

/// Returns the content of a user message. It is a string if all parts are text, because not every
/// server supports content parts.
fn user_content(content: Vec<Value>) -> Value {
    let texts: Option<Vec<&str>> = content.iter().map(|it| it["text"].as_str()).collect();
    match texts {
        Some(texts) => Value::String(texts.join("\n\n")),
        None => Value::Array(content),
    }
}

fn assistant_messages(turn: &Turn<'_>, ids: &mut CallIds, messages: &mut Vec<Value>) {
    let content = turn.content();
    if turn.calls.is_empty() {
        messages.push(json!({ "role": "assistant", "content": content }));
        return;
    }
    let content = if content.is_empty() { Value::Null } else { Value::String(content) };
    let calls: Vec<(String, &Call)> =
        turn.calls.iter().map(|call| (ids.assign(call, turn.is_native), *call)).collect();
    let tool_calls: Vec<Value> =
        calls.iter().map(|(id, call)| tool_call(id, call, turn.is_native)).collect();
    let mut message = match turn.calls.first() {
        Some(first) if turn.is_native => wanted_back(first, "message"),
        _ => Map::new(),
    };
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), content);
    message.insert("tool_calls".to_owned(), json!(tool_calls));
    messages.push(Value::Object(message));
    messages.extend(calls.iter().map(
        |(id, call)| json!({ "role": "tool", "tool_call_id": id, "content": result_text(call) }),
    ));
}

fn tool_call(id: &str, call: &Call, is_native: bool) -> Value {
    let mut fields = if is_native { wanted_back(call, "toolCall") } else { Map::new() };
    fields.insert("id".to_owned(), json!(id));
    fields.insert("type".to_owned(), json!("function"));
    let function = json!({ "name": tool_name(call), "arguments": arguments(call) });
    fields.insert("function".to_owned(), function);
    Value::Object(fields)
}

/// Returns the provider's own data of a tool call, or of the message that makes it, which has to be
/// sent back.
fn wanted_back(call: &Call, place: &str) -> Map<String, Value> {
    let data = call.provider_data.as_ref().and_then(|data| data.get(place)?.as_object());
    data.cloned().unwrap_or_default()
}

/// Returns the tool name of a call in the form that providers accept: up to 64 letters, digits, `_`
/// and `-`.
fn tool_name(call: &Call) -> String {
    let letter = |it: char| if it.is_ascii_alphanumeric() || "_-".contains(it) { it } else { '_' };
    call.label().chars().map(letter).take(64).collect()
}

/// Returns the arguments of a tool call as the text of a JSON object. Providers refuse anything
/// else, so other text is put in the field `unreadable`.
fn arguments(call: &Call) -> String {
    let text = call.arguments.whole().unwrap_or_default();
    let is_object = serde_json::from_str::<Value>(&text).is_ok_and(|it| it.is_object());
    match (is_object, text.trim().is_empty()) {
        (true, _) => text,
        (false, true) => "{}".to_owned(),
        (false, false) => json!({ "unreadable": text }).to_string(),
    }
}

/// Returns the result of a tool call as text. A call without a result, because its run is open or
/// was cut off, has an error instead.
fn result_text(call: &Call) -> String {
    let Some(outcome) = &call.outcome else {
        let error = json!({ "code": "tool_interrupted", "message": "This call has no result." });
        return json!({ "ok": false, "error": error }).to_string();
    };
    let result = outcome.result.as_ref().map(Body::both_ends);
    let text = match (&outcome.error, result) {
        (Some(error), result) => {
            let mut failure = json!({ "ok": false, "error": error });
            let result = result.and_then(|it| serde_json::from_str(&it).ok());
            if let (Some(fields), Some(Value::Object(result))) = (failure.as_object_mut(), result) {
                fields.extend(result);
            }
            call.with_output(failure).to_string()
        }
        (None, Some(result)) => match serde_json::from_str(&result) {
            Ok(Value::String(text)) => text,
            Ok(value) if !call.stdout.is_empty() || !call.stderr.is_empty() => {
                call.with_output(value).to_string()
            }
            _ => result,
        },
        (None, None) => call.stdout.both_ends(),
    };
    if text.trim().is_empty() { "(no output)".to_owned() } else { text }
}

fn text_piece(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[cfg(test)]
mod tests;
