//! Arguments that are known when a call begins go into its start, because some clients read nothing later.

use std::collections::HashMap;

use backends::Effect;
use transcript::{CallId, Event};

/// Copies complete arguments into the start of their call. Deltas add to what the start says, so a call that
/// has any keeps a start without arguments.
pub(crate) fn announce_arguments(effects: &mut [Effect]) {
    let starts = |it: &Effect| matches!(it, Effect::Emit(Event::ToolCallStart { .. }));
    if !effects.iter().any(starts) {
        return;
    }
    let complete = effects.iter().filter_map(|it| match it {
        Effect::Emit(Event::ToolArgumentsDone {
            call_id, arguments, incomplete: false, ..
        }) => Some((call_id.clone(), arguments.clone())),
        _ => None,
    });
    let mut complete: HashMap<CallId, String> = complete.collect();
    for effect in &*effects {
        if let Effect::Emit(Event::ToolArgumentsDelta { call_id, .. }) = effect {
            complete.remove(call_id);
        }
    }
    for effect in effects {
        if let Effect::Emit(Event::ToolCallStart { call_id, arguments, .. }) = effect
            && arguments.is_none()
        {
            *arguments = complete.remove(call_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use transcript::{Executor, Validation};

    use super::*;

    fn start(call: &str) -> Effect {
        Effect::Emit(Event::ToolCallStart {
            call_id: CallId::new(call),
            provider_call_id: None,
            tool_name: "t".to_owned(),
            arguments: None,
            parent_call_id: None,
            executor: Executor::Agent,
        })
    }

    fn done(call: &str, incomplete: bool) -> Effect {
        Effect::Emit(Event::ToolArgumentsDone {
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
        let mut effects = vec![
            start("a"),
            start("b"),
            start("c"),
            start("d"),
            done("a", false),
            Effect::Emit(delta),
            done("b", false),
            done("c", true),
        ];
        announce_arguments(&mut effects);
        let announced = |it: &Effect| match it {
            Effect::Emit(Event::ToolCallStart { arguments, .. }) => Some(arguments.clone()),
            _ => None,
        };
        let announced: Vec<_> = effects.iter().filter_map(announced).collect();
        assert_eq!(announced, [Some("\"a\"".to_owned()), None, None, None]);
    }
}
