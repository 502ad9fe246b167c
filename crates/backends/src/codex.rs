//! Codex CLI, driven by `codex app-server`: JSON-RPC by lines, without the `jsonrpc` field.
//!
//! We ask `initialize`, then `thread/start` or `thread/resume` for the conversation, then `turn/start`
//! for each run, and the turn is told in notifications until `turn/completed`. A turn is made of items
//! (`item/started`, deltas, `item/completed`); what completes is authoritative. Codex asks us too, for
//! approvals, with requests whose numbers are its own. What to know:
//!
//! - Everything has a thread and a turn. Threads of agents that the turn has begun speak within it; what
//!   belongs to others is not ours: a command that was interrupted may end long after its run.
//! - Responses and notifications may come in any order relative to each other.
//! - An interrupted turn completes nothing that is open, and its commands go on until they are ended.
//! - Where the connection to the model breaks, texts begin anew under new ids.
//! - The first chunk of a command's output may be missing until it completes.
//!
//! Where there is no app-server, [`CodexExec`] makes do with `codex exec`. [`backend`] chooses.

mod agents;
mod command;
mod exec;
mod failure;
mod help;
mod items;
mod output;
mod patch;
mod questions;
mod remarks;
mod settings;
mod speaker;
mod turn;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use transcript::{
    CallId, ErrorCode, ErrorInfo, Event, Level, MessageId, Millis, ResponseId, RunStatus,
    SteerState, Usage,
};

pub use self::exec::CodexExec;
pub use self::help::{HELP, has_app_server};
use self::questions::Kind;
pub use self::settings::{Settings, program};
use self::turn::Run;
use crate::surrogates::Surrogates;
use crate::{Backend, Effect, Ending, Exit, Input, Launch, ResumeId, Verdict};

/// Whose words they are that nobody could read.
const SOURCE: &str = "codex";
/// How long Codex may take to end a turn that was interrupted, or that it seems to have left.
const PATIENCE_MS: u64 = 5000;

/// How many of our requests may stay without a response when a run is over.
const UNANSWERED: usize = 32;

/// The agent for a process that [`program`] described.
pub fn backend(settings: Arc<Settings>, launch: &Launch) -> Box<dyn Backend> {
    match settings.app_server {
        true => Box::new(Codex::new(settings, launch)),
        false => Box::new(CodexExec::new(launch)),
    }
}

#[derive(Debug)]
pub struct Codex {
    settings: Arc<Settings>,
    launch: Launch,
    link: Link,
    last_request: u64,
    /// Our requests that have no response yet.
    sent: BTreeMap<u64, Sent>,
    /// What runs, as it says itself.
    version: Option<String>,
    /// What was opened while no run could tell it.
    untold: Option<Event>,
    /// For a run that Codex begins.
    spare: Option<ResponseId>,
    run: Option<Run>,
    /// The turn of the run before.
    ended_turn: Option<String>,
    /// Codex says by our ids which messages the model has seen.
    echoes_ids: bool,
    /// What the thread has used in all. None where an earlier process began to count.
    used: Option<Usage>,
    now: Millis,
    surrogates: Surrogates,
    /// What is to be done outside of any run.
    effects: Vec<Effect>,
}

/// How far we are with Codex.
#[derive(Debug)]
enum Link {
    New,
    Initializing,
    Initialized,
    Opening,
    Open {
        thread: String,
    },
    /// It is to be ended and is not listened to.
    Lost,
}

#[derive(Debug)]
enum Sent {
    Initialize,
    OpenThread {
        resumes: bool,
    },
    StartTurn,
    Steer {
        message_id: MessageId,
        text: String,
    },
    /// What somebody said of the call of that name, instead of allowing it.
    Correction {
        name: String,
    },
    /// Whatever the answer, nothing follows from it.
    Other,
}

impl Sent {
    /// Without which nothing works.
    fn method(&self) -> Option<&'static str> {
        match self {
            Self::Initialize => Some("initialize"),
            Self::OpenThread { resumes: false } => Some("thread/start"),
            Self::OpenThread { resumes: true } => Some("thread/resume"),
            Self::StartTurn => Some("turn/start"),
            Self::Steer { .. } | Self::Correction { .. } | Self::Other => None,
        }
    }
}

