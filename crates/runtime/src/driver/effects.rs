//! Carries out the effects of the machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use session::{Answer, Effect, History, Input, OfferedTools, ProgramOrder, Refused, ReplyId};
use store::{Grant, Unrecognized};
use tokio::sync::watch;
use tools::processes::{Mark, Processes};
use tools::{Peers, Stopped, ToolContext, ToolEvent, ToolUpdate};
use transcript::{CallId, ErrorCode, ErrorInfo, RawLine, Record, ResponseId, Seq, Summary};

use super::{Driver, DriverParts, HistoryRequest, Preparing, Stop};
use crate::agents::history;
use crate::clock;
use crate::driver::request::RunningRequest;
use crate::live::hub::ListChange;

impl Driver {
    /// Carries out one effect of the session's state machine. Returns the input that answers the
    /// effect, if it has an answer.
    pub(super) async fn carry_out(&mut self, effect: Effect) -> Result<Option<Input>, Stop> {
        match effect {
            Effect::Judge { query, call } => {
                let judged = self.judge(call).await;
                return Ok(Some(Input::Judged { query, judged }));
            }
            Effect::Find { query, lookup } => {
                let found = self.find(lookup).await.map_err(|error| error.to_string());
                return Ok(Some(Input::Found { query, found }));
            }
            Effect::TakeStderr { query } => {
                let program = self.program.as_mut();
                let text = program.map(|it| it.process.take_stderr(true)).unwrap_or_default();
                return Ok(Some(Input::Stderr { query, text }));
            }
            Effect::Launch { run, workspace, .. } => {
                self.await_stopped_tools().await;
                self.await_ending().await;
                self.prepared.keep_only(&run);
                let (notice, result) = self.launch(workspace).await;
                return Ok(Some(Input::Launched { run, notice, result }));
            }
            Effect::ReadHistory { run, remembers, waits_for_tools } => {
                self.await_stopped_tools().await;
                self.prepared.keep_only(&run);
                let request = HistoryRequest { run, remembers };
                return Ok(self.prepare_history(request, waits_for_tools).await);
            }
            Effect::Append { records, summary } => self.append(records, summary).await?,
            Effect::Delete { to } => return Err(self.delete(to).await),
            Effect::StoreRaw { lines, unrecognized } => self.store_raw(lines, unrecognized).await,
            Effect::StoreGrant { id, covers } => self.store_grant(id, covers).await,
            Effect::RemoveGrant { covers, to, answer } => {
                self.remove_grant(covers, to, answer).await;
            }
            Effect::Reply { to, answer } => {
                self.await_stopped_tools().await;
                if !self.tools.confirm(to, answer.is_ok()) {
                    self.callers.reply(to, answer);
                }
            }
            Effect::RunTool { run, call_id, arguments } => {
                self.run_tool(run, call_id, &arguments);
            }
            Effect::StopRun => {
                self.request = None;
                self.preparing = None;
                self.stopped_tools.extend(self.tools.stop_all());
            }
            Effect::Warn(what) => tracing::warn!(session = %self.id, "{what}"),
            Effect::Inform(what) => tracing::info!(session = %self.id, "{what}"),
            Effect::StopTool(call_id) => self.tools.stop(&call_id),
            Effect::EndProcesses(calls) => self.end_processes(calls),
            Effect::Request(request) => {
                self.request = Some(RunningRequest::start(&self.parts.http, request));
            }
            Effect::MarkOutdated { agent } => self.parts.agents.mark_outdated(&agent),
            Effect::ResumeExchanges(open) => {
                let others = Arc::clone(&self.others);
                tokio::spawn(others.resume_exchanges(self.id.clone(), open));
            }
            Effect::StopAgent => {
                self.ending.extend(self.program.take().map(|it| it.process.end()));
            }
            Effect::Program(order) => self.drive_program(order),
        }
        Ok(None)
    }

    /// Carries out an order about the process of the session's program. Does nothing if no program
    /// runs.
    fn drive_program(&mut self, order: ProgramOrder) {
        let Some(program) = &mut self.program else { return };
        let process = &mut program.process;
        match order {
            ProgramOrder::Write(line) => process.write(line),
            ProgramOrder::CloseInput => process.close_input(),
            ProgramOrder::Quit => process.stop(),
            ProgramOrder::EndCommands => self.ending.push(process.end_commands()),
            ProgramOrder::BeginRun => process.begin_run(),
            ProgramOrder::NoteConversation => process.mark_started(),
        }
    }

