//! Arguments that are known when a call begins go into its start, because some clients read nothing later.

use std::collections::HashMap;

use transcript::{CallId, Event};

use crate::lanes::Work;

/// Copies the complete arguments of a tool call into its start event, if `work` contains both. A
/// tool call whose arguments arrive in deltas keeps a start event without arguments.
pub(crate) fn announce_arguments(work: &mut [Work]) {
    let mut events: Vec<&mut Event> = work.iter_mut().filter_map(Work::emitted).collect();
    if !events.iter().any(|it| matches!(it, Event::ToolCallStart { .. })) {
        return;
    }
    let complete = events.iter().filter_map(|it| match it {
        Event::ToolArgumentsDone { call_id, arguments, incomplete: false, .. } => {
            Some((call_id.clone(), arguments.clone()))
        }
        _ => None,
    });
    let mut complete: HashMap<CallId, String> = complete.collect();
    for event in &events {
        if let Event::ToolArgumentsDelta { call_id, .. } = event {
            complete.remove(call_id);
        }
    }
    for event in &mut events {
        if let Event::ToolCallStart { call_id, arguments, .. } = event
            && arguments.is_none()
        {
            *arguments = complete.remove(call_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use backends::RunEffect;
    use transcript::{Executor, Validation};

    use super::*;

    fn emit(event: Event) -> Work {
        Work::Program(RunEffect::Emit(event).into())
    }

    fn start(call: &str) -> Work {
        emit(Event::ToolCallStart {
            call_id: CallId::new(call),
            provider_call_id: None,
            tool_name: "t".to_owned(),
            arguments: None,
            parent_call_id: None,
            executor: Executor::Agent,
        })
    }

    fn done(call: &str, incomplete: bool) -> Work {
        emit(Event::ToolArgumentsDone {
            call_id: CallId::new(call),
            arguments: format!("\"{call}\""),
            summary: String::new(),
            incomplete,
            validation: Validation::NotRequired,
            provider_data: None,
        })
    }

    #[test]
    fn a_start_has_arguments_that_are_complete() {
        let delta = Event::ToolArgumentsDelta { call_id: CallId::new("b"), delta: "\"".to_owned() };
        let mut work = vec![
            start("a"),
            start("b"),
            start("c"),
            start("d"),
            done("a", false),
            emit(delta),
            done("b", false),
            done("c", true),
        ];
        announce_arguments(&mut work);
        let announced = |it: &mut Work| match it.emitted() {
            Some(Event::ToolCallStart { arguments, .. }) => Some(arguments.clone()),
            _ => None,
        };
        let announced: Vec<_> = work.iter_mut().filter_map(announced).collect();
        assert_eq!(announced, [Some("\"a\"".to_owned()), None, None, None]);
    }
}
