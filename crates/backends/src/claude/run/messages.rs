//! The messages of a run: from the model, sub-agents and tools, and in the user's name.

use serde_json::Value;
use transcript::Level;

use super::Run;
use crate::claude::author::{Author, MessageEnd};
use crate::claude::calls::Calls;
use crate::claude::outcome::{CallContext, Outcome};
use crate::claude::text::shortened;
use crate::claude::wire::{Block, Content, MessageLine, Stream, is_launch};
use crate::claude::{Cx, Process};
use crate::program::Recent;

/// Beginning of the summary that Claude Code writes when it compacts a conversation.
const SUMMARY: &str = "This session is being continued from a previous conversation";

impl Run {
    pub(super) fn handle_stream(
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
        let Some(author) = author(
            &mut self.outer,
            &mut self.inner,
            &self.calls,
            stream.parent_tool_use_id.as_deref(),
        ) else {
            return self.handle_unknown_call(
                stream.parent_tool_use_id.as_deref(),
                raw,
                process,
                cx,
            );
        };
        let has_place = author.handle_event(stream.event, end, &mut self.calls, &mut cx.out);
        if !has_place {
            cx.out.unrecognized(raw);
        }
    }

    pub(super) fn handle_assistant(
        &mut self,
        said: MessageLine,
        raw: &str,
        process: &Process,
        cx: &mut Cx,
    ) {
        let parent = said.parent_tool_use_id.as_deref();
        if parent.is_none() && said.is_api_error() {
            // The result of the turn repeats the text.
            self.api_error = said.error;
            return;
        }
        self.is_aborted |= parent.is_none() && said.aborted == Some(true);
        let Some(author) = author(&mut self.outer, &mut self.inner, &self.calls, parent) else {
            return self.handle_unknown_call(parent, raw, process, cx);
        };
        let blocks = match said.message.content {
            Content::Text(text) => vec![Block::Text { text }],
            Content::Blocks(blocks) => blocks,
        };
        let mut is_known = true;
        for block in blocks {
            let id = &said.message.id;
            is_known &= author.finish_block(id, block, &mut self.calls, &mut cx.out);
        }
        if !is_known {
            cx.out.unrecognized(raw);
        }
    }

    pub(super) fn handle_user(
        &mut self,
        said: MessageLine,
        raw: &str,
        process: &Process,
        cx: &mut Cx,
    ) {
        let parent = said.parent_tool_use_id.as_deref();
        let is_nested = parent.is_some();
        if parent.is_some_and(|it| self.calls.id(it).is_none()) {
            return self.handle_unknown_call(parent, raw, process, cx);
        }
        let is_synthetic = said.is_synthetic == Some(true);
        let is_replay = said.is_replay == Some(true);
        let blocks = match said.message.content {
            Content::Text(text) if is_replay => return self.handle_echo(&text, cx),
            Content::Text(text) if is_synthetic => return self.handle_synthetic(&text, cx),
            Content::Text(text) => vec![Block::Text { text }],
            Content::Blocks(blocks) => blocks,
        };
        // The field describes one result without naming it.
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
                // An echo is not shown, and a sub-agent's task is in the call's arguments.
                _ if is_replay => (),
                Block::Text { .. } if is_nested => (),
                Block::Text { text } => self.notice_injected(&text, cx),
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

    /// Handles a message within a tool call that this run does not know. A sub-agent that was
    /// stopped with an earlier run may still send lines, which are ignored.
    fn handle_unknown_call(
        &mut self,
        parent: Option<&str>,
        raw: &str,
        process: &Process,
        cx: &mut Cx,
    ) {
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
                &CallContext {
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
        if let Some(mut author) = self.inner.forget(provider_id) {
            author.finish_message(MessageEnd::Whole, &mut self.calls, &mut cx.out);
            self.inner.put(provider_id, author);
        }
    }

    /// Handles Claude Code's echo of a user line, which may be the output of one of its own
    /// commands.
    fn handle_echo(&mut self, text: &str, cx: &mut Cx) {
        let output = text.trim().strip_prefix("<local-command-stdout>");
        let output = output.and_then(|it| it.strip_suffix("</local-command-stdout>"));
        if let Some(output) = output.map(str::trim).filter(|it| !it.is_empty()) {
            self.outer.emit_text(output.to_owned(), &mut cx.out);
        }
    }

    /// Handles a user line that Claude Code wrote in the user's name. The summary of a compacted
    /// conversation is not shown.
    fn handle_synthetic(&mut self, text: &str, cx: &mut Cx) {
        let is_summary = std::mem::take(&mut self.awaits_summary) || text.starts_with(SUMMARY);
        if !is_summary {
            self.notice_injected(text, cx);
        }
    }

    /// Emits a notice with text that Claude Code gave the model in the user's name, except its
    /// report of an interruption.
    fn notice_injected(&mut self, text: &str, cx: &mut Cx) {
        if !text.starts_with("[Request interrupted by user") && !text.trim().is_empty() {
            let text = format!("Claude Code told the model: {}", shortened(text));
            cx.out.notice(Level::Info, text);
        }
    }
}

/// Returns the author of a message: the agent itself, or the sub-agent of the tool call `parent`.
/// `None` if this run does not know the call.
fn author<'a>(
    outer: &'a mut Author,
    inner: &'a mut Recent<Author>,
    calls: &Calls,
    parent: Option<&str>,
) -> Option<&'a mut Author> {
    let Some(parent) = parent else { return Some(outer) };
    let call = calls.id(parent)?;
    // Another call may have had the same id.
    let known = inner.forget(parent).filter(|it| it.is_within(call));
    Some(inner.put(parent, known.unwrap_or_else(|| Author::within(call.clone()))))
}
