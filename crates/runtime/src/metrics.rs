//! Metrics for operators, in the text format of Prometheus.
//!
//! Counted from committed records, so the metrics agree with the log. They contain names and
//! numbers, never a prompt, an argument or an output.

use std::fmt::Write;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use store::Unrecognized;
use transcript::{ErrorCode, Event, Record, RunStatus};

type Labels<const N: usize> = [(&'static str, String); N];

pub struct Metrics {
    registry: Registry,
    records: Counter,
    runs_started: Family<Labels<1>, Counter>,
    runs_finished: Family<Labels<2>, Counter>,
    runs_open: Gauge,
    tool_calls: Family<Labels<2>, Counter>,
    errors: Family<Labels<1>, Counter>,
    commit_seconds: Histogram,
    fan_out_seconds: Histogram,
    pub watchers: Gauge,
    pub watchers_cut_off: Counter,
    pub sessions_active: Gauge,
}

/// Bucket bounds in seconds, from a tenth of a millisecond to ten seconds.
const BOUNDS: [f64; 11] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 10.0];

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("callboard"),
            records: Counter::default(),
            runs_started: Family::default(),
            runs_finished: Family::default(),
            runs_open: Gauge::default(),
            tool_calls: Family::default(),
            errors: Family::default(),
            commit_seconds: Histogram::new(BOUNDS),
            fan_out_seconds: Histogram::new(BOUNDS),
            watchers: Gauge::default(),
            watchers_cut_off: Counter::default(),
            sessions_active: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let it = &mut self.registry;
        it.register("records", "Records committed to the log", self.records.clone());
        it.register("runs_started", "Runs that began, by agent", self.runs_started.clone());
        it.register(
            "runs_finished",
            "Runs that ended, by agent and status",
            self.runs_finished.clone(),
        );
        it.register("runs_open", "Runs that are going on", self.runs_open.clone());
        it.register(
            "tool_calls",
            "Tool calls that ended, by tool and outcome",
            self.tool_calls.clone(),
        );
        it.register("errors", "Errors of runs and calls, by code", self.errors.clone());
        let help = "From the decision to write to the commit";
        it.register("commit_seconds", help, self.commit_seconds.clone());
        let help = "From the commit to the watcher's connection";
        it.register("fan_out_seconds", help, self.fan_out_seconds.clone());
        it.register("watchers", "Open WebSockets", self.watchers.clone());
        it.register(
            "watchers_cut_off",
            "WebSockets that took nothing for too long",
            self.watchers_cut_off.clone(),
        );
        it.register(
            "sessions_active",
            "Sessions whose task is at work",
            self.sessions_active.clone(),
        );
    }

    pub fn committed(&self, agent: &str, records: &[Record], took: Duration) {
        self.records.inc_by(records.len() as u64);
        self.commit_seconds.observe(took.as_secs_f64());
        for record in records {
            self.count(agent, &record.event);
        }
    }

    fn count(&self, agent: &str, event: &Event) {
        match event {
            Event::RunStart { agent, .. } => {
                self.runs_started.get_or_create(&[("agent", agent.clone())]).inc();
                self.runs_open.inc();
            }
            Event::RunFinish { status, error, .. } => {
                let status = match status {
                    RunStatus::Completed => "completed",
                    RunStatus::Failed => "failed",
                    RunStatus::Cancelled => "cancelled",
                };
                let labels = [("agent", agent.to_owned()), ("status", status.to_owned())];
                self.runs_finished.get_or_create(&labels).inc();
                self.runs_open.dec();
                self.count_error(error.as_ref());
            }
            Event::ToolResult { tool_name, ok, error, .. } => {
                let outcome = if *ok { "succeeded" } else { "failed" };
                // A model may invent any name, and each would become a label that is kept forever.
                let is_invented =
                    error.as_ref().is_some_and(|it| it.code == ErrorCode::ToolNotFound);
                let name = if is_invented { "unknown" } else { tool_name };
                let labels = [("tool", name.to_owned()), ("outcome", outcome.to_owned())];
                self.tool_calls.get_or_create(&labels).inc();
                self.count_error(error.as_ref());
            }
            _ => (),
        }
    }

    fn count_error(&self, error: Option<&transcript::ErrorInfo>) {
        if let Some(error) = error {
            self.errors.get_or_create(&[("code", error.code.to_string())]).inc();
        }
    }

    pub fn fanned_out(&self, took: Duration) {
        self.fan_out_seconds.observe(took.as_secs_f64());
    }

    /// Counts a run that the log left open. Its session's task closes it at the start, although it
    /// did not begin in this process.
    pub fn found_open_run(&self) {
        self.runs_open.inc();
    }

    pub fn encode(&self, store: &store::Stats, unrecognized: &[Unrecognized]) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            return String::new();
        }
        // The end mark must stay the last line.
        let end = "# EOF\n";
        text.truncate(text.len().saturating_sub(end.len()));
        let _ = write!(
            text,
            "# HELP callboard_bytes_written Bytes of records committed.\n\
             # TYPE callboard_bytes_written counter\n\
             callboard_bytes_written_total {}\n\
             # HELP callboard_store_pages_written Pages written to the write-ahead log.\n\
             # TYPE callboard_store_pages_written counter\n\
             callboard_store_pages_written_total {}\n\
             # HELP callboard_store_commits Transactions committed.\n\
             # TYPE callboard_store_commits counter\n\
             callboard_store_commits_total {}\n\
             # HELP callboard_unrecognized Things that programs said and nobody could read.\n\
             # TYPE callboard_unrecognized counter\n",
            store.bytes_written, store.pages_written, store.commits,
        );
        for Unrecognized { agent, version, kind, n } in unrecognized {
            let version: String = version.chars().filter(|it| !"\"\\\n".contains(*it)).collect();
            let _ = writeln!(
                text,
                "callboard_unrecognized_total{{agent=\"{agent}\",version=\"{version}\",kind=\"{kind}\"}} {n}"
            );
        }
        text.push_str(end);
        text
    }
}
