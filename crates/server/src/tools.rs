//! The tools: what agents without tools of their own can do. Built in, or of MCP servers.
//!
//! Every call gets exactly one outcome, whatever happens in it: arguments that do not fit, a panic, a
//! time limit, a stop. Messages of errors are written for a model: they say what to do instead. File
//! tools see the workspace folder and nothing else.

mod addresses;
mod agents_list;
mod agents_message;
mod callboard_note;
mod edit_file;
mod http_get;
mod list_files;
mod output;
mod read_file;
mod search_files;
mod shell;
mod time;
mod workspace;
mod write_file;
mod write_target;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use transcript::{
    CallId, ErrorCode, ErrorInfo, Event, Millis, OutputStream, ResponseId, SessionId,
};

use crate::mcp::{McpServers, McpTool};
use crate::private::Private;
use crate::session::Sessions;

pub(crate) use addresses::Web;
pub(crate) use workspace::plain;
pub(crate) use write_target::write_target;

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ToolSpec {
    pub(crate) name: Cow<'static, str>,
    pub(crate) description: Cow<'static, str>,
    /// JSON schema of the arguments.
    pub(crate) parameters: Value,
}

/// What holds for all tools.
#[derive(Debug)]
pub(crate) struct ToolSettings {
    pub(crate) time_limit: Duration,
    /// Calls of one session in a minute; zero is no limit.
    pub(crate) per_minute: usize,
    /// How often what may pass is tried again.
    pub(crate) retries: u32,
    /// How `http_get` reaches the internet.
    pub(crate) web: Web,
    /// What commands find in their environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

#[cfg(test)]
impl ToolSettings {
    pub(crate) fn for_tests() -> Self {
        Self {
            time_limit: Duration::from_secs(60),
            per_minute: 0,
            retries: 2,
            web: Web::public(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        }
    }
}

/// What a call may use, apart from its arguments.
#[derive(Clone)]
pub(crate) struct ToolContext {
    /// The session and the run that the call belongs to.
    pub(crate) session_id: SessionId,
    pub(crate) response_id: ResponseId,
    pub(crate) call_id: CallId,
    /// All sessions and, through them, all agents.
    pub(crate) sessions: Sessions,
    pub(crate) workspace: PathBuf,
    /// Files that no tool opens.
    pub(crate) private: Private,
    pub(crate) now: Millis,
    pub(crate) stopped: Stopped,
    pub(crate) news: mpsc::Sender<ToolNews>,
}

/// Turns true, or loses its sender, when nobody waits for the result any more. Long work looks at it.
#[derive(Clone)]
pub(crate) struct Stopped(pub(crate) watch::Receiver<bool>);

/// What a call that runs has to tell.
#[derive(Debug)]
pub(crate) struct ToolNews {
    pub(crate) call_id: CallId,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Output {
        stream: OutputStream,
        offset: u64,
        delta: String,
    },
    Retry {
        attempt: u32,
        max_attempts: u32,
        error: ErrorInfo,
    },
    /// To be written into the run's log; said back once it is there.
    Say {
        event: Box<Event>,
        written: oneshot::Sender<()>,
    },
    Done(ToolOutcome),
}

/// The tools there are.
pub(crate) struct Tools {
    built_in: Vec<Tool>,
    pub(crate) mcp: McpServers,
    pub(crate) settings: Arc<ToolSettings>,
}

#[derive(Clone, Copy)]
struct Tool {
    name: &'static str,
    description: &'static str,
    parameters: fn() -> Value,
    /// What went wrong may pass, and trying again does no harm.
    may_repeat: bool,
    work: Work,
}

#[derive(Clone, Copy)]
enum Work {
    /// May block and may panic: it has a thread to itself.
    Blocking(fn(&Arguments, &ToolContext) -> Result<Value, ErrorInfo>),
    Waiting(Wait),
    /// Knows itself when it has waited long enough.
    WaitingForOthers(Wait),
}

type Wait = fn(Arguments, ToolContext, Arc<ToolSettings>) -> BoxFuture<'static, ToolOutcome>;

const BUILT_IN: [Tool; 11] = [
    time::TOOL,
    list_files::TOOL,
    read_file::TOOL,
    search_files::TOOL,
    write_file::TOOL,
    edit_file::TOOL,
    shell::TOOL,
    http_get::TOOL,
    agents_list::TOOL,
    agents_message::TOOL,
    callboard_note::TOOL,
];

/// What makes sense inside a program too, which has tools of its own for all else.
const FOR_PROGRAMS: [&str; 3] =
    [agents_list::TOOL.name, agents_message::TOOL.name, callboard_note::TOOL.name];

/// A tool, and what it is called with.
enum Prepared {
    BuiltIn(Tool, Arguments),
    Mcp(Arc<McpTool>, Arguments),
}

/// How long a call that was stopped may take to put its things in order.
const WIND_UP: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);

impl Tools {
    pub(crate) fn new(settings: ToolSettings, mcp: McpServers) -> Self {
        Self { built_in: BUILT_IN.to_vec(), mcp, settings: Arc::new(settings) }
    }

