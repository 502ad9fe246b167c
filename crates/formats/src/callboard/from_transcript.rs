//! From the message model to [`ChatMessage`].

use serde_json::{Value, json};
use transcript::{Body, Call, CallState, Decision, Message, MessageRole, Validation};

use crate::call::{input_summary, json_of, text_of};

use super::{
    Answer, AnswerRole, Aside, AsideRole, ChatMessage, Content, Exchange, InputMessage, InputRole,
    Part, PartKind, TextRole, ToolActivity, ToolCall, ToolStatus, ToolValidation,
};

/// Converts a message of the transcript to `format=callboard`.
pub fn message(message: &Message) -> ChatMessage {
    let content = match &message.content {
        transcript::Content::User(it) => Content::Input(input_message(it)),
        transcript::Content::Run(it) => Content::Answer(Box::new(answer(it))),
        transcript::Content::Aside(it) => Content::Aside(aside(it)),
    };
    ChatMessage {
        id: message.id(),
        created_at: message.created_at,
        content,
        superseded: message.superseded,
    }
}

fn input_message(input: &transcript::UserMessage) -> InputMessage {
    let role = match input.role {
        MessageRole::User => InputRole::User,
        MessageRole::System => InputRole::System,
    };
    InputMessage {
        role,
        content: input.text.clone(),
        client_id: input.client_id.clone(),
        attachments: input.attachments.clone(),
        from: input.from.clone(),
        sent: input.sent.clone(),
    }
}

fn answer(answer: &transcript::RunMessage) -> Answer {
    let finish = answer.finish.as_ref();
    Answer {
        role: AnswerRole::Assistant,
        content: answer.content(),
        agent: answer.agent.clone(),
        model: answer.model.clone(),
        trigger: answer.trigger,
        parts: answer.parts.iter().map(part).collect(),
        tool_calls: answer.calls().map(|call| tool_call(answer, call)).collect(),
        tool_activity: ToolActivity {
            is_active: answer.is_open(),
            current_step: answer.current_call().map(Call::label),
        },
        status: finish.map(|it| it.status),
        interrupted: answer.was_interrupted(),
        cancel_reason: answer.cancelled,
        usage: answer.usage(),
        cost: answer.cost(),
        duration_ms: finish.and_then(|it| it.duration_ms),
        error: finish.and_then(|it| it.error.clone()),
    }
}

fn aside(kind: &transcript::PartKind) -> Aside {
    let content = match kind {
        transcript::PartKind::Notice { text, .. } => text.clone(),
        transcript::PartKind::Unrecognized { raw, .. } => raw.clone(),
        transcript::PartKind::Exchange(exchange) => exchange.text.clone(),
        transcript::PartKind::Steered(steered) => steered.text.clone(),
        transcript::PartKind::Text(_)
        | transcript::PartKind::Thinking(_)
        | transcript::PartKind::Call(_) => String::new(),
    };
    Aside { role: AsideRole::System, content, parts: [part_kind(kind)] }
}

fn tool_call(answer: &transcript::RunMessage, call: &Call) -> ToolCall {
    let outcome = call.outcome.as_ref();
    let asked = call.approval.as_ref().and_then(|it| it.options.as_ref());
    let unless_empty = |body: &Body| (!body.is_empty()).then(|| text_of(body));
    ToolCall {
        id: call.id.clone(),
        provider_call_id: call.provider_call_id.clone(),
        name: call.label(),
        args: parsed_arguments(call.input()),
        args_text: text_of(call.input()),
        asked_because: asked.and_then(|it| it.reason.clone()),
        proposed_args_text: call.edited.as_ref().map(|_| text_of(&call.arguments)),
        args_incomplete: call.arguments_incomplete,
        summary: input_summary(call),
        state: call.state,
        status: status(call.state),
        result: outcome.and_then(|it| it.result.as_ref()).map(json_of).filter(|it| !it.is_null()),
        output: unless_empty(&call.stdout),
        stderr: unless_empty(&call.stderr),
        error: outcome.and_then(|it| it.error.clone()),
        commentary: answer.commentary(call),
        validation: validation(call),
        result_summary: outcome.map(|it| it.summary.clone()),
        executor: call.executor,
        duration_ms: outcome.and_then(|it| it.duration_ms),
        truncated: outcome.and_then(|it| it.truncated),
        attempts: (!call.retries.is_empty()).then(|| call.retries.len() + 1),
    }
}

