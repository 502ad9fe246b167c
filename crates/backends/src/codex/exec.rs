//! Codex where its app-server is missing or too old: `codex exec --json`, one process for each run.
//!
//! The prompt is all of stdin; the answer is whole items, then `turn.completed` or `turn.failed`, and
//! the process ends. It cannot be asked to stop or to listen, and never asks. The run ends with the
//! process, so that its conversation is saved when the next one takes it up.

use serde_json::{Map, Value};
use transcript::{ErrorInfo, Event, Level, Millis, ResponseId, RunStatus, Usage};

use super::speaker::Speaker;
use super::{PATIENCE_MS, SOURCE, failure, items, remarks, turn, wire};
use crate::surrogates::Surrogates;
use crate::telling::Telling;
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
    telling: Telling,
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
        let mut telling = Telling::new(response_id, SOURCE);
        let speaker = Speaker::new(&self.workspace);
        if std::mem::replace(&mut self.is_used, true) {
            self.run = Some(Run::new(telling, speaker));
            return self.end(
                RunStatus::Failed,
                Some(failure::of_text("its process is over")),
                None,
            );
        }
        if !self.is_resumed {
            telling.notice(
                Level::Info,
                "Codex is driven without its app-server: its words come whole, and it does what its \
                 sandbox allows without asking.",
            );
        }
        let prompt = wire::prompt(history);
        if prompt.iter().any(|it| it["type"] != "text") {
            telling.notice(Level::Error, "Codex gets no pictures without its app-server.");
        }
        // What is written gets the end of its last line from the driver.
        telling.push(Effect::Write(wire::words(&prompt)));
        telling.push(Effect::CloseInput);
        self.run = Some(Run::new(telling, speaker));
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
        run.telling.push(Effect::Quit);
        self.end(RunStatus::Cancelled, None, None)
    }

    fn wake(&mut self, now: Millis) -> Vec<Effect> {
        let Some(run) = &mut self.run else { return Vec::new() };
        match run.deadline {
            Some(deadline) if now < deadline => run.telling.push(Effect::WakeAt(deadline)),
            Some(_) => {
                run.telling.push(Effect::Quit);
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
            run.speaker.finish_step(None, &mut run.telling);
        }
        run.telling.emit(turn::last_word(status));
        run.telling.push(Effect::End(Ending { status, error, usage, cost: None }));
        run.telling.take_effects()
    }

    fn hear(&mut self, now: Millis, line: &str) {
        let Some(run) = self.run.as_mut().filter(|_| !line.trim().is_empty()) else { return };
        while let Some(item) = run.speaker.left_behind() {
            run.speaker.abandon(now, &item, &mut run.telling);
        }
        run.speaker.leave_words_behind(&mut run.telling);
        // Words come whole, so that no half waits for another.
        let said: Value =
            serde_json::from_str(&Surrogates::default().mend(line)).unwrap_or_default();
        let item = in_camel_case(&said["item"]);
        // It goes on after all, unless it says once more that it cannot.
        if let Some(error) = run.last_error.take().filter(|_| said["type"] != "turn.failed") {
            run.telling.notice(Level::Error, error);
        }
        match said["type"].as_str().unwrap_or_default() {
            "thread.started" => {
                let Some(thread) = said["thread_id"].as_str() else { return };
                run.telling.emit(Event::AgentLinked {
                    cli_session_id: thread.to_owned(),
                    cwd: Some(self.workspace.clone()),
                    version: None,
                });
            }
            "turn.started" => (),
            // Told as it is each time, like the app-server's.
            "item.started" | "item.updated" | "item.completed" if item["type"] == "todoList" => {
                run.plan(now, &item);
            }
            // Nothing else has been seen to be updated; it is told when it is complete.
            "item.updated" => (),
            "item.started" => run.speaker.item_started(now, &item, &mut run.telling),
            "item.completed" => run.speaker.item_completed(now, &item, line, &mut run.telling),
            "turn.completed" => {
                // It is the whole conversation's, so it says nothing of a later run.
                let usage = Some(usage(&said["usage"])).filter(|_| !self.is_resumed);
                run.decide(now, Verdict::Completed(usage));
            }
            "turn.failed" => {
                let message = said["error"]["message"].as_str().unwrap_or("it did not say why");
                run.decide(now, Verdict::Failed(failure::of_text(message)));
            }
            "error" => {
                let message = said["message"].as_str().unwrap_or_default();
                // What it gives up at is told by `turn.failed` too, if it lives to say so.
                if message.starts_with("Reconnecting") {
                    run.telling.notice(Level::Info, remarks::of_retry(message, None));
                } else {
                    run.last_error = Some(message.to_owned());
                }
            }
            _ => run.telling.unrecognized(line),
        }
    }
}

impl Backend for CodexExec {
    fn on(&mut self, now: Millis, input: Input) -> Vec<Effect> {
        let mut effects = match input {
            Input::Start { response_id, history } if self.run.is_none() => {
                self.start(response_id, &history)
            }
            Input::Resume { answer, .. } if self.run.is_none() => {
                self.is_used = true;
                self.start(answer.id.clone(), &[])
            }
            Input::Line(line) => {
                self.hear(now, &line);
                Vec::new()
            }
            Input::Steer { message_id, .. } => vec![Effect::CannotSteer(message_id)],
            Input::Interrupt => self.quit(),
            Input::Wake => self.wake(now),
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
        effects.extend(self.run.iter_mut().flat_map(|it| it.telling.take_effects()));
        effects
    }
}

impl Run {
    fn new(telling: Telling, speaker: Speaker) -> Self {
        Self { telling, speaker, plan: None, verdict: None, last_error: None, deadline: None }
    }

    fn plan(&mut self, now: Millis, item: &Value) {
        let Some((name, plan)) = items::call(item, &self.speaker.workspace) else { return };
        if self.plan.as_ref() != Some(&plan) {
            self.speaker.whole_call(now, &name, &plan, &mut self.telling);
            self.plan = Some(plan);
        }
    }

    /// The process should end now; if it does not, it is ended.
    fn decide(&mut self, now: Millis, verdict: Verdict) {
        let until = now.plus(PATIENCE_MS);
        self.verdict = Some(verdict);
        self.deadline = Some(until);
        self.telling.push(Effect::WakeAt(until));
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
