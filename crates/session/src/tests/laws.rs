//! Laws that hold after any order of events.

use std::collections::{BTreeMap, BTreeSet};

use transcript::{
    CallId, CallState, Event, ExchangeId, ExchangeMode, Executor, MessageId, Queue, RunMessage,
    Scope, Summary,
};

use super::world::World;

/// Checks everything that must hold at any time, on the committed log.
pub(super) fn check_always(world: &World) {
    check_order(world);
    check_messages(world);
    for (call_id, times) in &world.started {
        assert!(*times <= 1, "the tool of {call_id} was started {times} times");
    }
}

/// Checks what must hold when nothing is left to do: everything that began has one end, and every caller has a
/// reply.
pub(super) fn check_at_rest(world: &World) {
    check_always(world);
    if !world.is_deleted {
        for run in world.runs() {
            assert!(!run.is_open(), "run {} is open", run.id);
            for call in run.calls() {
                assert!(!call.is_open(), "call {} is open", call.id);
                assert!(!call.waits_for_approval(), "call {} waits", call.id);
            }
        }
        let mut exchanges = world.session.summary().open_exchanges.values();
        assert!(exchanges.all(|it| it.mode == ExchangeMode::Async), "no run waits for a reply");
        check_derived(world);
        check_replies(world);
    }
    for caller in 1..=world.n_commands() {
        assert!(world.has_reply(caller), "caller {caller} has no reply");
    }
    assert!(world.running.is_empty(), "tools run: {:?}", world.running);
    check_decisions(world);
    check_results(world);
}

/// A client whose result is confirmed finds it in the log, and only one result of a call counts.
fn check_results(world: &World) {
    let runs = world.runs();
    let of_client = runs.iter().flat_map(RunMessage::calls);
    let of_client = of_client.filter(|it| it.executor == Executor::Client);
    let n_logged = of_client.filter(|it| it.state == CallState::Succeeded).count();
    let confirmed = world.results.iter().filter(|it| world.replies[it].is_ok()).count();
    assert_eq!(confirmed, n_logged, "results that were confirmed, and results in the log");
}

/// Each reply to an asynchronous message of the session comes back as a message, and no other does.
fn check_replies(world: &World) {
    let (mut open, mut ended, mut replies) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for record in &world.log {
        match &record.event {
            Event::AgentMessage { exchange_id, mode: ExchangeMode::Async, .. } => {
                open.insert(exchange_id);
            }
            Event::AgentCallbackResult { exchange_id, .. } => ended.extend(open.take(exchange_id)),
            Event::UserMessage { from: Some(from), .. }
            | Event::MessageQueued { from: Some(from), .. }
                if from.is_answer =>
            {
                replies.insert(&from.exchange_id);
            }
            _ => (),
        }
    }
    assert_eq!(replies, ended, "messages with replies, and exchanges that have ended");
}

/// A caller who is told that his decision counts finds it in the log: each decision there belongs to one caller at
/// most, unless a decision for the session covered other calls.
fn check_decisions(world: &World) {
    let is_lasting = |it: &Scope| *it != Scope::Once;
    let mut decided = 0;
    for record in &world.log {
        if let Event::ToolApprovalResolved { by, scope, .. } = &record.event {
            if scope.as_ref().is_some_and(is_lasting) {
                return;
            }
            decided += usize::from(by == "user");
        }
    }
    let confirmed = world.decisions.iter().filter(|it| world.replies[it].is_ok()).count();
    assert_eq!(confirmed, decided, "decisions that were confirmed, and decisions in the log");
}

/// Every run has one start and at most one end, in this order, and everything of it stands in
/// between; every call one start and at most one result; every approval one request and at most one
/// decision; every exchange one message and at most one end. A grant allows calls until it is
/// revoked.
fn check_order(world: &World) {
    let mut open_run = None;
    let mut ended = BTreeSet::new();
    let mut results: BTreeMap<&CallId, usize> = BTreeMap::new();
    let mut asked: BTreeSet<&CallId> = BTreeSet::new();
    let mut exchanges: BTreeMap<&ExchangeId, ExchangeMode> = BTreeMap::new();
    let mut granted: BTreeSet<&String> = BTreeSet::new();
    for record in &world.log {
        let run = record.response_id.as_ref();
        // The reply to an asynchronous message may follow after the run.
        let is_late = match &record.event {
            Event::AgentProgress { exchange_id, .. }
            | Event::AgentCallbackResult { exchange_id, .. } => {
                exchanges.get(exchange_id) == Some(&ExchangeMode::Async)
            }
            _ => false,
        };
        if let Some(run) = run.filter(|_| !is_late) {
            assert!(!ended.contains(run), "{:?} after the end of its run", record.event);
        }
        match &record.event {
            Event::RunStart { .. } => {
                assert_eq!(open_run, None, "a run begins within a run");
                open_run = run;
            }
            Event::RunFinish { .. } => {
                assert_eq!(open_run, run, "a run ends that is not open");
                ended.extend(open_run.take());
            }
            Event::HistoryRewound { .. } => {
                assert_eq!(open_run, None, "messages are replaced during a run");
            }
            Event::ToolResult { call_id, .. } => {
                let n = results.entry(call_id).or_default();
                *n += 1;
                assert_eq!(*n, 1, "{call_id} has two results");
            }
            Event::ToolApprovalRequested { call_id, .. } => {
                assert!(asked.insert(call_id), "{call_id} is asked about twice");
            }
            Event::ToolApprovalResolved { call_id, covers, .. } => {
                granted.extend(covers);
                assert!(asked.remove(call_id), "{call_id} is decided about twice, or unasked");
            }
            Event::AgentMessage { exchange_id, mode, .. } => {
                let before = exchanges.insert(exchange_id, *mode);
                assert_eq!(before, None, "{exchange_id} is opened twice");
            }
            Event::AgentCallbackResult { exchange_id, .. } => {
                let mode = exchanges.remove(exchange_id);
                assert!(mode.is_some(), "{exchange_id} ends twice, or unopened");
            }
            Event::ToolGranted { covers, scope: Scope::Session, .. } => {
                assert!(granted.contains(covers), "a grant that does not hold allows a call");
            }
            Event::GrantRevoked { covers, .. } => {
                granted.remove(covers);
            }
            Event::ToolRunning { call_id } => {
                assert!(!results.contains_key(call_id), "{call_id} runs after its result");
                assert!(!asked.contains(call_id), "{call_id} runs before the decision");
            }
            _ => (),
        }
    }
}

/// Every accepted message is said, dropped or queued, and never said twice.
fn check_messages(world: &World) {
    let mut queued: BTreeSet<&MessageId> = BTreeSet::new();
    let mut said: BTreeSet<&MessageId> = BTreeSet::new();
    for record in &world.log {
        match &record.event {
            Event::MessageQueued { message_id, .. } => {
                queued.insert(message_id);
            }
            Event::MessageDequeued { message_id } | Event::MessageDropped { message_id, .. } => {
                assert!(queued.remove(message_id), "{message_id} left the queue twice");
            }
            Event::UserMessage { message_id, .. } => {
                assert!(said.insert(message_id), "{message_id} is said twice");
            }
            _ => (),
        }
    }
}

/// The machine's summary, head and queue are those of the log.
fn check_derived(world: &World) {
    let mut summary = Summary::default();
    let mut queue = Queue::default();
    for record in &world.log {
        summary.apply(record);
        queue.apply(record);
    }
    assert_eq!(world.session.summary(), &summary);
    assert_eq!(world.session.head().0, world.log.len() as u64);
    assert_eq!(*world.session.journal.queue, queue);
}
