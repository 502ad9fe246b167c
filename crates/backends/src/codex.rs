//! Codex CLI, driven by `codex app-server`: JSON-RPC by lines, without the `jsonrpc` field.
//!
//! We send `initialize`, then `thread/start` or `thread/resume` for the conversation, then `turn/start` for
//! each run, and the turn is reported in notifications until `turn/completed`. A turn is made of items
//! (`item/started`, deltas, `item/completed`); the completed form is authoritative. Codex sends requests too,
//! for approvals, with numbers of its own. Properties of the protocol:
//!
//! - Everything has a thread and a turn. Threads of agents that the turn has begun belong to it; others do
//!   not: a command that was interrupted may end long after its run.
//! - Responses and notifications may come in any order relative to each other.
//! - An interrupted turn completes nothing that is open, and its commands run on until they are ended.
//! - Where the connection to the model breaks, texts begin again under new ids.
//! - The first chunk of a command's output may be missing until it completes.
//!
//! Where there is no app-server, `codex exec` is used. [`backend`] chooses.

mod agents;
mod author;
mod command;
mod exec;
mod failure;
mod help;
mod items;
mod notices;
mod output;
mod patch;
mod questions;
mod settings;
mod turn;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use transcript::{CallId, ErrorCode, ErrorInfo, Event, Level, MessageId, RunStatus, Usage};

use self::exec::CodexExec;
pub use self::help::{HELP, has_app_server};
use self::questions::{Kind, Request};
pub use self::settings::{Settings, program};
use self::turn::Run;
use crate::program::{Adapter, Context, ProgramAgent};
use crate::{Exit, Launch, ProgramBackend, ProgramEffect, ResumeId, RunEffect, Verdict};

/// The `source` of `unrecognized` events with lines of Codex that cannot be read.
const SOURCE: &str = "codex";
/// Time that Codex has to end a turn that was interrupted, or whose end seems to be lost.
const END_TIMEOUT_MS: u64 = 5000;

/// Maximum number of Callboard's requests to Codex that are remembered without a response after a
/// run.
const UNANSWERED: usize = 32;

/// Creates the backend for a Codex process that [`program`] described.
pub fn backend(settings: Arc<Settings>, launch: &Launch) -> Box<dyn ProgramBackend> {
    match settings.app_server {
        true => Box::new(ProgramAgent::new(Codex::new(settings, launch))),
        false => Box::new(ProgramAgent::new(CodexExec::new(launch))),
    }
}

type Cx = Context<Request>;

#[derive(Debug)]
struct Codex {
    settings: Arc<Settings>,
    launch: Launch,
    link: Link,
    /// Callboard's requests to Codex that have no response yet, by their ids.
    sent: BTreeMap<u64, Sent>,
    /// Version of the running Codex, as it reports itself. `None` before the response to
    /// `initialize`.
    version: Option<String>,
    /// `agent_linked` event of a conversation that was opened while no run was open. The next run
    /// emits it.
    unsent_link: Option<Event>,
    run: Option<Run>,
    /// Codex's id of the previous run's turn. `None` before the end of the first turn.
    ended_turn: Option<String>,
    /// Whether Codex reports which messages the model has seen, by Callboard's message ids.
    echoes_ids: bool,
    /// Token usage of the whole Codex thread. `None` if its counts began in an earlier process.
    used: Option<Usage>,
}

/// State of the connection to Codex and its conversation.
#[derive(Debug)]
enum Link {
    New,
    Initializing,
    Initialized,
    Opening,
    Open { thread: String },
}

#[derive(Debug)]
enum Sent {
    Initialize,
    OpenThread {
        resumes: bool,
    },
    StartTurn,
    Steer,
    /// A message that gives the model a person's reason for refusing a tool call. `name` is the
    /// refused tool.
    Correction {
        name: String,
    },
    /// A request to Codex whose response has no effect.
    Other,
}

