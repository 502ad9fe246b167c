//! Exchanges: a message of an agent to another session, and the answer to it.
//!
//! An exchange is stored in the logs of both sessions. The asker's log has the message, its changes of
//! state and one end. The asked session's log has the message, with the exchange's id as its client
//! id, and the run that answers it, whose id is derived from the exchange's. The state of an exchange
//! is read from the asked session's log, also after restarts of the server. Only the set of followed
//! exchanges is in memory.

mod follower;
mod peers;
mod target;
mod wait_graph;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};
use tools::{PeerMessage, PeerReply, SessionChoice, SessionRule, Stopped, interrupted};
use transcript::{
    ClientId, ErrorCode, ErrorInfo, ExchangeId, ExchangeMode, ExchangeState, OpenExchange, Record,
    RunMessage, SendMode, Sender, SessionId,
};

use self::follower::{Follower, Progress};
use self::target::Target;
use self::wait_graph::{Edge, Followed, WaitGraph};
use crate::agents::Agents;
use crate::clock;
use crate::draw_pool::in_place;
use crate::driver::{Envelope, OtherSessions};
use crate::live::hub::Hub;
use crate::sessions::{Connect, NewSession, Sessions};
use session::{Command, ExchangeNews, ExchangeOpening, NewMessage, Outcome, Refused};

/// Pause before another attempt to write to the log of the asking session.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Limits for exchanges: messages between agents and their replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// Maximum length of a chain of messages between agents that begins with a message of a person.
    pub depth: u32,
    /// Maximum number of messages that one run sends to other agents.
    pub per_run: usize,
    /// Maximum number of messages of other agents in the queue of one session.
    pub queued: usize,
    /// Time limit for the reply to a message, unless the message sets one.
    pub timeout: Duration,
    /// Rule that chooses the session for a message that names none.
    pub session: SessionRule,
}

impl Default for ExchangeLimits {
    fn default() -> Self {
        Self {
            depth: 8,
            per_run: 20,
            queued: 20,
            timeout: Duration::from_secs(300),
            session: SessionRule::default(),
        }
    }
}

/// A message from an agent to another session.
struct OutgoingMessage {
    asked: SessionId,
    text: String,
    from: Sender,
}

/// A message to another agent that is in the asking session's log and not delivered yet.
struct Opened {
    outgoing: OutgoingMessage,
    /// Session to create for the message. `None` if the message goes to an existing session.
    new: Option<NewSession>,
    followed: Followed,
}

/// Exchanges of messages between the agents of a server.
#[derive(Clone)]
pub(crate) struct Exchanges {
    sessions: Sessions,
    store: Store,
    hub: Arc<Hub>,
    agents: Arc<Agents>,
    limits: ExchangeLimits,
    wait_graph: WaitGraph,
}

/// Returns the function that connects a session's driver to the other sessions, by exchanges.
pub(crate) fn connect(
    store: &Store,
    hub: &Arc<Hub>,
    agents: &Arc<Agents>,
    limits: ExchangeLimits,
) -> Connect {
    let (store, hub, agents) = (store.clone(), Arc::clone(hub), Arc::clone(agents));
    let wait_graph = WaitGraph::default();
    Box::new(move |sessions| {
        Arc::new(Exchanges {
            sessions,
            store: store.clone(),
            hub: Arc::clone(&hub),
            agents: Arc::clone(&agents),
            limits,
            wait_graph: wait_graph.clone(),
        })
    })
}

impl OtherSessions for Exchanges {
    fn release(&self, session: &SessionId, inbox: &mpsc::Receiver<Envelope>) -> bool {
        self.sessions.release(session, inbox)
    }

    fn resume_exchanges(
        self: Arc<Self>,
        asker: SessionId,
        open: BTreeMap<ExchangeId, OpenExchange>,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.resume(&asker, open).await })
    }
}

