//! Exchanges: a message of an agent to another session, and the answer to it.
//!
//! Everything is in the two logs. The asker's log has the question, its changes of state and one end.
//! The log of the asked session has the message, with the exchange's id as its client id, and the run
//! that answers it, whose id is derived from the exchange's. So the state of an exchange is read from
//! the log of the asked session, also after restarts of the server. In memory is only which exchanges
//! are followed at this moment.

mod follower;
mod peers;
mod target;
mod wait_graph;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tools::{PeerMessage, PeerReply, SessionChoice, SessionRule, Stopped, interrupted};
use transcript::{
    ClientId, ErrorCode, ErrorInfo, ExchangeId, ExchangeMode, ExchangeState, OpenExchange, Record,
    RunMessage, SendMode, Sender, SessionId,
};

use self::follower::{Follower, Standing};
use self::target::Target;
use self::wait_graph::{Edge, Followed};
use crate::clock;
use crate::draw_pool::in_place;
use crate::sessions::{NewSession, Sessions};
use session::{Command, ExchangeNews, ExchangeOpening, NewMessage, Outcome, Refused};

pub(crate) use wait_graph::WaitGraph;

/// Pause before another attempt to write to the log of the asker.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Limits for messages between agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// Maximum length of a chain of questions that begins with a message of a person.
    pub depth: u32,
    /// Maximum number of questions that one run asks.
    pub per_run: usize,
    /// Maximum number of questions in the queue of one session.
    pub queued: usize,
    /// Time limit of an answer, unless the asker gives one.
    pub timeout: Duration,
    /// Session of a question that names none.
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

/// A question to another session.
struct Question {
    asked: SessionId,
    text: String,
    from: Sender,
}

/// A question that is in the asker's log.
struct Opened {
    question: Question,
    /// Session to create for it.
    new: Option<NewSession>,
    followed: Followed,
}

impl Sessions {
    /// Asks another agent. A failure or refusal is in the asker's log too.
    async fn ask_agent(
        &self,
        message: PeerMessage,
        stopped: &Stopped,
    ) -> Result<PeerReply, ErrorInfo> {
        let (asker, mode) = (message.session.clone(), message.mode);
        let time_limit = message.timeout.unwrap_or(self.services().exchange_limits.timeout);
        let Opened { question, new, followed } = self.open_exchange(message, stopped).await?;
        let (exchange_id, session) = (question.from.exchange_id.clone(), question.asked.clone());
        let answer = match mode {
            ExchangeMode::Sync => {
                let waiting = self.wait_for_answer(&asker, &question, new, time_limit);
                Some(tokio::select! {
                    biased;
                    () = stopped.wait() => {
                        self.abandon(&session, &exchange_id, &question.from.agent).await;
                        Err(interrupted())
                    }
                    answer = waiting => answer,
                }?)
            }
            ExchangeMode::Async => {
                let sessions = self.clone();
                let (tell, is_sent) = oneshot::channel();
                tokio::spawn(async move {
                    let follower = sessions.hand_over(&question, new).await;
                    let _ = tell.send(());
                    sessions.follow_to_end(&asker, &question, follower, followed).await;
                });
                // Waiting keeps the messages of one agent in the order in which it sent them.
                tokio::select! {
                    _ = is_sent => (),
                    () = stopped.wait() => (),
                }
                None
            }
        };
        Ok(PeerReply { exchange_id, session, answer })
    }

