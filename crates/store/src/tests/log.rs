//! Random logs, sensible and not, and what a reader should get of them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use transcript::stream::{self, StreamKey, closed_by, continued_by};
use transcript::{
    CallId, ClientId, Event, Level, MessageId, Millis, OutputStream, PartId, Record, ResponseId,
    RewindReason, RunStatus, Seq, SessionId, SteerState, Trigger, Validation,
};

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Whose records come next; none for an even number of the session itself.
    Run(Option<u8>),
    Start,
    Finish,
    Text {
        part: u8,
        text: String,
        oddity: Oddity,
    },
    Thinking {
        part: u8,
        text: String,
    },
    Arguments {
        call: u8,
        text: String,
    },
    Output {
        call: u8,
        stderr: bool,
        place: Place,
        text: String,
        oddity: Oddity,
    },
    TextDone {
        part: u8,
        repeats: bool,
    },
    ThinkingDone {
        part: u8,
        repeats: bool,
    },
    ArgumentsDone {
        call: u8,
        repeats: bool,
    },
    Result {
        call: u8,
        size: usize,
    },
    Say {
        id: u8,
        client: Option<u8>,
        size: usize,
    },
    Queue {
        id: u8,
        client: Option<u8>,
    },
    Unqueue {
        id: u8,
        how: u8,
    },
    Move {
        id: u8,
        position: u32,
    },
    Hold(bool),
    Rewind(u8),
    Notice,
    Title(String),
    Unknown {
        size: usize,
    },
    Commit,
    Fold(usize),
    Reopen,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Oddity {
    None,
    Extra,
    Parent,
}

/// A delta of output at the end of the stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    End,
    Back(u8),
    Beyond,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..120)
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..3u8;
    let client = || prop::option::of(0..4u8);
    prop_oneof![
        2 => prop::option::of(0..3u8).prop_map(Step::Run),
        2 => Just(Step::Start),
        1 => Just(Step::Finish),
        8 => (id.clone(), text(), oddity())
            .prop_map(|(part, text, oddity)| Step::Text { part, text, oddity }),
        3 => (id.clone(), text()).prop_map(|(part, text)| Step::Thinking { part, text }),
        3 => (id.clone(), text()).prop_map(|(call, text)| Step::Arguments { call, text }),
        8 => (id.clone(), any::<bool>(), place(), text(), oddity()).prop_map(
            |(call, stderr, place, text, oddity)| Step::Output { call, stderr, place, text, oddity }
        ),
        2 => (id.clone(), any::<bool>())
            .prop_map(|(part, repeats)| Step::TextDone { part, repeats }),
        1 => (id.clone(), any::<bool>())
            .prop_map(|(part, repeats)| Step::ThinkingDone { part, repeats }),
        1 => (id.clone(), any::<bool>())
            .prop_map(|(call, repeats)| Step::ArgumentsDone { call, repeats }),
        2 => (id.clone(), size()).prop_map(|(call, size)| Step::Result { call, size }),
        2 => (0..9u8, client(), size())
            .prop_map(|(id, client, size)| Step::Say { id, client, size }),
        3 => (0..9u8, client()).prop_map(|(id, client)| Step::Queue { id, client }),
        1 => (0..9u8, 0..5u8).prop_map(|(id, how)| Step::Unqueue { id, how }),
        1 => (0..9u8, 0..4u32).prop_map(|(id, position)| Step::Move { id, position }),
        1 => any::<bool>().prop_map(Step::Hold),
        1 => (0..9u8).prop_map(Step::Rewind),
        1 => Just(Step::Notice),
        1 => text().prop_map(Step::Title),
        1 => size().prop_map(|size| Step::Unknown { size }),
        6 => Just(Step::Commit),
        3 => (1..5usize).prop_map(Step::Fold),
        1 => Just(Step::Reopen),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        40 => "[a-zé\"\n]{0,6}",
        // Two of these are more than a merged delta may be.
        1 => Just("0123456789".repeat(4000)),
    ]
}

fn oddity() -> impl Strategy<Value = Oddity> {
    prop_oneof![12 => Just(Oddity::None), 1 => Just(Oddity::Extra), 1 => Just(Oddity::Parent)]
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![6 => Just(Place::End), 2 => (1..9u8).prop_map(Place::Back), 1 => Just(Place::Beyond)]
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![12 => Just(10usize), 1 => Just(40_000usize)]
}

/// Turns steps into records.
pub(super) struct Log {
    session: SessionId,
    run: Option<u8>,
    /// Text of the deltas so far, and for output its end.
    texts: HashMap<StreamKey, String>,
    ends: HashMap<StreamKey, u64>,
    pub(super) records: Vec<Record>,
}