impl Exchanges {
    /// Sends a message to another agent, and waits for the reply if the message is synchronous. A
    /// failure or refusal is recorded in the asking session's log too.
    async fn message_agent(
        &self,
        message: PeerMessage,
        stopped: &Stopped,
    ) -> Result<PeerReply, ErrorInfo> {
        let (asker, mode) = (message.session.clone(), message.mode);
        let time_limit = message.timeout.unwrap_or(self.limits.timeout);
        let Opened { outgoing, new, followed } = self.open_exchange(message, stopped).await?;
        let (exchange_id, session) = (outgoing.from.exchange_id.clone(), outgoing.asked.clone());
        let answer = match mode {
            ExchangeMode::Sync => {
                let waiting = self.wait_for_answer(&asker, &outgoing, new, time_limit);
                Some(tokio::select! {
                    biased;
                    () = stopped.wait() => {
                        self.abandon(&session, &exchange_id, &outgoing.from.agent).await;
                        Err(interrupted())
                    }
                    answer = waiting => answer,
                }?)
            }
            ExchangeMode::Async => {
                let exchanges = self.clone();
                let (confirm, is_sent) = oneshot::channel();
                tokio::spawn(async move {
                    let follower = exchanges.deliver(&outgoing, new).await;
                    let _ = confirm.send(());
                    exchanges.follow_to_end(&asker, &outgoing, follower, followed).await;
                });
                // Waiting preserves the order of the messages of one agent.
                tokio::select! {
                    _ = is_sent => (),
                    () = stopped.wait() => (),
                }
                None
            }
        };
        Ok(PeerReply { exchange_id, session, answer })
    }

    /// Chooses the session for a message to another agent, and appends the message to the asking
    /// session's log, or the reason why it cannot be sent.
    async fn open_exchange(
        &self,
        message: PeerMessage,
        stopped: &Stopped,
    ) -> Result<Opened, ErrorInfo> {
        let PeerMessage { session: asker, run, call_id, agent, choice, text, mode, .. } = message;
        let exchange_id = clock::new_exchange_id();
        let rule = self.limits.session;
        let choice = choice.unwrap_or(SessionChoice::By(rule));
        let target = self.find_target(&asker, &agent, choice).await;
        let asked = target.as_ref().ok().map(|it| it.session.clone());
        let followed = target.and_then(|target| {
            let edge = Edge { asker: asker.clone(), asked: target.session.clone(), mode };
            let followed = self.wait_graph.follow(&exchange_id, edge);
            Ok((target, followed.map_err(|_| deadlock(&agent))?))
        });
        let opening = ExchangeOpening {
            exchange_id,
            run,
            call_id,
            agent: agent.clone(),
            asked,
            text: text.clone(),
            mode,
            refused: followed.as_ref().err().cloned(),
        };
        let from = tokio::select! {
            // A message that is in the log must be sent, even if the call has been stopped since.
            biased;
            opened = self.sessions.ask(&asker, |reply| Command::OpenExchange { opening, reply }) => {
                opened.map_err(as_error)??
            }
            // The session refuses the exchange later, because the run is over.
            () = stopped.wait() => return Err(interrupted()),
        };
        let (Target { session: asked, is_new }, followed) = followed?;
        let new = match is_new {
            true => Some(self.new_session(&asker, asked.clone(), &agent).await),
            false => None,
        };
        Ok(Opened { outgoing: OutgoingMessage { asked, text, from }, new, followed })
    }

    /// Delivers a synchronous message, waits for the end of the exchange, and appends that end to
    /// the asking session's log.
    async fn wait_for_answer(
        &self,
        asker: &SessionId,
        outgoing: &OutgoingMessage,
        new: Option<NewSession>,
        time_limit: Duration,
    ) -> Outcome {
        let id = &outgoing.from.exchange_id;
        let outcome = match self.deliver(outgoing, new).await {
            Ok(mut follower) => {
                self.wait_with_time_limit(asker, outgoing, &mut follower, time_limit).await
            }
            Err(refused) => Err(as_error(refused)),
        };
        let reported = self.report_once(asker, id, ExchangeNews::Ended(outcome.clone())).await;
        reported.map_err(as_error)?;
        outcome
    }

