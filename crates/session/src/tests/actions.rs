//! Actions of the interleaving tests: the inputs of clients, tools, the agent, the driver and the
//! disk.

use std::sync::Arc;

use backends::ToolOutcome;
use transcript::{
    CallId, ClientId, ClientTool, ErrorCode, ErrorInfo, Event, ExchangeId, ExchangeMode,
    ExchangeState, MessageId, MessageRole, Millis, Record, ResponseId, RewindReason, RunMessage,
    RunStatus, Scope, SendMode, Seq, SessionId, Trigger,
};

use super::agents::{TOOLS, succeeded};
use super::world::{Kind, World};
use crate::{
    Addition, Answered, Approval, Command, ExchangeNews, ExchangeOpening, Input, NewMessage,
    QueuedChange, RelayedCall, ReplyId, ReplyTo, Ruling, SessionPatch, ToolEvent,
};

pub(super) fn cancel(reply: ReplyTo<Option<ResponseId>>) -> Command {
    Command::Cancel { by: "user".to_owned(), unless_asking: false, reply }
}

pub(super) fn send(world: &mut World, text: &str, mode: SendMode) -> ReplyId {
    let message = NewMessage { mode, ..NewMessage::of_person(text) };
    world.command(|reply| Command::Send { message, reply })
}

/// A session whose agent has been asked something, and works.
pub(super) fn working(kind: Kind, ruling: Ruling) -> World {
    let mut world = World::new(kind);
    world.ruling = ruling;
    send(&mut world, "Hello", SendMode::Queue);
    world.run_driver();
    world
}

/// A session whose agent has asked for a call that is not judged yet.
pub(super) fn judging(kind: Kind, ruling: Ruling) -> World {
    let mut world = World::new(kind);
    world.ruling = ruling;
    send(&mut world, "Hello", SendMode::Queue);
    if kind == Kind::Program {
        world.run_driver();
        line_call(&mut world);
        line_ask(&mut world);
    }
    world.settle();
    while !world.owes_judgement() {
        world.pay(0);
        world.settle();
    }
    world
}

/// A session whose client runs one of the two tools that the agent calls.
pub(super) fn working_with_client() -> World {
    let mut world = World::new(Kind::Model);
    world.ruling = Ruling::Allow;
    let parameters = serde_json::json!({});
    let tool = ClientTool { name: TOOLS[1].to_owned(), description: String::new(), parameters };
    let message = NewMessage { client_tools: vec![tool], ..NewMessage::of_person("Hello") };
    world.command(|reply| Command::Send { message, reply });
    world.run_driver();
    world
}

