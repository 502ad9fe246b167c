//! Calls of Callboard's own tools that the session's program makes, as they come over HTTP.
//!
//! The program tells of the same call in its own words, on its stdout, sooner or later than the request
//! comes. The two are tied together, so that what the tool does belongs to the call that people see.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use backends::ToolOutcome;
use serde_json::Value;
use tokio::time::Instant;
use tools::{failed, interrupted};
use transcript::{Call, CallId, Event, Executor, RunMessage};

use super::command::Reply;
use super::worker::sleep_if;

/// A tool and what it is to do, as the program's request says.
#[derive(Debug)]
pub(crate) struct OwnCall {
    pub(crate) tool_name: String,
    pub(crate) arguments: Value,
    /// Which call of its model it is, where the program says so.
    pub(crate) provider_call_id: Option<String>,
}

/// Those of one session.
#[derive(Default)]
pub(super) struct OwnCalls {
    /// The program has not told of them yet.
    pub(super) untied: Vec<Untied>,
    /// Whoever waits for the result of a call that is under way; nobody, if the request was given up.
    under_way: HashMap<CallId, Option<Reply<ToolOutcome>>>,
    /// Calls of the program that a request has come for.
    tied: HashSet<CallId>,
    /// What came of calls that the program itself will tell the end of.
    outcomes: HashMap<CallId, ToolOutcome>,
}

pub(super) struct Untied {
    pub(super) call: OwnCall,
    pub(super) reply: Reply<ToolOutcome>,
    /// The program is not waited for any longer.
    pub(super) until: Instant,
}

pub(super) enum OwnNews {
    /// The program has had its time to tell of a call.
    Overdue,
    /// Nobody waits for the call's result any more.
    GivenUp(CallId),
}

/// How long a program may take to tell of a call that it has made.
const PATIENCE: Duration = Duration::from_secs(2);

impl OwnCalls {
    pub(super) fn add(&mut self, call: OwnCall, reply: Reply<ToolOutcome>) {
        self.untied.push(Untied { call, reply, until: Instant::now() + PATIENCE });
    }

    /// The call that the program has told of and that the request is about: the one it names, else the
    /// oldest that does the same.
    pub(super) fn meant(
        &self,
        call: &OwnCall,
        answer: &RunMessage,
        arguments_of: impl Fn(&Call) -> String,
    ) -> Option<CallId> {
        let is_same = |it: &&Call| match &call.provider_call_id {
            Some(id) => it.provider_call_id.as_ref() == Some(id),
            None => it.arguments_done && same_arguments(&arguments_of(it), &call.arguments),
        };
        let is_open = |it: &&Call| {
            it.is_open() && it.executor == Executor::Agent && !self.tied.contains(&it.id)
        };
        let mut calls = answer.calls().filter(|it| it.name == call.tool_name);
        calls.find(|it| is_open(it) && is_same(it)).map(|it| it.id.clone())
    }

    pub(super) fn begin(&mut self, call_id: CallId, reply: Reply<ToolOutcome>) {
        self.tied.insert(call_id.clone());
        self.under_way.insert(call_id, Some(reply));
    }

    /// None if the call is none of these.
    pub(super) fn end(&mut self, call_id: &CallId) -> Option<Option<Reply<ToolOutcome>>> {
        self.under_way.remove(call_id)
    }

    /// The program will tell of its end.
    pub(super) fn remember(&mut self, call_id: CallId, outcome: ToolOutcome) {
        self.outcomes.insert(call_id, outcome);
    }

    /// A program repeats a result in a form of its own. The log has it as the tool gave it, whoever
    /// called.
    pub(super) fn settle_result(&mut self, event: &mut Event) {
        let Event::ToolResult { call_id, ok, result, error, .. } = event else { return };
        let ours = self.outcomes.remove(call_id).filter(|it| it.ok == *ok);
        let Some(outcome) = ours else { return };
        *result = (!outcome.result.is_null()).then_some(outcome.result);
        *error = outcome.error;
    }

    pub(super) async fn next(&mut self) -> OwnNews {
        let overdue = sleep_if(self.untied.iter().map(|it| it.until).min());
        tokio::select! {
            () = overdue => OwnNews::Overdue,
            call_id = poll_fn(|context| self.poll_given_up(context)) => OwnNews::GivenUp(call_id),
        }
    }

    fn poll_given_up(&mut self, context: &mut Context<'_>) -> Poll<CallId> {
        self.untied.retain_mut(|it| it.reply.poll_closed(context).is_pending());
        for (call_id, waiting) in &mut self.under_way {
            if waiting.as_mut().is_some_and(|it| it.poll_closed(context).is_ready()) {
                *waiting = None;
                return Poll::Ready(call_id.clone());
            }
        }
        Poll::Pending
    }

    /// Nothing is done for the run any more.
    pub(super) fn stop(&mut self) {
        let Self { untied, under_way, .. } = std::mem::take(self);
        let waiting = under_way.into_values().flatten();
        for reply in untied.into_iter().map(|it| it.reply).chain(waiting) {
            let _ = reply.send(Ok(failed(interrupted())));
        }
    }
}

/// No text at all is an empty object.
fn same_arguments(told: &str, asked: &Value) -> bool {
    let told = if told.trim().is_empty() { "{}" } else { told };
    serde_json::from_str::<Value>(told).is_ok_and(|it| it == *asked)
}
