//! Fuzz tests: recordings with lines dropped, doubled, swapped, cut and changed, inserted nonsense,
//! and people who act at any time. The stage checks that every run stays well formed.

use std::sync::LazyLock;

use backends::{Exit, Verdict};
use proptest::prelude::*;
use serde_json::json;
use transcript::Scope;

use super::recording::{Step, recordings};
use super::stage::Stage;
use crate::mishaps::mishap;

static SAID: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let said = |step: Step| match step {
        Step::Said(line) => Some(line),
        _ => None,
    };
    recordings().into_iter().map(|it| it.steps.into_iter().filter_map(said).collect()).collect()
});

/// An action of a person or of the clock before a line arrives.
#[derive(Debug, Clone, Copy)]
enum Deed {
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

fn deed() -> impl Strategy<Value = Deed> {
    use Deed::*;
    let all = vec![Start, Steer, Interrupt, Wake, Allow, Allow, AllowEdited, Deny, TimeOut];
    prop::sample::select(all)
}

fn perform(deed: Deed, stage: &mut Stage) {
    let message = json!({ "role": "user", "content": "hi" });
    let verdict = match deed {
        Deed::Start if stage.run.is_none() && !stage.has_quit => {
            stage.start(&message);
            return;
        }
        Deed::Start => return,
        Deed::Steer => {
            stage.steer(&message);
            return;
        }
        Deed::Interrupt => {
            stage.interrupt();
            return;
        }
        Deed::Wake => {
            stage.wake();
            return;
        }
        Deed::Allow => Verdict::Allowed { arguments: None, scope: Scope::Once },
        Deed::AllowEdited => {
            Verdict::Allowed { arguments: Some("{\"a\":1".into()), scope: Scope::Always }
        }
        Deed::Deny => Verdict::Denied { feedback: None },
        Deed::TimeOut => Verdict::TimedOut,
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
        mishaps in prop::collection::vec(mishap(400, nonsense()), 0..8),
        deeds in prop::collection::vec((0..80usize, deed()), 0..8),
    ) {
        let mut lines = SAID[which % SAID.len()].clone();
        mishaps.iter().for_each(|it| it.happen_to(&mut lines));
        let mut stage = Stage::new();
        perform(Deed::Start, &mut stage);
        for (at, line) in lines.iter().enumerate() {
            for (_, deed) in deeds.iter().filter(|(when, _)| *when == at) {
                perform(*deed, &mut stage);
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
        perform(Deed::Start, &mut stage);
        for first in turns {
            if let Some(line) = if first { a.next() } else { b.next() } {
                stage.line(line);
            }
        }
        stage.exit(Exit { code: None, stderr: String::new() });
        prop_assert!(stage.run.is_none());
    }
}
