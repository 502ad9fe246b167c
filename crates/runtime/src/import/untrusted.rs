//! Removes rights on this server from imported records.
//!
//! Records can carry rights: grants, a confirmed workspace, and the id with which a program resumes
//! its own conversation. Imported records must not have them. The values are checked again where they
//! are used, because earlier versions imported logs without this step.

use backends::ResumeId;
use transcript::{Event, Level, Record};

/// Removes rights on this server from all imported records, before the records are stored.
pub(super) fn strip_all(records: &mut [Record]) {
    for record in records {
        strip(&mut record.event);
    }
}

/// Removes rights on this server from an imported event. The match lists all other events, so that
/// each new event requires a decision here.
fn strip(event: &mut Event) {
    match event {
        Event::ToolApprovalResolved { covers, .. } => *covers = None,
        Event::SessionCreated { workspace_confirmed, .. }
        | Event::SessionUpdated { workspace_confirmed, .. } => *workspace_confirmed = false,
        Event::AgentLinked { cli_session_id, .. } => {
            if ResumeId::parse(cli_session_id).is_none() {
                let text = "The link to the program's own conversation was not imported: its id is \
                            not valid. The program will start a new conversation.";
                *event = Event::Notice { level: Level::Info, text: text.to_owned() };
            }
        }
        Event::UserMessage { .. }
        | Event::ClientTools { .. }
        | Event::MessageQueued { .. }
        | Event::MessageEdited { .. }
        | Event::MessageMoved { .. }
        | Event::MessageDropped { .. }
        | Event::MessageDequeued { .. }
        | Event::MessageSteered { .. }
        | Event::QueueHeld { .. }
        | Event::QueueReleased {}
        | Event::HistoryRewound { .. }
        | Event::RunStart { .. }
        | Event::RunFinish { .. }
        | Event::Continuation { .. }
        | Event::StepStart { .. }
        | Event::StepFinish { .. }
        | Event::TextStart { .. }
        | Event::TextDelta { .. }
        | Event::TextDone { .. }
        | Event::ThinkingStart { .. }
        | Event::ThinkingDelta { .. }
        | Event::ThinkingDone { .. }
        | Event::PartExtras { .. }
        | Event::ToolCallStart { .. }
        | Event::ToolArgumentsDelta { .. }
        | Event::ToolArgumentsDone { .. }
        | Event::ToolApprovalRequested { .. }
        | Event::ToolGranted { .. }
        | Event::GrantRevoked { .. }
        | Event::ToolRunning { .. }
        | Event::ToolOutputDelta { .. }
        | Event::ToolRetry { .. }
        | Event::ToolResult { .. }
        | Event::AgentMessage { .. }
        | Event::AgentProgress { .. }
        | Event::AgentCallbackResult { .. }
        | Event::Notice { .. }
        | Event::CancelRequested { .. }
        | Event::OutputCancelled { .. }
        | Event::Unrecognized { .. }
        | Event::Other(_) => (),
    }
}