    /// Waits for the end of an exchange, at most for the time limit. Time in which a person has to
    /// decide about a tool call does not count.
    async fn wait_with_time_limit(
        &self,
        asker: &SessionId,
        outgoing: &OutgoingMessage,
        follower: &mut Follower,
        time_limit: Duration,
    ) -> Outcome {
        let id = &outgoing.from.exchange_id;
        let mut left = time_limit;
        let mut needs_person = false;
        loop {
            let since = Instant::now();
            let progress = tokio::select! {
                progress = follower.next() => progress,
                () = sleep(left), if !needs_person => {
                    self.abandon(&outgoing.asked, id, "the sender's time limit").await;
                    let message = format!(
                        "There was no answer within {} seconds, so it was stopped. Ask for less, give \
                         it more time, or ask in the background.",
                        time_limit.as_secs()
                    );
                    return Err(ErrorInfo::new(ErrorCode::AgentTimeout, message));
                }
            };
            if !needs_person {
                left = left.saturating_sub(since.elapsed());
            }
            match progress {
                Progress::Ended(outcome) => return outcome,
                Progress::Unknown => (),
                Progress::Open(state) => {
                    needs_person = state == ExchangeState::AwaitingApproval;
                    let reported = self.report_once(asker, id, ExchangeNews::Progress(state)).await;
                    reported.map_err(as_error)?;
                }
            }
        }
    }

    /// Follows an asynchronous exchange to its end, and reports each change of state to the asking
    /// session. After a restart of the server, the exchange continues from the log.
    async fn follow_to_end(
        &self,
        asker: &SessionId,
        outgoing: &OutgoingMessage,
        follower: Result<Follower, Refused>,
        _followed: Followed,
    ) {
        let id = &outgoing.from.exchange_id;
        let mut follower = match follower {
            Ok(follower) => follower,
            Err(Refused::Stopping) => return,
            Err(refused) => {
                let news = ExchangeNews::Ended(Err(as_error(refused)));
                return self.report(asker, id, news).await;
            }
        };
        loop {
            match follower.next().await {
                Progress::Unknown => (),
                Progress::Open(state) => {
                    self.report(asker, id, ExchangeNews::Progress(state)).await;
                }
                Progress::Ended(outcome) => {
                    return self.report(asker, id, ExchangeNews::Ended(outcome)).await;
                }
            }
        }
    }

    /// Appends news of an exchange to the asking session's log, with retries until the server stops
    /// or the session is gone.
    async fn report(&self, asker: &SessionId, id: &ExchangeId, news: ExchangeNews) {
        while !self.sessions.is_stopping() {
            match self.report_once(asker, id, news.clone()).await {
                Err(Refused::Storage(_)) => sleep(RETRY_PAUSE).await,
                _ => return,
            }
        }
    }

    async fn report_once(
        &self,
        asker: &SessionId,
        exchange_id: &ExchangeId,
        news: ExchangeNews,
    ) -> Result<(), Refused> {
        let exchange_id = exchange_id.clone();
        self.sessions.ask(asker, |reply| Command::UpdateExchange { exchange_id, news, reply }).await
    }

    /// Sends the message of an exchange to the asked session, which it may create first. Repeated
    /// calls send the message once.
    async fn deliver(
        &self,
        outgoing: &OutgoingMessage,
        new: Option<NewSession>,
    ) -> Result<Follower, Refused> {
        let OutgoingMessage { asked, text, from } = outgoing;
        let follower = Follower::new(&self.store, &self.hub, asked, &from.exchange_id);
        if let Some(new) = new {
            self.sessions.create(new).await?;
        }
        let message = NewMessage {
            sent: None,
            text: text.clone(),
            client_id: Some(ClientId::new(from.exchange_id.as_str())),
            attachments: Vec::new(),
            mode: SendMode::Queue,
            from: Some(from.clone()),
            client_tools: Vec::new(),
        };
        self.sessions.send(asked, message).await?;
        Ok(follower)
    }

    /// Withdraws the message of an exchange whose answer is not needed any more: removes it from
    /// the queue or stops the run that answers it.
    async fn abandon(&self, asked: &SessionId, exchange_id: &ExchangeId, by: &str) {
        let (exchange_id, by) = (exchange_id.clone(), by.to_owned());
        // A deleted session has nothing to stop.
        let _ = self.sessions.ask(asked, |reply| Command::Abandon { exchange_id, by, reply }).await;
    }

