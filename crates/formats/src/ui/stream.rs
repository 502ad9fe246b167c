//! A run as the chunks of a UI message stream (`x-vercel-ai-ui-message-stream: v1`).
//!
//! A run that waits for the client ends its *response*, though not itself: the client decides and sends a
//! new request, and the answer to that is the next response, under the same message id. So a stream
//! consists of responses, each from `start` to `finish`, `error` or `abort`; [`Stream::is_over`] returns
//! whether one has ended. A server sends the chunks of [`Stream::apply`], each as one event, and closes the
//! connection when the response is over. The next one begins with [`Stream::replay_unknown`].

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use transcript::{
    Call, CallId, CallState, CancelReason, Decision, ResponseId, RunMessage, RunStatus,
};

use super::{
    Profile, approval_id, aside, discarded_mark, finish_reason, first_metadata, last_metadata,
    reason,
};
use crate::call;
use crate::follow::{Follow, RunChange};
use crate::known::Known;
use crate::run_stream::{Format, RunStream, write_events};

/// A run as a stream of UI message chunks.
pub type Stream = RunStream<ChunkFormat>;

/// State of the UI message stream of a run.
#[derive(Debug)]
pub struct ChunkFormat {
    run: ResponseId,
    profile: Profile,
    /// The `start` chunk, which is the first of each response.
    start: Value,
    response: Response,
    step_is_open: bool,
    /// Whether the client's message has parts.
    has_parts: bool,
    /// Whether the last step of the client's message has tool calls.
    step_has_calls: bool,
    /// Ids of the tool calls for which the client got an approval request.
    asked: HashSet<CallId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Response {
    NotStarted,
    Open,
    Over,
}

impl Stream {
    /// Creates the stream of a run, for the first response to a client of this version.
    pub fn new(run: ResponseId, profile: Profile) -> Self {
        let format = ChunkFormat {
            run: run.clone(),
            profile,
            start: Value::Null,
            response: Response::NotStarted,
            step_is_open: false,
            has_parts: false,
            step_has_calls: false,
            asked: HashSet::new(),
        };
        Self::of(run, format)
    }
}

impl Format for ChunkFormat {
    type Item = Value;

    const MARKER: Option<(&'static str, &'static str)> =
        Some(("x-vercel-ai-ui-message-stream", "v1"));

    fn failure(why: &str) -> String {
        write_events(&[json!({ "type": "error", "errorText": why })], true)
    }

    fn write(chunks: &[Value], is_last: bool) -> String {
        write_events(chunks, is_last)
    }

    fn add(&mut self, change: &RunChange<'_>, chunks: &mut Vec<Value>) {
        if self.response == Response::Over {
            return;
        }
        if let RunChange::Begun(answer) = change {
            let metadata = first_metadata(answer);
            self.start =
                json!({ "type": "start", "messageId": answer.id, "messageMetadata": metadata });
        }
        let new_chunks = self.chunks(change);
        let is_end = matches!(change, RunChange::Ended(_));
        if !new_chunks.is_empty() || matches!(change, RunChange::Begun(_)) {
            self.open(chunks);
        }
        self.has_parts |= !new_chunks.is_empty();
        chunks.extend(new_chunks);
        if is_end {
            self.response = Response::Over;
        }
    }

    /// Ends the response, if the client can act on the tool calls. Approval requests are sent here
    /// and not earlier, because a request that was decided elsewhere in the meantime could not be
    /// taken back.
    fn pause(&mut self, calls: &[&Call], _: &Follow, chunks: &mut Vec<Value>) {
        let can_ask =
            self.profile.knows_approvals() || !calls.iter().any(|it| it.waits_for_approval());
        if !can_ask || self.response == Response::Over {
            return;
        }
        self.open(chunks);
        for call in calls.iter().filter(|call| call.waits_for_approval()) {
            if self.asked.insert(call.id.clone()) {
                chunks.push(approval_request(call));
            }
        }
        chunks.extend(self.finish_step());
        let mut finish = json!({ "type": "finish" });
        if self.profile != Profile::V5 {
            finish["finishReason"] = json!("tool-calls");
        }
        chunks.push(finish);
        self.response = Response::Over;
    }

    fn is_over(&self) -> bool {
        self.response == Response::Over
    }

    fn begin_next_response(&mut self, follow: &Follow, known: &Known) {
        self.asked = known.asked();
        self.has_parts |= known.n_steps > 0;
        self.step_has_calls &= known.n_steps <= follow.n_steps();
        self.response = Response::NotStarted;
        self.step_is_open = false;
    }
}

impl ChunkFormat {
    fn open(&mut self, chunks: &mut Vec<Value>) {
        if self.response == Response::NotStarted {
            self.response = Response::Open;
            chunks.push(self.start.clone());
        }
    }