impl Sent {
    /// Returns the JSON-RPC method of the request, if the connection to Codex cannot work without
    /// it.
    fn method(&self) -> Option<&'static str> {
        match self {
            Self::Initialize => Some("initialize"),
            Self::OpenThread { resumes: false } => Some("thread/start"),
            Self::OpenThread { resumes: true } => Some("thread/resume"),
            Self::StartTurn => Some("turn/start"),
            Self::Steer | Self::Correction { .. } | Self::Other => None,
        }
    }
}

/// Returns whether a JSON-RPC error means that Codex does not know the method: by its code, or by
/// the text of Codex's parser.
fn is_unknown(method: &str, error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    error["code"] == -32601 || message.contains(&format!("unknown variant `{method}`"))
}

impl Codex {
    fn new(settings: Arc<Settings>, launch: &Launch) -> Self {
        Self {
            settings,
            launch: launch.clone(),
            link: Link::New,
            sent: BTreeMap::new(),
            version: None,
            unsent_link: None,
            run: None,
            ended_turn: None,
            echoes_ids: false,
            used: None,
        }
    }
}

impl Adapter for Codex {
    const SOURCE: &'static str = SOURCE;
    type Line = Value;
    type Request = Request;

    fn read(json: &str) -> Value {
        serde_json::from_str(json).unwrap_or_default()
    }

    fn begins_run(&self, message: &Value) -> bool {
        let (params, turn) = (&message["params"], message["params"]["turn"]["id"].as_str());
        let is_new = turn.is_some() && turn != self.ended_turn.as_deref();
        message["method"] == "turn/started" && is_new && self.is_of_thread(params)
    }

    fn begin_run(&mut self, cx: &mut Cx) {
        self.run = Some(Run::new(&self.launch.workspace));
        if let Some(event) = self.unsent_link.take() {
            cx.out.emit(event);
        }
    }

    fn start(&mut self, history: &[Value], cx: &mut Cx) {
        if let Some(run) = &mut self.run {
            run.prompt = Some(wire::prompt(history));
        }
        self.advance(cx);
    }

    fn handle_line(&mut self, message: Value, line: &str, cx: &mut Cx) {
        if line.trim().is_empty() {
            return;
        }
        if let Some(run) = &mut self.run {
            run.abandon_excess(cx);
        }
        if message["method"].is_null() || !self.buffer_if_early(&message, line) {
            self.handle_message(&message, line, cx);
        }
    }

    fn steer(&mut self, message_id: MessageId, message: &Value, cx: &mut Cx) {
        let Some((thread, turn)) = self.turn_of(None) else {
            return cx.out.push(RunEffect::CannotSteer(message_id));
        };
        let input = wire::input(message);
        let params = json!({
            "threadId": thread,
            "expectedTurnId": turn,
            "input": input,
            "clientUserMessageId": message_id,
        });
        let id = self.request("turn/steer", &params, Sent::Steer, cx);
        cx.steering.send(id.to_string(), message_id, wire::words(&input));
    }

    /// Answers Codex's request for a decision about a tool call. Codex takes no reason with a
    /// refusal, so the model gets a person's reason as a message.
    fn decide(&mut self, call_id: &CallId, request: Request, verdict: Verdict, cx: &mut Cx) {
        let agent = request.agent.as_deref();
        let asked = self.run.as_mut().and_then(|it| it.asked_tool(call_id, agent));
        // Sent before the answer: once Codex has the answer it calls the model, which should know the reason.
        if let Verdict::Denied { feedback: Some(feedback) } = &verdict
            && let Some(name) = asked
            && let Some((thread, turn)) = self.turn_of(agent)
        {
            let words = wire::text(&format!("I declined the call of {name}: {feedback}"));
            let params = json!({ "threadId": thread, "expectedTurnId": turn, "input": [words] });
            self.request("turn/steer", &params, Sent::Correction { name }, cx);
        }
        if let Some(run) = &mut self.run {
            run.decide(call_id, &request, &verdict, cx);
        }
    }

