//! All orders of what clients, tools, the agent, the driver and the disk do.
//!
//! A scenario is a few threads of actions. The order of a thread's actions is fixed, and at every moment any thread
//! may go on, or the driver may send any reply that it owes. A run of the scenario is a list of choices; the next run
//! takes the last choice that has an alternative and takes that, until all have been tried.

use std::collections::VecDeque;

use transcript::{CallId, ClientId, ExchangeId, RewindReason, Scope, SendMode};

use super::laws::{check_always, check_at_rest};
use super::world::{Kind, World};
use crate::{
    Answered, Approval, Command, Input, NewMessage, QueuedChange, RelayedCall, ReplyId, ReplyTo,
    Ruling, ToolEvent,
};

type Action = fn(&mut World);

/// Most runs of one scenario: more would mean that it has more orders than were meant.
const MAX_RUNS: usize = 400_000;

/// Choices of one run: which alternative was taken of how many.
#[derive(Default)]
struct Choices {
    taken: Vec<(usize, usize)>,
    next: usize,
}

impl Choices {
    fn choose(&mut self, alternatives: usize) -> usize {
        if self.next == self.taken.len() {
            self.taken.push((0, alternatives));
        }
        let (choice, of) = self.taken[self.next];
        assert_eq!(of, alternatives, "the machine is deterministic");
        self.next += 1;
        choice
    }

    /// Moves on to the next run. Returns false if there is none.
    fn advance(&mut self) -> bool {
        self.next = 0;
        while let Some((choice, of)) = self.taken.pop() {
            if choice + 1 < of {
                self.taken.push((choice + 1, of));
                return true;
            }
        }
        false
    }
}

/// When the driver settles.
#[derive(Clone, Copy)]
enum Settling {
    /// After every input, as when inputs come one by one.
    AfterEach,
    /// When there is nothing else to do, as when all inputs come in one round.
    AtTheEnd,
}

/// Runs all orders of a scenario and checks the laws. Returns how many there were.
fn explore(
    begin: impl Fn() -> World,
    threads: &[&[Action]],
    settling: Settling,
    finish: impl Fn(&World),
) -> usize {
    let mut choices = Choices::default();
    let mut runs = 0;
    loop {
        let mut world = begin();
        let mut threads: Vec<VecDeque<Action>> =
            threads.iter().map(|it| it.iter().copied().collect()).collect();
        loop {
            threads.retain(|it| !it.is_empty());
            let alternatives = threads.len() + world.n_owed();
            if alternatives == 0 {
                world.settle();
                if world.n_owed() == 0 {
                    break;
                }
                continue;
            }
            let choice = choices.choose(alternatives);
            match threads.get_mut(choice).and_then(VecDeque::pop_front) {
                Some(action) => action(&mut world),
                None => world.pay(choice - threads.len()),
            }
            if matches!(settling, Settling::AfterEach) {
                world.settle();
                check_always(&world);
            }
        }
        end(&mut world);
        check_at_rest(&world);
        finish(&world);
        runs += 1;
        assert!(runs <= MAX_RUNS, "more orders than were meant");
        if !choices.advance() {
            return runs;
        }
    }
}

/// Brings a scenario to rest: tools and programs end, and what is still open is cancelled.
fn end(world: &mut World) {
    for _ in 0..20 {
        world.run_driver();
        wait_long(world);
        world.run_driver();
        while !world.running.is_empty() {
            world.finish_tool();
            world.run_driver();
        }
        if world.session.is_closed() && !world.is_deleted {
            // A run that waits for a person continues with the next server.
            world.crash();
            continue;
        }
        if !world.session.has_run() || world.is_deleted {
            break;
        }
        world.command(cancel);
    }
}

fn both(begin: impl Fn() -> World, threads: &[&[Action]]) -> usize {
    explore(&begin, threads, Settling::AfterEach, |_| ())
        + explore(&begin, threads, Settling::AtTheEnd, |_| ())
}

fn cancel(reply: ReplyTo<Option<transcript::ResponseId>>) -> Command {
    Command::Cancel { by: "user".to_owned(), unless_asking: false, reply }
}

fn send(world: &mut World, text: &str, mode: SendMode) -> ReplyId {
    let message = NewMessage { mode, ..NewMessage::of_person(text) };
    world.command(|reply| Command::Send { message, reply })
}

/// A session whose agent has been asked something, and works.
fn working(kind: Kind, ruling: Ruling) -> World {
    let mut world = World::new(kind);
    world.ruling = ruling;
    send(&mut world, "Hello", SendMode::Queue);
    world.run_driver();
    world
}

