//! The log of a session as the server writes it, from the inputs and effects of a backend.

use backends::{ProgramEffect, RunEffect, Verdict};
use serde_json::Value;
use transcript::{
    ApprovalOptions, CallId, Decision, Event, MessageId, Millis, Record, ResponseId, RunMessage,
    Scope, SendMode, Seq, SessionId, Trigger, close, correct_result_code, implied_start,
};

/// Start of the clock in the log. Clocks of recordings start at zero.
const BEGINNING: u64 = 1_790_000_000_000;

pub(crate) struct Log {
    agent: &'static str,
    pub(crate) records: Vec<Record>,
    run: Option<RunMessage>,
    now: Millis,
    messages: u32,
}

impl Log {
    pub(crate) fn new(agent: &'static str) -> Self {
        let mut log = Self {
            agent,
            records: Vec::new(),
            run: None,
            now: Millis(0).plus(BEGINNING),
            messages: 0,
        };
        let agent = agent.to_owned();
        log.write(Event::SessionCreated {
            agent,
            workspace: None,
            workspace_confirmed: false,
            title: None,
        });
        log
    }

    /// Sets the clock to the time of the stage.
    pub(crate) fn set_now(&mut self, now: Millis) {
        self.now = now.plus(BEGINNING);
    }

    /// Writes a message of a person and the start of a run.
    pub(crate) fn start(&mut self, response_id: &ResponseId, content: &Value) {
        self.messages += 1;
        self.write(Event::UserMessage {
            sent: None,
            message_id: MessageId::new(format!("said{}", self.messages)),
            client_id: None,
            role: Default::default(),
            text: words(content),
            attachments: Vec::new(),
            from: None,
        });
        self.begin(response_id, Trigger::User);
    }

    pub(crate) fn begin(&mut self, response_id: &ResponseId, trigger: Trigger) {
        assert!(self.run.is_none(), "one run at a time");
        self.run = Some(RunMessage::replay(response_id, []));
        let (agent, model) = (self.agent.to_owned(), None);
        self.write(Event::RunStart { agent, model, trigger, exchange_id: None });
    }

    pub(crate) fn steer(&mut self, message_id: &MessageId, content: &Value) {
        self.write(Event::MessageQueued {
            sent: None,
            message_id: message_id.clone(),
            client_id: None,
            text: words(content),
            attachments: Vec::new(),
            position: None,
            mode: SendMode::Steer,
            held: false,
            from: None,
        });
    }

    pub(crate) fn interrupt(&mut self) {
        if self.run.as_ref().is_some_and(|it| it.cancel_requested.is_none()) {
            self.write(Event::CancelRequested { by: "user".to_owned() });
        }
    }

    pub(crate) fn decide(&mut self, call_id: &CallId, verdict: &Verdict) {
        let (decision, arguments, scope, feedback) = match verdict {
            Verdict::Allowed { arguments, scope } => {
                (Decision::Accepted, arguments.clone(), Some(*scope), None)
            }
            Verdict::Denied { feedback } => (Decision::Rejected, None, None, feedback.clone()),
            Verdict::TimedOut => (Decision::TimedOut, None, None, None),
        };
        self.write(Event::ToolApprovalResolved {
            call_id: call_id.clone(),
            decision,
            scope,
            arguments,
            feedback,
            covers: None,
            by: "user".to_owned(),
        });
    }

    pub(crate) fn carry_out_on_run(&mut self, effect: &RunEffect) {
        match effect {
            RunEffect::Emit(event) => self.emit(event.clone()),
            RunEffect::End(ending) => self.end(ending),
            RunEffect::CannotSteer(_) | RunEffect::WakeAt(_) => (),
        }
    }

    pub(crate) fn carry_out(&mut self, effect: &ProgramEffect) {
        match effect {
            ProgramEffect::Run(effect) => self.carry_out_on_run(effect),
            ProgramEffect::Ask { call_id, can_edit, form, reason, .. } => {
                let (can_edit, form, reason) = (*can_edit, form.clone(), reason.clone());
                let options = ApprovalOptions {
                    scopes: vec![Scope::Once],
                    can_edit,
                    form,
                    reason,
                    ..ApprovalOptions::default()
                };
                self.write(Event::ToolApprovalRequested { call_id: call_id.clone(), options });
            }
            ProgramEffect::Withdraw(call_id) => self.write(Event::ToolApprovalResolved {
                call_id: call_id.clone(),
                decision: Decision::Withdrawn,
                scope: None,
                arguments: None,
                feedback: None,
                covers: None,
                by: "callboard".to_owned(),
            }),
            _ => (),
        }
    }

    /// Writes an event of the agent, or of the driver for a call.
    pub(crate) fn emit(&mut self, mut event: Event) {
        if let Some(answer) = &self.run {
            correct_result_code(answer, &mut event);
            if let Some(start) = implied_start(answer, &event) {
                self.write(start);
            }
        }
        self.write(event);
    }

    fn end(&mut self, ending: &backends::Ending) {
        let Some(answer) = &self.run else { return };
        for event in close(answer, &ending.clone().of(answer), self.now) {
            self.write(event);
        }
        self.run = None;
    }

    fn write(&mut self, event: Event) {
        let seq = Seq(self.records.len() as u64 + 1);
        let of_run =
            self.run.as_ref().filter(|_| !event.is_session_event()).map(|it| it.id.clone());
        let record = Record::new(seq, self.now, SessionId::new("s"), of_run, event);
        if let Some(answer) = &mut self.run {
            answer.apply(&record);
        }
        self.records.push(record);
    }
}

/// Returns the text of a message, without its pictures.
fn words(content: &Value) -> String {
    let Value::Array(pieces) = content else {
        return content.as_str().unwrap_or_default().to_owned();
    };
    pieces.iter().filter_map(|it| it["text"].as_str()).collect()
}