    fn chunks(&mut self, change: &RunChange<'_>) -> Vec<Value> {
        match change {
            RunChange::Begun(_) | RunChange::ApprovalRequested(_) => Vec::new(),
            RunChange::StepBegun { .. } => {
                (self.step_is_open, self.step_has_calls) = (true, false);
                vec![json!({ "type": "start-step" })]
            }
            RunChange::StepEnded { .. } => self.finish_step().into_iter().collect(),
            RunChange::TextBegun(text) => vec![json!({ "type": "text-start", "id": text.id })],
            RunChange::TextGrown(text, delta) => {
                vec![json!({ "type": "text-delta", "id": text.id, "delta": delta })]
            }
            RunChange::TextEnded(text) => {
                let discarded = text.role == transcript::TextRole::Discarded;
                vec![words_end("text-end", text.id.as_str(), discarded)]
            }
            RunChange::ThinkingBegun(it) => vec![json!({ "type": "reasoning-start", "id": it.id })],
            RunChange::ThinkingGrown(it, delta) => {
                vec![json!({ "type": "reasoning-delta", "id": it.id, "delta": delta })]
            }
            RunChange::ThinkingEnded(it) => {
                vec![words_end("reasoning-end", it.id.as_str(), it.discarded)]
            }
            RunChange::CallBegun(call) => {
                self.step_has_calls = true;
                let (id, name) = (&call.id, call.label());
                vec![json!({ "type": "tool-input-start", "toolCallId": id, "toolName": name })]
            }
            RunChange::ArgumentsGrown(call, delta) => vec![json!({
                "type": "tool-input-delta",
                "toolCallId": call.id,
                "inputTextDelta": delta,
            })],
            RunChange::ArgumentsDone(call) => vec![input_available(call)],
            RunChange::ApprovalResolved(call) => self.approval_settled(call),
            RunChange::CallEnded(call) => vec![self.call_ended(call)],
            RunChange::Aside(idx, kind) => vec![aside(&self.run, *idx, kind)],
            RunChange::Ended(answer) => self.ended(answer),
        }
    }

    fn finish_step(&mut self) -> Option<Value> {
        let was_open = std::mem::take(&mut self.step_is_open);
        was_open.then(|| json!({ "type": "finish-step" }))
    }

    /// Returns the chunks for a decision, by this client or another: the decision for AI SDK 7, and
    /// edited arguments for all versions.
    fn approval_settled(&mut self, call: &Call) -> Vec<Value> {
        let mut chunks = Vec::new();
        if self.profile == Profile::V7 {
            if self.asked.insert(call.id.clone()) {
                chunks.push(approval_request(call));
            }
            let approved = call::accepted(call).is_some();
            let mut response = json!({
                "type": "tool-approval-response",
                "approvalId": approval_id(call),
                "approved": approved,
            });
            if let Some(reason) = reason(call) {
                response["reason"] = json!(reason);
            }
            chunks.push(response);
        }
        if call::resolution(call)
            .is_some_and(|it| it.decision == Decision::Accepted && it.arguments.is_some())
        {
            chunks.push(input_available(call));
        }
        chunks
    }

    fn call_ended(&self, call: &Call) -> Value {
        let id = &call.id;
        match call::error_text(call) {
            None => {
                let output = call::output(call);
                json!({ "type": "tool-output-available", "toolCallId": id, "output": output })
            }
            Some(_) if self.knows_of_refusal(call) => {
                json!({ "type": "tool-output-denied", "toolCallId": id })
            }
            Some(error) => {
                json!({ "type": "tool-output-error", "toolCallId": id, "errorText": error })
            }
        }
    }

    /// Returns whether the client knows that a tool call was refused. If nobody decided, only AI
    /// SDK 7 does.
    fn knows_of_refusal(&self, call: &Call) -> bool {
        let decision = call::resolution(call).map(|it| it.decision);
        self.asked.contains(&call.id)
            && decision.is_some_and(|it| it != Decision::Accepted)
            && (call.state == CallState::Denied || self.profile == Profile::V7)
    }

    fn ended(&mut self, answer: &RunMessage) -> Vec<Value> {
        let mut chunks: Vec<Value> = self.finish_step().into_iter().collect();
        // The same as in `parts`.
        if !self.has_parts || self.step_has_calls {
            chunks.extend(["start-step", "finish-step"].map(|kind| json!({ "type": kind })));
        }
        let metadata = last_metadata(answer);
        let status = answer.finish.as_ref().map(|it| it.status);
        match status {
            Some(RunStatus::Completed) | None => {
                let mut finish = Map::from_iter([("type".to_owned(), json!("finish"))]);
                let reason = finish_reason(answer).filter(|_| self.profile != Profile::V5);
                finish.extend(reason.map(|it| ("finishReason".to_owned(), json!(it))));
                finish.insert("messageMetadata".to_owned(), Value::Object(metadata));
                chunks.push(Value::Object(finish));
            }
            Some(RunStatus::Failed) => {
                let error = answer.finish.as_ref().and_then(|it| it.error.as_ref());
                let text = error.map_or("The run failed.", |it| it.message.as_str());
                chunks.push(json!({ "type": "message-metadata", "messageMetadata": metadata }));
                chunks.push(json!({ "type": "error", "errorText": text }));
            }
            Some(RunStatus::Cancelled) => {
                chunks.push(json!({ "type": "message-metadata", "messageMetadata": metadata }));
                let mut abort = json!({ "type": "abort" });
                if self.profile == Profile::V7 {
                    abort["reason"] = json!(abort_reason(answer.cancelled));
                }
                chunks.push(abort);
            }
        }
        chunks
    }
}

fn abort_reason(reason: Option<CancelReason>) -> &'static str {
    match reason {
        Some(CancelReason::UserCancel) | None => "user_cancel",
        Some(CancelReason::Timeout) => "timeout",
        Some(CancelReason::Error) => "error",
        Some(CancelReason::Restart) => "restart",
        Some(CancelReason::Import) => "import",
    }
}

fn words_end(kind: &str, id: &str, discarded: bool) -> Value {
    let mut end = json!({ "type": kind, "id": id });
    if discarded {
        end["providerMetadata"] = discarded_mark();
    }
    end
}

fn input_available(call: &Call) -> Value {
    json!({
        "type": "tool-input-available",
        "toolCallId": call.id,
        "toolName": call.label(),
        "input": call::input(call),
    })
}

fn approval_request(call: &Call) -> Value {
    let approval = approval_id(call);
    json!({ "type": "tool-approval-request", "approvalId": approval, "toolCallId": call.id })
}
