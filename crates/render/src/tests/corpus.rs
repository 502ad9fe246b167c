//! Logs that use everything there is.

use transcript::Record;

macro_rules! logs {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../fixtures/", $name, ".jsonl")))),*]
    };
}

pub(super) fn logs() -> Vec<(&'static str, Vec<Record>)> {
    let of_all_kinds = ("every event", include_str!("../../../transcript/fixtures/v1.jsonl"));
    let files = logs![
        "approval", "decided", "exchange", "failed", "long", "odd", "queue", "stopped", "subagent",
        "thinking", "tools",
    ];
    let files = files.into_iter().chain([of_all_kinds]);
    files.map(|(name, text)| (name, read(text))).collect()
}

fn read(text: &str) -> Vec<Record> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).expect("a record a line")).collect()
}