    #[cfg(test)]
    pub(crate) fn built_in(settings: ToolSettings) -> Self {
        Self::new(settings, McpServers::default())
    }

    /// Those that are built in.
    pub(crate) fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|it| it.name).collect()
    }

    /// All that are known now.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let of_servers = self.mcp.tools().into_iter().map(|it| ToolSpec {
            name: it.name.clone().into(),
            description: it.description.clone().into(),
            parameters: it.parameters.clone(),
        });
        self.built_in.iter().map(Tool::spec).chain(of_servers).collect()
    }

    /// Those that programs are offered.
    pub(crate) fn for_programs(&self) -> impl Iterator<Item = ToolSpec> {
        self.built_in.iter().filter(|it| FOR_PROGRAMS.contains(&it.name)).map(Tool::spec)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.specs().iter().any(|it| it.name == name)
    }

    /// Why such a call could not run, whoever agreed to it. Nothing is said of a tool that a server may yet
    /// bring: its call can be judged, and must be.
    pub(crate) fn why_impossible(&self, name: &str, arguments: &str) -> Option<ErrorInfo> {
        self.prepare(name, arguments).err().filter(|_| !self.mcp.may_bring(name))
    }

    pub(crate) async fn run(
        &self,
        name: &str,
        arguments: &str,
        context: ToolContext,
    ) -> ToolOutcome {
        tokio::select! {
            biased;
            () = context.stopped.wait() => return failed(interrupted()),
            () = self.mcp.get_to_know(name) => (),
        }
        let prepared = match self.prepare(name, arguments) {
            Ok(prepared) => prepared,
            Err(error) => return failed(error),
        };
        let max_attempts = if prepared.may_repeat() { self.settings.retries + 1 } else { 1 };
        let mut attempt = 1;
        loop {
            let outcome = self.attempt(&prepared, &context).await;
            let error = outcome.error.clone().filter(may_pass);
            let Some(error) = error.filter(|_| attempt < max_attempts) else { return outcome };
            attempt += 1;
            context.tell(What::Retry { attempt, max_attempts, error }).await;
            tokio::select! {
                () = sleep(PAUSE * attempt) => (),
                () = context.stopped.wait() => return failed(interrupted()),
            }
        }
    }

    /// Whatever ends it early, the tool is told and given time to leave nothing behind.
    async fn attempt(&self, prepared: &Prepared, context: &ToolContext) -> ToolOutcome {
        let (stop, stopped) = watch::channel(false);
        let inner = ToolContext { stopped: Stopped(stopped), ..context.clone() };
        let limit = prepared.time_limit(&self.settings);
        let mut work = pin!(prepared.start(inner, Arc::clone(&self.settings)));
        let why = tokio::select! {
            // A call that is stopped already does not begin.
            biased;
            () = context.stopped.wait() => interrupted(),
            outcome = &mut work => return outcome,
            () = sleep(limit) => timed_out(limit),
        };
        let _ = stop.send(true);
        let _ = timeout(WIND_UP, work).await;
        failed(why)
    }

    fn prepare(&self, name: &str, arguments: &str) -> Result<Prepared, ErrorInfo> {
        if let Some(tool) = self.built_in.iter().find(|it| it.name == name) {
            let arguments = Arguments::read(name, (tool.parameters)(), arguments)?;
            return Ok(Prepared::BuiltIn(*tool, arguments));
        }
        let tool = self.mcp.find(name).ok_or_else(|| self.not_found(name))?;
        let arguments = Arguments::read(name, tool.parameters.clone(), arguments)?;
        Ok(Prepared::Mcp(tool, arguments))
    }

    fn not_found(&self, name: &str) -> ErrorInfo {
        self.mcp.why_missing(name).unwrap_or_else(|| {
            let names: Vec<_> = self.specs().into_iter().map(|it| it.name).collect();
            let message = format!("There is no tool '{name}'. There are: {}.", names.join(", "));
            ErrorInfo::new(ErrorCode::ToolNotFound, message)
        })
    }
}

