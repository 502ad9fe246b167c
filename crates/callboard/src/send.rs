//! `callboard send`: one message and its answer, in the terminal.
//!
//! The command is a client of the running server, or of one that it starts for itself. All output
//! is sanitised by [`clean`].

mod clean;
mod client;
mod consent;
mod keyboard;
mod screen;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use transcript::{CallId, ClientId, Event, MessageId, Record, ResponseId, RunStatus, Scope};

use crate::args::ServeArgs;
use crate::config::{Config, Environment};
use crate::serve::{DataAccess, Server, ServerFile};
use client::{Client, ServerEvent, SessionChoice};
use consent::{Decided, Decider, Question};
use keyboard::Keyboard;
use runtime::clock;
use screen::{Ink, Piece, Screen};

/// Exit code of `callboard send` after Ctrl-C.
const STOPPED: u8 = 130;
const NO_APPROVER: &str =
    "Nobody can approve calls now. Continue without calls that need an approval.";

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Id of the agent that answers, as configured; `callboard doctor` lists the agents.
    pub(crate) agent: String,
    /// Text of the message; `-` reads it from standard input.
    pub(crate) text: String,
    /// Continue this session instead of creating a new one.
    #[arg(long, value_name = "ID", conflicts_with = "workspace")]
    pub(crate) session: Option<String>,
    /// Folder that the agent works in [default: as configured]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print the records of the log, one per line, instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Allow every tool call that needs an approval, once.
    #[arg(long, conflicts_with = "deny")]
    pub(crate) yes: bool,
    /// Deny every tool call that needs an approval.
    #[arg(long)]
    pub(crate) deny: bool,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

pub(crate) async fn run(
    args: SendArgs,
    config: Config,
    environment: &Environment,
) -> anyhow::Result<ExitCode> {
    let text = message_text(&args.text)?;
    let signals = Signals::listen()?;
    let (server, own) = match DataAccess::open(&config, "callboard send")? {
        DataAccess::Server(server) => (server, None),
        DataAccess::Folder(store) => {
            let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let own = Server::start(store, Config { listen, ..config }).await?;
            let address = format!("http://{}", own.address);
            (ServerFile { address, token: own.token.clone() }, Some(own))
        }
    };
    let workspace = args.workspace.as_ref().map(|it| environment.working_dir.join(it));
    let workspace = workspace.as_ref().map(|it| it.display().to_string());
    let choice = SessionChoice {
        agent: &args.agent,
        session: args.session.as_deref(),
        workspace: workspace.as_deref(),
    };
    let colours = io::stderr().is_terminal() && (environment.variable)("NO_COLOR").is_none();
    let ended = match Client::open(server, choice).await {
        Ok(client) => {
            let decider = decider(&args, own.is_some());
            Turn::new(client, args.json, decider, colours).run(&text, signals).await
        }
        Err(error) => Err(error),
    };
    if let Some(own) = own {
        own.stop().await?;
    }
    Ok(match ended? {
        RunStatus::Completed => ExitCode::SUCCESS,
        RunStatus::Failed => ExitCode::FAILURE,
        RunStatus::Cancelled => ExitCode::from(STOPPED),
    })
}

fn message_text(argument: &str) -> anyhow::Result<String> {
    let mut text = argument.to_owned();
    if argument == "-" {
        text.clear();
        io::stdin().lock().read_to_string(&mut text).context("reading the message")?;
    }
    ensure!(!text.trim().is_empty(), "the message is empty");
    Ok(text)
}

/// Returns the source of decisions about tool calls that need an approval. Without an option and
/// without a terminal, calls are denied, unless a page of the running server can decide.
fn decider(args: &SendArgs, is_own: bool) -> Decider {
    match (io::stdin().is_terminal() && io::stderr().is_terminal(), is_own) {
        _ if args.yes => Decider::Yes,
        _ if args.deny => Decider::No,
        (true, _) => Decider::Person,
        (false, true) => Decider::Nobody,
        (false, false) => Decider::Elsewhere,
    }
}

/// Listeners for the signals of Ctrl-C and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
        let terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        Ok(Self { interrupt, terminate })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}

/// State of `callboard send`: the sent message, and the run that answers it.
struct Turn {
    client: Client,
    client_id: ClientId,
    json: bool,
    decider: Decider,
    colours: bool,
    stage: Stage,
    screen: Screen,
    questions: VecDeque<Question>,
    keyboard: Option<Keyboard>,
    /// Whether the user has asked to stop the run.
    is_stopping: bool,
}

