//! Metrics for operators, in the text format of Prometheus.
//!
//! The metrics are counted from committed records, so they agree with the log. They contain names and
//! numbers, never prompts, arguments or output.

use std::time::Duration;

use store::Unrecognized;
use transcript::{ErrorCode, Event, Record, RunStatus};

use self::series::{Counter, Exposition, Family, Gauge, Histogram};

mod series;

/// Metrics of the server that are counted while it runs.
pub struct Metrics {
    records: Counter,
    runs_started: Family<1>,
    runs_finished: Family<2>,
    runs_open: Gauge,
    tool_calls: Family<2>,
    errors: Family<1>,
    commit_seconds: Histogram,
    fan_out_seconds: Histogram,
    pub watchers: Gauge,
    pub watchers_cut_off: Counter,
    pub sessions_active: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            records: Counter::default(),
            runs_started: Family::new(["agent"]),
            runs_finished: Family::new(["agent", "status"]),
            runs_open: Gauge::default(),
            tool_calls: Family::new(["tool", "outcome"]),
            errors: Family::new(["code"]),
            commit_seconds: Histogram::default(),
            fan_out_seconds: Histogram::default(),
            watchers: Gauge::default(),
            watchers_cut_off: Counter::default(),
            sessions_active: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Counts the records of a commit, the events in them, and the duration of the commit.
    pub fn committed(&self, agent: &str, records: &[Record], took: Duration) {
        self.records.inc_by(records.len() as u64);
        self.commit_seconds.observe(took);
        for record in records {
            self.count(agent, &record.event);
        }
    }

    fn count(&self, agent: &str, event: &Event) {
        match event {
            Event::RunStart { agent, .. } => {
                self.runs_started.inc([agent]);
                self.runs_open.inc();
            }
            Event::RunFinish { status, error, .. } => {
                let status = match status {
                    RunStatus::Completed => "completed",
                    RunStatus::Failed => "failed",
                    RunStatus::Cancelled => "cancelled",
                };
                self.runs_finished.inc([agent, status]);
                self.runs_open.dec();
                self.count_error(error.as_ref());
            }
            Event::ToolResult { tool_name, ok, error, .. } => {
                let outcome = if *ok { "succeeded" } else { "failed" };
                // A model may invent names, and each name would become a label that is kept forever.
                let is_invented =
                    error.as_ref().is_some_and(|it| it.code == ErrorCode::ToolNotFound);
                let name = if is_invented { "unknown" } else { tool_name };
                self.tool_calls.inc([name, outcome]);
                self.count_error(error.as_ref());
            }
            _ => (),
        }
    }

    fn count_error(&self, error: Option<&transcript::ErrorInfo>) {
        if let Some(error) = error {
            self.errors.inc([&error.code.to_string()]);
        }
    }

    /// Counts the time from a commit to its arrival at a subscriber's connection.
    pub fn fanned_out(&self, took: Duration) {
        self.fan_out_seconds.observe(took);
    }

    /// Counts a run as open that an earlier process of the server left open in the log. Its driver
    /// closes it at the start.
    pub fn found_open_run(&self) {
        self.runs_open.inc();
    }

    pub fn encode(&self, store: &store::Stats, unrecognized: &[Unrecognized]) -> String {
        let mut text = Exposition::default();
        text.counter("records", "Records committed to the log", &self.records);
        text.family("runs_started", "Started runs, by agent", &self.runs_started);
        let help = "Finished runs, by agent and status";
        text.family("runs_finished", help, &self.runs_finished);
        text.gauge("runs_open", "Active runs", &self.runs_open);
        let help = "Finished tool calls, by tool and outcome";
        text.family("tool_calls", help, &self.tool_calls);
        text.family("errors", "Errors of runs and calls, by code", &self.errors);
        let help = "Duration of commits to the log";
        text.histogram("commit_seconds", help, &self.commit_seconds);
        let help = "Time from a commit to its arrival at a subscriber's connection";
        text.histogram("fan_out_seconds", help, &self.fan_out_seconds);
        text.gauge("watchers", "Open WebSockets", &self.watchers);
        let help = "WebSockets closed because they accepted no data";
        text.counter("watchers_cut_off", help, &self.watchers_cut_off);
        text.gauge("sessions_active", "Sessions in memory", &self.sessions_active);
        text.count("bytes_written", "Bytes of records committed", store.bytes_written);
        let help = "Pages written to the write-ahead log";
        text.count("store_pages_written", help, store.pages_written);
        text.count("store_commits", "Transactions committed", store.commits);
        let counts = unrecognized
            .iter()
            .map(|it| ([it.agent.as_str(), it.version.as_str(), it.kind.as_str()], it.n));
        let help = "Messages of programs that were not recognized, by agent, version and kind";
        text.counts("unrecognized", help, ["agent", "version", "kind"], counts);
        text.finish()
    }
}
