//! Random logs for tests: events in any order, with few different ids and hostile texts.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use transcript::*;

/// Generates a log of up to `len` records in any order.
pub fn any_log(len: usize) -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec((any_event(), 0..3u8, 0..2000i64), 0..len).prop_map(numbered)
}

/// Generates a log like [`any_log`] in which deltas follow the start of their part, as the server writes it.
pub fn started_log(len: usize) -> impl Strategy<Value = Vec<Record>> {
    any_log(len).prop_map(|records| {
        let mut transcript = Transcript::default();
        let mut events = Vec::new();
        for record in records {
            let run = record.response_id.clone().filter(|_| !record.event.is_session_event());
            if let Some(run) = run {
                let empty = RunMessage::replay(&run, []);
                let known = transcript.message(run.as_str()).and_then(Message::run);
                let missing = implied_start(known.unwrap_or(&empty), &record.event);
                events.extend(missing.map(|event| (event, Some(run.clone()), record.at)));
            }
            events.push((record.event, record.response_id, record.at));
            transcript = Transcript::replay(&number(events.clone()));
        }
        number(events)
    })
}

fn numbered(events: Vec<(Event, u8, i64)>) -> Vec<Record> {
    let mut now = 1_700_000_000_000;
    number(
        events
            .into_iter()
            .map(|(event, run, step)| {
                now += step;
                let run = (run > 0).then(|| ResponseId::new(format!("r{run}")));
                (event, run, Millis(now))
            })
            .collect(),
    )
}

fn number(events: Vec<(Event, Option<ResponseId>, Millis)>) -> Vec<Record> {
    (1..)
        .zip(events)
        .map(|(seq, (event, run, at))| Record::new(Seq(seq), at, SessionId::new("s"), run, event))
        .collect()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zé\n ]{0,12}",
        Just(r#"{"a":1}"#.to_owned()),
        Just("  ".to_owned()),
        Just("<script>alert(1)</script>".to_owned()),
        Just("é".repeat(9000)),
    ]
}

fn call() -> impl Strategy<Value = CallId> {
    (0..3u8).prop_map(|n| CallId::new(format!("c{n}")))
}

fn part() -> impl Strategy<Value = PartId> {
    (0..3u8).prop_map(|n| PartId::new(format!("p{n}")))
}

fn parent() -> impl Strategy<Value = Option<CallId>> {
    prop_oneof![4 => Just(None), 1 => call().prop_map(Some)]
}

/// Generates costs whose sum is exact in any order.
fn cost() -> impl Strategy<Value = Option<f64>> {
    prop::option::of((1..8u8).prop_map(|it| f64::from(it) / 4.0))
}

fn message() -> impl Strategy<Value = MessageId> {
    (0..3u8).prop_map(|n| MessageId::new(format!("m{n}")))
}

fn exchange() -> impl Strategy<Value = ExchangeId> {
    (0..3u8).prop_map(|n| ExchangeId::new(format!("x{n}")))
}

fn exchange_event() -> impl Strategy<Value = Event> {
    let mode = prop_oneof![Just(ExchangeMode::Sync), Just(ExchangeMode::Async)];
    let state = prop_oneof![
        Just(ExchangeState::Queued),
        Just(ExchangeState::Running),
        Just(ExchangeState::AwaitingApproval)
    ];
    let (direction, agent) = (Direction::Sent, "other");
    prop_oneof![
        (exchange(), parent(), mode, text()).prop_map(move |(exchange_id, call_id, mode, text)| {
            Event::AgentMessage {
                peer_session_id: Some(SessionId::new("peer")),
                peer_response_id: Some(ResponseId::new(exchange_id.as_str())),
                exchange_id,
                direction,
                call_id,
                mode,
                depth: 1,
                agent: agent.into(),
                text,
            }
        }),
        (exchange(), state)
            .prop_map(|(exchange_id, state)| Event::AgentProgress { exchange_id, state }),
        (exchange(), any::<bool>(), error(), text()).prop_map(
            move |(exchange_id, ok, error, text)| Event::AgentCallbackResult {
                exchange_id,
                direction,
                agent: agent.into(),
                peer_session_id: None,
                peer_response_id: None,
                ok,
                result: ok.then(|| text.into()),
                error: (!ok).then_some(error),
            }
        ),
    ]
}