impl Log {
    pub(super) fn new(session: SessionId) -> Self {
        let created = Event::SessionCreated {
            agent: "a".into(),
            workspace: None,
            workspace_confirmed: false,
            title: None,
        };
        let records = super::records(&session, [created]);
        Self { session, run: None, texts: HashMap::new(), ends: HashMap::new(), records }
    }

    /// Adds the record of a step, if that has one.
    pub(super) fn take(&mut self, step: &Step) {
        let extra = match step {
            Step::Text { oddity: Oddity::Extra, .. }
            | Step::Output { oddity: Oddity::Extra, .. } => {
                Map::from_iter([("later".to_owned(), json!([1, "x"]))])
            }
            _ => Map::new(),
        };
        let Some(event) = self.event(step) else { return };
        let seq = Seq(self.records.len() as u64 + 1);
        // Clocks are also set back.
        let at = Millis(1_000_000 + (seq.0 * 37 % 11) as i64);
        let response = self.run.map(|run| ResponseId::new(format!("r{run}")));
        let mut record = Record::new(seq, at, self.session.clone(), response, event);
        record.extra = extra;
        self.records.push(record);
    }

    fn event(&mut self, step: &Step) -> Option<Event> {
        Some(match step.clone() {
            Step::Commit | Step::Fold(_) | Step::Reopen => return None,
            Step::Run(run) => {
                self.run = run;
                return None;
            }
            Step::Start => Event::RunStart {
                agent: "a".into(),
                model: None,
                trigger: Trigger::User,
                exchange_id: None,
            },
            Step::Finish => Event::RunFinish {
                status: RunStatus::Completed,
                error: None,
                usage: None,
                cost: None,
                duration_ms: Some(1),
            },
            Step::Text { part, text, oddity } => {
                self.grow(StreamKey::Text(part_id(part)), &text);
                let parent_call_id = matches!(oddity, Oddity::Parent).then(|| call_id(9));
                Event::TextDelta { part_id: part_id(part), parent_call_id, delta: text }
            }
            Step::Thinking { part, text } => {
                self.grow(StreamKey::Thinking(part_id(part)), &text);
                Event::ThinkingDelta { part_id: part_id(part), parent_call_id: None, delta: text }
            }
            Step::Arguments { call, text } => {
                self.grow(StreamKey::Arguments(call_id(call)), &text);
                Event::ToolArgumentsDelta { call_id: call_id(call), delta: text }
            }
            Step::Output { call, stderr, place, text, .. } => {
                self.output(call, stderr, place, text)
            }
            Step::TextDone { part, repeats } => Event::TextDone {
                part_id: part_id(part),
                parent_call_id: None,
                text: self.closing(StreamKey::Text(part_id(part)), repeats),
                phase: None,
                discarded: false,
            },
            Step::ThinkingDone { part, repeats } => Event::ThinkingDone {
                part_id: part_id(part),
                parent_call_id: None,
                text: self.closing(StreamKey::Thinking(part_id(part)), repeats),
                discarded: false,
            },
            Step::ArgumentsDone { call, repeats } => Event::ToolArgumentsDone {
                call_id: call_id(call),
                arguments: self.closing(StreamKey::Arguments(call_id(call)), repeats),
                summary: String::new(),
                incomplete: false,
                validation: Validation::NotRequired,
                provider_data: None,
            },
            Step::Result { call, size } => Event::ToolResult {
                call_id: call_id(call),
                tool_name: "t".into(),
                ok: true,
                result: Some(json!({"é": "r".repeat(size)})),
                output: (call == 0).then(|| "\"é\n".repeat(size / 4)),
                error: None,
                summary: None,
                duration_ms: Some(1),
                truncated: None,
            },
            Step::Say { id, client, size } => Event::UserMessage {
                sent: None,
                message_id: message_id(id),
                client_id: client.map(client_id),
                role: Default::default(),
                text: "s".repeat(size),
                attachments: Vec::new(),
                from: None,
            },
            Step::Queue { id, client } => Event::MessageQueued {
                sent: None,
                message_id: message_id(id),
                client_id: client.map(client_id),
                text: "q".into(),
                attachments: Vec::new(),
                position: None,
                mode: Default::default(),
                held: false,
                from: None,
            },
            Step::Unqueue { id, how } => unqueue(message_id(id), how),
            Step::Move { id, position } => {
                Event::MessageMoved { message_id: message_id(id), position }
            }
            Step::Hold(true) => Event::QueueHeld { reason: None },
            Step::Hold(false) => Event::QueueReleased {},
            Step::Rewind(id) => Event::HistoryRewound {
                before_message_id: message_id(id).to_string(),
                reason: RewindReason::Edit,
            },
            Step::Notice => Event::Notice { level: Level::Info, text: "n".into() },
            Step::Title(title) => Event::SessionUpdated {
                agent: None,
                workspace: None,
                workspace_confirmed: false,
                title: Some(title),
                archived: None,
            },
            Step::Unknown { size } => Event::Other(Map::from_iter([
                ("type".to_owned(), Value::from("message_queued")),
                ("new\"field".to_owned(), Value::from("u".repeat(size))),
            ])),
        })
    }

