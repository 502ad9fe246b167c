//! Codex where its app-server is missing or too old: `codex exec --json`, one process for each run.
//!
//! The prompt is all of stdin; the answer is whole items, then `turn.completed` or `turn.failed`, and
//! the process ends. It cannot be asked to stop or to listen, and never asks. The run ends with the
//! process, so that its conversation is saved when the next one takes it up.

use serde_json::{Map, Value};
use transcript::{ErrorInfo, Event, Level, Millis, ResponseId, RunStatus, Usage};

use super::speaker::Speaker;
use super::{PATIENCE_MS, SOURCE, failure, items, remarks, turn, wire};
use crate::emitter::Emitter;
use crate::surrogates::Surrogates;
use crate::{Backend, Effect, Ending, Exit, Input, Launch};

#[derive(Debug)]
pub struct CodexExec {
    workspace: String,
    /// The conversation began with an earlier process.
    is_resumed: bool,
    run: Option<Run>,
    /// The prompt is written: there is no second one.
    is_used: bool,
}

#[derive(Debug)]
struct Run {
    out: Emitter,
    speaker: Speaker,
    /// As it was told last.
    plan: Option<Value>,
    verdict: Option<Verdict>,
    /// What went wrong last, while nothing followed on it.
    last_error: Option<String>,
    deadline: Option<Millis>,
}

/// How the turn ended, as Codex says.
#[derive(Debug)]
enum Verdict {
    Completed(Option<Usage>),
    Failed(ErrorInfo),
}

impl CodexExec {
    pub fn new(launch: &Launch) -> Self {
        Self {
            workspace: launch.workspace.clone(),
            is_resumed: launch.resume.is_some(),
            run: None,
            is_used: false,
        }
    }

    fn start(&mut self, response_id: ResponseId, history: &[Value]) -> Vec<Effect> {
        let mut out = Emitter::for_run(SOURCE, response_id);
        let speaker = Speaker::new(&self.workspace);
        if std::mem::replace(&mut self.is_used, true) {
            self.run = Some(Run::new(out, speaker));
            return self.end(
                RunStatus::Failed,
                Some(failure::of_text("its process is over")),
                None,
            );
        }
        if !self.is_resumed {
            out.notice(
                Level::Info,
                "Codex is driven without its app-server: its words come whole, and it does what its \
                 sandbox allows without asking.",
            );
        }
        let prompt = wire::prompt(history);
        if prompt.iter().any(|it| it["type"] != "text") {
            out.notice(Level::Error, "Codex gets no pictures without its app-server.");
        }
        // What is written gets the end of its last line from the driver.
        out.push(Effect::Write(wire::words(&prompt)));
        out.push(Effect::CloseInput);
        self.run = Some(Run::new(out, speaker));
        Vec::new()
    }

    fn exited(&mut self, exit: &Exit) -> Vec<Effect> {
        let Some(run) = &mut self.run else { return Vec::new() };
        let unsaid = run.last_error.take();
        match run.verdict.take() {
            Some(Verdict::Completed(usage)) => self.end(RunStatus::Completed, None, usage),
            Some(Verdict::Failed(error)) => self.end(RunStatus::Failed, Some(error), None),
            None => {
                let gone = || failure::of_exit(exit, true);
                let error = unsaid.map_or_else(gone, |it| failure::of_text(&it));
                self.end(RunStatus::Failed, Some(error), None)
            }
        }
    }

    /// There is no other way to stop it.
    fn quit(&mut self) -> Vec<Effect> {
        let Some(run) = &mut self.run else { return Vec::new() };
        run.out.push(Effect::Quit);
        self.end(RunStatus::Cancelled, None, None)
    }

    fn wake(&mut self) -> Vec<Effect> {
        let Some(run) = &mut self.run else { return Vec::new() };
        match run.deadline {
            Some(deadline) if run.out.now() < deadline => run.out.push(Effect::WakeAt(deadline)),
            Some(_) => {
                run.out.push(Effect::Quit);
                return self.exited(&Exit { code: None, stderr: String::new() });
            }
            None => (),
        }
        Vec::new()
    }

    fn end(
        &mut self,
        status: RunStatus,
        error: Option<ErrorInfo>,
        usage: Option<Usage>,
    ) -> Vec<Effect> {
        let Some(mut run) = self.run.take() else { return Vec::new() };
        if status == RunStatus::Completed {
            run.speaker.finish_step(None, &mut run.out);
        }
        turn::emit_stop(status, &mut run.out);
        run.out.end_run(Ending { status, error, usage, cost: None });
        run.out.take_effects()
    }