fn first_pending(world: &World) -> CallId {
    let run = world.session.phase.run();
    let pending = run.and_then(|it| it.pending.approvals().next().map(|(id, _)| id.clone()));
    pending.or_else(|| world.started.keys().min().cloned()).unwrap_or_else(|| CallId::new("none.1"))
}

fn decide(world: &mut World, answer: Answered) {
    let call_id = first_pending(world);
    let approval = Approval { call_id, answer, feedback: None, by: "user".to_owned() };
    let caller = world.command(|reply| Command::Approve { approval, reply });
    world.decisions.push(caller);
}

fn accept_scoped(world: &mut World, scope: Scope) {
    decide(world, Answered::Accepted { scope, arguments: None });
}

// Actions.

fn accept(world: &mut World) {
    accept_scoped(world, Scope::Once);
}

fn accept_session(world: &mut World) {
    accept_scoped(world, Scope::Session);
}

fn accept_edited(world: &mut World) {
    decide(world, Answered::Accepted { scope: Scope::Once, arguments: Some("{\"a\":1}".into()) });
}

fn reject(world: &mut World) {
    decide(world, Answered::Rejected);
}

fn undo(world: &mut World) {
    let call_id = first_pending(world);
    world.command(|reply| Command::UndoApproval { call_id, by: "user".to_owned(), reply });
}

fn stop_run(world: &mut World) {
    world.command(cancel);
}

fn stop_unless_asking(world: &mut World) {
    world.command(|reply| Command::Cancel { by: "user".into(), unless_asking: true, reply });
}

fn stop_server(world: &mut World) {
    world.command(|reply| Command::Stop { reply });
}

fn delete(world: &mut World) {
    world.command(|reply| Command::Delete { reply });
}

fn queue(world: &mut World) {
    send(world, "Next", SendMode::Queue);
}

fn steer(world: &mut World) {
    send(world, "Also", SendMode::Steer);
}

fn send_again(world: &mut World) {
    let message =
        NewMessage { client_id: Some(ClientId::new("key")), ..NewMessage::of_person("Only once") };
    world.command(|reply| Command::Send { message, reply });
}

fn change_first(world: &mut World, change: QueuedChange) {
    let first = world.session.journal.queue.messages.first().map(|it| it.id.clone());
    if let Some(message_id) = first {
        world.command(|reply| Command::ChangeQueued { message_id, change, reply });
    }
}

fn edit_queued(world: &mut World) {
    change_first(world, QueuedChange::Text("Other".to_owned()));
}

fn drop_queued(world: &mut World) {
    change_first(world, QueuedChange::Dropped);
}

fn steer_queued(world: &mut World) {
    let first = world.session.journal.queue.messages.first().map(|it| it.id.clone());
    if let Some(message_id) = first {
        world.command(|reply| Command::SteerQueued { message_id, reply });
    }
}

fn release(world: &mut World) {
    world.command(|reply| Command::ReleaseQueue { reply });
}

fn retry(world: &mut World) {
    world.command(|reply| Command::Retry { of: None, reason: RewindReason::Retry, reply });
}

fn finish_tool(world: &mut World) {
    world.finish_tool();
}

fn emit_output(world: &mut World) {
    let (stream, offset) = (transcript::OutputStream::Stdout, 0);
    world.tool(|| ToolEvent::Output { stream, offset, delta: "x".to_owned() });
}

fn crash(world: &mut World) {
    if !world.is_deleted && !world.session.is_closed() {
        world.crash();
    }
}

/// Lets the next append fail.
fn fill_disk(world: &mut World) {
    if world.failures == 0 {
        world.appends_left = Some(0);
    }
}

fn wait_long(world: &mut World) {
    world.now = world.now.plus(3_600_000);
    if !world.is_deleted {
        world.give(Input::Tick);
    }
}

fn line_call(world: &mut World) {
    world.line("call");
}

fn line_own(world: &mut World) {
    world.line("own");
}

fn line_ask(world: &mut World) {
    world.line("ask");
}

fn line_result(world: &mut World) {
    world.line("result");
}

fn line_done(world: &mut World) {
    world.line("done");
}

fn line_fail(world: &mut World) {
    world.line("fail");
}

fn line_begin(world: &mut World) {
    world.line("begin");
}

fn line_unknown(world: &mut World) {
    world.line("novelty");
}