impl Prepared {
    /// What a server's tool has done before it failed, nobody knows.
    fn may_repeat(&self) -> bool {
        match self {
            Self::BuiltIn(tool, _) => tool.may_repeat,
            Self::Mcp(..) => false,
        }
    }

    fn time_limit(&self, settings: &ToolSettings) -> Duration {
        match self {
            Self::BuiltIn(Tool { work: Work::WaitingForOthers(_), .. }, _) => Duration::MAX,
            Self::BuiltIn(..) => settings.time_limit,
            Self::Mcp(tool, _) => tool.time_limit(),
        }
    }

    async fn start(&self, context: ToolContext, settings: Arc<ToolSettings>) -> ToolOutcome {
        match self {
            Self::BuiltIn(tool, arguments) => {
                tool.start(arguments.clone(), context, settings).await
            }
            Self::Mcp(tool, arguments) => tool.call(arguments.fields(), &context).await,
        }
    }
}

impl Tool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.into(),
            description: self.description.into(),
            parameters: (self.parameters)(),
        }
    }

    async fn start(
        self,
        arguments: Arguments,
        context: ToolContext,
        settings: Arc<ToolSettings>,
    ) -> ToolOutcome {
        match self.work {
            Work::Waiting(run) | Work::WaitingForOthers(run) => {
                run(arguments, context, settings).await
            }
            Work::Blocking(run) => {
                let work = tokio::task::spawn_blocking(move || run(&arguments, &context));
                outcome(work.await.unwrap_or_else(|error| Err(broke_off(self.name, &error))))
            }
        }
    }
}

impl ToolContext {
    fn check_stopped(&self) -> Result<(), ErrorInfo> {
        if self.stopped.is_set() { Err(interrupted()) } else { Ok(()) }
    }

    /// False when nobody listens any more.
    pub(crate) async fn tell(&self, what: What) -> bool {
        self.news.send(ToolNews { call_id: self.call_id.clone(), what }).await.is_ok()
    }

    /// Puts an event into the log of the call's run. It is there when this returns, unless the run has
    /// ended.
    pub(crate) async fn say(&self, event: Event) -> Result<(), ErrorInfo> {
        let (written, is_written) = oneshot::channel();
        self.tell(What::Say { event: Box::new(event), written }).await;
        is_written.await.map_err(|_| interrupted())
    }
}