fn status(state: CallState) -> ToolStatus {
    match state {
        CallState::StreamingInput | CallState::AwaitingApproval | CallState::Queued => {
            ToolStatus::Pending
        }
        CallState::Running => ToolStatus::Running,
        CallState::Succeeded => ToolStatus::Completed,
        CallState::Failed | CallState::Denied | CallState::Interrupted => ToolStatus::Error,
    }
}

fn validation(call: &Call) -> ToolValidation {
    let resolved = call.approval.as_ref().and_then(|it| it.resolved.as_ref());
    match (call.validation, resolved.map(|it| it.decision)) {
        (_, Some(Decision::Accepted)) => ToolValidation::Accepted,
        (_, Some(Decision::Rejected | Decision::TimedOut | Decision::Withdrawn)) => {
            ToolValidation::Rejected
        }
        (Some(Validation::Pending), None) => ToolValidation::Pending,
        // Programs ask after they have reported the call.
        (_, None) if call.waits_for_approval() => ToolValidation::Pending,
        (Some(Validation::NotRequired) | None, None) => ToolValidation::NotRequired,
    }
}

fn part(part: &transcript::Part) -> Part {
    Part { kind: part_kind(&part.kind), parent_call_id: part.parent.clone() }
}

fn part_kind(kind: &transcript::PartKind) -> PartKind {
    match kind {
        transcript::PartKind::Text(it) => PartKind::Text {
            id: it.id.clone(),
            text: it.text.clone(),
            role: text_role(&it.role),
            open: it.open,
            leaked: it.leaked,
        },
        transcript::PartKind::Thinking(it) => {
            PartKind::Thinking { id: it.id.clone(), text: it.text.clone(), open: it.open }
        }
        transcript::PartKind::Call(call) => PartKind::ToolCall { id: call.id.clone() },
        transcript::PartKind::Steered(it) => {
            PartKind::Steered { id: it.id.clone(), text: it.text.clone(), state: it.state }
        }
        transcript::PartKind::Exchange(it) => PartKind::Exchange(Box::new(exchange(it))),
        transcript::PartKind::Notice { level, text } => {
            PartKind::Notice { level: *level, text: text.clone() }
        }
        transcript::PartKind::Unrecognized { source, raw, lines } => PartKind::Unrecognized {
            source: source.clone(),
            raw: raw.clone(),
            lines: (*lines > 1).then_some(*lines),
        },
    }
}

fn text_role(role: &transcript::TextRole) -> TextRole {
    match role {
        transcript::TextRole::Undecided => TextRole::Undecided,
        transcript::TextRole::Commentary { .. } => TextRole::Commentary,
        transcript::TextRole::Final => TextRole::Final,
        transcript::TextRole::Discarded => TextRole::Discarded,
    }
}

fn exchange(exchange: &transcript::Exchange) -> Exchange {
    let outcome = exchange.outcome.as_ref();
    Exchange {
        id: exchange.id.clone(),
        direction: exchange.direction,
        mode: exchange.mode,
        agent: exchange.agent.clone(),
        session_id: exchange.peer_session_id.clone(),
        response_id: exchange.peer_response_id.clone(),
        text: exchange.text.clone(),
        state: exchange.state.filter(|_| outcome.is_none()),
        ok: outcome.map(|it| it.ok),
        result: outcome.and_then(|it| it.result.clone()),
        error: outcome.and_then(|it| it.error.clone()),
    }
}

/// Parses the arguments of a tool call as an object, which is empty if there are none; `None` if
/// they are not a JSON object.
fn parsed_arguments(arguments: &Body) -> Option<Value> {
    let text = text_of(arguments);
    if text.trim().is_empty() {
        return Some(json!({}));
    }
    serde_json::from_str(&text).ok().filter(Value::is_object)
}