/// The error says that there is no such method: in its number, or as Codex's parser has it.
fn is_unknown(method: &str, error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    error["code"] == -32601 || message.contains(&format!("unknown variant `{method}`"))
}

impl Codex {
    pub fn new(settings: Arc<Settings>, launch: &Launch) -> Self {
        Self {
            settings,
            launch: launch.clone(),
            link: Link::New,
            last_request: 0,
            sent: BTreeMap::new(),
            version: None,
            untold: None,
            spare: None,
            run: None,
            ended_turn: None,
            echoes_ids: false,
            used: None,
            now: Millis::default(),
            surrogates: Surrogates::default(),
            effects: Vec::new(),
        }
    }
}

impl Backend for Codex {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        self.now = now;
        if let Some(run) = &mut self.run {
            run.out.set_now(now);
        }
        match input {
            Input::Start { response_id, history } => {
                self.start(response_id, wire::prompt(&history));
            }
            // A process does not survive the server, so there is nothing to go on with.
            Input::Resume { answer, .. } if self.run.is_none() => {
                self.run = Some(Run::new(answer.id.clone(), &self.launch.workspace));
                self.fail(failure::of_text("the server was started anew"));
            }
            Input::Line(line) => self.hear(&line),
            Input::Spare(response_id) => self.spare = Some(response_id),
            Input::Decided { call_id, verdict } => self.decided(&call_id, &verdict),
            Input::Steer { message_id, message } => self.steer(message_id, &message),
            Input::Interrupt => self.interrupt(),
            Input::Wake => self.wake(),
            Input::Exited(exit) => self.exited(&exit),
            // What only a model service and the server's own tools say.
            Input::Resume { .. }
            | Input::ToolResult { .. }
            | Input::ToolWaits(_)
            | Input::History(_)
            | Input::Tools(_)
            | Input::Head { .. }
            | Input::Bytes(_)
            | Input::Ended(_) => (),
        }
        let mut effects = std::mem::take(&mut self.effects);
        effects.extend(self.run.iter_mut().flat_map(|it| it.out.take_effects()));
        effects
    }
}

// Runs

impl Codex {
    fn start(&mut self, response_id: ResponseId, prompt: Vec<Value>) {
        if self.run.is_some() {
            return;
        }
        let mut run = Run::new(response_id, &self.launch.workspace);
        run.prompt = Some(prompt);
        if let Some(event) = self.untold.take() {
            run.out.emit(event);
        }
        self.run = Some(run);
        self.advance();
    }

    /// Takes the next step towards the turn.
    fn advance(&mut self) {
        match &self.link {
            Link::New => {
                self.link = Link::Initializing;
                self.request("initialize", &wire::initialize(), Sent::Initialize);
            }
            Link::Initialized => self.open_thread(self.launch.resume.clone()),
            Link::Open { thread } => {
                let thread = thread.clone();
                let Some(prompt) = self.run.as_mut().and_then(|it| it.prompt.take()) else {
                    return;
                };
                let params = json!({ "threadId": thread, "input": prompt, "summary": "auto" });
                let id = self.request("turn/start", &params, Sent::StartTurn);
                if let Some(run) = &mut self.run {
                    run.start_request = Some(id);
                }
            }
            Link::Lost => self.fail(failure::of_text("it is being started anew; send it again")),
            Link::Initializing | Link::Opening => (),
        }
    }

    fn open_thread(&mut self, resume: Option<ResumeId>) {
        self.link = Link::Opening;
        let method = if resume.is_some() { "thread/resume" } else { "thread/start" };
        let params = wire::open_thread(&self.settings, &self.launch, resume.as_ref());
        self.request(method, &params, Sent::OpenThread { resumes: resume.is_some() });
    }

    fn interrupt(&mut self) {
        let Some(run) = &mut self.run else { return };
        if run.prompt.is_some() {
            return self.end(RunStatus::Cancelled, None);
        }
        if std::mem::replace(&mut run.is_interrupted, true) {
            return;
        }
        let until = self.now.plus(PATIENCE_MS);
        run.deadline = Some(until);
        run.cancel_questions();
        run.out.push(Effect::WakeAt(until));
        self.interrupt_turn();
    }