    fn interrupt(&mut self, cx: &mut Cx) {
        let Some(run) = &mut self.run else { return };
        if run.prompt.is_some() {
            return self.end(RunStatus::Cancelled, None, cx);
        }
        if std::mem::replace(&mut run.is_interrupted, true) {
            return;
        }
        run.cancel_questions(cx);
        cx.wake_after(END_TIMEOUT_MS);
        self.interrupt_turn(cx);
    }

    fn time_out(&mut self, cx: &mut Cx) {
        let Some(run) = &mut self.run else { return };
        // Agents that ignore a stop end with the process.
        let ignores_stop = run.is_interrupted && run.has_agents_at_work();
        if run.outcome.is_some() && !ignores_stop {
            return self.end_as_it_did(cx);
        }
        if run.is_interrupted {
            cx.out.push(ProgramEffect::Quit);
            return self.end(RunStatus::Cancelled, None, cx);
        }
        // Codex has been idle since: the report of the turn's end was lost.
        match run.last_error.take() {
            Some(error) => self.fail(failure::of_turn(&error), cx),
            None => self.complete(cx),
        }
    }

    fn exited(&mut self, exit: &Exit, cx: &mut Cx) {
        let had_answered = !matches!(self.link, Link::New | Link::Initializing);
        match &self.run {
            Some(run) if run.is_interrupted => self.end(RunStatus::Cancelled, None, cx),
            _ => self.fail(failure::of_exit(exit, had_answered), cx),
        }
    }

    fn end_run(&mut self) {
        self.run = None;
    }
}

// Runs

impl Codex {
    /// Sends the next request that leads to a turn: `initialize`, opening the thread, then
    /// `turn/start`.
    fn advance(&mut self, cx: &mut Cx) {
        if cx.is_gone() {
            return self.fail(failure::of_text("it is restarting; send the message again"), cx);
        }
        match &self.link {
            Link::New => {
                self.link = Link::Initializing;
                self.request("initialize", &wire::initialize(), Sent::Initialize, cx);
            }
            Link::Initialized => self.open_thread(self.launch.resume.clone(), cx),
            Link::Open { thread } => {
                let thread = thread.clone();
                let Some(prompt) = self.run.as_mut().and_then(|it| it.prompt.take()) else {
                    return;
                };
                let params = json!({ "threadId": thread, "input": prompt, "summary": "auto" });
                let id = self.request("turn/start", &params, Sent::StartTurn, cx);
                if let Some(run) = &mut self.run {
                    run.start_request = Some(id);
                }
            }
            Link::Initializing | Link::Opening => (),
        }
    }

    fn open_thread(&mut self, resume: Option<ResumeId>, cx: &mut Cx) {
        self.link = Link::Opening;
        let method = if resume.is_some() { "thread/resume" } else { "thread/start" };
        let params = wire::open_thread(&self.settings, &self.launch, resume.as_ref());
        self.request(method, &params, Sent::OpenThread { resumes: resume.is_some() }, cx);
    }

    /// Asks Codex to interrupt the turn of an interrupted run, as soon as the turn's id is known.
    fn interrupt_turn(&mut self, cx: &mut Cx) {
        let Some(run) = self.run.as_ref().filter(|it| it.is_interrupted) else { return };
        let (Some(turn), Link::Open { thread }) = (&run.turn, &self.link) else { return };
        let params = json!({ "threadId": thread, "turnId": turn });
        self.request("turn/interrupt", &params, Sent::Other, cx);
        self.interrupt_agents(cx);
    }

    /// Returns the thread and the turn of a sub-agent, or of Codex itself. `None` if no message can
    /// be sent there now.
    fn turn_of(&self, agent: Option<&str>) -> Option<(String, String)> {
        let run = self.run.as_ref().filter(|it| !it.is_interrupted)?;
        match (agent, &self.link) {
            (Some(thread), _) => Some((thread.to_owned(), run.turn_of_agent(thread)?.to_owned())),
            (None, Link::Open { thread }) => Some((thread.clone(), run.turn.clone()?)),
            (None, _) => None,
        }
    }

