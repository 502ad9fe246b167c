//! Messages for the active run: when the model gets them, and when they are given back.

use serde_json::json;
use transcript::{Event, MessageId};

use super::{Stage, settings};
use crate::RunInput;

#[test]
fn a_message_goes_into_the_next_step_after_the_results() {
    let mut stage = Stage::start(settings());
    stage.steer("early");
    stage.step_with_calls(1);
    stage.steer("late");
    assert!(stage.steered().is_empty(), "no conversation can take it before the results");
    stage.result("r.1");
    assert_eq!(stage.asked.last().unwrap(), "read");
    stage.steer("last");
    let handed_over = ["early HandedOver", "late HandedOver", "last HandedOver"];
    assert_eq!(stage.steered(), handed_over);
    stage.history();
    stage.refuse(500, &[], "");
    stage.wake();
    assert_eq!(stage.steered().len(), 3, "nobody has seen it who did not answer");
    stage.head(200, &[]);
    stage.say(json!({ "content": "I see." }));
    assert_eq!(stage.steered()[3..], ["early Seen", "late Seen", "last Seen"]);
    stage.finish("stop");
    assert!(!stage.asked.iter().any(|it| it.starts_with("cannot")), "{:?}", stage.asked);
}

#[test]
fn a_message_without_a_next_step_is_given_back() {
    let answered = |stage: &mut Stage| {
        stage.head(200, &[]);
        stage.say(json!({ "content": "Done." }));
        stage.finish("stop");
    };
    let refused = |stage: &mut Stage| stage.refuse(401, &[], "");
    let stopped = |stage: &mut Stage| stage.give(RunInput::Interrupt);
    for end in [answered as fn(&mut Stage), refused, stopped] {
        let mut stage = Stage::start(settings());
        stage.steer("one");
        stage.steer("two");
        end(&mut stage);
        assert_eq!(stage.asked[1..], ["cannot steer one", "cannot steer two"]);
        assert!(stage.steered().is_empty());
    }
    for end in [refused as fn(&mut Stage), stopped] {
        let mut stage = Stage::start(settings());
        stage.step_with_calls(1);
        stage.steer("handed over");
        stage.result("r.1");
        stage.history();
        stage.steer("waiting");
        end(&mut stage);
        let back = ["cannot steer handed over", "cannot steer waiting"];
        assert_eq!(stage.asked[stage.asked.len() - 2..], back, "no model has seen either");
    }
}

impl Stage {
    fn steer(&mut self, id: &str) {
        let message = json!({ "role": "user", "content": id });
        self.give(RunInput::Steer { message_id: MessageId::new(id), message });
    }

    /// Events about steered messages.
    fn steered(&self) -> Vec<String> {
        let steered = self.events.iter().filter_map(|event| match event {
            Event::MessageSteered { message_id, state, .. } => {
                Some(format!("{message_id} {state:?}"))
            }
            _ => None,
        });
        steered.collect()
    }
}
