//! Takes the roles of the driver and the program: feeds a backend the lines that the program would have
//! written, and keeps its events as records.

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::{
    Attachment, Ending, ErrorCode, ErrorInfo, Event, Level, MessageId, Millis, Record, ResponseId,
    RunMessage, Seq, SessionId, SteerState, Trigger, close,
};

use super::{Entry, Imported, ProgramKind, Tail, Turn};
use crate::{ProgramBackend, ProgramEffect, ProgramInput, RunEffect, RunInput};

pub(super) struct Replay {
    kind: ProgramKind,
    agent: String,
    backend: Box<dyn ProgramBackend>,
    turns: Vec<Turn>,
    /// Entries of the replay that belong to no turn yet.
    asides: Vec<Entry>,
    is_open: bool,
    spare: Option<ResponseId>,
    /// Number of times that each id was used, because a broken file may repeat ids.
    ids: HashMap<String, u32>,
    /// Time of the newest entry. Times never decrease, even if those in the file do.
    last_at: Millis,
    /// Lines that the backend has written to the program, which may need a response.
    written: Vec<Value>,
    /// Time at which the backend wants to be woken. `None` without a deadline.
    wakes_at: Option<Millis>,
}

/// A person's message in an imported conversation.
pub(super) struct Prompt {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) pictures: Vec<Attachment>,
    pub(super) model: Option<String>,
}

/// Facts about an imported conversation that its file names.
pub(super) struct ConversationInfo {
    pub(super) conversation: String,
    pub(super) cwd: Option<String>,
    pub(super) version: Option<String>,
}

impl Replay {
    pub(super) fn new(kind: ProgramKind, agent: &str, backend: Box<dyn ProgramBackend>) -> Self {
        Self {
            kind,
            agent: agent.to_owned(),
            backend,
            turns: Vec::new(),
            asides: Vec::new(),
            is_open: false,
            spare: None,
            ids: HashMap::new(),
            last_at: Millis::default(),
            written: Vec::new(),
            wakes_at: None,
        }
    }

    pub(super) fn replace_backend(&mut self, backend: Box<dyn ProgramBackend>) {
        self.backend = backend;
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the time of the newest entry of the replay.
    pub(super) fn last_at(&self) -> Millis {
        self.last_at
    }

    pub(super) fn take_written(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.written)
    }

    /// Begins a run with a person's message.
    pub(super) fn start(&mut self, at: Millis, said: Prompt) {
        let id = self.unique(&said.id);
        let response_id = run_id(&id);
        let history = vec![json!({ "role": "user", "content": said.text })];
        let message = Event::UserMessage {
            sent: None,
            message_id: MessageId::new(id),
            client_id: None,
            role: Default::default(),
            text: said.text,
            attachments: said.pictures,
            from: None,
        };
        self.open(at, response_id.clone(), Some(message), said.model, Trigger::User);
        self.feed(at, RunInput::Start { response_id, history }.into());
    }

    /// Gives the backend the id for a run that the program may begin by itself.
    pub(super) fn offer(&mut self, at: Millis, id: &str) {
        let id = run_id(&self.unique(id));
        self.spare = Some(id.clone());
        self.feed(at, ProgramInput::Spare(id));
    }

    /// Adds a person's message that the program read during the open run.
    pub(super) fn steer(&mut self, at: Millis, said: Prompt) {
        let message_id = MessageId::new(self.unique(&said.id));
        // Such a message cannot have attachments, so pictures are only named.
        let named = said.pictures.iter().map(|_| "[image]");
        let text = Some(&*said.text).into_iter().chain(named).collect::<Vec<_>>().join("\n");
        self.note(at, Event::MessageSteered { message_id, text, state: SteerState::Seen });
    }

    /// Feeds the backend a line that the program would have written.
    pub(super) fn feed_line(&mut self, at: Millis, line: &Value) {
        self.feed(at, ProgramInput::Line(line.to_string()));
    }

    /// Feeds the backend a request to stop the open run.
    pub(super) fn interrupt(&mut self, at: Millis) {
        self.feed(at, RunInput::Interrupt.into());
    }

    /// Wakes the backend at its deadline, if it has one and a run is open.
    pub(super) fn time_out(&mut self, at: Millis) {
        if let Some(until) = self.wakes_at.take().filter(|_| self.is_open) {
            let effects = self.backend.on(until, RunInput::Wake.into());
            self.apply_effects(at, effects);
        }
    }

    /// Adds an event to the open run, or as an entry of no run.
    pub(super) fn note(&mut self, at: Millis, event: Event) {
        let response_id = self.turns.last().filter(|_| self.is_open).map(|it| it.id.clone());
        self.push(at, response_id, event);
    }

    pub(super) fn notice(&mut self, at: Millis, text: impl Into<String>) {
        self.note(at, Event::Notice { level: Level::Info, text: text.into() });
    }