#[derive(Debug, PartialEq)]
enum Stage {
    /// The message was sent and is not in the log yet.
    Sent,
    /// The message is in the queue of the session.
    Queued(MessageId),
    /// The message is a record of the log, and the next run answers it.
    Taken,
    Running(ResponseId),
}

impl Turn {
    fn new(client: Client, json: bool, decider: Decider, colours: bool) -> Self {
        let keyboard = (decider == Decider::Person).then(Keyboard::open);
        Self {
            client,
            client_id: clock::new_client_id(),
            json,
            decider,
            colours,
            stage: Stage::Sent,
            screen: Screen::new(&ResponseId::new(""), colours),
            questions: VecDeque::new(),
            keyboard,
            is_stopping: false,
        }
    }

    async fn run(mut self, text: &str, mut signals: Signals) -> anyhow::Result<RunStatus> {
        let message = json!({ "text": text, "clientId": self.client_id });
        self.client.send_command("send_message", message).await?;
        let status = loop {
            let ended = tokio::select! {
                event = self.client.next() => self.handle_event(event?).await?,
                line = next_line(&mut self.keyboard), if !self.questions.is_empty() => {
                    self.answer(line).await?;
                    None
                }
                () = signals.next() => self.stop().await?,
            };
            if let Some(status) = ended {
                break status;
            }
        };
        let session = format!("session {}", self.client.session);
        self.note(Ink::Dim, &session)?;
        Ok(status)
    }

    async fn handle_event(&mut self, event: ServerEvent) -> anyhow::Result<Option<RunStatus>> {
        match event {
            ServerEvent::Record(record, text) => {
                self.track_message(&record).await?;
                if self.json && self.stage != Stage::Sent {
                    let mut out = io::stdout().lock();
                    writeln!(out, "{text}").and_then(|()| out.flush()).context("printing")?;
                }
                let is_ours = matches!(&self.stage, Stage::Running(run) if record.response_id.as_ref() == Some(run));
                if is_ours {
                    self.show(&record).await?;
                }
                Ok(self.screen.status())
            }
            ServerEvent::Refused { message, .. } if self.stage == Stage::Sent => bail!("{message}"),
            // The record of the decision, which follows, names the person who decided first.
            ServerEvent::Refused { code, .. } if code == "already_decided" => Ok(None),
            ServerEvent::Refused { message, .. } => {
                self.note(Ink::Red, &message)?;
                Ok(None)
            }
        }
    }

    /// Updates the stage of the sent message by a record: through the queue to the run that answers
    /// it.
    async fn track_message(&mut self, record: &Record) -> anyhow::Result<()> {
        match &record.event {
            Event::MessageQueued { client_id, message_id, .. }
                if client_id.as_ref() == Some(&self.client_id) =>
            {
                self.stage = Stage::Queued(message_id.clone());
                self.note(Ink::Dim, "queued: waiting for the active run")?;
            }
            Event::QueueHeld { .. } if matches!(self.stage, Stage::Queued(_)) => {
                let url = self.client.address();
                let words = format!(
                    "the run was stopped; the message is held until the queue is released, for example at {url}"
                );
                self.note(Ink::Yellow, &words)?;
            }
            Event::MessageDropped { message_id, .. }
                if self.stage == Stage::Queued(message_id.clone()) =>
            {
                bail!("the message was removed from the queue");
            }
            Event::UserMessage { client_id, .. } if client_id.as_ref() == Some(&self.client_id) => {
                self.stage = Stage::Taken;
            }
            Event::RunStart { .. } if self.stage == Stage::Taken => {
                let run = record.response_id.clone().context("a run without an id")?;
                self.screen = Screen::new(&run, self.colours).holding(!io::stdout().is_terminal());
                self.stage = Stage::Running(run);
                if self.is_stopping {
                    self.client.send_command("cancel_output", json!({})).await?;
                }
            }
            _ => (),
        }
        Ok(())
    }

    async fn show(&mut self, record: &Record) -> anyhow::Result<()> {
        let pieces = self.screen.show(record);
        let is_interrupted = !self.json && !pieces.is_empty() && !self.questions.is_empty();
        if !self.json {
            print(&pieces)?;
        }
        match &record.event {
            Event::ToolApprovalRequested { call_id, options } => {
                let question = Question::new(call_id.clone(), options);
                self.decide_about(call_id, question).await?;
            }
            Event::ToolApprovalResolved { call_id, by, .. } => self.drop_question(call_id, by)?,
            _ if is_interrupted => self.ask()?,
            _ => (),
        }
        Ok(())
    }