    /// As soon as the turn is known.
    fn interrupt_turn(&mut self) {
        let Some(run) = self.run.as_ref().filter(|it| it.is_interrupted) else { return };
        let (Some(turn), Link::Open { thread }) = (&run.turn, &self.link) else { return };
        let params = json!({ "threadId": thread, "turnId": turn });
        self.request("turn/interrupt", &params, Sent::Other);
        self.interrupt_agents();
    }

    fn steer(&mut self, message_id: MessageId, message: &Value) {
        let input = wire::input(message);
        let text = wire::words(&input);
        let sent = Sent::Steer { message_id: message_id.clone(), text };
        match self.turn_of(None) {
            Some((thread, turn)) => {
                let params = json!({
                    "threadId": thread,
                    "expectedTurnId": turn,
                    "input": input,
                    "clientUserMessageId": message_id,
                });
                self.request("turn/steer", &params, sent);
            }
            None => self.push(Effect::CannotSteer(message_id)),
        }
    }

    /// The thread and the turn in which something can be said now: of an agent, or of Codex itself.
    fn turn_of(&self, agent: Option<&str>) -> Option<(String, String)> {
        let run = self.run.as_ref().filter(|it| !it.is_interrupted)?;
        match (agent, &self.link) {
            (Some(thread), _) => Some((thread.to_owned(), run.turn_of_agent(thread)?.to_owned())),
            (None, Link::Open { thread }) => Some((thread.clone(), run.turn.clone()?)),
            (None, _) => None,
        }
    }

    /// Codex takes no reason with a refusal, so the model is told it as a message.
    fn decided(&mut self, call_id: &CallId, verdict: &Verdict) {
        let asked = self.run.as_mut().and_then(|it| it.asked_about(call_id));
        // Before the answer: once it is answered, Codex asks the model, which is to hear this then.
        if let Verdict::Denied { feedback: Some(feedback) } = verdict
            && let Some((name, agent)) = asked
            && let Some((thread, turn)) = self.turn_of(agent.as_deref())
        {
            let words = wire::text(&format!("I declined the call of {name}: {feedback}"));
            let params = json!({ "threadId": thread, "expectedTurnId": turn, "input": [words] });
            self.request("turn/steer", &params, Sent::Correction { name });
        }
        if let Some(run) = &mut self.run {
            run.decided(call_id, verdict);
        }
    }

    fn wake(&mut self) {
        let Some(run) = &mut self.run else { return };
        let Some(deadline) = run.deadline else { return };
        if self.now < deadline {
            return run.out.push(Effect::WakeAt(deadline));
        }
        // Agents that do not heed a stop live in the program, and end with it.
        let defies_stop = run.is_interrupted && run.has_agents_at_work();
        if run.outcome.is_some() && !defies_stop {
            return self.end_as_it_did();
        }
        if run.is_interrupted {
            self.link = Link::Lost;
            self.push(Effect::Quit);
            return self.end(RunStatus::Cancelled, None);
        }
        // It has been idle all that time: that its turn is over is a word that got lost.
        match run.last_error.take() {
            Some(error) => self.fail(failure::of_turn(&error)),
            None => self.complete(),
        }
    }

    fn exited(&mut self, exit: &Exit) {
        let had_spoken = !matches!(self.link, Link::New | Link::Initializing);
        self.link = Link::Lost;
        match &self.run {
            Some(run) if run.is_interrupted => self.end(RunStatus::Cancelled, None),
            Some(_) => self.fail(failure::of_exit(exit, had_spoken)),
            None => (),
        }
    }

    fn complete(&mut self) {
        if let Some(run) = &mut self.run {
            run.outer.finish_step(None, &mut run.out);
            run.release_all();
        }
        self.end(RunStatus::Completed, None);
    }

    fn fail(&mut self, error: ErrorInfo) {
        self.end(RunStatus::Failed, Some(error));
    }

