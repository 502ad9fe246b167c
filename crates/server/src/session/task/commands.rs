//! What people and programs ask of a session.

use backends::Input;
use store::{MessageKind, MessageRow, Window};
use tokio::sync::oneshot;
use transcript::{Ending, Event, MessageId, Record, ResponseId, RewindReason, Trigger};

use super::{AfterCommit, Stop, Task};
use crate::import::Addition;
use crate::session::command::{Command, NewMessage, Receipt, Refused, Reply, SessionPatch};

/// Messages that are looked at for the one that follows another.
const ROWS_READ: usize = 50;

/// Who wants a run to stop.
pub(super) enum StoppedBy {
    Person(String),
    /// The agent that asked for it, which says nothing about what others have asked.
    Asker(String),
}

impl Task {
    pub(super) fn handle(&mut self, command: Command) {
        match command {
            Command::Update { patch, reply } => self.update(patch, reply),
            Command::Add { addition, reply } => self.add(&addition, reply),
            Command::Send { message, reply } => self.send(message, reply),
            Command::Cancel { by, unless_asking, reply } => {
                self.cancel(by, unless_asking, reply);
            }
            Command::Continue { reply } => self.go_on(reply),
            Command::Retry { of, reason, reply } => self.retry(of.as_deref(), reason, reply),
            Command::Edit { earlier, message, reply } => self.edit(&earlier, message, reply),
            Command::ChangeQueued { message_id, change, reply } => {
                self.change_queued(&message_id, change, reply);
            }
            Command::SteerQueued { message_id, reply } => self.steer_queued(message_id, reply),
            Command::ReleaseQueue { reply } => self.release_queue(reply),
            Command::ClearQueue { reply } => self.clear_queue(reply),
            Command::OpenExchange { opening, reply } => self.open_exchange(opening, reply),
            Command::HearExchange { exchange_id, news, reply } => {
                self.hear_exchange(&exchange_id, news);
                self.reply(reply, ());
            }
            Command::Abandon { exchange_id, by, reply } => self.abandon(&exchange_id, by, reply),
            Command::Approve { approval, reply } => self.approve(approval, reply),
            Command::UndoApproval { call_id, by, reply } => self.undo(&call_id, by, reply),
            Command::RevokeGrant { id, by, reply } => self.revoke_session_grant(&id, by, reply),
            Command::GiveResult { call_id, outcome, reply } => {
                self.give_result(call_id, outcome, reply);
            }
            Command::CallTool { call, reply } => self.own_calls.add(call, reply),
            Command::Delete { reply } => {
                self.dismiss();
                self.drop_run();
                self.after_commit.push(AfterCommit::Delete(reply));
            }
            Command::Stop { reply } => self.stop(reply),
        }
    }