impl Stopped {
    fn is_set(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    pub(crate) async fn wait(&self) {
        // An error means that the sender is gone, which is a stop too.
        let _ = self.0.clone().wait_for(|it| *it).await;
    }
}

/// What an agent sent, which fits the schema of the tool that it is for.
#[derive(Clone)]
struct Arguments {
    value: Value,
    tool: String,
    parameters: Arc<Value>,
}

impl Arguments {
    /// No text at all is an empty object: some models send that for a tool without arguments. So is
    /// a field that is null one that was left out, where null does not fit.
    fn read(tool: &str, parameters: Value, text: &str) -> Result<Self, ErrorInfo> {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let (tool, parameters) = (tool.to_owned(), Arc::new(parameters));
        let mut arguments = Self { value, tool, parameters };
        if let Value::String(_) = arguments.value {
            return Err(arguments.invalid("they are no JSON object"));
        }
        if arguments.faults().is_empty() {
            return Ok(arguments);
        }
        if let Value::Object(fields) = &mut arguments.value {
            fields.retain(|_, it| !it.is_null());
        }
        let wrong = arguments.faults();
        if wrong.is_empty() { Ok(arguments) } else { Err(arguments.invalid(wrong.join("; "))) }
    }

    /// By a schema that makes no sense nothing is wrong: whoever wrote it will look himself.
    fn faults(&self) -> Vec<String> {
        match jsonschema::validator_for(&self.parameters) {
            Ok(validator) => validator.iter_errors(&self.value).map(describe).collect(),
            Err(_) => Vec::new(),
        }
    }

    fn fields(&self) -> Map<String, Value> {
        self.value.as_object().cloned().unwrap_or_default()
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, ErrorInfo> {
        serde_json::from_value(self.value.clone()).map_err(|error| self.invalid(error.to_string()))
    }

    fn invalid(&self, why: impl AsRef<str>) -> ErrorInfo {
        let (name, fields) = (&self.tool, describe_fields(&self.parameters));
        let message = format!(
            "The arguments do not fit: {}.{ADVICE} {name} one JSON object with these fields and no \
             others: {fields}.",
            why.as_ref()
        );
        ErrorInfo::new(ErrorCode::InvalidArguments, message)
    }
}

/// Where a message about arguments begins to tell a model what to do.
const ADVICE: &str = " Send";

/// A message about arguments as a person reads it: what is wrong, without the advice for a model.
pub(crate) fn without_advice(message: &str) -> &str {
    message.split_once(ADVICE).map_or(message, |(what, _)| what)
}

/// `path: 5 is not of type "string"`
fn describe(error: jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    match place.trim_start_matches('/') {
        "" => error.to_string(),
        field => format!("{field}: {error}"),
    }
}

/// `path (string, required), from_line (integer)`, from the schema.
fn describe_fields(schema: &Value) -> String {
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|it| it.iter().any(|field| field == name))
    };
    let fields = schema["properties"].as_object().into_iter().flatten();
    let described = fields.map(|(name, field)| {
        let kind = field["type"].as_str().unwrap_or("any");
        let required = if is_required(name) { ", required" } else { "" };
        format!("{name} ({kind}{required})")
    });
    described.collect::<Vec<_>>().join(", ")
}

pub(crate) fn tool_error(message: impl Into<String>) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolError, message)
}

fn broke_off(name: &str, error: &tokio::task::JoinError) -> ErrorInfo {
    if error.is_panic() {
        ErrorInfo::new(ErrorCode::ToolFailed, format!("The tool '{name}' broke down."))
    } else {
        ErrorInfo::new(ErrorCode::ToolInterrupted, "The server is stopping.")
    }
}

pub(crate) fn interrupted() -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolInterrupted, "The call was stopped.")
}

fn timed_out(limit: Duration) -> ErrorInfo {
    let message = format!(
        "The tool did not finish within {} seconds and was stopped. Ask for less at a time.",
        limit.as_secs()
    );
    ErrorInfo::new(ErrorCode::ToolTimeout, message)
}

/// What the tool itself said would be said again.
fn may_pass(error: &ErrorInfo) -> bool {
    matches!(error.code, ErrorCode::ToolFailed | ErrorCode::ToolTimeout)
}

fn outcome(result: Result<Value, ErrorInfo>) -> ToolOutcome {
    match result {
        Ok(result) => ToolOutcome { ok: true, result, error: None },
        Err(error) => failed(error),
    }
}

pub(crate) fn failed(error: ErrorInfo) -> ToolOutcome {
    ToolOutcome { ok: false, result: Value::Null, error: Some(error) }
}