    /// Appends the question to the asker's log, or the reason why it cannot be asked.
    async fn open_exchange(
        &self,
        message: PeerMessage,
        stopped: &Stopped,
    ) -> Result<Opened, ErrorInfo> {
        let PeerMessage { session: asker, run, call_id, agent, choice, text, mode, .. } = message;
        let exchange_id = clock::new_exchange_id();
        let rule = self.services().exchange_limits.session;
        let choice = choice.unwrap_or(SessionChoice::By(rule));
        let target = self.find_target(&asker, &agent, choice).await;
        let asked = target.as_ref().ok().map(|it| it.session.clone());
        let followed = target.and_then(|target| {
            let edge = Edge { asker: asker.clone(), asked: target.session.clone(), mode };
            let followed = self.inner.wait_graph.follow(&exchange_id, edge);
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
            opened = self.ask(&asker, |reply| Command::OpenExchange { opening, reply }) => {
                opened.map_err(as_error)??
            }
            // The session refuses to open it later: the run is over.
            () = stopped.wait() => return Err(interrupted()),
        };
        let (Target { session: asked, is_new }, followed) = followed?;
        let new = match is_new {
            true => Some(self.new_session(&asker, asked.clone(), &agent).await),
            false => None,
        };
        Ok(Opened { question: Question { asked, text, from }, new, followed })
    }

    /// Waits for the end, and appends it to the asker's log.
    async fn wait_for_answer(
        &self,
        asker: &SessionId,
        question: &Question,
        new: Option<NewSession>,
        time_limit: Duration,
    ) -> Outcome {
        let id = &question.from.exchange_id;
        let outcome = match self.hand_over(question, new).await {
            Ok(mut follower) => {
                self.wait_with_time_limit(asker, question, &mut follower, time_limit).await
            }
            Err(refused) => Err(as_error(refused)),
        };
        let told = self.tell_asker(asker, id, ExchangeNews::Ended(outcome.clone())).await;
        told.map_err(as_error)?;
        outcome
    }

    /// Waits for the end. Time in which a person has to decide about a call does not count.
    async fn wait_with_time_limit(
        &self,
        asker: &SessionId,
        question: &Question,
        follower: &mut Follower,
        time_limit: Duration,
    ) -> Outcome {
        let id = &question.from.exchange_id;
        let mut left = time_limit;
        let mut needs_person = false;
        loop {
            let since = Instant::now();
            let standing = tokio::select! {
                standing = follower.next() => standing,
                () = sleep(left), if !needs_person => {
                    self.abandon(&question.asked, id, "the time limit of the one who asked").await;
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
            match standing {
                Standing::Ended(outcome) => return outcome,
                Standing::Unknown => (),
                Standing::Open(state) => {
                    needs_person = state == ExchangeState::AwaitingApproval;
                    let told = self.tell_asker(asker, id, ExchangeNews::Progress(state)).await;
                    told.map_err(as_error)?;
                }
            }
        }
    }

    /// Reports every change of state to the asker's session. If the server stops, the log has what is needed to
    /// continue.
    async fn follow_to_end(
        &self,
        asker: &SessionId,
        question: &Question,
        follower: Result<Follower, Refused>,
        _followed: Followed,
    ) {
        let id = &question.from.exchange_id;
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
                Standing::Unknown => (),
                Standing::Open(state) => {
                    self.report(asker, id, ExchangeNews::Progress(state)).await;
                }
                Standing::Ended(outcome) => {
                    return self.report(asker, id, ExchangeNews::Ended(outcome)).await;
                }
            }
        }
    }

    /// Appends a report to the asker's log, with retries until the server stops or the session is gone.
    async fn report(&self, asker: &SessionId, id: &ExchangeId, news: ExchangeNews) {
        while !self.is_stopping() {
            match self.tell_asker(asker, id, news.clone()).await {
                Err(Refused::Storage(_)) => sleep(RETRY_PAUSE).await,
                _ => return,
            }
        }
    }

    async fn tell_asker(
        &self,
        asker: &SessionId,
        exchange_id: &ExchangeId,
        news: ExchangeNews,
    ) -> Result<(), Refused> {
        let exchange_id = exchange_id.clone();
        self.ask(asker, |reply| Command::UpdateExchange { exchange_id, news, reply }).await
    }

    /// Sends the message to the asked session. It arrives once, even if this is repeated.
    async fn hand_over(
        &self,
        question: &Question,
        new: Option<NewSession>,
    ) -> Result<Follower, Refused> {
        let Question { asked, text, from } = question;
        let services = self.services();
        let follower = Follower::new(&services.store, &services.hub, asked, &from.exchange_id);
        if let Some(new) = new {
            self.create(new).await?;
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
        self.send(asked, message).await?;
        Ok(follower)
    }

    /// Ends the work on an answer that is not needed any more: a queued message is removed, a run is stopped.
    pub(super) async fn abandon(&self, asked: &SessionId, exchange_id: &ExchangeId, by: &str) {
        let (exchange_id, by) = (exchange_id.clone(), by.to_owned());
        // A session that is gone has nothing to stop.
        let _ = self.ask(asked, |reply| Command::Abandon { exchange_id, by, reply }).await;
    }

    /// Continues the exchanges that a session began before it was opened again, in their order. Those that a
    /// call waited for are abandoned, because that call has ended.
    pub(super) async fn resume_exchanges(
        self,
        asker: SessionId,
        open: BTreeMap<ExchangeId, OpenExchange>,
    ) {
        for (id, exchange) in open {
            if exchange.mode == ExchangeMode::Sync {
                if let Some(asked) = &exchange.peer_session_id {
                    self.abandon(asked, &id, "the end of the run that asked").await;
                }
                continue;
            }
            let Some((followed, question)) = self.follow_again(&asker, &id, exchange).await else {
                continue;
            };
            let follower = self.hand_over(&question, None).await;
            // A deletion ends the exchanges of its session. So the session was never created.
            if matches!(follower, Err(Refused::NoSession)) {
                self.report(&asker, &id, ExchangeNews::Ended(Err(never_asked()))).await;
                continue;
            }
            let (sessions, asker) = (self.clone(), asker.clone());
            tokio::spawn(async move {
                sessions.follow_to_end(&asker, &question, follower, followed).await;
            });
        }
    }

    /// Follows an exchange again. `None` if it is followed already.
    async fn follow_again(
        &self,
        asker: &SessionId,
        id: &ExchangeId,
        open: OpenExchange,
    ) -> Option<(Followed, Question)> {
        let asked = open.peer_session_id?;
        let edge = Edge { asker: asker.clone(), asked: asked.clone(), mode: open.mode };
        let followed = self.inner.wait_graph.follow(id, edge).ok()?;
        let run = open.response_id?;
        let records = self.services().store.records_of_run(asker, &run).await.ok()?;
        let answer = in_place(|| {
            let records: Vec<Record> = records.iter().map(store::Stored::record).collect();
            RunMessage::replay(&run, &records)
        });
        let text = answer.exchanges().find(|it| it.id == *id).map(|it| it.text.clone())?;
        let from = Sender {
            session_id: asker.clone(),
            agent: answer.agent.clone(),
            exchange_id: id.clone(),
            depth: open.depth,
            is_answer: false,
        };
        Some((followed, Question { asked, text, from }))
    }
}

fn deadlock(agent: &str) -> ErrorInfo {
    let message = format!(
        "'{agent}' waits for you, directly or through others, and you would wait for it. Answer \
         first, ask in the background, or ask with \"session\": \"new\"."
    );
    ErrorInfo::new(ErrorCode::AgentCycle, message)
}

fn never_asked() -> ErrorInfo {
    let message =
        "It was not asked: the server stopped before a new session was made for it. Ask again.";
    ErrorInfo::new(ErrorCode::AgentFailed, message)
}

/// Returns the reason for an agent why a session refused a command.
fn as_error(refused: Refused) -> ErrorInfo {
    let code = match &refused {
        Refused::QueueFull(_) => ErrorCode::QueueFull,
        Refused::Storage(_) => ErrorCode::Storage,
        Refused::NoAgent { .. } => ErrorCode::AgentNotFound,
        Refused::NoSession => ErrorCode::AgentCancelled,
        Refused::Stopping => ErrorCode::ToolInterrupted,
        _ => ErrorCode::AgentFailed,
    };
    ErrorInfo::new(code, format!("It was not asked: {refused}."))
}
