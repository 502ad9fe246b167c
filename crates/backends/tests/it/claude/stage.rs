//! A driver without a process, which keeps its contract with the backend and checks that the
//! backend does.

use std::sync::Arc;

use backends::claude::{Claude, Settings};
use backends::{
    Exit, Launch, ProgramBackend, ProgramEffect, ProgramInput, RunEffect, RunInput, ToolServer,
};
use serde_json::{Value, json};
use transcript::{CallId, MessageId, Millis, ResponseId, Trigger};

use super::watch::{Closed, Watch};
use crate::log::Log;

pub(super) struct Stage {
    backend: Claude,
    pub(super) now: Millis,
    ids_given: u32,
    spare: Option<ResponseId>,
    pub(super) run: Option<Watch>,
    pub(super) closed: Vec<Closed>,
    /// All inputs but lines, and all effects, in order.
    pub(super) log: Vec<Entry>,
    /// The log as the server would have written it.
    pub(super) session: Log,
    pub(super) wake_at: Option<Millis>,
    pub(super) has_quit: bool,
    /// Whether the open run was interrupted.
    pub(super) is_stopping: bool,
}

pub(super) enum Entry {
    /// An input of the backend that is not a line.
    Given(String),
    Did(Box<ProgramEffect>),
}

impl Stage {
    pub(super) fn new() -> Self {
        let tools = Some(ToolServer { url: "http://127.0.0.1/mcp".into(), token: "t".into() });
        let launch = Launch { tools, ..Launch::default() };
        let mut stage = Self {
            backend: Claude::new(Arc::new(Settings::default()), &launch),
            now: Millis(0),
            ids_given: 0,
            spare: None,
            run: None,
            closed: Vec::new(),
            log: Vec::new(),
            session: Log::new("claude"),
            wake_at: None,
            has_quit: false,
            is_stopping: false,
        };
        stage.give_spare();
        stage
    }

    pub(super) fn start(&mut self, message: &Value) -> Vec<ProgramEffect> {
        assert!(self.run.is_none(), "one run at a time");
        let response_id = self.next_id("r");
        self.run = Some(Watch::new(response_id.clone()));
        self.session.start(&response_id, &message["content"]);
        self.given(format!("start {response_id}: {}", message["content"]));
        let earlier = json!({ "role": "user", "content": "said before" });
        let history =
            vec![earlier, json!({ "role": "assistant", "content": "x" }), message.clone()];
        self.give(RunInput::Start { response_id, history })
    }

    pub(super) fn steer(&mut self, message: &Value) -> Vec<ProgramEffect> {
        let message_id = MessageId::new(self.next_id("m").to_string());
        self.given(format!("steer {message_id}: {}", message["content"]));
        self.session.steer(&message_id, &message["content"]);
        self.give(RunInput::Steer { message_id, message: message.clone() })
    }

    pub(super) fn line(&mut self, line: &str) -> Vec<ProgramEffect> {
        self.give(ProgramInput::Line(line.to_owned()))
    }

    pub(super) fn decide(
        &mut self,
        call_id: &CallId,
        verdict: backends::Verdict,
    ) -> Vec<ProgramEffect> {
        let was_asked = self.run.as_mut().is_some_and(|run| run.unask(call_id));
        assert!(was_asked, "decided once");
        self.given(format!("decided {call_id}: {verdict:?}"));
        self.session.decide(call_id, &verdict);
        self.give(ProgramInput::Decided { call_id: call_id.clone(), verdict })
    }

    pub(super) fn interrupt(&mut self) -> Vec<ProgramEffect> {
        self.given("interrupt".to_owned());
        self.is_stopping = self.run.is_some();
        self.session.interrupt();
        self.give(RunInput::Interrupt)
    }

    /// Advances the clock to the time at which the backend wants to be woken, and wakes it.
    pub(super) fn wake(&mut self) -> Vec<ProgramEffect> {
        let Some(at) = self.wake_at.take() else { return Vec::new() };
        self.now = self.now.max(at);
        self.given("wake".to_owned());
        self.give(RunInput::Wake)
    }

    pub(super) fn exit(&mut self, exit: Exit) -> Vec<ProgramEffect> {
        self.given(format!("exited: {:?} {:?}", exit.code, exit.stderr));
        self.give(ProgramInput::Exited(exit))
    }

    pub(super) fn give(&mut self, input: impl Into<ProgramInput>) -> Vec<ProgramEffect> {
        self.now = self.now.plus(10);
        self.session.set_now(self.now);
        let effects = self.backend.on(self.now, input.into());
        // A line gives only a few effects; closing a run gives most.
        assert!(effects.len() < 400, "{} effects", effects.len());
        let mut has_ended = false;
        for effect in &effects {
            assert!(!has_ended, "nothing comes after the end: {effect:?}");
            has_ended = matches!(effect, ProgramEffect::Run(RunEffect::End(_)));
            self.carry_out(effect);
            self.log.push(Entry::Did(Box::new(effect.clone())));
        }
        if effects.contains(&ProgramEffect::Begin) {
            self.give_spare();
        }
        effects
    }

    fn carry_out(&mut self, effect: &ProgramEffect) {
        self.session.carry_out(effect);
        match effect {
            ProgramEffect::Begin => {
                assert!(self.run.is_none(), "one run at a time");
                let id = self.spare.take().unwrap();
                self.session.begin(&id, Trigger::SelfStarted);
                self.run = Some(Watch::new(id));
            }
            ProgramEffect::Run(RunEffect::Emit(event)) => {
                self.run.as_mut().expect("a run is open").see(event)
            }
            ProgramEffect::Ask { call_id, .. } => self.run.as_mut().unwrap().ask(call_id),
            ProgramEffect::Withdraw(call_id) => {
                assert!(self.run.as_mut().unwrap().unask(call_id), "nobody was asked");
            }
            ProgramEffect::Run(RunEffect::WakeAt(at)) => self.wake_at = Some(*at),
            ProgramEffect::Run(RunEffect::End(ending)) => {
                let run = self.run.take().expect("a run is open");
                (self.wake_at, self.is_stopping) = (None, false);
                self.closed.push(run.close(ending, self.now));
            }
            ProgramEffect::Write(line) => {
                assert!(!line.contains('\n'));
                assert!(serde_json::from_str::<Value>(line).unwrap().is_object());
            }
            ProgramEffect::Quit => self.has_quit = true,
            ProgramEffect::Run(RunEffect::CannotSteer(_)) => (),
            ProgramEffect::Outdated | ProgramEffect::CloseInput => {
                panic!("not for Claude Code: {effect:?}")
            }
        }
    }

    fn give_spare(&mut self) {
        let id = self.next_id("self");
        self.spare = Some(id.clone());
        assert_eq!(self.backend.on(self.now, ProgramInput::Spare(id)), []);
    }

    fn given(&mut self, what: String) {
        self.log.push(Entry::Given(what));
    }

    fn next_id(&mut self, prefix: &str) -> ResponseId {
        self.ids_given += 1;
        ResponseId::new(format!("{prefix}{}", self.ids_given))
    }
}