    /// Nothing may be done after it in the same answer.
    fn end(&mut self, status: RunStatus, error: Option<ErrorInfo>) {
        let Some(mut run) = self.run.take() else { return };
        self.ended_turn = run.turn.take().or(self.ended_turn.take());
        // What a turn that breaks off had not read, it forgets. One that is complete has read all, unless it
        // would have said so.
        if status != RunStatus::Completed || self.echoes_ids {
            for (message_id, _) in std::mem::take(&mut run.handed_over) {
                run.out.push(Effect::CannotSteer(message_id));
            }
        }
        for sent in self.sent.values_mut() {
            if let Sent::Steer { message_id, .. } = sent {
                run.out.push(Effect::CannotSteer(message_id.clone()));
                *sent = Sent::Other;
            }
        }
        self.forget_unanswered();
        turn::emit_stop(status, &mut run.out);
        let usage = run.usage();
        self.effects.extend(run.out.take_effects());
        self.effects.push(Effect::End(Ending { status, error, usage, cost: None }));
    }
}

// Lines

impl Codex {
    fn hear(&mut self, line: &str) {
        if line.trim().is_empty() || matches!(self.link, Link::Lost) {
            return;
        }
        if let Some(run) = &mut self.run {
            run.leave_behind();
        }
        let message: Value = serde_json::from_str(&self.surrogates.mend(line)).unwrap_or_default();
        if message["method"].is_null() || !self.buffer_if_early(&message, line) {
            self.take_message(&message, line);
        }
    }

    fn take_message(&mut self, message: &Value, line: &str) {
        let (id, params) = (&message["id"], &message["params"]);
        match (message["method"].as_str(), id) {
            (Some(method), Value::Null) => self.told(method, params, line),
            (Some(method), id) => self.asked(method, id, params, line),
            (None, id) => match id.as_u64().and_then(|it| Some((it, self.sent.remove(&it)?))) {
                Some((id, sent)) => self.answered(id, sent, message),
                None => self.unrecognized(line),
            },
        }
    }

    fn answered(&mut self, id: u64, sent: Sent, message: &Value) {
        let error = message.get("error").filter(|it| !it.is_null());
        if let Some(method) = sent.method().filter(|it| error.is_some_and(|e| is_unknown(it, e))) {
            return self.outdated(method);
        }
        let (result, refused) = (&message["result"], error.map(failure::of_turn));
        match (sent, refused) {
            (Sent::Initialize, None) => {
                self.version = result["userAgent"].as_str().and_then(wire::version);
                self.link = Link::Initialized;
                self.push(Effect::Write(wire::initialized()));
                self.advance();
            }
            (Sent::Initialize, Some(error)) => {
                self.link = Link::Lost;
                self.push(Effect::Quit);
                self.fail(error);
            }
            (Sent::OpenThread { resumes }, None) => self.opened(result, resumes),
            (Sent::OpenThread { resumes }, Some(error))
                if !resumes || error.code == ErrorCode::AgentBusy =>
            {
                self.link = Link::Initialized;
                self.fail(error);
            }
            (Sent::OpenThread { .. }, Some(error)) => {
                let why = format!(
                    "Codex could not take up its conversation again and begins a new one, which knows \
                     nothing of what was said before. {}",
                    error.message
                );
                if let Some(run) = &mut self.run {
                    run.out.notice(Level::Error, why);
                }
                self.open_thread(None);
            }
            (Sent::StartTurn, refused) => self.turn_answered(id, result, refused),
            (Sent::Steer { message_id, text }, None) => {
                self.steered(message_id, text, SteerState::HandedOver);
            }
            (Sent::Steer { message_id, .. }, Some(_)) => {
                self.push(Effect::CannotSteer(message_id));
            }
            (Sent::Correction { name }, Some(error)) => {
                let text = format!(
                    "Codex did not take what you said of its call of {name}, and the model has not seen \
                     it: {}",
                    error.message
                );
                if let Some(run) = &mut self.run {
                    run.out.notice(Level::Error, text);
                }
            }
            (Sent::Correction { .. }, None) | (Sent::Other, _) => (),
        }
    }

    /// It has an app-server, of another time.
    fn outdated(&mut self, method: &str) {
        self.link = Link::Lost;
        if self.run.as_ref().is_some_and(|it| it.is_interrupted) {
            self.push(Effect::Quit);
            return self.end(RunStatus::Cancelled, None);
        }
        if let Some(mut run) = self.run.take() {
            let text = format!(
                "The app-server of this Codex does not know {method}, so `codex exec` is used instead."
            );
            run.out.notice(Level::Info, text);
            self.effects.extend(run.out.take_effects());
            self.effects.push(Effect::Outdated);
        } else {
            self.effects.push(Effect::Quit);
        }
    }