    fn hear(&mut self, line: &str) {
        let Some(run) = self.run.as_mut().filter(|_| !line.trim().is_empty()) else { return };
        while let Some(item) = run.speaker.left_behind() {
            run.speaker.abandon(&item, &mut run.out);
        }
        run.speaker.leave_words_behind(&mut run.out);
        // Words come whole, so that no half waits for another.
        let said: Value =
            serde_json::from_str(&Surrogates::default().mend(line)).unwrap_or_default();
        let item = in_camel_case(&said["item"]);
        // It goes on after all, unless it says once more that it cannot.
        if let Some(error) = run.last_error.take().filter(|_| said["type"] != "turn.failed") {
            run.out.notice(Level::Error, error);
        }
        match said["type"].as_str().unwrap_or_default() {
            "thread.started" => {
                let Some(thread) = said["thread_id"].as_str() else { return };
                run.out.emit(Event::AgentLinked {
                    cli_session_id: thread.to_owned(),
                    cwd: Some(self.workspace.clone()),
                    version: None,
                });
            }
            "turn.started" => (),
            // Told as it is each time, like the app-server's.
            "item.started" | "item.updated" | "item.completed" if item["type"] == "todoList" => {
                run.plan(&item);
            }
            // Nothing else has been seen to be updated; it is told when it is complete.
            "item.updated" => (),
            "item.started" => run.speaker.item_started(&item, &mut run.out),
            "item.completed" => run.speaker.item_completed(&item, line, &mut run.out),
            "turn.completed" => {
                // It is the whole conversation's, so it says nothing of a later run.
                let usage = Some(usage(&said["usage"])).filter(|_| !self.is_resumed);
                run.decide(Verdict::Completed(usage));
            }
            "turn.failed" => {
                let message = said["error"]["message"].as_str().unwrap_or("it did not say why");
                run.decide(Verdict::Failed(failure::of_text(message)));
            }
            "error" => {
                let message = said["message"].as_str().unwrap_or_default();
                // What it gives up at is told by `turn.failed` too, if it lives to say so.
                if message.starts_with("Reconnecting") {
                    run.out.notice(Level::Info, remarks::of_retry(message, None));
                } else {
                    run.last_error = Some(message.to_owned());
                }
            }
            _ => run.out.unrecognized(line),
        }
    }
}

impl Backend for CodexExec {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        if let Some(run) = &mut self.run {
            run.out.set_now(now);
        }
        let mut effects = match input {
            Input::Start { response_id, history } if self.run.is_none() => {
                self.start(response_id, &history)
            }
            Input::Resume { answer, .. } if self.run.is_none() => {
                self.is_used = true;
                self.start(answer.id.clone(), &[])
            }
            Input::Line(line) => {
                self.hear(&line);
                Vec::new()
            }
            Input::Steer { message_id, .. } => vec![Effect::CannotSteer(message_id)],
            Input::Interrupt => self.quit(),
            Input::Wake => self.wake(),
            Input::Exited(exit) => self.exited(&exit),
            Input::Start { .. }
            | Input::Resume { .. }
            | Input::Spare(_)
            | Input::Decided { .. }
            | Input::ToolResult { .. }
            | Input::ToolWaits(_)
            | Input::History(_)
            | Input::Tools(_)
            | Input::Head { .. }
            | Input::Bytes(_)
            | Input::Ended(_) => Vec::new(),
        };
        effects.extend(self.run.iter_mut().flat_map(|it| it.out.take_effects()));
        effects
    }
}

impl Run {
    fn new(out: Emitter, speaker: Speaker) -> Self {
        Self { out, speaker, plan: None, verdict: None, last_error: None, deadline: None }
    }

    fn plan(&mut self, item: &Value) {
        let Some((name, plan)) = items::call(item, &self.speaker.workspace) else { return };
        if self.plan.as_ref() != Some(&plan) {
            self.speaker.whole_call(&name, &plan, &mut self.out);
            self.plan = Some(plan);
        }
    }

    /// The process should end now; if it does not, it is ended.
    fn decide(&mut self, verdict: Verdict) {
        let until = self.out.now().plus(PATIENCE_MS);
        self.verdict = Some(verdict);
        self.deadline = Some(until);
        self.out.push(Effect::WakeAt(until));
    }
}

/// An item as the app-server has it: `command_execution` is `commandExecution`, and so are the fields.
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
