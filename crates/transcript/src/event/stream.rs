//! Deltas: the stream that each one continues, the events that close a stream, and merging.
//!
//! A *stream* grows by deltas: a text, a thinking block, the arguments of a call, one output stream of
//! a call. Its closing record covers its deltas: a reader that gets the closing record does not need
//! them. Output is the exception: its closing record does not repeat it. A merged delta replaces the
//! ones before it, and `offset` makes it safe to receive a section twice.

use crate::{CallId, Event, OutputStream, PartId};

/// Identifies a stream of deltas within a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StreamKey {
    /// The deltas of a text.
    Text(PartId),
    /// The deltas of a thinking block.
    Thinking(PartId),
    /// The deltas of the arguments of a tool call.
    Arguments(CallId),
    /// The deltas of one output stream of a tool call.
    Output(CallId, OutputStream),
}

/// Returns the stream that a delta event continues; `None` for other events.
pub fn continued_by(event: &Event) -> Option<StreamKey> {
    match event {
        Event::TextDelta { part_id, .. } => Some(StreamKey::Text(part_id.clone())),
        Event::ThinkingDelta { part_id, .. } => Some(StreamKey::Thinking(part_id.clone())),
        Event::ToolArgumentsDelta { call_id, .. } => Some(StreamKey::Arguments(call_id.clone())),
        Event::ToolOutputDelta { call_id, stream, .. } => {
            Some(StreamKey::Output(call_id.clone(), *stream))
        }
        _ => None,
    }
}

/// Returns the streams that an event closes, so that no more deltas of them follow.
pub fn closed_by(event: &Event) -> Vec<StreamKey> {
    match event {
        Event::TextDone { part_id, .. } => vec![StreamKey::Text(part_id.clone())],
        Event::ThinkingDone { part_id, .. } => vec![StreamKey::Thinking(part_id.clone())],
        Event::ToolArgumentsDone { call_id, .. } => vec![StreamKey::Arguments(call_id.clone())],
        Event::ToolResult { call_id, .. } => vec![
            StreamKey::Output(call_id.clone(), OutputStream::Stdout),
            StreamKey::Output(call_id.clone(), OutputStream::Stderr),
        ],
        _ => Vec::new(),
    }
}

/// Maximum size of a merged delta in bytes.
pub const MERGED_MAX: usize = 64 * 1024;

/// Appends the delta `next` to the delta `event` if both are adjacent deltas of one stream and the
/// result is not too long. Otherwise changes nothing and returns false.
pub fn merge(event: &mut Event, next: &Event) -> bool {
    let same_stream = continued_by(event).is_some_and(|key| continued_by(next) == Some(key));
    let (Some((offset, delta)), Some((next_offset, more))) = (delta_of(event), delta_of(next))
    else {
        return false;
    };
    let adjoins = offset.map(|it| it.saturating_add(delta.len() as u64)) == next_offset;
    if !same_stream || !adjoins || delta.len() + more.len() > MERGED_MAX {
        return false;
    }
    if let Some(delta) = delta_mut(event) {
        delta.push_str(more);
    }
    true
}

/// Returns the byte offset (only of tool output) and the text of a delta; `None` for other events.
pub fn delta_of(event: &Event) -> Option<(Option<u64>, &str)> {
    match event {
        Event::TextDelta { delta, .. }
        | Event::ThinkingDelta { delta, .. }
        | Event::ToolArgumentsDelta { delta, .. } => Some((None, delta)),
        Event::ToolOutputDelta { offset, delta, .. } => Some((Some(*offset), delta)),
        _ => None,
    }
}

fn delta_mut(event: &mut Event) -> Option<&mut String> {
    match event {
        Event::TextDelta { delta, .. }
        | Event::ThinkingDelta { delta, .. }
        | Event::ToolArgumentsDelta { delta, .. }
        | Event::ToolOutputDelta { delta, .. } => Some(delta),
        _ => None,
    }
}
