//! What is said within a run: by the model, by sub-agents, by tools, and in the user's name.

use serde_json::Value;
use transcript::Level;

use super::Run;
use crate::claude::calls::Calls;
use crate::claude::outcome::{Circumstances, Outcome};
use crate::claude::speaker::{MessageEnd, Speaker};
use crate::claude::wire::{Block, Content, Said, Stream, is_launch};
use crate::claude::words::shortened;
use crate::claude::{Cx, Process};
use crate::program::Recent;

/// How the summary of a compacted conversation begins.
const SUMMARY: &str = "This session is being continued from a previous conversation";

impl Run {
    pub(super) fn hear_stream(
        &mut self,
        stream: Stream,
        raw: &str,
        process: &mut Process,
        cx: &mut Cx,
    ) {
        let is_stopped = self.interrupted.is_some() || self.is_aborted;
        let end = match stream.abandoned_blocks {
            None => MessageEnd::Whole,
            Some(_) if is_stopped => MessageEnd::Stopped,
            Some(_) => MessageEnd::BrokeOff,
        };
        if stream.parent_tool_use_id.is_none() && !self.is_turn_running {
            self.turn_begins(process, cx);
        }
        let Some(speaker) = speaker(
            &mut self.outer,
            &mut self.inner,
            &self.calls,
            stream.parent_tool_use_id.as_deref(),
        ) else {
            return self.hear_stranger(stream.parent_tool_use_id.as_deref(), raw, process, cx);
        };
        let has_place = speaker.hear(stream.event, end, &mut self.calls, &mut cx.out);
        if !has_place {
            cx.out.unrecognized(raw);
        }
    }

    pub(super) fn hear_assistant(&mut self, said: Said, raw: &str, process: &Process, cx: &mut Cx) {
        let parent = said.parent_tool_use_id.as_deref();
        if parent.is_none() && said.is_api_error() {
            // The result of the turn repeats the words.
            self.api_error = said.error;
            return;
        }
        self.is_aborted |= parent.is_none() && said.aborted == Some(true);
        let Some(speaker) = speaker(&mut self.outer, &mut self.inner, &self.calls, parent) else {
            return self.hear_stranger(parent, raw, process, cx);
        };
        let blocks = match said.message.content {
            Content::Text(text) => vec![Block::Text { text }],
            Content::Blocks(blocks) => blocks,
        };
        let mut is_known = true;
        for block in blocks {
            let id = &said.message.id;
            is_known &= speaker.hear_finished(id, block, &mut self.calls, &mut cx.out);
        }
        if !is_known {
            cx.out.unrecognized(raw);
        }
    }

    pub(super) fn hear_user(&mut self, said: Said, raw: &str, process: &Process, cx: &mut Cx) {
        let parent = said.parent_tool_use_id.as_deref();
        let is_nested = parent.is_some();
        if parent.is_some_and(|it| self.calls.id(it).is_none()) {
            return self.hear_stranger(parent, raw, process, cx);
        }
        let is_synthetic = said.is_synthetic == Some(true);
        let is_replay = said.is_replay == Some(true);
        let blocks = match said.message.content {
            Content::Text(text) if is_replay => return self.hear_echo(&text, cx),
            Content::Text(text) if is_synthetic => return self.hear_synthetic(&text, cx),
            Content::Text(text) => vec![Block::Text { text }],
            Content::Blocks(blocks) => blocks,
        };
        // It describes one result and does not say which.
        let structured = said.tool_use_result.filter(|_| blocks.len() == 1);
        let mut is_known = true;
        for block in blocks {
            match block {
                Block::ToolResult { tool_use_id, .. } if self.calls.id(&tool_use_id).is_none() => {
                    is_known = false;
                }
                Block::ToolResult { tool_use_id, content, is_error } => {
                    let failed = is_error == Some(true);
                    let result = (content, structured.clone());
                    self.end_call(&tool_use_id, result, failed, &said.tool_result_meta, cx);
                }
                // An echo is no news, and a sub-agent's task stands in the call's arguments.
                _ if is_replay => (),
                Block::Text { .. } if is_nested => (),
                Block::Text { text } => self.hear_aside(&text, cx),
                Block::Thinking { .. }
                | Block::RedactedThinking {}
                | Block::ToolUse { .. }
                | Block::Other => is_known = false,
            }
        }
        if !is_known {
            cx.out.unrecognized(raw);
        }
    }