    /// Appends records to the session's log, then publishes them to subscribers.
    async fn append(
        &mut self,
        records: Vec<Record>,
        summary: Option<Box<Summary>>,
    ) -> Result<(), Stop> {
        let Some((first, last)) = records.first().zip(records.last()) else { return Ok(()) };
        let (expected, head) = (Seq(first.seq.0 - 1), last.seq);
        let records: Arc<[Record]> = records.into();
        let began = Instant::now();
        let written = self.parts.store.append(&self.id, expected, Arc::clone(&records)).await;
        if let Err(error) = written {
            return Err(self.give_up(&error).await);
        }
        let agent = &self.session.summary().agent;
        self.parts.metrics.committed(agent, &records, began.elapsed());
        self.parts.hub.publish(&self.id, records);
        if let Some(summary) = summary {
            let id = self.id.clone();
            self.parts.hub.publish_list_change(ListChange::Changed { id, summary, head });
        }
        Ok(())
    }

    /// Ends the session's work because the log cannot be written, and waits until all work of the
    /// run has ended. The failure is published once, not at every attempt to open the session
    /// again.
    async fn give_up(&mut self, error: &store::AppendError) -> Stop {
        let why = error.to_string();
        let lost_run = self.session.has_run();
        if lost_run || self.callers.are_waiting() {
            tracing::error!(session = %self.id, error = %why, "cannot write the log");
            self.parts.hub.publish_failure(&self.id, &why);
        }
        for effect in self.session.abandon() {
            // The effects of abandoning a run need no store.
            let _ = Box::pin(self.carry_out(effect)).await;
        }
        self.callers.refuse_all(&Refused::Storage(why.clone()));
        self.await_ending().await;
        self.await_stopped_tools().await;
        Stop::Storage { why, lost_run }
    }

    async fn delete(&mut self, to: ReplyId) -> Stop {
        self.await_stopped_tools().await;
        match self.parts.store.delete_session(&self.id).await {
            Ok(_) => {
                self.parts.hub.publish_deletion(&self.id);
                self.callers.reply(to, Ok(Answer::Done));
                Stop::Deleted
            }
            // The run has been stopped, so it has to be recovered from the log.
            Err(error) => {
                let why = error.to_string();
                self.callers.reply(to, Err(Refused::Storage(why.clone())));
                Stop::Storage { why, lost_run: true }
            }
        }
    }

    /// Stores raw lines of the program and counts of unrecognized messages. They are not part of
    /// the log, so the session continues if that fails.
    async fn store_raw(&mut self, lines: Vec<RawLine>, unrecognized: BTreeMap<String, u64>) {
        let store = &self.parts.store;
        let mut stored = Ok(());
        if !lines.is_empty() && self.parts.keeps_raw {
            stored = store.add_raw(&self.id, lines).await;
        }
        if !unrecognized.is_empty() {
            let summary = self.session.summary();
            let version = summary.linked.as_ref().and_then(|it| it.version.clone());
            let found = unrecognized.into_iter().map(|(kind, n)| Unrecognized {
                agent: summary.agent.clone(),
                version: version.clone().unwrap_or_default(),
                kind,
                n,
            });
            stored = stored.and(store.count_unrecognized(found.collect()).await);
        }
        if let Err(error) = stored {
            tracing::warn!(session = %self.id, %error, "cannot store the raw lines of a program");
        }
    }

    /// Stores a permanent grant. If that fails, the tool call itself is still allowed, and later
    /// calls need an approval again.
    async fn store_grant(&mut self, id: String, covers: String) {
        let grant = Grant { id, covers, at: clock::now() };
        if let Err(error) = self.parts.store.add_grant(grant).await {
            tracing::error!(session = %self.id, %error, "cannot store a grant");
        }
    }

    async fn remove_grant(&mut self, covers: String, to: ReplyId, answer: Answer) {
        let removed = self.parts.store.remove_grant_of(&covers).await;
        if let Err(error) = &removed {
            tracing::error!(session = %self.id, %error, "cannot revoke a grant");
        }
        let answer = removed.map(|_| answer).map_err(|error| Refused::Storage(error.to_string()));
        self.callers.reply(to, answer);
    }

