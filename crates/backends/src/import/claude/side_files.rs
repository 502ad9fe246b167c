//! Side files of a conversation: sub-agents and large results.
//!
//! The lines of a sub-agent belong to the call that it works for, which a metadata file names. In older
//! versions there is no such file, and the sub-agents' lines are in the main file: there the call is found by
//! its task, which is also the sub-agent's first message.

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::Millis;

use crate::import::{SideFile, lines, moment, owned, words};

pub(super) struct SideFiles<'a> {
    files: &'a [SideFile],
    /// Lines of sub-agents' files that are not yet replayed, the next one last.
    lines: Vec<SideLine<'a>>,
    /// Id of the tool call that each sub-agent's file belongs to, by the name of the file.
    calls: HashMap<&'a str, String>,
    /// Id of the tool call that gave each task to a sub-agent, by the text of the task.
    tasks: HashMap<String, String>,
    /// Id of the tool call that each sub-agent's line in the main file belongs to, by the id of the
    /// line.
    inside: HashMap<String, String>,
}

struct SideLine<'a> {
    at: Millis,
    file: &'a str,
    line: Value,
}

impl<'a> SideFiles<'a> {
    pub(super) fn new(files: &'a [SideFile]) -> Self {
        let mut side_lines = Vec::new();
        for file in files.iter().filter(|it| it.name.ends_with(".jsonl")) {
            for line in lines(&file.text).flatten() {
                if let Some(at) = moment(&line["timestamp"]) {
                    side_lines.push(SideLine { at, file: &file.name, line });
                }
            }
        }
        side_lines.sort_by_key(|it| it.at);
        side_lines.reverse();
        let (calls, tasks, inside) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { files, lines: side_lines, calls, tasks, inside }
    }

    pub(super) fn task_given(&mut self, task: String, call: String) {
        self.tasks.insert(task, call);
    }

    /// Returns the next line of a sub-agent's file up to this time, with its own time and the id of
    /// its tool call.
    pub(super) fn next(&mut self, until: Millis) -> Option<(Millis, String, Value)> {
        while let Some(SideLine { at, file, line }) = self.lines.pop_if(|it| it.at <= until) {
            if let Some(call) = self.call_of_file(file, &line) {
                return Some((at, call, line));
            }
        }
        None
    }

    fn call_of_file(&mut self, file: &'a str, line: &Value) -> Option<String> {
        if let Some(call) = self.calls.get(file) {
            return Some(call.clone());
        }
        let meta = format!("{}.meta.json", file.strip_suffix(".jsonl")?);
        let meta = self.files.iter().find(|it| it.name == meta);
        let meta: Option<Value> = meta.and_then(|it| serde_json::from_str(&it.text).ok());
        let call = meta.and_then(|it| owned(&it["toolUseId"]));
        let call = call.or_else(|| self.tasks.get(&words(&line["message"]["content"])).cloned())?;
        self.calls.insert(file, call.clone());
        Some(call)
    }

    /// Returns the id of the tool call that a sub-agent's line in the main file belongs to; empty
    /// if it is unknown. `None` if the line is not a sub-agent's.
    pub(super) fn call_around(&mut self, line: &Value) -> Option<String> {
        if line["isSidechain"] != true {
            return None;
        }
        let before = self.inside.get(line["parentUuid"].as_str().unwrap_or_default());
        let task = || self.tasks.get(&words(&line["message"]["content"]));
        let call = before.or_else(task).cloned().unwrap_or_default();
        self.inside.extend(owned(&line["uuid"]).map(|it| (it, call.clone())));
        Some(call)
    }

    /// Returns the structured result of a tool call, with the whole output if Claude Code keeps it
    /// in a side file. The structured content of an MCP server becomes a field of its own.
    pub(super) fn whole_result(&self, line: &Value) -> Value {
        let mut result = line["toolUseResult"].clone();
        let structured = &line["mcpMeta"]["structuredContent"];
        if !structured.is_null() {
            return json!({ "content": result, "structuredContent": structured });
        }
        let path = result["persistedOutputPath"].as_str().unwrap_or_default();
        let name = path.rsplit(['/', '\\']).next().filter(|it| !it.is_empty());
        let is_it = |it: &&SideFile| name.is_some_and(|name| it.name.ends_with(name));
        if let Some(file) = self.files.iter().find(is_it) {
            result["stdout"] = json!(file.text);
        }
        result
    }
}
