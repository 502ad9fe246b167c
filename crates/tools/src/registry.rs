//! The registry of all tools, and how a call is prepared and run.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backends::ToolOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use transcript::{ErrorCode, ErrorInfo};

use crate::arguments::{Arguments, Schema, parse};
use crate::built_in::{BUILT_IN, FOR_PROGRAMS, Tool, Work};
use crate::mcp::McpServers;
use crate::prepared::{ParsedCall, PreparedCall, PreparedTool};
use crate::workspace::FilePath;
use crate::{Stopped, ToolContext, ToolEvent, Web, failed, interrupted};

/// Time that a stopped tool call gets to clean up.
const CLEAN_UP: Duration = Duration::from_secs(5);
/// Unit of the pause between attempts at a tool call, multiplied by the number of the next attempt.
const BACKOFF: Duration = Duration::from_millis(500);

/// A tool as it is described to a model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolSpec {
    /// Name by which a model calls the tool.
    pub name: Cow<'static, str>,
    /// Purpose of the tool and when to use it.
    pub description: Cow<'static, str>,
    /// JSON schema of the tool's arguments.
    pub parameters: Value,
}

/// Settings of the tool registry, which apply to all tools.
#[derive(Debug)]
pub struct ToolSettings {
    /// Timeout of each attempt at a call of a built-in tool.
    pub time_limit: Duration,
    /// Rate limit: maximum number of tool calls of one session per minute; zero for no limit.
    pub per_minute: usize,
    /// Maximum number of retries of a tool call after transient failures.
    pub retries: u32,
    /// Name resolution and allowed addresses of the tool `http_get`.
    pub web: Web,
    /// Environment of the commands that the tool `shell` runs, as names and values.
    pub environment: Vec<(OsString, OsString)>,
}

#[cfg(test)]
impl ToolSettings {
    /// Returns tool settings for tests, which reach the public internet only and find programs in
    /// the usual folders.
    pub fn for_tests() -> Self {
        Self {
            time_limit: Duration::from_secs(60),
            per_minute: 0,
            retries: 2,
            web: Web::public(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        }
    }
}

/// Registry of all tools: the built-in tools and the tools of MCP servers.
pub struct Tools {
    built_in: Vec<BuiltIn>,
    mcp: McpServers,
    settings: Arc<ToolSettings>,
}

struct BuiltIn {
    tool: Tool,
    schema: Arc<Schema>,
}

impl Tools {
    /// Returns the registry of the built-in tools and the tools of these MCP servers.
    pub fn new(settings: ToolSettings, mcp: McpServers) -> Self {
        Self::with(&BUILT_IN, settings, mcp)
    }

    /// Returns a registry of the built-in tools, without MCP servers.
    #[cfg(test)]
    pub fn built_in(settings: ToolSettings) -> Self {
        Self::new(settings, McpServers::default())
    }

    pub(crate) fn with(tools: &[Tool], settings: ToolSettings, mcp: McpServers) -> Self {
        let built_in = |it: &Tool| BuiltIn { tool: *it, schema: Schema::new((it.parameters)()) };
        Self { built_in: tools.iter().map(built_in).collect(), mcp, settings: Arc::new(settings) }
    }

