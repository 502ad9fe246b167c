//! The built-in tools: what agents without tools of their own can do.
//!
//! Every call gets exactly one outcome, whatever happens in it: arguments that do not fit, a panic, a
//! time limit, a stop. Messages of errors are written for a model: they say what to do instead. File
//! tools see the workspace folder and nothing else.

mod addresses;
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

#[cfg(test)]
mod tests;

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
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use transcript::{CallId, ErrorCode, ErrorInfo, Millis, OutputStream};

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ToolSpec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
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
    /// `http_get` may also ask this machine and those around it.
    pub(crate) http_private: bool,
    /// What commands find in their environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// What a call may use, apart from its arguments.
#[derive(Clone)]
pub(crate) struct ToolContext {
    pub(crate) call_id: CallId,
    pub(crate) workspace: PathBuf,
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
    Output { stream: OutputStream, offset: u64, delta: String },
    Retry { attempt: u32, max_attempts: u32, error: ErrorInfo },
    Done(ToolOutcome),
}

/// The tools there are.
pub(crate) struct Tools {
    tools: Vec<Tool>,
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
    Waiting(fn(Arguments, ToolContext, Arc<ToolSettings>) -> BoxFuture<'static, ToolOutcome>),
}

const BUILT_IN: [Tool; 8] = [
    time::TOOL,
    list_files::TOOL,
    read_file::TOOL,
    search_files::TOOL,
    write_file::TOOL,
    edit_file::TOOL,
    shell::TOOL,
    http_get::TOOL,
];

/// How long a call that was stopped may take to put its things in order.
const WIND_UP: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);

impl Tools {
    pub(crate) fn built_in(settings: ToolSettings) -> Self {
        Self { tools: BUILT_IN.to_vec(), settings: Arc::new(settings) }
    }

    pub(crate) fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|it| it.name).collect()
    }

    pub(crate) fn specs() -> Vec<ToolSpec> {
        BUILT_IN.iter().map(Tool::spec).collect()
    }

    /// Why such a call could not run, whoever agreed to it.
    pub(crate) fn check(&self, name: &str, arguments: &str) -> Result<(), ErrorInfo> {
        self.prepare(name, arguments).map(drop)
    }

    pub(crate) async fn run(
        &self,
        name: &str,
        arguments: &str,
        context: ToolContext,
    ) -> ToolOutcome {
        let (tool, arguments) = match self.prepare(name, arguments) {
            Ok(prepared) => prepared,
            Err(error) => return failed(error),
        };
        let max_attempts = if tool.may_repeat { self.settings.retries + 1 } else { 1 };
        let mut attempt = 1;
        loop {
            let outcome = self.attempt(tool, arguments.clone(), &context).await;
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
    async fn attempt(
        &self,
        tool: Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> ToolOutcome {
        let (stop, stopped) = watch::channel(false);
        let inner = ToolContext { stopped: Stopped(stopped), ..context.clone() };
        let mut work = pin!(tool.start(arguments, inner, Arc::clone(&self.settings)));
        let why = tokio::select! {
            outcome = &mut work => return outcome,
            () = context.stopped.wait() => interrupted(),
            () = sleep(self.settings.time_limit) => timed_out(self.settings.time_limit),
        };
        let _ = stop.send(true);
        let _ = timeout(WIND_UP, work).await;
        failed(why)
    }

    fn prepare(&self, name: &str, arguments: &str) -> Result<(Tool, Arguments), ErrorInfo> {
        let tool = self.tools.iter().find(|it| it.name == name);
        let tool = *tool.ok_or_else(|| self.not_found(name))?;
        Ok((tool, Arguments::read(tool, arguments)?))
    }

    fn not_found(&self, name: &str) -> ErrorInfo {
        let names: Vec<&str> = self.tools.iter().map(|it| it.name).collect();
        let message = format!("There is no tool '{name}'. There are: {}.", names.join(", "));
        ErrorInfo::new(ErrorCode::ToolNotFound, message)
    }
}

impl Tool {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: self.name, description: self.description, parameters: (self.parameters)() }
    }

    async fn start(
        self,
        arguments: Arguments,
        context: ToolContext,
        settings: Arc<ToolSettings>,
    ) -> ToolOutcome {
        match self.work {
            Work::Waiting(run) => run(arguments, context, settings).await,
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
    async fn tell(&self, what: What) -> bool {
        self.news.send(ToolNews { call_id: self.call_id.clone(), what }).await.is_ok()
    }
}

impl Stopped {
    fn is_set(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    async fn wait(&self) {
        // An error means that the sender is gone, which is a stop too.
        let _ = self.0.clone().wait_for(|it| *it).await;
    }
}

/// What an agent sent, which fits the schema of the tool that it is for.
#[derive(Clone)]
struct Arguments {
    value: Value,
    tool: Tool,
}

impl Arguments {
    /// No text at all is an empty object: some models send that for a tool without arguments. So is
    /// a field that is null one that was left out.
    fn read(tool: Tool, text: &str) -> Result<Self, ErrorInfo> {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let mut arguments = Self { value, tool };
        if let Value::String(_) = arguments.value {
            return Err(arguments.invalid("they are no JSON object"));
        }
        if let Value::Object(fields) = &mut arguments.value {
            fields.retain(|_, it| !it.is_null());
        }
        let validator = jsonschema::validator_for(&(tool.parameters)())
            .map_err(|error| arguments.invalid(error.to_string()))?;
        let wrong: Vec<String> = validator.iter_errors(&arguments.value).map(describe).collect();
        if wrong.is_empty() { Ok(arguments) } else { Err(arguments.invalid(wrong.join("; "))) }
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, ErrorInfo> {
        serde_json::from_value(self.value.clone()).map_err(|error| self.invalid(error.to_string()))
    }

    fn invalid(&self, why: impl AsRef<str>) -> ErrorInfo {
        let (name, fields) = (self.tool.name, describe_fields(&(self.tool.parameters)()));
        let message = format!(
            "The arguments do not fit: {}. Send `{name}` one JSON object with these fields and no \
             others: {fields}.",
            why.as_ref()
        );
        ErrorInfo::new(ErrorCode::InvalidArguments, message)
    }
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

fn tool_error(message: impl Into<String>) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolError, message)
}

fn broke_off(name: &str, error: &tokio::task::JoinError) -> ErrorInfo {
    if error.is_panic() {
        ErrorInfo::new(ErrorCode::ToolFailed, format!("The tool '{name}' broke down."))
    } else {
        ErrorInfo::new(ErrorCode::ToolInterrupted, "The server is stopping.")
    }
}

fn interrupted() -> ErrorInfo {
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

fn failed(error: ErrorInfo) -> ToolOutcome {
    ToolOutcome { ok: false, result: Value::Null, error: Some(error) }
}
