//! The start that an event lacks: what grows by deltas begins with a start record, which fixes its
//! place, so that readers may go without the deltas.

use crate::{Answer, Event, Executor};

/// The record to write before `event`, if `event` speaks of something that never began. Not every
/// program says when a text starts, and some give it whole.
pub fn missing_start(answer: &Answer, event: &Event) -> Option<Event> {
    match event {
        Event::TextDelta { part_id, parent_call_id, .. }
        | Event::TextDone { part_id, parent_call_id, .. } => {
            (!answer.knows_text(part_id)).then(|| Event::TextStart {
                part_id: part_id.clone(),
                parent_call_id: parent_call_id.clone(),
            })
        }
        Event::ThinkingDelta { part_id, parent_call_id, .. }
        | Event::ThinkingDone { part_id, parent_call_id, .. } => (!answer.knows_thinking(part_id))
            .then(|| Event::ThinkingStart {
                part_id: part_id.clone(),
                parent_call_id: parent_call_id.clone(),
            }),
        Event::ToolArgumentsDelta { call_id, .. } | Event::ToolOutputDelta { call_id, .. } => {
            answer.call(call_id).is_none().then(|| Event::ToolCallStart {
                call_id: call_id.clone(),
                provider_call_id: None,
                tool_name: String::new(),
                arguments: None,
                parent_call_id: None,
                executor: Executor::Agent,
            })
        }
        _ => None,
    }
}