    async fn decide_about(&mut self, call_id: &CallId, question: Question) -> anyhow::Result<()> {
        let call = self.screen.name_of(call_id);
        let decided = match self.decider {
            Decider::Person => {
                self.questions.push_back(question);
                return if self.questions.len() == 1 { self.ask_next() } else { Ok(()) };
            }
            Decider::Elsewhere => {
                let url = self.client.address();
                let words = format!("{call}: waits for a decision, for example at {url}");
                return self.note(Ink::Yellow, &words);
            }
            Decider::Yes => Decided::Allowed(Scope::Once),
            Decider::No => {
                self.note(Ink::Yellow, &format!("{call}: denied, because of --deny"))?;
                Decided::Denied { reason: None }
            }
            Decider::Nobody => {
                self.note(
                    Ink::Yellow,
                    &format!("{call}: denied, because nobody can decide (--yes would allow it)"),
                )?;
                Decided::Denied { reason: Some(NO_APPROVER.to_owned()) }
            }
        };
        self.client.send_command("approve_tool", decided.into_frame(call_id)).await
    }

    /// Shows the next tool call that needs a decision, and asks for the decision.
    fn ask_next(&mut self) -> anyhow::Result<()> {
        let Some(question) = self.questions.front() else { return Ok(()) };
        print(&self.screen.propose(&question.call_id))?;
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.discard_typed();
        }
        self.ask()
    }

    fn ask(&mut self) -> anyhow::Result<()> {
        let Some(question) = self.questions.front() else { return Ok(()) };
        let words = question.words();
        print(&self.screen.ask(&words))
    }

    async fn answer(&mut self, line: Option<String>) -> anyhow::Result<()> {
        self.screen.answered();
        let Some(question) = self.questions.front_mut() else { return Ok(()) };
        match question.answer(line.as_deref()) {
            None => self.ask(),
            Some(decided) => {
                let frame = decided.into_frame(&question.call_id);
                self.questions.pop_front();
                self.client.send_command("approve_tool", frame).await?;
                self.ask_next()
            }
        }
    }

    /// Removes the question about a tool call that was decided elsewhere or whose run was stopped.
    fn drop_question(&mut self, call_id: &CallId, by: &str) -> anyhow::Result<()> {
        let is_asked = self.questions.front().is_some_and(|it| it.call_id == *call_id);
        self.questions.retain(|it| it.call_id != *call_id);
        if is_asked {
            let by = if by == "user" { "you, on the page" } else { by };
            self.note(Ink::Dim, &format!("decided by {by}"))?;
            self.ask_next()?;
        }
        Ok(())
    }

    /// Stops the run, or removes the message from the queue. The second call of this function exits
    /// without waiting.
    async fn stop(&mut self) -> anyhow::Result<Option<RunStatus>> {
        if std::mem::replace(&mut self.is_stopping, true) {
            return Ok(Some(RunStatus::Cancelled));
        }
        match &self.stage {
            Stage::Queued(message_id) => {
                let message_id = message_id.clone();
                self.client.send_command("drop_queued", json!({ "messageId": message_id })).await?;
                return Ok(Some(RunStatus::Cancelled));
            }
            Stage::Running(_) => self.client.send_command("cancel_output", json!({})).await?,
            Stage::Sent | Stage::Taken => (),
        }
        self.note(Ink::Yellow, "stopping; interrupt again to exit immediately")?;
        Ok(None)
    }

    /// Prints a note of the command itself. With `--json`, only warnings and errors are printed.
    fn note(&mut self, ink: Ink, words: &str) -> anyhow::Result<()> {
        let pieces = self.screen.message(ink, words);
        if self.json && !matches!(ink, Ink::Yellow | Ink::Red) {
            return Ok(());
        }
        print(&pieces)
    }
}

async fn next_line(keyboard: &mut Option<Keyboard>) -> Option<String> {
    match keyboard {
        Some(keyboard) => keyboard.line().await,
        None => std::future::pending().await,
    }
}

fn print(pieces: &[Piece]) -> anyhow::Result<()> {
    let write = |out: &mut dyn Write, text: &str| {
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("printing")
    };
    for piece in pieces {
        match piece {
            Piece::Stdout(text) => write(&mut io::stdout().lock(), text)?,
            Piece::Stderr(text) => write(&mut io::stderr().lock(), text)?,
        }
    }
    Ok(())
}