    fn update(&mut self, patch: SessionPatch, reply: Reply<()>) {
        let SessionPatch { title, archived, workspace } = patch;
        let workspace_confirmed = workspace.is_some();
        if workspace_confirmed {
            if self.run.is_some() {
                return refuse(reply, Refused::Busy);
            }
            // Its program works in the folder of before.
            self.dismiss();
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

    fn add(&mut self, addition: &Addition, reply: Reply<()>) {
        if self.head != addition.head || self.run.is_some() {
            return refuse(reply, Refused::Busy);
        }
        for Record { at, response_id, event, .. } in &*addition.records {
            self.push_at(*at, response_id.as_ref(), event.clone());
        }
        self.reply(reply, ());
    }

    fn cancel(&mut self, by: String, unless_asking: bool, reply: Reply<Option<ResponseId>>) {
        let Some(run) = &self.run else { return self.reply(reply, None) };
        if unless_asking && run.is_asking() {
            return refuse(reply, Refused::Asking);
        }
        let stopped = run.id.clone();
        self.stop_run(StoppedBy::Person(by), move |outcome| {
            let _ = reply.send(outcome.map(|()| Some(stopped)));
        });
    }

    /// Tells the agent to stop, and whoever wants to know it when the run has ended.
    pub(super) fn stop_run(
        &mut self,
        by: StoppedBy,
        then: impl FnOnce(Result<(), Refused>) + Send + 'static,
    ) {
        let Some(run) = &mut self.run else { return };
        let id = run.id.clone();
        run.awaited.push(Box::new(then));
        // Asked for once: a program may take its time.
        if run.answer.cancel_requested.is_none() {
            let is_unheard = run.is_held_at_its_start();
            let (by, is_person) = match by {
                StoppedBy::Person(by) => (by, true),
                StoppedBy::Asker(by) => (by, false),
            };
            self.push(Some(&id), Event::CancelRequested { by });
            if is_person {
                self.hold_queue();
            }
            if is_unheard {
                self.end_run(&Ending::cancelled());
            } else {
                self.tell_agent(Input::Interrupt);
            }
        }
    }

    fn go_on(&mut self, reply: Reply<ResponseId>) {
        match self.last_answer() {
            _ if self.run.is_some() => refuse(reply, Refused::Busy),
            Ok(Some(_)) => {
                let id = self.start_run(Trigger::Continue);
                self.reply(reply, id);
            }
            Ok(None) => refuse(reply, Refused::Nothing("continue")),
            Err(error) => refuse(reply, Refused::Storage(error.to_string())),
        }
    }

    fn retry(&mut self, of: Option<&str>, reason: RewindReason, reply: Reply<ResponseId>) {
        let answer = of.map_or_else(|| self.last_answer(), |id| self.answer_at(id));
        match answer {
            _ if self.run.is_some() => refuse(reply, Refused::Busy),
            Ok(Some(before_message_id)) => {
                self.push(None, Event::HistoryRewound { before_message_id, reason });
                let id = self.start_run(Trigger::Retry);
                self.reply(reply, id);
            }
            Ok(None) => refuse(reply, Refused::Nothing("retry")),
            Err(error) => refuse(reply, Refused::Storage(error.to_string())),
        }
    }

    /// Only what a person said, and what still counts, can be said again.
    fn edit(&mut self, earlier: &MessageId, message: NewMessage, reply: Reply<Receipt>) {
        let row = self.shared.store.message_row(&self.id, earlier.as_str());
        let is_said = |it: &MessageRow| it.kind == MessageKind::Said && !it.superseded;
        match row {
            _ if self.run.is_some() => refuse(reply, Refused::Busy),
            Ok(Some(row)) if is_said(&row) => {
                let (before_message_id, reason) = (row.id, RewindReason::Edit);
                self.push(None, Event::HistoryRewound { before_message_id, reason });
                self.accept(message, reply);
            }
            Ok(_) => refuse(reply, Refused::NoMessage(earlier.to_string())),
            Err(error) => refuse(reply, Refused::Storage(error.to_string())),
        }
    }

    fn stop(&mut self, reply: oneshot::Sender<()>) {
        self.stopping = true;
        self.leave_run();
        self.dismiss();
        let reply = |_| {
            let _ = reply.send(());
        };
        self.after_commit.push(AfterCommit::Reply(Box::new(reply)));
    }

    /// The answer that the history ends with, if it ends with one.
    fn last_answer(&self) -> Result<Option<String>, store::Error> {
        let window = Window { before: None, limit: ROWS_READ };
        let mut rows = self.shared.store.messages(&self.id, window)?.into_iter();
        let last = rows.rfind(|it| it.kind != MessageKind::Aside);
        Ok(last.filter(is_answer).filter(|it| !it.superseded).map(|it| it.id))
    }

    /// That answer, or the one that follows that message, as long as it counts.
    fn answer_at(&self, id: &str) -> Result<Option<String>, store::Error> {
        let store = &self.shared.store;
        let Some(named) = store.message_row(&self.id, id)? else { return Ok(None) };
        if named.kind == MessageKind::Answer {
            return Ok(Some(named).filter(|it| !it.superseded).map(|it| it.id));
        }
        let window = store.window_after(&self.id, named.first, ROWS_READ)?;
        let rows = store.messages(&self.id, window)?.into_iter();
        let mut counting = rows.filter(|it| !it.superseded && it.first > named.first);
        Ok(counting.find(|it| it.kind != MessageKind::Aside).filter(is_answer).map(|it| it.id))
    }

    pub(super) async fn delete(&mut self, reply: Reply<()>) -> Result<(), Stop> {
        match self.shared.store.delete_session(&self.id).await {
            Ok(_) => {
                self.shared.hub.publish_deletion(&self.id);
                let _ = reply.send(Ok(()));
                Err(Stop::Deleted)
            }
            // The run is stopped already: what the log says of it has to be taken up from there.
            Err(error) => {
                let why = error.to_string();
                refuse(reply, Refused::Storage(why.clone()));
                Err(Stop::Storage { why, lost_run: true })
            }
        }
    }

    pub(super) fn reply<T: Send + 'static>(&mut self, reply: Reply<T>, value: T) {
        let reply = move |outcome: Result<(), Refused>| {
            let _ = reply.send(outcome.map(|()| value));
        };
        self.after_commit.push(AfterCommit::Reply(Box::new(reply)));
    }
}

fn is_answer(row: &MessageRow) -> bool {
    row.kind == MessageKind::Answer
}

pub(super) fn refuse<T>(reply: Reply<T>, why: Refused) {
    let _ = reply.send(Err(why));
}