/// A session whose agent has answered.
pub(super) fn answered() -> World {
    let mut world = working(Kind::Model, Ruling::Allow);
    while !world.running.is_empty() {
        world.finish_tool();
        world.run_driver();
    }
    assert!(!world.session.has_run());
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

pub(super) fn accept(world: &mut World) {
    accept_scoped(world, Scope::Once);
}

pub(super) fn accept_session(world: &mut World) {
    accept_scoped(world, Scope::Session);
}

pub(super) fn accept_edited(world: &mut World) {
    decide(world, Answered::Accepted { scope: Scope::Once, arguments: Some("{\"a\":1}".into()) });
}

pub(super) fn reject(world: &mut World) {
    decide(world, Answered::Rejected);
}

pub(super) fn undo(world: &mut World) {
    let call_id = first_pending(world);
    world.command(|reply| Command::UndoApproval { call_id, by: "user".to_owned(), reply });
}

pub(super) fn stop_run(world: &mut World) {
    world.command(cancel);
}

pub(super) fn stop_unless_asking(world: &mut World) {
    world.command(|reply| Command::Cancel { by: "user".into(), unless_asking: true, reply });
}

pub(super) fn stop_server(world: &mut World) {
    world.command(|reply| Command::Stop { reply });
}

pub(super) fn delete(world: &mut World) {
    world.command(|reply| Command::Delete { reply });
}

pub(super) fn queue(world: &mut World) {
    send(world, "Next", SendMode::Queue);
}

pub(super) fn steer(world: &mut World) {
    send(world, "Also", SendMode::Steer);
}

pub(super) fn send_again(world: &mut World) {
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

pub(super) fn edit_queued(world: &mut World) {
    change_first(world, QueuedChange::Text("Other".to_owned()));
}

pub(super) fn drop_queued(world: &mut World) {
    change_first(world, QueuedChange::Dropped);
}

pub(super) fn steer_queued(world: &mut World) {
    let first = world.session.journal.queue.messages.first().map(|it| it.id.clone());
    if let Some(message_id) = first {
        world.command(|reply| Command::SteerQueued { message_id, reply });
    }
}

pub(super) fn release(world: &mut World) {
    world.command(|reply| Command::ReleaseQueue { reply });
}

pub(super) fn retry(world: &mut World) {
    world.command(|reply| Command::Retry { of: None, reason: RewindReason::Retry, reply });
}

pub(super) fn finish_tool(world: &mut World) {
    world.finish_tool();
}

pub(super) fn emit_output(world: &mut World) {
    let (stream, offset) = (transcript::OutputStream::Stdout, 0);
    world.tool(|| ToolEvent::Output { stream, offset, delta: "x".to_owned() });
}

pub(super) fn crash(world: &mut World) {
    if !world.is_deleted && !world.session.is_closed() {
        world.crash();
    }
}

/// Lets the next append fail.
pub(super) fn fill_disk(world: &mut World) {
    if world.failures == 0 {
        world.appends_left = Some(0);
    }
}

pub(super) fn wait_long(world: &mut World) {
    world.now = world.now.plus(3_600_000);
    if !world.is_deleted {
        world.give(Input::Tick);
    }
}

pub(super) fn line_call(world: &mut World) {
    world.line("call");
}

pub(super) fn line_own(world: &mut World) {
    world.line("own");
}

pub(super) fn line_ask(world: &mut World) {
    world.line("ask");
}

pub(super) fn line_result(world: &mut World) {
    world.line("result");
}

pub(super) fn line_done(world: &mut World) {
    world.line("done");
}

pub(super) fn line_fail(world: &mut World) {
    world.line("fail");
}

pub(super) fn line_begin(world: &mut World) {
    world.line("begin");
}

pub(super) fn line_unknown(world: &mut World) {
    world.line("novelty");
}

pub(super) fn exit(world: &mut World) {
    world.exit();
}

pub(super) fn call_tool(world: &mut World) {
    let arguments = serde_json::json!({});
    let call = RelayedCall { tool_name: "time".to_owned(), arguments, provider_call_id: None };
    world.command(|reply| Command::CallTool { call, reply });
}

pub(super) fn caller_gone(world: &mut World) {
    world.leave();
}

pub(super) fn abandon(world: &mut World) {
    let exchange_id = ExchangeId::new("x");
    world.command(|reply| Command::Abandon { exchange_id, by: "other".to_owned(), reply });
}

pub(super) fn edit(world: &mut World) {
    let said = world.log.iter().find_map(|it| match &it.event {
        Event::UserMessage { message_id, .. } => Some(message_id.clone()),
        _ => None,
    });
    let earlier = said.unwrap_or_else(|| MessageId::new("none"));
    let message = NewMessage::of_person("Rather this");
    world.command(|reply| Command::Edit { earlier, message, reply });
}

pub(super) fn continue_answer(world: &mut World) {
    world.command(|reply| Command::Continue { reply });
}

pub(super) fn rename(world: &mut World) {
    let patch = SessionPatch { title: Some("Title".to_owned()), ..SessionPatch::default() };
    world.command(|reply| Command::Update { patch, reply });
}

pub(super) fn change_workspace(world: &mut World) {
    let patch = SessionPatch { workspace: Some("/other".to_owned()), ..SessionPatch::default() };
    world.command(|reply| Command::Update { patch, reply });
}

/// Imports one answered message.
pub(super) fn add(world: &mut World) {
    let (head, run) = (Seq(world.log.len() as u64), ResponseId::new("imported"));
    let said = Event::UserMessage {
        message_id: MessageId::new("imported message"),
        client_id: None,
        role: MessageRole::User,
        text: "Imported".to_owned(),
        attachments: Vec::new(),
        from: None,
        sent: None,
    };
    let start = Event::RunStart {
        agent: "agent".to_owned(),
        model: None,
        trigger: Trigger::User,
        exchange_id: None,
    };
    let finish = Event::RunFinish {
        status: RunStatus::Completed,
        error: None,
        usage: None,
        cost: None,
        duration_ms: None,
    };
    let events = [(None, said), (Some(run.clone()), start), (Some(run), finish)];
    let record = |(run, event)| Record::new(head, Millis(0), SessionId::new("old"), run, event);
    let addition = Addition { head, records: Arc::from(events.map(record)) };
    world.command(|reply| Command::Add { addition, reply });
}

pub(super) fn clear_queue(world: &mut World) {
    world.command(|reply| Command::ClearQueue { reply });
}

fn open_exchange(world: &mut World, mode: ExchangeMode) {
    let Some(run) = world.runs().pop() else { return };
    let open = run.calls().find(|it| it.is_open());
    let call_id = open.map_or_else(|| CallId::new("none.1"), |it| it.id.clone());
    let opening = ExchangeOpening {
        exchange_id: ExchangeId::new("sent"),
        run: run.id.clone(),
        call_id,
        agent: "other".to_owned(),
        asked: Some(SessionId::new("t")),
        text: "How is it?".to_owned(),
        mode,
        refused: None,
    };
    world.command(|reply| Command::OpenExchange { opening, reply });
}

pub(super) fn open_sync(world: &mut World) {
    open_exchange(world, ExchangeMode::Sync);
}

pub(super) fn open_async(world: &mut World) {
    open_exchange(world, ExchangeMode::Async);
}

fn update_exchange(world: &mut World, news: ExchangeNews) {
    let exchange_id = ExchangeId::new("sent");
    world.command(|reply| Command::UpdateExchange { exchange_id, news, reply });
}

pub(super) fn report_progress(world: &mut World) {
    update_exchange(world, ExchangeNews::Progress(ExchangeState::AwaitingApproval));
}

pub(super) fn end_exchange(world: &mut World) {
    update_exchange(world, ExchangeNews::Ended(Ok("Well.".to_owned())));
}

pub(super) fn fail_exchange(world: &mut World) {
    let error = ErrorInfo::new(ErrorCode::AgentFailed, "It failed.");
    update_exchange(world, ExchangeNews::Ended(Err(error)));
}

pub(super) fn revoke(world: &mut World) {
    let (id, covers, by) = ("g".to_owned(), "scope".to_owned(), "user".to_owned());
    world.command(|reply| Command::RevokeGrant { id, covers, by, reply });
}

/// Gives the result of the call that the client runs.
fn give(world: &mut World, outcome: ToolOutcome) {
    let call_of_client = |it: RunMessage| it.calls().nth(1).map(|it| it.id.clone());
    let Some(call_id) = world.runs().pop().and_then(call_of_client) else { return };
    let caller = world.command(|reply| Command::GiveResult { call_id, outcome, reply });
    world.results.push(caller);
}

pub(super) fn give_result(world: &mut World) {
    give(world, succeeded());
}
