//! Codex without a usable app-server: `codex exec --json`, one process for each run.
//!
//! The prompt is all of stdin. The output is complete items, then `turn.completed` or `turn.failed`, and the
//! process ends. It accepts no requests to stop and no further messages, and never asks for approval. The run
//! ends with the process, so that its conversation is saved before the next process resumes it.

use serde_json::{Map, Value};
use transcript::{ErrorInfo, Event, Level, RunStatus, Usage};

use super::author::Author;
use super::{END_TIMEOUT_MS, failure, items, notices, turn, wire};
use crate::program::{Adapter, Context};
use crate::{Exit, Launch, ProgramEffect};

type Cx = Context<()>;

#[derive(Debug)]
pub(super) struct CodexExec {
    workspace: String,
    /// Whether the conversation began with an earlier process of `codex exec`.
    is_resumed: bool,
    /// Whether the prompt was written to this `codex exec` process, which takes only one.
    is_used: bool,
    run: Run,
}

#[derive(Debug)]
struct Run {
    author: Author,
    /// Arguments of the plan that was emitted last, to skip repetitions.
    plan: Option<Value>,
    outcome: Option<Outcome>,
    /// Message of the `error` line that came last, if no other line has followed it.
    last_error: Option<String>,
}

/// The end of the turn, as `codex exec` reports it.
#[derive(Debug)]
enum Outcome {
    Completed(Option<Usage>),
    Failed(ErrorInfo),
}

impl CodexExec {
    pub(super) fn new(launch: &Launch) -> Self {
        Self {
            workspace: launch.workspace.clone(),
            is_resumed: launch.resume.is_some(),
            is_used: false,
            run: Run::new(&launch.workspace),
        }
    }

    fn end(
        &mut self,
        status: RunStatus,
        error: Option<ErrorInfo>,
        usage: Option<Usage>,
        cx: &mut Cx,
    ) {
        if status == RunStatus::Completed {
            self.run.author.finish_step(None, &mut cx.out);
        }
        turn::emit_stop(status, &mut cx.out);
        cx.end_run(status, error, usage, None);
    }

    /// Records the end of the turn, and sets a deadline for the process to end by itself.
    fn decide(&mut self, outcome: Outcome, cx: &mut Cx) {
        self.run.outcome = Some(outcome);
        cx.wake_after(END_TIMEOUT_MS);
    }

    fn plan(&mut self, item: &Value, cx: &mut Cx) {
        let Some((name, plan)) = items::call(item, &self.workspace) else { return };
        if self.run.plan.as_ref() != Some(&plan) {
            self.run.author.whole_call(&name, &plan, &mut cx.out);
            self.run.plan = Some(plan);
        }
    }
}

impl Adapter for CodexExec {
    const SOURCE: &'static str = super::SOURCE;
    type Line = Value;
    type Request = ();

    fn read(json: &str) -> Value {
        serde_json::from_str(json).unwrap_or_default()
    }

    fn start(&mut self, history: &[Value], cx: &mut Cx) {
        if std::mem::replace(&mut self.is_used, true) {
            let error = failure::of_text("its process has ended");
            return self.end(RunStatus::Failed, Some(error), None, cx);
        }
        if !self.is_resumed {
            cx.out.notice(
                Level::Info,
                "Codex runs without its app-server: messages arrive whole, and it does what its \
                 sandbox allows without asking.",
            );
        }
        let prompt = wire::prompt(history);
        if prompt.iter().any(|it| it["type"] != "text") {
            cx.out.notice(Level::Error, "Codex cannot take pictures without its app-server.");
        }
        // The driver adds the end of the last line.
        cx.out.write(wire::words(&prompt));
        cx.out.push(ProgramEffect::CloseInput);
    }