    fn complete(&mut self, cx: &mut Cx) {
        if let Some(run) = &mut self.run {
            run.outer.finish_step(None, &mut cx.out);
            run.release_all(cx);
        }
        self.end(RunStatus::Completed, None, cx);
    }

    fn fail(&mut self, error: ErrorInfo, cx: &mut Cx) {
        self.end(RunStatus::Failed, Some(error), cx);
    }

    /// Ends the run with this status. Nothing may be emitted after it.
    fn end(&mut self, status: RunStatus, error: Option<ErrorInfo>, cx: &mut Cx) {
        let Some(mut run) = self.run.take() else { return };
        self.ended_turn = run.turn.take().or(self.ended_turn.take());
        // A turn that breaks off drops its unread messages. A complete turn has read all of them, unless
        // Codex reports which were read.
        if status != RunStatus::Completed || self.echoes_ids {
            cx.steering.give_back(|it| it.is_handed_over, &mut cx.out);
        }
        cx.steering.give_back(|it| !it.is_handed_over, &mut cx.out);
        self.forget_unanswered();
        turn::emit_stop(status, &mut cx.out);
        cx.end_run(status, error, run.usage(), None);
    }
}

// Lines

impl Codex {
    fn handle_message(&mut self, message: &Value, line: &str, cx: &mut Cx) {
        let (id, params) = (&message["id"], &message["params"]);
        match (message["method"].as_str(), id) {
            (Some(method), Value::Null) => self.handle_notification(method, params, line, cx),
            (Some(method), id) => self.handle_request(method, id, params, line, cx),
            (None, id) => match id.as_u64().and_then(|it| Some((it, self.sent.remove(&it)?))) {
                Some((id, sent)) => self.handle_response(id, sent, message, cx),
                None => cx.out.unrecognized(line),
            },
        }
    }

    fn handle_response(&mut self, id: u64, sent: Sent, message: &Value, cx: &mut Cx) {
        let error = message.get("error").filter(|it| !it.is_null());
        if let Some(method) = sent.method().filter(|it| error.is_some_and(|e| is_unknown(it, e))) {
            return self.outdated(method, cx);
        }
        let (result, refused) = (&message["result"], error.map(failure::of_turn));
        match (sent, refused) {
            (Sent::Initialize, None) => {
                self.version = result["userAgent"].as_str().and_then(wire::version);
                self.link = Link::Initialized;
                cx.out.write(wire::initialized());
                self.advance(cx);
            }
            (Sent::Initialize, Some(error)) => {
                cx.out.push(ProgramEffect::Quit);
                self.fail(error, cx);
            }
            (Sent::OpenThread { resumes }, None) => self.thread_opened(result, resumes, cx),
            (Sent::OpenThread { resumes }, Some(error))
                if !resumes || error.code == ErrorCode::AgentBusy =>
            {
                self.link = Link::Initialized;
                self.fail(error, cx);
            }
            (Sent::OpenThread { .. }, Some(error)) => {
                let why = format!(
                    "Codex could not resume its conversation and starts a new one without the earlier \
                     messages. {}",
                    error.message
                );
                cx.out.notice(Level::Error, why);
                self.open_thread(None, cx);
            }
            (Sent::StartTurn, refused) => self.turn_answered(id, result, refused, cx),
            (Sent::Steer, None) => {
                cx.steering.hand_over(|it| it.key == id.to_string(), &mut cx.out);
            }
            (Sent::Steer, Some(_)) => {
                cx.steering.give_back(|it| it.key == id.to_string(), &mut cx.out);
            }
            (Sent::Correction { name }, Some(error)) => {
                let text = format!(
                    "Codex did not accept your reason for declining {name}, and the model has not seen \
                     it: {}",
                    error.message
                );
                cx.out.notice(Level::Error, text);
            }
            (Sent::Correction { .. }, None) | (Sent::Other, _) => (),
        }
    }

