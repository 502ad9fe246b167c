//! Turns a question into steps: the calls to make, and the calls that an earlier run made.

use std::collections::VecDeque;

use serde_json::Value;

use super::call::Call;
use super::history::{Done, History};
use super::understand::{Wish, understand};
use crate::ToolOutcome;

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) wishes: Vec<Wish>,
    /// Tasks of the plan, one for each [`Wish::Call`], in the order of the wishes.
    pub(super) tasks: Vec<Task>,
    pub(super) steps: VecDeque<Step>,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) call: Call,
    pub(super) outcome: Option<ToolOutcome>,
}

/// A step of the demo agent's run. `thoughts` are the topics of thinking blocks at its beginning.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) thoughts: Vec<String>,
    pub(super) purpose: Purpose,
}

#[derive(Debug)]
pub(super) enum Purpose {
    /// Runs the tool calls of the tasks with these indexes into [`Plan::tasks`] in parallel.
    RunTools(Vec<usize>),
    Answer,
    /// Fails as a run does when the model service fails.
    BreakDown,
}

pub(super) fn plan(history: History) -> Plan {
    let mut done = history.done;
    let mut plan =
        Plan { wishes: understand(&history.question), tasks: Vec::new(), steps: VecDeque::new() };
    let mut thoughts = Vec::new();
    for wish in &plan.wishes {
        match wish {
            Wish::Think { about } => thoughts.push(about.clone()),
            Wish::Call(call) => {
                let outcome = take(&mut done, call);
                let is_done = outcome.is_some();
                let task = plan.tasks.len();
                plan.tasks.push(Task { call: call.clone(), outcome });
                if is_done {
                    // The earlier run has shown the thoughts that led to the call.
                    thoughts.clear();
                } else if !thoughts.is_empty() || !joins(&mut plan.steps, &plan.tasks, task) {
                    let thoughts = std::mem::take(&mut thoughts);
                    plan.steps.push_back(Step { thoughts, purpose: Purpose::RunTools(vec![task]) });
                }
            }
            // The simulated failure happens only once: a resumed run works.
            Wish::Break if !history.goes_on => {
                plan.steps.push_back(Step { thoughts, purpose: Purpose::BreakDown });
                return plan;
            }
            Wish::Break | Wish::Story { .. } | Wish::Report { .. } | Wish::Help => (),
            Wish::Greeting | Wish::AgentAnswered { .. } => (),
            Wish::NotUnderstood { .. } | Wish::TooMany => (),
        }
    }
    plan.steps.push_back(Step { thoughts, purpose: Purpose::Answer });
    plan
}

impl Plan {
    /// Returns the index of the planned task that makes this tool call, and removes the task from
    /// the steps. `None` if no step has such a task.
    pub(super) fn take_over(&mut self, tool_name: &str, arguments: &str) -> Option<usize> {
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        let is_begun = |step: &Step, task: usize| match &step.purpose {
            Purpose::RunTools(tasks) => tasks.contains(&task),
            Purpose::Answer | Purpose::BreakDown => false,
        };
        let task = (0..self.tasks.len()).find(|&idx| {
            let call = &self.tasks[idx].call;
            call.tool_name() == tool_name
                && call.arguments() == arguments
                && self.steps.iter().any(|step| is_begun(step, idx))
        })?;
        for step in &mut self.steps {
            if let Purpose::RunTools(tasks) = &mut step.purpose {
                tasks.retain(|it| *it != task);
            }
        }
        self.steps
            .retain(|it| !matches!(&it.purpose, Purpose::RunTools(tasks) if tasks.is_empty()));
        Some(task)
    }
}

fn take(done: &mut Vec<Done>, call: &Call) -> Option<ToolOutcome> {
    let is_same = |it: &Done| it.tool_name == call.tool_name() && it.arguments == call.arguments();
    let idx = done.iter().position(is_same)?;
    Some(done.remove(idx).outcome)
}

/// Adds a task to the last step, so that adjacent questions for the time run in parallel. Returns
/// false for any other task or step.
fn joins(steps: &mut VecDeque<Step>, tasks: &[Task], task: usize) -> bool {
    let Some(Step { purpose: Purpose::RunTools(group), .. }) = steps.back_mut() else {
        return false;
    };
    let is_time = |idx: usize| tasks.get(idx).is_some_and(|it| matches!(it.call, Call::Time(_)));
    let fits = is_time(task) && group.last().is_some_and(|&last| last + 1 == task && is_time(last));
    if fits {
        group.push(task);
    }
    fits
}
