//! Removes rights on this server from imported records.
//!
//! Records can carry rights: grants, a confirmed workspace, and the id with which a program resumes
//! its own conversation. Imported records must not have them. The values are checked again where they
//! are used, because earlier versions imported logs without this step.

use backends::ResumeId;
use transcript::{Event, EventGroup, Level, Record};

/// Removes rights on this server from all imported records, before the records are stored.
pub(super) fn strip_all(records: &mut [Record]) {
    for record in records {
        strip(&mut record.event);
    }
}

/// Removes rights on this server from an imported event. Other groups carry none.
fn strip(event: &mut Event) {
    match event.group() {
        EventGroup::Session => strip_session(event),
        EventGroup::Call => {
            if let Event::ToolApprovalResolved { covers, .. } = event {
                *covers = None;
            }
        }
        EventGroup::Queue
        | EventGroup::Run
        | EventGroup::Part
        | EventGroup::Exchange
        | EventGroup::Other => (),
    }
}

fn strip_session(event: &mut Event) {
    match event {
        Event::SessionCreated { workspace_confirmed, .. }
        | Event::SessionUpdated { workspace_confirmed, .. } => *workspace_confirmed = false,
        Event::AgentLinked { cli_session_id, .. } if ResumeId::parse(cli_session_id).is_none() => {
            let text = "The link to the program's own conversation was not imported: its id is not \
                        valid. The program will start a new conversation.";
            *event = Event::Notice { level: Level::Info, text: text.to_owned() };
        }
        _ => (),
    }
}