fn provider_id() -> impl Strategy<Value = Option<String>> {
    prop_oneof![Just(None), "(call_[01])?".prop_map(Some)]
}

fn role() -> impl Strategy<Value = MessageRole> {
    prop_oneof![4 => Just(MessageRole::User), 1 => Just(MessageRole::System)]
}

fn error() -> impl Strategy<Value = ErrorInfo> {
    (0..ErrorCode::ALL.len()).prop_map(|n| ErrorInfo::new(ErrorCode::ALL[n].0.clone(), "why"))
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => session_event(),
        3 => run_event(),
        6 => part_event(),
        8 => call_event(),
        2 => exchange_event(),
    ]
}

fn session_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::SessionCreated {
            agent: "demo".into(),
            workspace: None,
            workspace_confirmed: false,
            title: None
        }),
        any::<bool>().prop_map(|workspace_confirmed| Event::SessionUpdated {
            agent: None,
            workspace: Some("/w".into()),
            workspace_confirmed,
            title: None,
            archived: None,
        }),
        Just(Event::AgentLinked { cli_session_id: "x".into(), cwd: None, version: None }),
        (message(), role(), text()).prop_map(|(message_id, role, text)| Event::UserMessage {
            message_id,
            client_id: None,
            role,
            sent: None,
            text,
            attachments: vec![],
            from: None,
        }),
        (message(), text()).prop_map(|(message_id, text)| Event::MessageQueued {
            message_id,
            client_id: None,
            text,
            attachments: vec![],
            position: None,
            mode: SendMode::Queue,
            held: false,
            from: None,
            sent: Some(SentForm { parts: vec![json!({ "type": "data-x" })], metadata: None }),
        }),
        (message(), text()).prop_map(|(message_id, text)| Event::MessageEdited {
            message_id,
            text,
            attachments: None,
            mode: Some(SendMode::Steer),
        }),
        message().prop_map(|message_id| Event::MessageDropped { message_id, reason: None }),
        Just(Event::QueueHeld { reason: None }),
        Just(Event::QueueReleased {}),
        message().prop_map(|message_id| {
            let (name, parameters) = ("pick".to_owned(), Value::Null);
            let tools = vec![ClientTool { name, description: String::new(), parameters }];
            Event::ClientTools { message_id, tools }
        }),
        message().prop_map(|message_id| Event::MessageDequeued { message_id }),
        (message(), 0..4u32)
            .prop_map(|(message_id, position)| Event::MessageMoved { message_id, position }),
        prop_oneof!["m[0-2]", "r[0-2]"].prop_map(|before_message_id| Event::HistoryRewound {
            before_message_id,
            reason: RewindReason::Retry,
        }),
        Just(Event::GrantRevoked { scope: Scope::Session, covers: "c".into(), by: "me".into() }),
        text().prop_map(|text| Event::Notice { level: Level::Info, text }),
        text().prop_map(|raw| Event::Unrecognized { source: "pi".into(), raw, lines: 1 }),
        Just(Event::Other(Map::from_iter([("type".to_owned(), json!("of_tomorrow"))]))),
    ]
}

fn run_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::RunStart {
            agent: "demo".into(),
            model: None,
            trigger: Trigger::User,
            exchange_id: None
        }),
        (0..4u32, parent())
            .prop_map(|(index, parent_call_id)| Event::StepStart { index, parent_call_id }),
        (0..4u32, parent(), cost()).prop_map(|(index, parent_call_id, cost)| Event::StepFinish {
            index,
            finish_reason: "stop".into(),
            usage: None,
            cost,
            parent_call_id,
        }),
        Just(Event::CancelRequested { by: "me".into() }),
        Just(Event::OutputCancelled {
            reason: CancelReason::UserCancel,
            audio_truncated_at_ms: None
        }),
        Just(Event::RunFinish {
            status: RunStatus::Completed,
            error: None,
            usage: None,
            cost: None,
            duration_ms: Some(5),
        }),
        (message(), text(), steer_state()).prop_map(|(message_id, text, state)| {
            Event::MessageSteered { message_id, text, state }
        }),
    ]
}