    /// Starts the tool of a call, if the call was judged with exactly these arguments. Otherwise
    /// the outcome of the call is an error.
    fn run_tool(&mut self, run: ResponseId, call_id: CallId, arguments: &str) {
        let (stop, stopped) = watch::channel(false);
        let updates = self.tools.updates();
        let id = call_id.clone();
        let tools = Arc::clone(&self.parts.tools);
        let outcome = match self.prepared.take(&call_id, arguments) {
            Some(call) => {
                let context = ToolContext {
                    session_id: self.id.clone(),
                    response_id: run.clone(),
                    call_id: call_id.clone(),
                    peers: Arc::clone(&self.others) as Arc<dyn Peers>,
                    workspace: call.parsed().root().to_owned(),
                    private: self.parts.policy.private.clone(),
                    now: clock::now(),
                    stopped: Stopped(stopped),
                    updates: updates.clone(),
                };
                async move { tools.run(&call, context).await }.boxed()
            }
            None => {
                let message = "The call was not checked, so it did not run.";
                let error = ErrorInfo::new(ErrorCode::ToolFailed, message);
                std::future::ready(tools::failed(error)).boxed()
            }
        };
        let task = tokio::spawn(async move {
            let event = ToolEvent::Done(outcome.await);
            let _ = updates.send(ToolUpdate { call_id: id, event }).await;
        });
        self.tools.add(run, call_id, stop, task);
    }

    /// Ends processes that these tool calls of an earlier server left running.
    fn end_processes(&mut self, calls: Vec<CallId>) {
        for call_id in calls {
            let processes = Processes::of(None, &Mark::of_call(&call_id));
            self.stopped_tools.push(tokio::spawn(async move { processes.end().await }));
        }
    }

    /// Reads the history for the agent, or first waits for MCP servers whose tools the agent may
    /// use. The run can be stopped during that time. Returns `None` if the history follows later.
    async fn prepare_history(
        &mut self,
        request: HistoryRequest,
        waits_for_tools: bool,
    ) -> Option<Input> {
        let choice = self.parts.agents.tool_choice(&self.session.summary().agent);
        let mcp = self.parts.tools.mcp();
        let ready = choice.and_then(|it| mcp.wait_until_ready(|server| it.takes_any_of(server)));
        match ready {
            Some(ready) if waits_for_tools => {
                self.preparing = Some(Preparing { ready, request });
                None
            }
            Some(ready) => {
                tokio::spawn(ready);
                Some(self.read_history(request).await)
            }
            None => Some(self.read_history(request).await),
        }
    }

    /// Reads the history for the agent after MCP servers have become ready, and gives it to the
    /// session.
    pub(super) async fn read_prepared(&mut self, request: HistoryRequest) -> Result<(), Stop> {
        let history = self.read_history(request).await;
        self.take(history).await
    }

    async fn read_history(&mut self, request: HistoryRequest) -> Input {
        let HistoryRequest { run, remembers } = request;
        let agent = &self.session.summary().agent;
        let history_scope = self.parts.agents.history_scope(agent, remembers);
        let messages = history::read(&self.parts.store, &self.id, history_scope).await;
        let result = messages.map(|messages| History { messages, tools: self.offered_tools() });
        Input::History { run, result: result.map_err(|error| error.to_string()) }
    }

    /// Returns Callboard's tools that the session's agent may call now.
    fn offered_tools(&self) -> OfferedTools {
        let DriverParts { agents, tools, .. } = &*self.parts;
        let agent = &self.session.summary().agent;
        let Some(choice) = agents.tool_choice(agent) else {
            // A program has its own tools, and the demo agent has a fixed list of ours.
            let specs = if agents.is_program(agent) { Vec::new() } else { tools.specs() };
            let names = specs.into_iter().map(|it| it.name.into_owned()).collect();
            return OfferedTools { names, functions: None };
        };
        let functions = choice.of(tools);
        let name = |it: &serde_json::Value| it["function"]["name"].as_str().map(str::to_owned);
        OfferedTools {
            names: functions.iter().filter_map(name).collect(),
            functions: Some(functions),
        }
    }
}
