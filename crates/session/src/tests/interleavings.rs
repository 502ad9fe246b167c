//! All orders of what clients, tools, the agent, the driver and the disk do.
//!
//! A scenario is a few threads of actions. The order of a thread's actions is fixed, and at every moment any thread
//! may go on, or the driver may send any reply that it owes. A run of the scenario is a list of choices; the next run
//! takes the last choice that has an alternative and takes that, until all have been tried.

use std::collections::VecDeque;

use transcript::SendMode;

use super::actions::*;
use super::laws::{check_always, check_at_rest};
use super::world::{Kind, World};
use crate::Ruling;

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
fn explore(begin: impl Fn() -> World, threads: &[&[Action]], settling: Settling) -> usize {
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
    let both = [Settling::AfterEach, Settling::AtTheEnd];
    both.map(|it| explore(&begin, threads, it)).iter().sum()
}

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

#[test]
fn edit_cancel_and_deletion_while_a_call_is_judged() {
    let model = || judging(Kind::Model, Ruling::Ask);
    let program = || judging(Kind::Program, Ruling::Ask);
    let deciding = || {
        let mut world = working(Kind::Model, Ruling::Ask);
        accept(&mut world);
        world.settle();
        world
    };
    let n = both(model, &[&[stop_run, edit], &[delete]])
        + both(model, &[&[edit], &[stop_run], &[crash]])
        + both(program, &[&[stop_run, edit], &[delete], &[line_done]])
        + both(program, &[&[edit], &[exit], &[stop_run]])
        + both(deciding, &[&[stop_run, edit], &[delete]])
        + both(deciding, &[&[stop_run, edit], &[fill_disk]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn edit_continue_and_import_after_an_answer() {
    let n = both(answered, &[&[edit], &[continue_answer], &[stop_run]])
        + both(answered, &[&[add, retry], &[queue], &[rename]])
        + both(answered, &[&[add], &[continue_answer], &[fill_disk]])
        + both(answered, &[&[add], &[edit], &[delete]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn changes_of_the_session_against_its_program() {
    let begin = || working(Kind::Program, Ruling::Allow);
    let n = both(begin, &[&[line_done, line_begin], &[change_workspace], &[queue, stop_run]])
        + both(begin, &[&[line_done, exit], &[change_workspace, edit], &[rename]])
        + both(begin, &[&[steer, clear_queue], &[queue], &[line_done], &[stop_run]]);
    assert!(n > 500, "{n} orders");
}

#[test]
fn exchanges_against_the_end_of_their_run() {
    let begin = || working(Kind::Model, Ruling::Allow);
    let n = both(begin, &[&[open_sync, report_progress, end_exchange], &[stop_run], &[crash]])
        + both(begin, &[&[open_sync, fail_exchange], &[finish_tool, finish_tool], &[delete]])
        + both(begin, &[&[open_async, end_exchange], &[stop_run], &[finish_tool, finish_tool]])
        + both(
            begin,
            &[&[open_async, end_exchange, end_exchange], &[crash], &[queue, clear_queue]],
        );
    assert!(n > 500, "{n} orders");
}

#[test]
fn revoked_grants_and_results_of_the_client() {
    let begin = || working(Kind::Model, Ruling::Ask);
    let program = || working(Kind::Program, Ruling::Ask);
    let n = both(begin, &[&[accept_session, undo], &[revoke], &[stop_run]])
        + both(begin, &[&[accept_session, revoke], &[finish_tool], &[reject]])
        + both(program, &[&[line_call, line_ask, line_own], &[accept_session, revoke, call_tool]])
        + both(working_with_client, &[&[give_result, give_result], &[finish_tool], &[stop_run]])
        + both(working_with_client, &[&[give_result], &[give_result], &[crash], &[finish_tool]])
        + both(working_with_client, &[&[give_result, queue], &[wait_long], &[fill_disk]]);
    assert!(n > 500, "{n} orders");
}