fn steer_state() -> impl Strategy<Value = SteerState> {
    prop_oneof![Just(SteerState::HandedOver), Just(SteerState::Seen), Just(SteerState::Returned)]
}

fn part_event() -> impl Strategy<Value = Event> {
    let phase = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Phase::Commentary)),
        1 => Just(Some(Phase::Final)),
    ];
    prop_oneof![
        (part(), parent())
            .prop_map(|(part_id, parent_call_id)| Event::TextStart { part_id, parent_call_id }),
        (part(), parent(), text()).prop_map(|(part_id, parent_call_id, delta)| {
            Event::TextDelta { part_id, parent_call_id, delta }
        }),
        (part(), parent(), text(), phase, prop::bool::weighted(0.1)).prop_map(
            |(part_id, parent_call_id, text, phase, discarded)| Event::TextDone {
                part_id,
                parent_call_id,
                text,
                phase,
                discarded
            }
        ),
        (part(), parent(), text()).prop_map(|(part_id, parent_call_id, delta)| {
            Event::ThinkingDelta { part_id, parent_call_id, delta }
        }),
        prop_oneof![part().prop_map(|it| it.to_string()), Just("c1".to_owned())].prop_map(
            |part_id| {
                let fields = Map::from_iter([("title".to_owned(), json!("Mine"))]);
                Event::PartExtras { part_id, fields }
            }
        ),
        (part(), parent(), text()).prop_map(|(part_id, parent_call_id, text)| {
            Event::ThinkingDone { part_id, parent_call_id, text, discarded: false }
        }),
    ]
}

fn call_event() -> impl Strategy<Value = Event> {
    let executor = prop_oneof![4 => Just(Executor::Server), 1 => Just(Executor::Client)];
    let stream = prop_oneof![Just(OutputStream::Stdout), Just(OutputStream::Stderr)];
    let decision = prop_oneof![
        Just(Decision::Accepted),
        Just(Decision::Rejected),
        Just(Decision::TimedOut),
        Just(Decision::Withdrawn)
    ];
    let validation = prop_oneof![Just(Validation::NotRequired), Just(Validation::Pending)];
    let arguments = prop::option::of(text());
    prop_oneof![
        (call(), parent(), provider_id(), "[a-z é]{0,5}", executor, arguments).prop_map(
            |(call_id, parent_call_id, provider_call_id, tool_name, executor, arguments)| {
                Event::ToolCallStart {
                    call_id,
                    provider_call_id,
                    tool_name,
                    arguments,
                    parent_call_id,
                    executor,
                }
            }
        ),
        (call(), text()).prop_map(|(call_id, delta)| Event::ToolArgumentsDelta { call_id, delta }),
        (call(), text(), validation).prop_map(|(call_id, arguments, validation)| {
            Event::ToolArgumentsDone {
                call_id,
                arguments,
                summary: String::new(),
                incomplete: false,
                validation,
                provider_data: None,
            }
        }),
        call().prop_map(|call_id| Event::ToolRunning { call_id }),
        call().prop_map(|call_id| Event::ToolApprovalRequested {
            call_id,
            options: ApprovalOptions {
                scopes: vec![Scope::Once],
                can_edit: true,
                ..ApprovalOptions::default()
            },
        }),
        (call(), decision, prop::option::of(text())).prop_map(|(call_id, decision, arguments)| {
            Event::ToolApprovalResolved {
                call_id,
                decision,
                scope: None,
                arguments,
                feedback: None,
                covers: None,
                by: "me".into(),
            }
        }),
        call().prop_map(|call_id| Event::ToolGranted {
            call_id,
            scope: Scope::Session,
            covers: "c".into(),
        }),
        (call(), stream, 0..40_000u64, text()).prop_map(|(call_id, stream, offset, delta)| {
            Event::ToolOutputDelta { call_id, stream, offset, delta }
        }),
        (call(), any::<bool>(), error()).prop_map(|(call_id, ok, error)| Event::ToolResult {
            call_id,
            tool_name: "t".into(),
            ok,
            result: Some(Value::from(7)),
            output: None,
            error: (!ok).then_some(error),
            summary: None,
            duration_ms: Some(3),
            truncated: None,
        }),
    ]
}
