//! The built-in tools: what agents without tools of their own can do.
//!
//! Every call gets exactly one outcome, whatever happens in it. Messages of errors are written for
//! a model: they say what to do instead. File tools see the workspace folder and nothing else.

mod list_files;
mod read_file;
mod search_files;
mod time;
mod workspace;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backends::ToolOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use transcript::{ErrorCode, ErrorInfo, Millis};

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ToolSpec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// JSON schema of the arguments.
    pub(crate) parameters: Value,
}

/// What a call may use, apart from its arguments.
#[derive(Debug, Clone)]
pub(crate) struct ToolContext {
    pub(crate) workspace: PathBuf,
    /// Set when nobody waits for the result any more. Long work looks at it.
    pub(crate) stopped: Arc<AtomicBool>,
    pub(crate) now: Millis,
}

/// The tools there are.
pub(crate) struct Tools {
    tools: Vec<Tool>,
}

/// `run` may block and may panic: it has a thread to itself.
#[derive(Clone, Copy)]
struct Tool {
    name: &'static str,
    description: &'static str,
    parameters: fn() -> Value,
    run: fn(&Arguments, &ToolContext) -> Result<Value, ErrorInfo>,
}

impl Tools {
    pub(crate) fn built_in() -> Self {
        Self { tools: vec![time::TOOL, list_files::TOOL, read_file::TOOL, search_files::TOOL] }
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(Tool::spec).collect()
    }

    pub(crate) async fn run(
        &self,
        name: &str,
        arguments: &str,
        context: ToolContext,
    ) -> ToolOutcome {
        let Some(&tool) = self.tools.iter().find(|it| it.name == name) else {
            return outcome(Err(self.not_found(name)));
        };
        let arguments = Arguments { text: arguments.to_owned(), tool };
        let work = tokio::task::spawn_blocking(move || (tool.run)(&arguments, &context));
        outcome(work.await.unwrap_or_else(|error| Err(broke_off(name, &error))))
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
}

impl ToolContext {
    fn check_stopped(&self) -> Result<(), ErrorInfo> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(ErrorInfo::new(ErrorCode::ToolInterrupted, "The call was stopped."));
        }
        Ok(())
    }
}

/// The raw text that an agent sent, and the tool that it is for.
struct Arguments {
    text: String,
    tool: Tool,
}

impl Arguments {
    /// No text at all is an empty object: some models send that for a tool without arguments.
    fn parse<T: DeserializeOwned>(&self) -> Result<T, ErrorInfo> {
        let text = if self.text.trim().is_empty() { "{}" } else { &self.text };
        serde_json::from_str(text).map_err(|error| self.invalid(error.to_string()))
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

fn outcome(result: Result<Value, ErrorInfo>) -> ToolOutcome {
    match result {
        Ok(result) => ToolOutcome { ok: true, result, error: None },
        Err(error) => ToolOutcome { ok: false, result: Value::Null, error: Some(error) },
    }
}