fn exit(world: &mut World) {
    world.exit();
}

fn call_tool(world: &mut World) {
    let arguments = serde_json::json!({});
    let call = RelayedCall { tool_name: "time".to_owned(), arguments, provider_call_id: None };
    world.command(|reply| Command::CallTool { call, reply });
}

fn caller_gone(world: &mut World) {
    world.leave();
}

fn abandon(world: &mut World) {
    let exchange_id = ExchangeId::new("x");
    world.command(|reply| Command::Abandon { exchange_id, by: "other".to_owned(), reply });
}

// Scenarios.

#[test]
fn two_decisions_cancel_and_delivery() {
    let begin = || working(Kind::Model, Ruling::Ask);
    let n = both(begin, &[&[accept, finish_tool], &[reject, reject], &[stop_run]])
        + both(begin, &[&[accept_edited, finish_tool], &[accept], &[wait_long], &[steer]])
        + both(begin, &[&[accept_session, undo], &[reject], &[stop_unless_asking], &[queue]])
        + both(begin, &[&[accept], &[accept], &[stop_run], &[abandon]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn results_cancel_steer_and_crash() {
    let begin = || working(Kind::Model, Ruling::Allow);
    let n = both(begin, &[&[emit_output, finish_tool, finish_tool], &[stop_run], &[steer, steer]])
        + both(begin, &[&[finish_tool, finish_tool], &[crash], &[queue], &[stop_run]])
        + both(begin, &[&[finish_tool, finish_tool], &[steer, queue], &[steer_queued], &[crash]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn deletion_stop_and_storage_failure() {
    let begin = || working(Kind::Model, Ruling::Ask);
    let n = both(begin, &[&[accept, finish_tool], &[delete], &[queue], &[stop_run]])
        + both(begin, &[&[accept, finish_tool], &[stop_server], &[queue], &[reject]])
        + both(begin, &[&[accept, finish_tool], &[fill_disk], &[steer], &[stop_run]])
        + both(begin, &[&[accept], &[fill_disk, crash], &[stop_run], &[queue]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn start_of_a_run_against_everything() {
    // The agent is neither launched nor told of the run yet.
    let begin = || {
        let mut world = World::new(Kind::Model);
        send(&mut world, "Hello", SendMode::Queue);
        world.settle();
        world
    };
    let n = both(begin, &[&[stop_run], &[steer], &[queue], &[release]])
        + both(begin, &[&[delete], &[queue], &[stop_run]])
        + both(begin, &[&[crash], &[stop_server], &[steer]])
        + both(begin, &[&[fill_disk], &[queue], &[stop_run], &[steer_queued]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn queue_changes_against_the_end_of_a_run() {
    let begin = || {
        let mut world = working(Kind::Model, Ruling::Allow);
        queue(&mut world);
        queue(&mut world);
        world.run_driver();
        world
    };
    let n = both(begin, &[&[finish_tool, finish_tool], &[edit_queued, drop_queued]])
        + both(begin, &[&[finish_tool], &[stop_run, release], &[steer_queued]])
        + both(begin, &[&[stop_run], &[retry], &[send_again, send_again]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn questions_of_a_program() {
    let begin = || working(Kind::Program, Ruling::Ask);
    let n = both(begin, &[&[line_call, line_ask, line_result, line_done], &[accept], &[stop_run]])
        + both(begin, &[&[line_call, line_ask, exit], &[reject], &[queue]])
        + both(begin, &[&[line_call, line_ask, line_fail], &[accept_session], &[delete]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn end_of_a_program_against_everything() {
    let begin = || working(Kind::Program, Ruling::Allow);
    let n = both(begin, &[&[line_call, exit], &[steer, queue], &[stop_run], &[release]])
        + both(begin, &[&[line_unknown, line_done, line_begin, exit], &[queue], &[stop_server]])
        + both(begin, &[&[line_call, line_done], &[fill_disk], &[steer], &[queue]])
        + both(begin, &[&[line_done, line_begin, line_fail], &[wait_long], &[abandon], &[queue]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn relayed_calls_against_everything() {
    let begin = || working(Kind::Program, Ruling::Ask);
    let n = both(begin, &[&[line_own, line_done], &[call_tool, caller_gone], &[wait_long]])
        + both(begin, &[&[line_own], &[call_tool, accept, finish_tool], &[stop_run]])
        + both(begin, &[&[line_own, exit], &[call_tool], &[wait_long], &[delete]]);
    assert!(n > 500, "{n} orders");
}
