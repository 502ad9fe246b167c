//! Exchanges: messages that the session's agent sends other agents, and those that it gets.

use std::collections::{BTreeMap, BTreeSet};

use transcript::{
    Direction, ErrorCode, ErrorInfo, Event, ExchangeId, ExchangeMode, Level, OpenExchange,
    SendMode, Sender,
};

use crate::calls::interrupted;
use crate::command::{ExchangeOpening, Opened, answering};
use crate::command_handling::StoppedBy;
use crate::{Answer, Effect, ExchangeNews, Limits, NewMessage, Outcome, ReplyTo, Session};

impl Session {
    /// Logs a message from the session's agent to another agent. A refused message is logged too,
    /// together with the end of its exchange.
    pub(crate) fn open_exchange(&mut self, opening: ExchangeOpening, reply: ReplyTo<Opened>) {
        let is_open = self.phase.run().is_some_and(|run| {
            let call = run.message.call(&opening.call_id);
            run.id == opening.run && call.is_some_and(|it| it.is_open())
        });
        if !is_open {
            return self.reply(reply, Err(interrupted()));
        }
        let depth = self.journal.summary.from.as_ref().map_or(0, |it| it.depth) + 1;
        let sent = self.phase.run().map_or(0, |run| run.message.exchanges().count());
        let refused = opening.refused.or_else(|| exceeded(&self.settings.limits, depth, sent));
        let ExchangeOpening { exchange_id, run, call_id, agent, asked, text, mode, .. } = opening;
        let from = Sender {
            session_id: self.journal.session.clone(),
            agent: self.journal.summary.agent.clone(),
            exchange_id: exchange_id.clone(),
            depth,
            is_answer: false,
        };
        let peer_response_id = asked.as_ref().map(|_| answering(&exchange_id));
        let message = Event::AgentMessage {
            exchange_id: exchange_id.clone(),
            direction: Direction::Sent,
            call_id: Some(call_id),
            mode,
            depth,
            agent,
            peer_session_id: asked,
            peer_response_id,
            text,
        };
        self.push(Some(&run), message);
        let opened = match refused {
            None => Ok(from),
            Some(error) => {
                self.end_exchange(&exchange_id, Err(error.clone()));
                Err(error)
            }
        };
        self.reply(reply, opened);
    }

    /// Logs the progress or the end of an open exchange. Reports about an exchange that has ended
    /// are ignored.
    pub(crate) fn update_exchange(&mut self, id: &ExchangeId, news: ExchangeNews) {
        let Some(open) = self.journal.summary.open_exchanges.get(id).cloned() else { return };
        match news {
            ExchangeNews::Progress(state) => {
                if open.state != Some(state) {
                    let exchange_id = id.clone();
                    let progress = Event::AgentProgress { exchange_id, state };
                    self.push(open.response_id.as_ref(), progress);
                }
            }
            ExchangeNews::Ended(outcome) => {
                self.end_exchange(id, outcome.clone());
                if open.mode == ExchangeMode::Async {
                    self.call_back(id.clone(), open, outcome);
                }
            }
        }
    }

    fn end_exchange(&mut self, id: &ExchangeId, outcome: Outcome) {
        let Some(open) = self.journal.summary.open_exchanges.get(id).cloned() else { return };
        let peer_run = open.peer_session_id.as_ref().map(|_| answering(id));
        self.push_all([open.end(id.clone(), peer_run, outcome)]);
    }

    /// Accepts the reply to an asynchronous message as a new message, which starts a run or is
    /// queued. The limits of the queue do not apply, because this session asked for the reply.
    fn call_back(&mut self, exchange_id: ExchangeId, open: OpenExchange, outcome: Outcome) {
        let Some(session_id) = open.peer_session_id else { return };
        let OpenExchange { agent, depth, .. } = open;
        let from = Some(Sender { session_id, agent, exchange_id, depth, is_answer: true });
        let text = outcome.unwrap_or_else(|error| {
            format!("There is no answer. {} ({})", error.message, error.code)
        });
        let message_id = self.ids.message(self.now);
        let mode = SendMode::Queue;
        self.take_message(message_id, NewMessage { from, mode, ..NewMessage::of_person(text) });
    }

    /// Withdraws the message of an exchange that another agent sent: removes it from the queue, or
    /// stops the run that answers it.
    pub(crate) fn abandon_exchange(&mut self, id: &ExchangeId, by: String, reply: ReplyTo<()>) {
        if self.phase.run().is_some_and(|it| it.id == answering(id)) {
            return self.stop_run(StoppedBy::Sender(by), reply.id(), Answer::Done);
        }
        let queued = self.journal.queue.message_of(id).map(|it| it.id.clone());
        if let Some(message_id) = queued {
            let reason = Some(format!("withdrawn by {by}"));
            self.push(None, Event::MessageDropped { message_id, reason });
        }
        self.reply(reply, ());
    }

    /// Logs which agents still answer asynchronous messages after a person stopped the run, because
    /// the person may think that everything has stopped.
    pub(crate) fn note_background_exchanges(&mut self) {
        let open = self.journal.summary.open_exchanges.values();
        let names: BTreeSet<&str> =
            open.filter(|it| it.mode == ExchangeMode::Async).map(|it| it.agent.as_str()).collect();
        if names.is_empty() {
            return;
        }
        let text = format!(
            "Still at work in the background: {}. To stop that too, stop it in its own session.",
            Vec::from_iter(names).join(", ")
        );
        self.push(None, Event::Notice { level: Level::Info, text });
    }

    /// Ends the synchronous exchanges that the log leaves open, because the runs that waited for
    /// them are gone, and lets the driver resume the others.
    pub(crate) fn take_up_exchanges(&mut self, were_open: BTreeMap<ExchangeId, OpenExchange>) {
        for (id, exchange) in self.journal.summary.open_exchanges.clone() {
            if exchange.mode == ExchangeMode::Sync {
                let message = "The run that sent the message has ended.";
                self.end_exchange(&id, Err(ErrorInfo::new(ErrorCode::AgentCancelled, message)));
            }
        }
        if !were_open.is_empty() {
            self.after_append(Effect::ResumeExchanges(were_open));
        }
    }
}

/// Returns the refusal of a message to another agent that exceeds a limit. `depth` is the length of
/// the chain that the message continues, `sent` the number of messages that its run sent before.
fn exceeded(limits: &Limits, depth: u32, sent: usize) -> Option<ErrorInfo> {
    if depth > limits.exchange_depth {
        let message = format!(
            "Limit reached: {} messages between agents since the last message of a person. Answer \
             with what you know.",
            depth - 1
        );
        return Some(ErrorInfo::new(ErrorCode::AgentDepthLimit, message));
    }
    if sent >= limits.exchanges_per_run {
        let message = format!(
            "Limit reached: {sent} messages to other agents in this run. Answer with what you know."
        );
        return Some(ErrorInfo::new(ErrorCode::ExchangeLimit, message));
    }
    None
}