    fn opened(&mut self, result: &Value, resumes: bool) {
        let thread = &result["thread"];
        let Some(id) = thread["id"].as_str() else {
            self.link = Link::Initialized;
            return self.fail(failure::of_text("it opened a conversation without an id"));
        };
        if !resumes {
            self.used = Some(Usage::default());
        }
        self.launch.resume = ResumeId::parse(id);
        self.link = Link::Open { thread: id.to_owned() };
        let text = |it: &Value| it.as_str().map(str::to_owned);
        let linked = Event::AgentLinked {
            cli_session_id: id.to_owned(),
            cwd: text(&result["cwd"]).or_else(|| text(&thread["cwd"])),
            // The thread's own is that of the Codex which began it.
            version: self.version.clone().or_else(|| text(&thread["cliVersion"])),
        };
        match &mut self.run {
            Some(run) => run.out.emit(linked),
            None => self.untold = Some(linked),
        }
        self.advance();
    }

    fn turn_answered(&mut self, id: u64, result: &Value, refused: Option<ErrorInfo>) {
        let is_current = |run: &Run| run.start_request == Some(id);
        let Some(run) = self.run.as_mut().filter(|it| is_current(it)) else { return };
        match refused {
            Some(_) if run.is_interrupted => self.end(RunStatus::Cancelled, None),
            Some(error) => self.fail(error),
            None => {
                if let Some(turn) = result["turn"]["id"].as_str() {
                    self.take_turn(turn);
                }
            }
        }
    }

    /// A request of Codex: a person answers it, or nobody can.
    fn asked(&mut self, method: &str, id: &Value, params: &Value, line: &str) {
        let is_ours = self.is_of_thread(params);
        let agent = params["threadId"].as_str().filter(|_| !is_ours);
        let is_of_turn = agent.is_some() || self.is_of_turn(params);
        let kind = Kind::of(method, params);
        let is_taken = match (&mut self.run, &kind) {
            (Some(run), Some(kind)) if is_of_turn && !run.is_interrupted => {
                match run.is_about_ended(agent, kind, params) {
                    true => return self.push(Effect::Write(wire::answer(id, &kind.refusal()))),
                    false => run.asked(agent, (method, params), id),
                }
            }
            // What it is about was stopped, so nobody is to decide about it.
            (_, Some(kind)) => {
                return self.push(Effect::Write(wire::answer(id, &kind.cancellation())));
            }
            (_, None) => false,
        };
        if !is_taken {
            self.push(Effect::Write(wire::refusal(id)));
            self.unrecognized(line);
        }
    }

    fn unrecognized(&mut self, line: &str) {
        if let Some(run) = &mut self.run {
            run.out.unrecognized(line);
        }
    }

    fn steered(&mut self, message_id: MessageId, text: String, state: SteerState) {
        if let Some(run) = &mut self.run {
            if state == SteerState::HandedOver {
                run.handed_over.push((message_id.clone(), text.clone()));
            }
            run.out.emit(Event::MessageSteered { message_id, text, state });
        }
    }

    fn request(&mut self, method: &str, params: &Value, sent: Sent) -> u64 {
        self.last_request += 1;
        self.sent.insert(self.last_request, sent);
        self.push(Effect::Write(wire::request(self.last_request, method, params)));
        self.last_request
    }

    /// After a run ends, only responses to our requests can still arrive. Of those that nobody waits for, the
    /// oldest are forgotten.
    fn forget_unanswered(&mut self) {
        let too_many = self.sent.len().saturating_sub(UNANSWERED);
        let of_no_use =
            |it: &Sent| matches!(it, Sent::StartTurn | Sent::Correction { .. } | Sent::Other);
        let unawaited = self.sent.iter().filter(|(_, it)| of_no_use(it)).map(|(id, _)| *id);
        let oldest: Vec<u64> = unawaited.take(too_many).collect();
        for id in oldest {
            self.sent.remove(&id);
        }
    }

    fn push(&mut self, effect: Effect) {
        match &mut self.run {
            Some(run) => run.out.push(effect),
            None => self.effects.push(effect),
        }
    }
}