    fn grow(&mut self, key: StreamKey, text: &str) {
        self.texts.entry(key).or_default().push_str(text);
    }

    fn closing(&self, key: StreamKey, repeats: bool) -> String {
        let text = self.texts.get(&key).cloned().unwrap_or_default();
        if repeats { text } else { text + "!" }
    }

    fn output(&mut self, call: u8, stderr: bool, place: Place, text: String) -> Event {
        let stream = if stderr { OutputStream::Stderr } else { OutputStream::Stdout };
        let end = self.ends.entry(StreamKey::Output(call_id(call), stream)).or_default();
        let offset = match place {
            Place::End => *end,
            Place::Back(by) => end.saturating_sub(by.into()),
            Place::Beyond => *end + 3,
        };
        *end = offset + text.len() as u64;
        Event::ToolOutputDelta { call_id: call_id(call), stream, offset, delta: text }
    }
}

/// Reference implementation of a read without deltas.
pub(super) fn without_covered(records: &[Record]) -> Vec<String> {
    let mut streams: HashMap<StreamKey, (Vec<&Record>, bool)> = HashMap::new();
    let mut finished = HashSet::new();
    let mut plain = Vec::new();
    for record in records {
        let is_late = record.response_id.as_ref().is_some_and(|it| finished.contains(it));
        let joins = |(deltas, closed): &(Vec<&Record>, bool)| {
            !closed && like(deltas[0]) == like(record) && !is_late
        };
        match continued_by(&record.event) {
            Some(key) if record.extra.is_empty() && !is_late => match streams.get_mut(&key) {
                Some(stream) if joins(stream) => stream.0.push(record),
                Some(_) => plain.push(record.clone()),
                None => drop(streams.insert(key, (vec![record], false))),
            },
            _ => plain.push(record.clone()),
        }
        for key in closed_by(&record.event) {
            streams.entry(key).and_modify(|it| it.1 = true);
        }
        if let (Event::RunFinish { .. }, Some(run)) = (&record.event, &record.response_id) {
            finished.insert(run.clone());
        }
    }
    for (key, (deltas, closed)) in streams {
        match (key, closed) {
            (_, false) => plain.extend(deltas.into_iter().cloned()),
            (StreamKey::Output(..), true) => plain.extend(merged(&deltas)),
            (_, true) => (),
        }
    }
    plain.sort_by_key(|it| it.seq);
    super::json(&plain)
}

/// Fields that the deltas of a stream share.
fn like(record: &Record) -> (Option<ResponseId>, Value) {
    let mut value = serde_json::to_value(&record.event).unwrap();
    value["delta"] = Value::Null;
    value["offset"] = Value::Null;
    (record.response_id.clone(), value)
}

fn merged(deltas: &[&Record]) -> Vec<Record> {
    let mut merged: Vec<Record> = Vec::new();
    for &delta in deltas {
        if let Some(last) = merged.last_mut()
            && stream::merge(&mut last.event, &delta.event)
        {
            (last.seq, last.at) = (delta.seq, delta.at);
            continue;
        }
        merged.push(delta.clone());
    }
    merged
}

fn unqueue(message_id: MessageId, how: u8) -> Event {
    let text = String::new();
    match how {
        0 => Event::MessageDequeued { message_id },
        1 => Event::MessageDropped { message_id, reason: None },
        2 => Event::MessageSteered { message_id, text, state: SteerState::HandedOver },
        3 => Event::MessageSteered { message_id, text, state: SteerState::Returned },
        _ => Event::MessageSteered { message_id, text, state: SteerState::Seen },
    }
}

fn part_id(n: u8) -> PartId {
    PartId::new(format!("p{n}"))
}

fn call_id(n: u8) -> CallId {
    CallId::new(format!("c{n}"))
}

fn message_id(n: u8) -> MessageId {
    MessageId::new(format!("m{n}"))
}

fn client_id(n: u8) -> ClientId {
    ClientId::new(format!("k{n}"))
}
