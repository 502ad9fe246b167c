//! Agents talk to agents: a question goes from one session to another, and its answer comes back.
//!
//! All of it is in the two logs. The asker's has the question, its changes of state and its one end;
//! the other's has the message, under the exchange's id as its client id, and the run that answers it,
//! whose id *is* the exchange's. So whoever follows an exchange looks into the log of the one who was
//! asked, and knows how it stands, however often either side was started anew. What is kept here is
//! only who follows what at this moment.

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

/// How long to wait before telling a session again that cannot be written.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// What agents may do to each other without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// Questions that may lead to a further question before a person says something again.
    pub depth: u32,
    /// Questions of one run.
    pub per_run: usize,
    /// Questions that may wait in one session.
    pub queued: usize,
    /// How long an answer is waited for, unless the asker says otherwise.
    pub patience: Duration,
    /// Where a question goes that names no session.
    pub session: SessionRule,
}

impl Default for ExchangeLimits {
    fn default() -> Self {
        Self {
            depth: 8,
            per_run: 20,
            queued: 20,
            patience: Duration::from_secs(300),
            session: SessionRule::default(),
        }
    }
}

/// A question on its way.
struct Question {
    asked: SessionId,
    text: String,
    from: Sender,
}

/// A question that is in the asker's log.
struct Opened {
    question: Question,
    /// The session that is to be made for it.
    new: Option<NewSession>,
    followed: Followed,
}

impl Sessions {
    /// Asks another agent. What goes wrong, a refusal included, is in the asker's log too.
    async fn ask_agent(
        &self,
        message: PeerMessage,
        stopped: &Stopped,
    ) -> Result<PeerReply, ErrorInfo> {
        let (asker, mode) = (message.session.clone(), message.mode);
        let patience = message.timeout.unwrap_or(self.services().exchange_limits.patience);
        let Opened { question, new, followed } = self.open_exchange(message, stopped).await?;
        let (exchange_id, session) = (question.from.exchange_id.clone(), question.asked.clone());
        let answer = match mode {
            ExchangeMode::Sync => {
                let waiting = self.wait_for_answer(&asker, &question, new, patience);
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
                    let following = sessions.hand_over(&question, new).await;
                    let _ = tell.send(());
                    sessions.follow_to_its_end(&asker, &question, following, followed).await;
                });
                // Messages of one agent come in the order in which it sent them.
                tokio::select! {
                    _ = is_sent => (),
                    () = stopped.wait() => (),
                }
                None
            }
        };
        Ok(PeerReply { exchange_id, session, answer })
    }

    /// Puts the question into the asker's log, or why it cannot be asked.
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
            Ok((target, followed.map_err(|_| circle(&agent))?))
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

    /// Waits for the end, and puts it into the asker's log.
    async fn wait_for_answer(
        &self,
        asker: &SessionId,
        question: &Question,
        new: Option<NewSession>,
        patience: Duration,
    ) -> Outcome {
        let id = &question.from.exchange_id;
        let outcome = match self.hand_over(question, new).await {
            Ok(mut following) => {
                self.wait_in_patience(asker, question, &mut following, patience).await
            }
            Err(refused) => Err(as_error(refused)),
        };
        let told = self.tell_asker(asker, id, ExchangeNews::Ended(outcome.clone())).await;
        told.map_err(as_error)?;
        outcome
    }

    async fn wait_in_patience(
        &self,
        asker: &SessionId,
        question: &Question,
        following: &mut Follower,
        patience: Duration,
    ) -> Outcome {
        let id = &question.from.exchange_id;
        let mut left = patience;
        let mut is_held_up = false;
        loop {
            let since = Instant::now();
            let standing = tokio::select! {
                standing = following.next() => standing,
                () = sleep(left), if !is_held_up => {
                    self.abandon(&question.asked, id, "the time limit of the one who asked").await;
                    let message = format!(
                        "There was no answer within {} seconds, so it was stopped. Ask for less, give \
                         it more time, or ask in the background.",
                        patience.as_secs()
                    );
                    return Err(ErrorInfo::new(ErrorCode::AgentTimeout, message));
                }
            };
            if !is_held_up {
                left = left.saturating_sub(since.elapsed());
            }
            match standing {
                Standing::Ended(outcome) => return outcome,
                Standing::Unknown => (),
                Standing::Open(state) => {
                    is_held_up = state == ExchangeState::AwaitingApproval;
                    let told = self.tell_asker(asker, id, ExchangeNews::Progress(state)).await;
                    told.map_err(as_error)?;
                }
            }
        }
    }

    /// Tells the asker's session all that happens. When the server stops, the log says how to go on.
    async fn follow_to_its_end(
        &self,
        asker: &SessionId,
        question: &Question,
        following: Result<Follower, Refused>,
        _followed: Followed,
    ) {
        let id = &question.from.exchange_id;
        let mut following = match following {
            Ok(following) => following,
            Err(Refused::Stopping) => return,
            Err(refused) => {
                let news = ExchangeNews::Ended(Err(as_error(refused)));
                return self.report(asker, id, news).await;
            }
        };
        loop {
            match following.next().await {
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

    /// Until it is written, unless there is nobody any more to whom it could be told.
    async fn report(&self, asker: &SessionId, id: &ExchangeId, news: ExchangeNews) {
        while !self.is_stopping() {
            match self.tell_asker(asker, id, news.clone()).await {
                Err(Refused::Storage(_)) => sleep(TRY_AGAIN).await,
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

    /// Gives the message to the one who is asked. It is there once, however often this is done.
    async fn hand_over(
        &self,
        question: &Question,
        new: Option<NewSession>,
    ) -> Result<Follower, Refused> {
        let Question { asked, text, from } = question;
        let services = self.services();
        let following = Follower::new(&services.store, &services.hub, asked, &from.exchange_id);
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
        Ok(following)
    }

    /// The answer is not wanted any more: what waits is dropped, what runs is stopped.
    pub(super) async fn abandon(&self, asked: &SessionId, exchange_id: &ExchangeId, by: &str) {
        let (exchange_id, by) = (exchange_id.clone(), by.to_owned());
        // A session that is gone has nothing to stop.
        let _ = self.ask(asked, |reply| Command::Abandon { exchange_id, by, reply }).await;
    }

    /// Goes on with what a session asked before it was opened again, in the order in which it asked.
    /// Where it waited for the answer, nobody does any more.
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
            let Some((followed, question)) = self.take_up(&asker, &id, exchange).await else {
                continue;
            };
            let following = self.hand_over(&question, None).await;
            // One that is deleted ends what it was asked. So this one has never been there.
            if matches!(following, Err(Refused::NoSession)) {
                self.report(&asker, &id, ExchangeNews::Ended(Err(never_asked()))).await;
                continue;
            }
            let (sessions, asker) = (self.clone(), asker.clone());
            tokio::spawn(async move {
                sessions.follow_to_its_end(&asker, &question, following, followed).await;
            });
        }
    }

    /// None if somebody follows it.
    async fn take_up(
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

fn circle(agent: &str) -> ErrorInfo {
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

/// Why a session did not take a command, for the agent that wanted it.
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
