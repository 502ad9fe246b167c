//! Commands of clients, of other sessions and of the server.

use backends::RunInput;
use transcript::{Ending, Event, MessageId, Record, ResponseId, RewindReason, Trigger};

use crate::approvals::why_undecidable;
use crate::lanes::CommandWait;
use crate::phase::Phase;
use crate::{
    Addition, Answer, Command, Effect, Found, Lookup, NewMessage, Receipt, Refused, ReplyId,
    ReplyTo, Session, SessionPatch,
};

/// The person or agent that stops a run.
pub(crate) enum StoppedBy {
    Person(String),
    /// Name of the agent whose message the run answers. Its stop does not hold the queue, which
    /// contains messages of others.
    Sender(String),
}

impl Session {
    /// Handles a command now, or after the commands that wait for a reply of the driver.
    pub(crate) fn take_command(&mut self, command: Command) {
        if self.command_lane.is_waiting() {
            self.command_lane.held.push_back(command);
        } else {
            self.handle(command);
        }
    }

    pub(crate) fn handle(&mut self, command: Command) {
        if self.is_closed() {
            return self.refuse_id(command.caller(), Refused::Stopping);
        }
        match command {
            Command::Update { patch, reply } => self.update(patch, reply),
            Command::Add { addition, reply } => self.add(&addition, reply),
            Command::Send { message, reply } => self.send(message, reply),
            Command::Cancel { by, unless_asking, reply } => self.cancel(by, unless_asking, reply),
            Command::Continue { reply } => {
                self.find(Lookup::LastAnswer, CommandWait::Continue { reply });
            }
            Command::Retry { of, reason, reply } => {
                let lookup = of.map_or(Lookup::LastAnswer, Lookup::AnswerAt);
                self.find(lookup, CommandWait::Retry { reason, reply });
            }
            Command::Edit { earlier, message, reply } => {
                let named = earlier.to_string();
                let lookup = Lookup::MessageOfPerson(earlier);
                self.find(lookup, CommandWait::Edit { named, message, reply });
            }
            Command::ChangeQueued { message_id, change, reply } => {
                self.change_queued(&message_id, change, reply);
            }
            Command::SteerQueued { message_id, reply } => self.steer_queued(message_id, reply),
            Command::ReleaseQueue { reply } => self.release_queue(reply),
            Command::ClearQueue { reply } => self.clear_queue(reply),
            Command::OpenExchange { opening, reply } => self.open_exchange(opening, reply),
            Command::UpdateExchange { exchange_id, news, reply } => {
                self.update_exchange(&exchange_id, news);
                self.reply(reply, ());
            }
            Command::Abandon { exchange_id, by, reply } => {
                self.abandon_exchange(&exchange_id, by, reply);
            }
            Command::Approve { approval, reply } => self.approve(approval, reply),
            Command::UndoApproval { call_id, by, reply } => self.undo(call_id, by, reply),
            Command::RevokeGrant { id, covers, by, reply } => {
                self.revoke_session_grant(id, covers, by, reply);
            }
            Command::GiveResult { call_id, outcome, reply } => {
                self.give_result(call_id, outcome, reply);
            }
            Command::CallTool { call, reply } => self.relay_call(call, reply),
            Command::Delete { reply } => self.delete(reply.id()),
            Command::Stop { reply } => self.stop(reply),
        }
    }

    fn update(&mut self, patch: SessionPatch, reply: ReplyTo<()>) {
        let SessionPatch { title, archived, workspace } = patch;
        let workspace_confirmed = workspace.is_some();
        if workspace_confirmed {
            if self.has_run() {
                return self.refuse(reply, Refused::Busy);
            }
            // The program works in the folder of before.
            self.stop_agent();
        }
        if title.is_some() || archived.is_some() || workspace_confirmed {
            let agent = None;
            self.push(
                None,
                Event::SessionUpdated { agent, workspace, workspace_confirmed, title, archived },
            );
        }
        self.reply(reply, ());
    }

    fn add(&mut self, addition: &Addition, reply: ReplyTo<()>) {
        if self.journal.head != addition.head || self.has_run() {
            return self.refuse(reply, Refused::Busy);
        }
        for Record { at, response_id, event, .. } in &*addition.records {
            self.push_at(*at, response_id.as_ref(), event.clone());
        }
        self.reply(reply, ());
    }

    fn cancel(&mut self, by: String, unless_asking: bool, reply: ReplyTo<Option<ResponseId>>) {
        let Some(run) = self.phase.run() else { return self.reply(reply, None) };
        if unless_asking && run.is_asking() {
            return self.refuse(reply, Refused::Asking);
        }
        let answer = Answer::Stopped(Some(run.id.clone()));
        self.stop_run(StoppedBy::Person(by), reply.id(), answer);
    }

