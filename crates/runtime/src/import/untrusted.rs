//! Removes everything from imported records that would grant a right on this server.
//!
//! A log that was written on this server has records with consequences: grants, a confirmed
//! workspace, the id with which a program resumes its own conversation. Imported records must not
//! have them. The same checks run again where the values are used, because logs of earlier versions
//! were imported without this step.

use backends::ResumeId;
use transcript::{Event, Level, Record};

/// Removes granted rights from all records of an import before they are stored.
pub(super) fn strip_all(records: &mut [Record]) {
    for record in records {
        strip(&mut record.event);
    }
}

/// Removes granted rights from an event. Other events are listed, so that a new one needs a
/// decision here.
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
