//! Questions that the session's agent asks other agents, and those that other agents ask it.

use std::collections::{BTreeMap, BTreeSet};

use tools::interrupted;
use transcript::{
    Direction, ErrorCode, ErrorInfo, Event, ExchangeId, ExchangeMode, Level, MessageId,
    OpenExchange, SendMode, Sender,
};

use super::commands::StoppedBy;
use super::{AfterCommit, Task};
use crate::clock;
use crate::session::command::{NewMessage, Reply};
use crate::session::exchanges::{ExchangeNews, Opening, Outcome, answering};

impl Task {
    /// A question that is refused is written too, with its end.
    pub(super) fn open_exchange(
        &mut self,
        opening: Opening,
        reply: Reply<Result<Sender, ErrorInfo>>,
    ) {
        let is_going_on = self.run.as_ref().is_some_and(|run| {
            let call = run.answer.call(&opening.call_id);
            run.id == opening.run && call.is_some_and(|it| it.is_open())
        });
        if !is_going_on {
            return self.reply(reply, Err(interrupted()));
        }
        let depth = self.summary.from.as_ref().map_or(0, |it| it.depth) + 1;
        let refused = opening.refused.or_else(|| self.check_limits(depth));
        let Opening { exchange_id, run, call_id, agent, asked, text, mode, .. } = opening;
        let from = Sender {
            session_id: self.id.clone(),
            agent: self.summary.agent.clone(),
            exchange_id: exchange_id.clone(),
            depth,
            is_answer: false,
        };
        let peer_response_id = asked.as_ref().map(|_| answering(&exchange_id));
        let question = Event::AgentMessage {
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
        self.push(Some(&run), question);
        let opened = match refused {
            None => Ok(from),
            Some(error) => {
                self.end_exchange(&exchange_id, Err(error.clone()));
                Err(error)
            }
        };
        self.reply(reply, opened);
    }

    fn check_limits(&self, depth: u32) -> Option<ErrorInfo> {
        let limits = &self.shared.exchanges.limits;
        let asked = self.run.as_ref().map_or(0, |run| run.answer.exchanges().count());
        let (code, message) = if depth > limits.depth {
            let message = format!(
                "{} questions of agents have led here since a person said something, which is as many \
                 as may. Answer with what you know.",
                depth - 1
            );
            (ErrorCode::AgentDepthLimit, message)
        } else if asked >= limits.per_run {
            let message = format!(
                "You have asked other agents {asked} times in this run, which is as often as you may. \
                 Answer with what you know."
            );
            (ErrorCode::ExchangeLimit, message)
        } else {
            return None;
        };
        Some(ErrorInfo::new(code, message))
    }

    /// Of an exchange that has ended nothing is written any more.
    pub(super) fn hear_exchange(&mut self, id: &ExchangeId, news: ExchangeNews) {
        let Some(open) = self.summary.open_exchanges.get(id).cloned() else { return };
        match news {
            ExchangeNews::Progress(state) => {
                let (exchange_id, run) = (id.clone(), open.response_id);
                if open.state != Some(state) {
                    self.push(run.as_ref(), Event::AgentProgress { exchange_id, state });
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
        let Some(open) = self.summary.open_exchanges.get(id).cloned() else { return };
        let OpenExchange { response_id, agent, peer_session_id, .. } = open;
        let peer_response_id = peer_session_id.as_ref().map(|_| answering(id));
        let end = Event::AgentCallbackResult {
            exchange_id: id.clone(),
            direction: Direction::Sent,
            agent,
            peer_session_id,
            peer_response_id,
            ok: outcome.is_ok(),
            result: outcome.as_ref().ok().map(|it| it.as_str().into()),
            error: outcome.err(),
        };
        self.push(response_id.as_ref(), end);
    }

    /// What comes later than the run that asked begins a run of its own. Nothing is too much for the
    /// queue here: it was asked for.
    fn call_back(&mut self, exchange_id: ExchangeId, open: OpenExchange, outcome: Outcome) {
        let Some(session_id) = open.peer_session_id else { return };
        let OpenExchange { agent, depth, .. } = open;
        let from = Some(Sender { session_id, agent, exchange_id, depth, is_answer: true });
        let text = outcome.unwrap_or_else(|error| {
            format!("There is no answer. {} ({})", error.message, error.code)
        });
        let (client_id, attachments, mode) = (None, Vec::new(), SendMode::Queue);
        let client_tools = Vec::new();
        let message =
            NewMessage { text, client_id, attachments, mode, from, client_tools, sent: None };
        self.take_message(clock::new_message_id(), message);
    }

    /// As many as may wait in all, if one more question of an agent is to be among them.
    pub(super) fn room_for_agents(&self) -> usize {
        let of_agents = self.queue.messages.iter().filter(|it| it.from.is_some()).count();
        let of_people = self.queue.messages.len() - of_agents;
        of_people + self.shared.exchanges.limits.queued
    }

    pub(super) fn abandon(&mut self, id: &ExchangeId, by: String, reply: Reply<()>) {
        if self.run.as_ref().is_some_and(|it| it.id == answering(id)) {
            return self.stop_run(StoppedBy::Asker(by), move |outcome| {
                let _ = reply.send(outcome);
            });
        }
        if let Some(message_id) = self.queued_question(id) {
            let reason = Some(format!("withdrawn by {by}"));
            self.push(None, Event::MessageDropped { message_id, reason });
        }
        self.reply(reply, ());
    }

    fn queued_question(&self, id: &ExchangeId) -> Option<MessageId> {
        let is_it = |from: &Sender| from.exchange_id == *id && !from.is_answer;
        let mut queued = self.queue.messages.iter();
        queued.find(|it| it.from.as_ref().is_some_and(is_it)).map(|it| it.id.clone())
    }

    /// A person has stopped the run, and may think that everything has stopped.
    pub(super) fn say_what_goes_on(&mut self) {
        let others =
            self.summary.open_exchanges.values().filter(|it| it.mode == ExchangeMode::Async);
        let names: BTreeSet<&str> = others.map(|it| it.agent.as_str()).collect();
        if names.is_empty() {
            return;
        }
        let text = format!(
            "Still at work in the background: {}. To stop that too, stop it in its own session.",
            Vec::from_iter(names).join(", ")
        );
        self.push(None, Event::Notice { level: Level::Info, text });
    }

    /// After the session was opened. An answer that a run waited for is wanted no more: the run is
    /// gone, and with it the exchange.
    pub(super) fn take_up_exchanges(&mut self, were_open: BTreeMap<ExchangeId, OpenExchange>) {
        let still_open = self.summary.open_exchanges.clone();
        let awaited = still_open.iter().filter(|(_, it)| it.mode == ExchangeMode::Sync);
        for (id, _) in awaited {
            let message = "The run that asked is gone.";
            self.end_exchange(id, Err(ErrorInfo::new(ErrorCode::AgentCancelled, message)));
        }
        if !were_open.is_empty() {
            self.after_commit.push(AfterCommit::ResumeExchanges(were_open));
        }
    }
}