    /// Somebody speaks within a call that this run does not know. A sub-agent that was stopped with its
    /// run may still have something to say, which is nothing to this one.
    fn hear_stranger(&mut self, parent: Option<&str>, raw: &str, process: &Process, cx: &mut Cx) {
        if !parent.is_some_and(|it| process.former_agents.contains(it)) {
            cx.out.unrecognized(raw);
        }
    }

    fn end_call(
        &mut self,
        provider_id: &str,
        (content, structured): (Value, Option<Value>),
        failed: bool,
        meta: &Value,
        cx: &mut Cx,
    ) {
        let is_background = is_launch(structured.as_ref());
        let mut metas = meta.as_array().into_iter().flatten();
        let tool_name = self.calls.name(provider_id).unwrap_or_default();
        let outcome = match failed {
            false => Outcome::succeeded(tool_name, content, structured),
            true => Outcome::from_error(
                &content,
                &Circumstances {
                    tool_name,
                    refusal: self.calls.refusal(provider_id),
                    is_stopped: self.interrupted.is_some(),
                    meta: metas.find(|it| it.get("id").is_some_and(|id| id == provider_id)),
                },
            ),
        };
        // A call that has a result needs no decision.
        self.withdraw(|it| it.provider_call_id == provider_id, cx);
        if is_background {
            return self.calls.launch(provider_id, outcome, &mut cx.out);
        }
        self.sub_agent_ended(provider_id, cx);
        self.calls.end(provider_id, outcome, &mut cx.out);
    }

    pub(super) fn sub_agent_ended(&mut self, provider_id: &str, cx: &mut Cx) {
        if let Some(mut speaker) = self.inner.forget(provider_id) {
            speaker.finish_message(MessageEnd::Whole, &mut self.calls, &mut cx.out);
            self.inner.put(provider_id, speaker);
        }
    }

    /// What the program repeats to us; a command of its own answers in this way.
    fn hear_echo(&mut self, text: &str, cx: &mut Cx) {
        let output = text.trim().strip_prefix("<local-command-stdout>");
        let output = output.and_then(|it| it.strip_suffix("</local-command-stdout>"));
        if let Some(output) = output.map(str::trim).filter(|it| !it.is_empty()) {
            self.outer.say(output.to_owned(), &mut cx.out);
        }
    }

    /// What no user has typed. The summary that a compacted conversation begins with is the model's own.
    fn hear_synthetic(&mut self, text: &str, cx: &mut Cx) {
        let is_summary = std::mem::take(&mut self.awaits_summary) || text.starts_with(SUMMARY);
        if !is_summary {
            self.hear_aside(text, cx);
        }
    }

    /// Words that the program puts into the user's mouth.
    fn hear_aside(&mut self, text: &str, cx: &mut Cx) {
        if !text.starts_with("[Request interrupted by user") && !text.trim().is_empty() {
            let text = format!("Claude Code told the model: {}", shortened(text));
            cx.out.notice(Level::Info, text);
        }
    }
}

/// None for a sub-agent of another run.
fn speaker<'a>(
    outer: &'a mut Speaker,
    inner: &'a mut Recent<Speaker>,
    calls: &Calls,
    parent: Option<&str>,
) -> Option<&'a mut Speaker> {
    let Some(parent) = parent else { return Some(outer) };
    let call = calls.id(parent)?;
    // Another call may have had the same id.
    let known = inner.forget(parent).filter(|it| it.is_within(call));
    Some(inner.put(parent, known.unwrap_or_else(|| Speaker::within(call.clone()))))
}