    /// Returns the names of the built-in tools.
    pub fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|it| it.name).collect()
    }

    /// Returns the MCP servers whose tools are in the registry.
    pub fn mcp(&self) -> &McpServers {
        &self.mcp
    }

    /// Returns the settings that apply to all tools.
    pub fn settings(&self) -> &ToolSettings {
        &self.settings
    }

    /// Describes every currently known tool for a model.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let of_servers = self.mcp.tools().into_iter().map(|it| ToolSpec {
            name: it.name.clone().into(),
            description: it.description.clone().into(),
            parameters: it.schema.parameters().clone(),
        });
        self.built_in.iter().map(BuiltIn::spec).chain(of_servers).collect()
    }

    /// Describes the built-in tools that program agents are offered.
    pub fn for_programs(&self) -> impl Iterator<Item = ToolSpec> {
        self.built_in.iter().filter(|it| FOR_PROGRAMS.contains(&it.tool.name)).map(BuiltIn::spec)
    }

    /// Returns whether a built-in tool or MCP tool of this name is currently known.
    pub fn has(&self, name: &str) -> bool {
        self.built_in.iter().any(|it| it.tool.name == name) || self.mcp.find(name).is_some()
    }

    /// Parses and checks a tool call, and resolves the path that it names.
    pub fn prepare(&self, name: &str, arguments: &str, workspace: &Path) -> PreparedCall {
        let arguments = parse(arguments);
        let tool = self.find(name, &arguments);
        let checked = tool.as_ref().map_or(&arguments, |it| it.arguments().value());
        let parsed = ParsedCall::with(name, Arc::clone(checked), workspace);
        PreparedCall { parsed, tool }
    }

    /// Returns the error of a tool call that could not run even if it were approved; `None` if it
    /// is possible. A tool that an MCP server may still offer counts as possible: its call must be
    /// judged by the policy.
    pub fn why_impossible(&self, call: &PreparedCall) -> Option<ErrorInfo> {
        self.up_to_date(call).err().filter(|_| !self.mcp.may_offer(&call.parsed.tool))
    }

    /// Runs a tool call and returns its outcome, after retries if the tool allows them.
    pub async fn run(&self, call: &PreparedCall, context: ToolContext) -> ToolOutcome {
        tokio::select! {
            biased;
            () = context.stopped.wait() => return failed(interrupted()),
            () = self.mcp.discover(&call.parsed.tool) => (),
        }
        let prepared = match self.up_to_date(call) {
            Ok(prepared) => prepared,
            Err(error) => return failed(error),
        };
        let max_attempts = if prepared.may_repeat() { self.settings.retries + 1 } else { 1 };
        let mut attempt = 1;
        loop {
            let outcome = self.attempt(&prepared, &call.parsed.path, &context).await;
            let error = outcome.error.clone().filter(is_transient);
            let Some(error) = error.filter(|_| attempt < max_attempts) else { return outcome };
            attempt += 1;
            context.report(ToolEvent::Retry { attempt, max_attempts, error }).await;
            tokio::select! {
                () = sleep(BACKOFF * attempt) => (),
                () = context.stopped.wait() => return failed(interrupted()),
            }
        }
    }

    /// Runs one attempt at a tool call. When a stop or the timeout ends it early, the tool is
    /// signalled and gets time to clean up.
    async fn attempt(
        &self,
        prepared: &PreparedTool,
        path: &Result<FilePath, ErrorInfo>,
        context: &ToolContext,
    ) -> ToolOutcome {
        let (stop, stopped) = watch::channel(false);
        let inner = ToolContext { stopped: Stopped(stopped), ..context.clone() };
        let limit = prepared.time_limit(&self.settings);
        let mut work = pin!(prepared.start(path, inner, Arc::clone(&self.settings)));
        let why = tokio::select! {
            // A call that is stopped already does not start.
            biased;
            () = context.stopped.wait() => interrupted(),
            outcome = &mut work => return outcome,
            () = sleep(limit) => timed_out(limit),
        };
        let _ = stop.send(true);
        let _ = timeout(CLEAN_UP, work).await;
        failed(why)
    }

    /// Returns the current tool and the checked arguments of a tool call. The tools of an MCP
    /// server may have changed since the call was prepared.
    fn up_to_date(&self, call: &PreparedCall) -> Result<PreparedTool, ErrorInfo> {
        let ParsedCall { tool: name, arguments, .. } = &call.parsed;
        let is_current = match &call.tool {
            Ok(PreparedTool::BuiltIn(..)) => true,
            Ok(PreparedTool::Mcp(known, _)) => {
                self.mcp.find(name).is_some_and(|it| Arc::ptr_eq(known, &it))
            }
            Err(_) => false,
        };
        if is_current { call.tool.clone() } else { self.find(name, arguments) }
    }

    fn find(&self, name: &str, arguments: &Arc<Value>) -> Result<PreparedTool, ErrorInfo> {
        let check = |schema| Arguments::check(name, schema, Arc::clone(arguments));
        if let Some(BuiltIn { tool, schema }) = self.built_in.iter().find(|it| it.tool.name == name)
        {
            return Ok(PreparedTool::BuiltIn(*tool, check(schema)?));
        }
        let tool = self.mcp.find(name).ok_or_else(|| self.not_found(name))?;
        let arguments = check(&tool.schema)?;
        Ok(PreparedTool::Mcp(tool, arguments))
    }

    fn not_found(&self, name: &str) -> ErrorInfo {
        self.mcp.why_missing(name).unwrap_or_else(|| {
            let names: Vec<_> = self.specs().into_iter().map(|it| it.name).collect();
            let message = format!("There is no tool '{name}'. There are: {}.", names.join(", "));
            ErrorInfo::new(ErrorCode::ToolNotFound, message)
        })
    }
}

impl BuiltIn {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.tool.name.into(),
            description: self.tool.description.into(),
            parameters: self.schema.parameters().clone(),
        }
    }
}

impl PreparedTool {
    fn arguments(&self) -> &Arguments {
        match self {
            Self::BuiltIn(_, arguments) | Self::Mcp(_, arguments) => arguments,
        }
    }

    /// Returns whether the tool call may be repeated after a transient failure. A failed call of an
    /// MCP tool may have had effects, so it is never repeated.
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

    async fn start(
        &self,
        path: &Result<FilePath, ErrorInfo>,
        context: ToolContext,
        settings: Arc<ToolSettings>,
    ) -> ToolOutcome {
        match self {
            Self::BuiltIn(tool, arguments) => {
                tool.start(arguments.clone(), path.clone(), context, settings).await
            }
            Self::Mcp(tool, arguments) => tool.call(arguments.fields(), &context).await,
        }
    }
}

fn timed_out(limit: Duration) -> ErrorInfo {
    let message = format!(
        "The tool did not finish within {} seconds and was stopped. Ask for less at a time.",
        limit.as_secs()
    );
    ErrorInfo::new(ErrorCode::ToolTimeout, message)
}

/// Returns whether another attempt at a tool call that failed with this error may succeed. An error
/// that the tool itself reported would recur.
fn is_transient(error: &ErrorInfo) -> bool {
    matches!(error.code, ErrorCode::ToolFailed | ErrorCode::ToolTimeout)
}
