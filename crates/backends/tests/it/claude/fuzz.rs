//! Fuzz tests: recordings with lines dropped, doubled, swapped, cut and changed, inserted nonsense,
//! and people who act at any time. The stage checks that every run stays well formed.

use std::sync::LazyLock;

use backends::{Exit, Verdict};
use proptest::prelude::*;
use serde_json::json;
use transcript::Scope;

use super::recording::{Step, recordings};
use super::stage::Stage;
use crate::corruptions::corruption;

static SAID: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let output_line = |step: Step| match step {
        Step::Output(line) => Some(line),
        _ => None,
    };
    recordings()
        .into_iter()
        .map(|it| it.steps.into_iter().filter_map(output_line).collect())
        .collect()
});

/// An action of a person or of the clock before a line arrives.
#[derive(Debug, Clone, Copy)]
enum Action {
    Start,
    Steer,
    Interrupt,
    Wake,
    Allow,
    AllowEdited,
    Deny,
    TimeOut,
}

fn nonsense() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,20}",
        "[\\[\\]{}:,\"a1 ]{0,20}",
        Just(r#"{"type":"system"}"#.to_owned()),
        Just(r#"{"type":"result"}"#.to_owned()),
        Just(r#"{"type":"control_request","request_id":"q"}"#.to_owned()),
        Just(r#"{"type":"user","message":{"content":"hi"}}"#.to_owned()),
        Just(r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}}"#.into()),
        Just(r#"{"type":"stream_event","event":{"type":"message_stop"}}"#.to_owned()),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    use Action::*;
    let all = vec![Start, Steer, Interrupt, Wake, Allow, Allow, AllowEdited, Deny, TimeOut];
    prop::sample::select(all)
}

fn perform(action: Action, stage: &mut Stage) {
    let message = json!({ "role": "user", "content": "hi" });
    let verdict = match action {
        Action::Start if stage.run.is_none() && !stage.has_quit => {
            stage.start(&message);
            return;
        }
        Action::Start => return,
        Action::Steer => {
            stage.steer(&message);
            return;
        }
        Action::Interrupt => {
            stage.interrupt();
            return;
        }
        Action::Wake => {
            stage.wake();
            return;
        }
        Action::Allow => Verdict::Allowed { arguments: None, scope: Scope::Once },
        Action::AllowEdited => {
            Verdict::Allowed { arguments: Some("{\"a\":1".into()), scope: Scope::Always }
        }
        Action::Deny => Verdict::Denied { feedback: None },
        Action::TimeOut => Verdict::TimedOut,
    };
    let question = stage.run.as_ref().and_then(|run| run.questions().next().cloned());
    if let Some(call_id) = question {
        stage.decide(&call_id, verdict);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn changed_recordings_give_well_formed_runs(
        which in 0..1000usize,
        corruptions in prop::collection::vec(corruption(400, nonsense()), 0..8),
        actions in prop::collection::vec((0..80usize, action()), 0..8),
    ) {
        let mut lines = SAID[which % SAID.len()].clone();
        corruptions.iter().for_each(|it| it.happen_to(&mut lines));
        let mut stage = Stage::new();
        perform(Action::Start, &mut stage);
        for (at, line) in lines.iter().enumerate() {
            for (_, action) in actions.iter().filter(|(when, _)| *when == at) {
                perform(*action, &mut stage);
            }
            stage.line(line);
        }
        stage.exit(Exit { code: Some(1), stderr: String::new() });
        prop_assert!(stage.run.is_none());
        // Lines after the exit start nothing.
        for line in &lines {
            prop_assert!(stage.line(line).is_empty());
        }
    }

    #[test]
    fn interleaved_recordings_leave_no_run_open(
        a in 0..1000usize,
        b in 0..1000usize,
        turns in prop::collection::vec(any::<bool>(), 0..80),
    ) {
        let (mut a, mut b) = (SAID[a % SAID.len()].iter(), SAID[b % SAID.len()].iter());
        let mut stage = Stage::new();
        perform(Action::Start, &mut stage);
        for first in turns {
            if let Some(line) = if first { a.next() } else { b.next() } {
                stage.line(line);
            }
        }
        stage.exit(Exit { code: None, stderr: String::new() });
        prop_assert!(stage.run.is_none());
    }
}
