//! The session's agent where it is a program: it is started when it is needed, heard line by line,
//! and ended when it is of no more use.

use backends::{Exit, Input, Launch};
use store::{RawLine, Unrecognized};
use transcript::{Ending, ErrorCode, ErrorInfo, Event, Level, Trigger};

use super::{AfterCommit, Task};
use crate::agents::Hired;
use crate::clock;
use crate::passes::Pass;
use crate::session::from_log;
use crate::session::lines::Line;
use crate::session::process::{Process, Start};
use crate::session::raw::RawLines;
use crate::session::unread::{Keep, MAX_RAW};
use crate::session::worker::Worker;

impl Task {
    /// Afterwards the session's agent is there: the one that is still there, or a new one.
    pub(super) async fn hire(&mut self) -> Result<(), ErrorInfo> {
        let agent = self.summary.agent.clone();
        if self.worker.as_ref().is_some_and(|it| it.agent == agent && it.is_of_use()) {
            return Ok(());
        }
        self.dismiss();
        self.see_off().await;
        let pass =
            self.shared.agents.is_program(&agent).then(|| self.shared.passes.issue(&self.id));
        let launch = self.launch(pass.as_ref());
        let is_resumed = launch.resume.is_some();
        let worker = match self.shared.agents.hire(&agent, &launch).await? {
            Hired::ForOneRun(backend) => Worker::for_one_run(agent, backend),
            Hired::Program { backend, command, environment, patience } => {
                let start = Start { command, workspace: self.workspace(), environment };
                let process = Process::start(&self.shared.store, start).await?;
                self.shared.pulses.add(&self.id, &process.pulse);
                Worker::with_process(agent, backend, process, patience, pass, is_resumed)
            }
        };
        let spare = self.worker.insert(worker).new_spare();
        if let Some(spare) = spare {
            self.tell_agent(Input::Spare(spare));
        }
        Ok(())
    }

    fn launch(&mut self, pass: Option<&Pass>) -> Launch {
        let workspace = self.workspace();
        let resume = match from_log::resume_id(&self.summary, &workspace) {
            Some(Err(why)) => {
                let text = format!(
                    "{why}, so the program starts a new one and is told what was said above."
                );
                let run = self.run.as_ref().map(|it| it.id.clone());
                self.push(run.as_ref(), Event::Notice { level: Level::Error, text });
                None
            }
            Some(Ok(id)) => Some(id),
            None => None,
        };
        Launch {
            workspace: workspace.display().to_string(),
            resume,
            tools: pass.map(Pass::server),
            shipped: self.shared.agents.shipped.display().to_string(),
            private: self.shared.approvals.private.real_folder(),
        }
    }

    /// Lets the agent go. What the log says next is written when nothing of its program is left.
    pub(super) fn dismiss(&mut self) {
        let worker = self.worker.take();
        self.leaving.extend(worker.and_then(Worker::end));
    }

    /// Waits for all that was told to end. What a program has written meanwhile is for who wants to see it,
    /// and for nobody else.
    pub(super) async fn see_off(&mut self) {
        for program in std::mem::take(&mut self.leaving) {
            for line in program.await.unwrap_or_default() {
                let (at, text) = (clock::now(), line.into_raw());
                self.raw.add(RawLine { at, from: self.head.next(), to: self.head, text });
            }
        }
    }

    pub(super) fn begin_run(&mut self) {
        if self.run.is_some() {
            tracing::warn!(session = %self.id, "an agent began a run within a run");
            return;
        }
        let spare = self.worker.as_mut().and_then(Worker::take_spare);
        if let Some(id) = spare {
            self.open_run(id, Trigger::SelfStarted);
        }
    }

    pub(super) fn hear_line(&mut self, line: Line) {
        self.touched = None;
        if let Some(worker) = &mut self.worker {
            worker.mark_spoken();
        }
        let text = match line {
            Line::Whole(text) => {
                self.tell_agent(Input::Line(text.clone()));
                text
            }
            overlong @ Line::Overlong { .. } => {
                let raw = overlong.into_raw();
                let source = self.summary.agent.clone();
                self.emit(Event::Unrecognized { source, raw: raw.clone(), lines: 1 });
                raw
            }
        };
        let made = self.touched.take();
        if made.is_none() && !self.try_reserve_raw(text.len()) {
            return;
        }
        let from = made.unwrap_or(self.head.next());
        self.raw.add(RawLine { at: clock::now(), from, to: self.head, text });
    }

    /// Decides about a line of which no record was made, and says once that such lines are dropped.
    fn try_reserve_raw(&mut self, bytes: usize) -> bool {
        match self.unread.keep(bytes) {
            Keep::Yes => true,
            Keep::No => false,
            Keep::NoMore => {
                let text = format!(
                    "The program has written more than {} MB that is not part of its answer. \
                     Further lines of this kind are counted, but not kept.",
                    MAX_RAW / (1024 * 1024)
                );
                self.emit(Event::Notice { level: Level::Info, text });
                self.touched = None;
                false
            }
        }
    }

    /// Writes how many unreadable lines came since the log last said so, and counts from zero.
    pub(super) fn end_unread(&mut self) {
        let rest = std::mem::take(&mut self.unread).take_rest();
        let run = self.run.as_ref().map(|it| it.id.clone());
        if let Some(event) = rest {
            self.push(run.as_ref(), event);
        }
    }

    /// Nothing of it is left.
    pub(super) fn hear_exit(&mut self, code: Option<i32>) {
        let is_wanted = self.run.as_ref().is_some_and(|it| it.answer.cancel_requested.is_none());
        if is_wanted && self.worker.as_ref().is_some_and(Worker::is_stale) {
            self.worker = None;
            self.take_back_all();
            self.after_commit.push(AfterCommit::StartAgent);
            return;
        }
        // What it wrote in earlier runs is not why it ended in this one.
        let stderr = self.worker.as_mut().map(|it| it.take_last_words(false)).unwrap_or_default();
        if self.run.is_none() {
            self.end_unread();
        }
        let how = code.map_or("by a signal".to_owned(), |it| format!("with code {it}"));
        let message = format!("The program ended {how}. {stderr}");
        self.tell_agent(Input::Exited(Exit { code, stderr }));
        self.worker = None;
        if self.run.is_some() {
            let error = ErrorInfo::new(ErrorCode::AgentExited, message.trim_end());
            self.end_run(&Ending::failed(error));
        }
    }

    /// Raw lines are a help, not the log: if they cannot be stored, the session goes on.
    pub(super) async fn store_raw(&mut self) {
        if !self.raw.is_due() && self.run.is_some() && !self.stopping {
            return;
        }
        let RawLines { lines, unrecognized, .. } = std::mem::take(&mut self.raw);
        let store = &self.shared.store;
        let mut stored = Ok(());
        if !lines.is_empty() && self.shared.keeps_raw {
            stored = store.add_raw(&self.id, lines).await;
        }
        if !unrecognized.is_empty() {
            let version = self.summary.linked.as_ref().and_then(|it| it.version.clone());
            let found = unrecognized.into_iter().map(|(kind, n)| Unrecognized {
                agent: self.summary.agent.clone(),
                version: version.clone().unwrap_or_default(),
                kind,
                n,
            });
            stored = stored.and(store.count_unrecognized(found.collect()).await);
        }
        if let Err(error) = stored {
            tracing::warn!(session = %self.id, %error, "what a program wrote was not kept");
        }
    }
}