    /// Handles an app-server that lacks a required method: the `codex exec` backend continues the
    /// run.
    fn outdated(&mut self, method: &str, cx: &mut Cx) {
        if self.run.as_ref().is_some_and(|it| it.is_interrupted) {
            cx.out.push(ProgramEffect::Quit);
            return self.end(RunStatus::Cancelled, None, cx);
        }
        if self.run.is_none() {
            return cx.out.push(ProgramEffect::Quit);
        }
        let text = format!(
            "The app-server of this Codex does not know {method}, so `codex exec` is used instead."
        );
        cx.out.notice(Level::Info, text);
        cx.out.push(ProgramEffect::Outdated);
        cx.out.abandon_run();
    }

    fn thread_opened(&mut self, result: &Value, resumes: bool, cx: &mut Cx) {
        let thread = &result["thread"];
        let Some(id) = thread["id"].as_str() else {
            self.link = Link::Initialized;
            return self.fail(failure::of_text("it opened a conversation without an id"), cx);
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
            // The thread's own version is that of the Codex that created it.
            version: self.version.clone().or_else(|| text(&thread["cliVersion"])),
        };
        if cx.is_running() {
            cx.out.emit(linked);
        } else {
            self.unsent_link = Some(linked);
        }
        self.advance(cx);
    }

    fn turn_answered(&mut self, id: u64, result: &Value, refused: Option<ErrorInfo>, cx: &mut Cx) {
        let is_current = |run: &Run| run.start_request == Some(id);
        let Some(run) = self.run.as_mut().filter(|it| is_current(it)) else { return };
        match refused {
            Some(_) if run.is_interrupted => self.end(RunStatus::Cancelled, None, cx),
            Some(error) => self.fail(error, cx),
            None => {
                if let Some(turn) = result["turn"]["id"].as_str() {
                    self.take_turn(turn, cx);
                }
            }
        }
    }

    /// Handles a request of Codex: asks a person, or refuses it.
    fn handle_request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        line: &str,
        cx: &mut Cx,
    ) {
        let is_ours = self.is_of_thread(params);
        let agent = params["threadId"].as_str().filter(|_| !is_ours);
        let is_of_turn = agent.is_some() || self.is_of_turn(params);
        let kind = Kind::of(method, params);
        let is_taken = match (&mut self.run, &kind) {
            (Some(run), Some(kind)) if is_of_turn && !run.is_interrupted => {
                match run.is_about_ended(agent, kind, params) {
                    true => return cx.out.write(wire::answer(id, &kind.refusal())),
                    false => run.ask(agent, (method, params), id, cx),
                }
            }
            // The call was stopped, so there is nothing to decide.
            (_, Some(kind)) => {
                return cx.out.write(wire::answer(id, &kind.cancellation()));
            }
            (_, None) => false,
        };
        if !is_taken {
            cx.out.write(wire::refusal(id));
            cx.out.unrecognized(line);
        }
    }

    fn request(&mut self, method: &str, params: &Value, sent: Sent, cx: &mut Cx) -> u64 {
        let id = cx.out.next_request();
        self.sent.insert(id, sent);
        cx.out.write(wire::request(id, method, params));
        id
    }

    /// Forgets the oldest of Callboard's requests about ended runs that have no response, if there
    /// are too many.
    fn forget_unanswered(&mut self) {
        let too_many = self.sent.len().saturating_sub(UNANSWERED);
        let of_no_use = |it: &Sent| {
            matches!(it, Sent::StartTurn | Sent::Steer | Sent::Correction { .. } | Sent::Other)
        };
        let unawaited = self.sent.iter().filter(|(_, it)| of_no_use(it)).map(|(id, _)| *id);
        let oldest: Vec<u64> = unawaited.take(too_many).collect();
        for id in oldest {
            self.sent.remove(&id);
        }
    }
}