    /// Asks the agent to stop the open run. `caller` gets `answer` when the run has ended.
    pub(crate) fn stop_run(&mut self, by: StoppedBy, caller: ReplyId, answer: Answer) {
        let is_first = !self.phase.is_stopping();
        let is_unheard = self.phase.is_starting();
        self.phase.mark_stopping(caller, answer);
        // Stopping again changes nothing: the agent has been asked already.
        if !is_first {
            return;
        }
        match by {
            StoppedBy::Person(by) => {
                self.push_here(Event::CancelRequested { by });
                self.hold_queue();
            }
            StoppedBy::Sender(by) => self.push_here(Event::CancelRequested { by }),
        }
        if is_unheard {
            self.end_run(&Ending::cancelled());
        } else {
            self.tell(RunInput::Interrupt);
        }
    }

    pub(crate) fn continue_after(&mut self, answer: Option<String>, reply: ReplyTo<ResponseId>) {
        match answer {
            _ if self.has_run() => self.refuse(reply, Refused::Busy),
            Some(_) => self.start_for(Trigger::Continue, reply),
            None => self.refuse(reply, Refused::Nothing("continue")),
        }
    }

    pub(crate) fn retry_answer(
        &mut self,
        answer: Option<String>,
        reason: RewindReason,
        reply: ReplyTo<ResponseId>,
    ) {
        match answer {
            _ if self.has_run() => self.refuse(reply, Refused::Busy),
            Some(before_message_id) => {
                self.push(None, Event::HistoryRewound { before_message_id, reason });
                self.start_for(Trigger::Retry, reply);
            }
            None => self.refuse(reply, Refused::Nothing("retry")),
        }
    }

    fn start_for(&mut self, trigger: Trigger, reply: ReplyTo<ResponseId>) {
        self.start_run(trigger);
        if let Some(run) = self.phase.run().map(|it| it.id.clone()) {
            self.reply(reply, run);
        }
    }

    /// Replaces an earlier message by a new one. `earlier` is `None` if no person's message with
    /// the id `named` is left that is not superseded; then the command is refused.
    pub(crate) fn replace_message(
        &mut self,
        named: &str,
        earlier: Option<MessageId>,
        message: NewMessage,
        reply: ReplyTo<Receipt>,
    ) {
        match earlier {
            _ if self.has_run() => self.refuse(reply, Refused::Busy),
            Some(earlier) => {
                let before_message_id = earlier.to_string();
                let reason = RewindReason::Edit;
                self.push(None, Event::HistoryRewound { before_message_id, reason });
                self.accept_message(message, reply);
            }
            None => self.refuse(reply, Refused::NoMessage(named.to_owned())),
        }
    }

    fn delete(&mut self, to: ReplyId) {
        self.stop_agent();
        self.drop_run();
        self.phase = Phase::Closed;
        self.after_append(Effect::Delete { to });
    }

    fn stop(&mut self, reply: ReplyTo<()>) {
        self.leave_run();
        self.stop_agent();
        self.phase = Phase::Closed;
        self.reply(reply, ());
    }

    /// Continues a command with the result of its look-up in the store.
    pub(crate) fn take_command_reply(&mut self, wait: CommandWait, found: Found) {
        match (wait, found) {
            (CommandWait::Send { message, reply }, Found::Message(known)) => {
                self.send_once(message, known, reply);
            }
            (CommandWait::Continue { reply }, Found::Answer(answer)) => {
                self.continue_after(answer, reply);
            }
            (CommandWait::Retry { reason, reply }, Found::Answer(answer)) => {
                self.retry_answer(answer, reason, reply);
            }
            (CommandWait::Edit { named, message, reply }, Found::Message(earlier)) => {
                self.replace_message(&named, earlier, message, reply);
            }
            (CommandWait::NotWaiting { call_id, caller }, Found::Call(call)) => {
                self.refuse_id(caller, why_undecidable(&call_id, call.as_deref()));
            }
            (CommandWait::Undo { call_id, by, reply }, Found::Call(call)) => {
                self.undo_call(&call_id, call.map(|it| *it), by, reply);
            }
            (CommandWait::UndoGrant { undo, reply }, Found::Granted(is_granted)) => {
                self.undo_grant(undo, is_granted, reply);
            }
            (wait, _) => {
                let why = "the store gave another answer than was asked for".to_owned();
                if let Some(caller) = wait.caller() {
                    self.refuse_id(caller, Refused::Storage(why));
                }
            }
        }
    }
}