    fn handle_line(&mut self, said: Value, line: &str, cx: &mut Cx) {
        if line.trim().is_empty() || !cx.is_running() {
            return;
        }
        let (run, out) = (&mut self.run, &mut cx.out);
        run.author.abandon_oldest(out);
        let item = in_camel_case(&said["item"]);
        // The turn continues after all, unless its failure follows.
        if let Some(error) = run.last_error.take().filter(|_| said["type"] != "turn.failed") {
            out.notice(Level::Error, error);
        }
        match said["type"].as_str().unwrap_or_default() {
            "thread.started" => {
                let Some(thread) = said["thread_id"].as_str() else { return };
                out.emit(Event::AgentLinked {
                    cli_session_id: thread.to_owned(),
                    cwd: Some(self.workspace.clone()),
                    version: None,
                });
            }
            "turn.started" => (),
            // Emitted whole at each update, like the app-server's plan.
            "item.started" | "item.updated" | "item.completed" if item["type"] == "todoList" => {
                self.plan(&item, cx);
            }
            // Only plans are known to be updated. Any other item is emitted when it is complete.
            "item.updated" => (),
            "item.started" => run.author.item_started(&item, out),
            "item.completed" => run.author.item_completed(&item, line, out),
            "turn.completed" => {
                // The usage is that of the whole conversation, so it is wrong for a later run.
                let usage = Some(usage(&said["usage"])).filter(|_| !self.is_resumed);
                self.decide(Outcome::Completed(usage), cx);
            }
            "turn.failed" => {
                let message = said["error"]["message"].as_str().unwrap_or("it did not say why");
                self.decide(Outcome::Failed(failure::of_text(message)), cx);
            }
            "error" => {
                let message = said["message"].as_str().unwrap_or_default();
                // An error that ends the turn is repeated in `turn.failed`, if the process lives that long.
                if message.starts_with("Reconnecting") {
                    out.notice(Level::Info, notices::of_retry(message, None));
                } else {
                    run.last_error = Some(message.to_owned());
                }
            }
            _ => out.unrecognized(line),
        }
    }

    /// Ends the `codex exec` process, which is the only way to stop its run.
    fn interrupt(&mut self, cx: &mut Cx) {
        cx.out.push(ProgramEffect::Quit);
        self.end(RunStatus::Cancelled, None, None, cx);
    }

    fn time_out(&mut self, cx: &mut Cx) {
        cx.out.push(ProgramEffect::Quit);
        self.exited(&Exit { code: None, stderr: String::new() }, cx);
    }

    fn exited(&mut self, exit: &Exit, cx: &mut Cx) {
        let last_error = self.run.last_error.take();
        match self.run.outcome.take() {
            Some(Outcome::Completed(usage)) => self.end(RunStatus::Completed, None, usage, cx),
            Some(Outcome::Failed(error)) => self.end(RunStatus::Failed, Some(error), None, cx),
            None => {
                let gone = || failure::of_exit(exit, true);
                let error = last_error.map_or_else(gone, |it| failure::of_text(&it));
                self.end(RunStatus::Failed, Some(error), None, cx);
            }
        }
    }

    fn end_run(&mut self) {
        self.run = Run::new(&self.workspace);
    }
}

impl Run {
    fn new(workspace: &str) -> Self {
        Self { author: Author::new(workspace), plan: None, outcome: None, last_error: None }
    }
}

/// Converts an item of `codex exec` to the app-server's spelling: `command_execution` becomes
/// `commandExecution`, also in field names.
fn in_camel_case(item: &Value) -> Value {
    let fields = item.as_object().into_iter().flatten();
    let mut item: Map<String, Value> =
        fields.map(|(name, value)| (camel_case(name), value.clone())).collect();
    if let Some(Value::String(kind)) = item.get_mut("type") {
        *kind = camel_case(kind);
        if kind == "collabToolCall" {
            "collabAgentToolCall".clone_into(kind);
        }
        if kind == "reasoning" {
            let text = item.get("text").cloned().unwrap_or_default();
            item.insert("summary".to_owned(), Value::Array(vec![text]));
        }
    }
    if let Some(Value::String(status)) = item.get_mut("status") {
        *status = camel_case(status);
    }
    Value::Object(item)
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|it| it.to_ascii_uppercase()));
        camel += letters.as_str();
    }
    camel
}

fn usage(tokens: &Value) -> Usage {
    let number = |name: &str| tokens[name].as_u64();
    let (input, output) =
        (number("input_tokens").unwrap_or(0), number("output_tokens").unwrap_or(0));
    Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input.saturating_add(output),
        cached_tokens: number("cached_input_tokens"),
        reasoning_tokens: number("reasoning_output_tokens"),
    }
}
