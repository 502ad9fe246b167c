//! Examples for reading: what a session does, effect by effect.

use transcript::{ErrorCode, Event, SendMode};

use super::agents::succeeded;
use super::world::{Kind, World};
use crate::{
    Answer, Answered, Approval, Command, MessageState, NewMessage, Receipt, Refused, ReplyId,
    Ruling, ToolEvent,
};

/// Names of the events in the log.
fn names(world: &World) -> Vec<String> {
    let name = |event: &Event| {
        let json = serde_json::to_value(event).unwrap();
        json["type"].as_str().unwrap().to_owned()
    };
    world.log.iter().map(|it| name(&it.event)).collect()
}

fn send(world: &mut World, text: &str, mode: SendMode) -> ReplyId {
    let message = NewMessage { mode, ..NewMessage::of_person(text) };
    world.command(|reply| Command::Send { message, reply })
}

fn state_of(world: &World, caller: ReplyId) -> MessageState {
    match &world.replies[&caller] {
        Ok(Answer::Receipt(Receipt { state, .. })) => *state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_approved_runs_and_the_answer_follows() {
    let mut world = World::new(Kind::Model);
    let caller = send(&mut world, "Hello", SendMode::Queue);
    world.run_driver();
    assert_eq!(state_of(&world, caller), MessageState::Started);
    for _ in 0..2 {
        let run = world.session.phase.run().unwrap();
        let call_id = run.pending.approvals().next().unwrap().0.clone();
        let answer = Answered::Accepted { scope: transcript::Scope::Once, arguments: None };
        let approval = Approval { call_id, answer, feedback: None, by: "user".to_owned() };
        world.command(|reply| Command::Approve { approval, reply });
        world.run_driver();
        world.tool(|| ToolEvent::Done(succeeded()));
        world.run_driver();
    }
    assert_eq!(
        names(&world),
        [
            "session_created",
            "user_message",
            "run_start",
            "step_start",
            "tool_call_start",
            "tool_arguments_done",
            "tool_call_start",
            "tool_arguments_done",
            "step_finish",
            "tool_approval_requested",
            "tool_approval_requested",
            "tool_approval_resolved",
            "tool_running",
            "tool_result",
            "tool_approval_resolved",
            "tool_running",
            "tool_result",
            "step_start",
            "text_start",
            "text_delta",
            "text_done",
            "step_finish",
            "run_finish",
        ]
    );
}

#[test]
fn a_cancel_before_the_agent_knows_of_the_run_ends_it() {
    let mut world = World::new(Kind::Model);
    send(&mut world, "Hello", SendMode::Queue);
    world.settle();
    world.command(|reply| Command::Cancel { by: "user".to_owned(), unless_asking: false, reply });
    world.run_driver();
    let last = ["run_start", "cancel_requested", "output_cancelled", "run_finish"];
    assert!(names(&world).ends_with(&last.map(str::to_owned)), "{:?}", names(&world));
}

#[test]
fn the_second_decision_is_refused_with_the_first() {
    let mut world = World::new(Kind::Model);
    send(&mut world, "Hello", SendMode::Queue);
    world.run_driver();
    let run = world.session.phase.run().unwrap();
    let call_id = run.pending.approvals().next().unwrap().0.clone();
    let decide = |world: &mut World, by: &str| {
        let answer = Answered::Rejected;
        let (call_id, by) = (call_id.clone(), by.to_owned());
        let approval = Approval { call_id, answer, feedback: None, by };
        world.command(|reply| Command::Approve { approval, reply })
    };
    let (first, second) = (decide(&mut world, "ann"), decide(&mut world, "bob"));
    world.run_driver();
    assert_eq!(world.replies[&first], Ok(Answer::Done));
    assert!(matches!(&world.replies[&second], Err(Refused::Decided { by, .. }) if by == "ann"));
}

#[test]
fn commands_keep_their_order_while_one_waits_for_the_store() {
    let mut world = World::new(Kind::Model);
    let keyed = NewMessage {
        client_id: Some(transcript::ClientId::new("k")),
        ..NewMessage::of_person("first")
    };
    world.command(|reply| Command::Send { message: keyed, reply });
    send(&mut world, "second", SendMode::Queue);
    world.run_driver();
    let texts: Vec<&str> = world
        .log
        .iter()
        .filter_map(|it| match &it.event {
            Event::UserMessage { text, .. } | Event::MessageQueued { text, .. } => {
                Some(text.as_str())
            }
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["first", "second"]);
}

#[test]
fn a_program_cannot_resume_a_run() {
    let mut world = World::new(Kind::Model);
    send(&mut world, "Hello", SendMode::Queue);
    world.run_driver();
    world.crash();
    assert!(world.session.has_run(), "it waits for a person");
    world.kind = Kind::Program;
    world.run_driver();
    let run = world.runs().pop().unwrap();
    assert_eq!(run.finish.unwrap().error.unwrap().code, ErrorCode::AgentExited);
    assert!(!world.session.has_run() && world.session.agent.is_none());
}

#[test]
fn a_denied_call_never_runs() {
    let mut world = World::new(Kind::Model);
    world.ruling = Ruling::Deny;
    send(&mut world, "Hello", SendMode::Queue);
    world.run_driver();
    assert!(world.started.is_empty());
    assert_eq!(names(&world).iter().filter(|it| *it == "tool_result").count(), 2);
    assert_eq!(names(&world).last().unwrap(), "run_finish");
}
