//! Our extension, which asks before a tool runs, and what if it is not there.

use backends::Input;
use expect_test::expect;
use serde_json::json;
use transcript::ResponseId;

use super::examples::check;
use super::stage::{ANNOUNCEMENT, Stage};

/// It would ask about nothing.
#[test]
fn pi_without_our_extension_gets_nothing_to_do() {
    let mut stage = Stage::without_extension(true);
    stage.start("go");
    stage.steer("wait");
    stage.answer_states();
    assert!(stage.has_quit && stage.is_idle());
    check(
        &stage,
        3,
        expect![[r#"
            > start "go"
            < {"id":"state-1","type":"get_state"}
            > steer "wait"
            cannot_steer m1
            continuation {"shouldContinue":false,"stopReason":"error","resolvedBy":"ErrorPolicy"}
            quit
            end Failed agent_exited: Pi has not loaded Callboard's extension, so it would run every tool without asking. Callboard has not given it the message, and ends it. See what Pi prints when it is started and what this agent's `args` say of extensions; or set `permission_mode = "auto"`, and nothing is asked.
        "#]],
    );
    let mut stage = Stage::without_extension(true);
    stage.start("go");
    stage.give(Input::Interrupt);
    assert!(stage.is_idle(), "there is nothing to wait for");

    let mut stage = Stage::without_extension(true);
    stage.give(Input::Spare(ResponseId::new("self0")));
    stage.say(json!({ "type": "agent_start" }));
    assert!(stage.has_quit && stage.is_idle(), "nor may it do anything by itself");

    let mut stage = Stage::without_extension(true);
    stage.start("go");
    stage.said(ANNOUNCEMENT);
    assert!(stage.writes().last().is_some_and(|it| it.contains(r#""prompt""#)));
}