    /// Continues the open exchanges of a session that was opened again, in their order. Synchronous
    /// exchanges are abandoned, because the tool calls that waited for them have ended.
    async fn resume(&self, asker: &SessionId, open: BTreeMap<ExchangeId, OpenExchange>) {
        for (id, exchange) in open {
            if exchange.mode == ExchangeMode::Sync {
                if let Some(asked) = &exchange.peer_session_id {
                    self.abandon(asked, &id, "the end of the sender's run").await;
                }
                continue;
            }
            let (followed, outgoing) = match self.follow_again(asker, &id, exchange).await {
                Ok(Some(again)) => again,
                Ok(None) => continue,
                Err(why) => {
                    tracing::error!(exchange = %id, %why, "cannot continue an exchange");
                    self.report(asker, &id, ExchangeNews::Ended(Err(lost_message(&why)))).await;
                    continue;
                }
            };
            let follower = self.deliver(&outgoing, None).await;
            // A deletion ends the exchanges of the session, so here the session was never created.
            if matches!(follower, Err(Refused::NoSession)) {
                self.report(asker, &id, ExchangeNews::Ended(Err(never_sent()))).await;
                continue;
            }
            let (exchanges, asker) = (self.clone(), asker.clone());
            tokio::spawn(async move {
                exchanges.follow_to_end(&asker, &outgoing, follower, followed).await;
            });
        }
    }

    /// Follows an open exchange again, after a restart. `None` if it is followed already. Fails if
    /// its message cannot be read.
    async fn follow_again(
        &self,
        asker: &SessionId,
        id: &ExchangeId,
        open: OpenExchange,
    ) -> Result<Option<(Followed, OutgoingMessage)>, String> {
        let missing = || "the log has no such message".to_owned();
        let asked = open.peer_session_id.ok_or_else(missing)?;
        let edge = Edge { asker: asker.clone(), asked: asked.clone(), mode: open.mode };
        let Ok(followed) = self.wait_graph.follow(id, edge) else { return Ok(None) };
        let run = open.response_id.ok_or_else(missing)?;
        let records = self.store.records_of_run(asker, &run).await;
        let records = records.map_err(|error| error.to_string())?;
        let answer = in_place(|| {
            let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
            RunMessage::replay(&run, &records)
        });
        let text = answer.exchanges().find(|it| it.id == *id).map(|it| it.text.clone());
        let text = text.ok_or_else(missing)?;
        let from = Sender {
            session_id: asker.clone(),
            agent: answer.agent.clone(),
            exchange_id: id.clone(),
            depth: open.depth,
            is_answer: false,
        };
        Ok(Some((followed, OutgoingMessage { asked, text, from })))
    }
}

fn deadlock(agent: &str) -> ErrorInfo {
    let message = format!(
        "'{agent}' waits for you, directly or through others, and you would wait for it. Answer \
         first, ask in the background, or ask with \"session\": \"new\"."
    );
    ErrorInfo::new(ErrorCode::AgentCycle, message)
}

fn lost_message(why: &str) -> ErrorInfo {
    let message = format!(
        "The answer cannot be awaited after a restart of the server: {why}. Look for it in the \
         session of the other agent."
    );
    ErrorInfo::new(ErrorCode::Storage, message)
}

fn never_sent() -> ErrorInfo {
    let message = "The message was not sent: the server stopped before a new session was created. Send \
                   it again.";
    ErrorInfo::new(ErrorCode::AgentFailed, message)
}

/// Converts the refusal of a message by a session to an error for the sending agent.
fn as_error(refused: Refused) -> ErrorInfo {
    let code = match &refused {
        Refused::QueueFull(_) => ErrorCode::QueueFull,
        Refused::Storage(_) => ErrorCode::Storage,
        Refused::NoAgent { .. } => ErrorCode::AgentNotFound,
        Refused::NoSession => ErrorCode::AgentCancelled,
        Refused::Stopping => ErrorCode::ToolInterrupted,
        _ => ErrorCode::AgentFailed,
    };
    ErrorInfo::new(code, format!("The message was not sent: {refused}."))
}