    /// Renames the session to the title in the program's file.
    pub(super) fn rename(&mut self, at: Millis, title: Option<String>) {
        let (agent, workspace, archived) = (None, None, None);
        let workspace_confirmed = false;
        let updated =
            Event::SessionUpdated { agent, workspace, workspace_confirmed, title, archived };
        self.note(at, updated);
    }

    pub(super) fn unrecognized(&mut self, line: &str) {
        let (source, raw) = (self.kind.word().to_owned(), line.to_owned());
        self.note(self.last_at, Event::Unrecognized { source, raw, lines: 1 });
    }

    /// Closes the open run as failed, because the file does not have its end. `backend` is for the
    /// next run.
    pub(super) fn break_off(&mut self, at: Millis, backend: Box<dyn ProgramBackend>) {
        let why =
            "The program was ended in the middle of the turn. Send the message again to go on.";
        let error = ErrorInfo::new(ErrorCode::AgentExited, why);
        self.end(at, |_| Ending::failed(error));
        self.backend = backend;
    }

    pub(super) fn finish(mut self, tail: Tail, of: ConversationInfo) -> Imported {
        let is_left_out = self.is_open && tail == Tail::LeaveOut;
        let left_out = if is_left_out { self.turns.pop().map(|it| it.id) } else { None };
        let ConversationInfo { conversation, cwd, version } = of;
        Imported { conversation, cwd, version, turns: self.turns, left_out, rest: self.asides }
    }

    fn open(
        &mut self,
        at: Millis,
        id: ResponseId,
        message: Option<Event>,
        model: Option<String>,
        trigger: Trigger,
    ) {
        let asides = std::mem::take(&mut self.asides);
        self.turns.push(Turn { id: id.clone(), entries: asides });
        self.is_open = true;
        if let Some(message) = message {
            self.push(at, None, message);
        }
        let agent = self.agent.clone();
        self.push(at, Some(id), Event::RunStart { agent, model, trigger, exchange_id: None });
    }

    fn feed(&mut self, at: Millis, input: ProgramInput) {
        let effects = self.backend.on(at, input);
        self.apply_effects(at, effects);
    }

    fn apply_effects(&mut self, at: Millis, effects: Vec<ProgramEffect>) {
        for effect in effects {
            match effect {
                ProgramEffect::Run(effect) => self.apply_to_run(at, effect),
                ProgramEffect::Begin => {
                    if let Some(id) = self.spare.take() {
                        self.open(at, id, None, None, Trigger::SelfStarted);
                    }
                }
                ProgramEffect::Write(line) => {
                    self.written.extend(serde_json::from_str::<Value>(&line));
                }
                // Decisions were made when the program ran.
                ProgramEffect::Ask { .. } | ProgramEffect::Withdraw(_) => (),
                // A replay has no process.
                ProgramEffect::CloseInput | ProgramEffect::Quit | ProgramEffect::Outdated => (),
            }
        }
    }

    fn apply_to_run(&mut self, at: Millis, effect: RunEffect) {
        match effect {
            RunEffect::Emit(event) => self.note(at, event),
            RunEffect::End(end) => self.end(at, |answer| end.of(answer)),
            RunEffect::WakeAt(at) => self.wakes_at = Some(at),
            // No message is steered into a replayed run.
            RunEffect::CannotSteer(_) => (),
        }
    }

    fn end(&mut self, at: Millis, ending: impl FnOnce(&RunMessage) -> Ending) {
        let Some(turn) = self.turns.last().filter(|_| self.is_open) else { return };
        let session = SessionId::new("");
        let records: Vec<Record> = turn
            .entries
            .iter()
            .filter(|it| it.response_id.is_some())
            .map(|it| {
                let (response_id, event) = (it.response_id.clone(), it.event.clone());
                Record::new(Seq(0), it.at, session.clone(), response_id, event)
            })
            .collect();
        let answer = RunMessage::replay(&turn.id, &records);
        for event in close(&answer, &ending(&answer), at.max(self.last_at)) {
            self.note(at, event);
        }
        self.is_open = false;
    }

    fn unique(&mut self, id: &str) -> String {
        let count = self.ids.entry(id.to_owned()).or_default();
        *count += 1;
        if *count == 1 { id.to_owned() } else { format!("{id}-again-{count}") }
    }

    fn push(&mut self, at: Millis, response_id: Option<ResponseId>, event: Event) {
        self.last_at = self.last_at.max(at);
        let entry = Entry { at: self.last_at, response_id, event };
        match self.turns.last_mut().filter(|_| self.is_open) {
            Some(turn) => turn.entries.push(entry),
            None => self.asides.push(entry),
        }
    }
}

fn run_id(of: &str) -> ResponseId {
    ResponseId::new(format!("run-{of}"))
}
