//! `callboard_note`: adds a note for the readers of the conversation.

use std::sync::Arc;

use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::{ErrorInfo, Event, Level};

use super::{Arguments, Tool, Work};
use crate::{ToolContext, ToolSettings, outcome};

pub(super) const TOOL: Tool = Tool {
    name: "callboard_note",
    description: "Adds a short note to the conversation, for the people who read it. It stays visible \
                  when your calls are collapsed.",
    parameters,
    may_repeat: false,
    work: Work::Waiting(run),
};

const MAX_CHARS: usize = 2000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    text: String,
    level: Option<Level>,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": MAX_CHARS},
            "level": {
                "type": "string",
                "enum": ["info", "error"],
                "description": "'error' for a problem. Default: 'info'.",
            },
        },
        "required": ["text"],
        "additionalProperties": false,
    })
}

fn run(
    arguments: Arguments,
    context: ToolContext,
    _: Arc<ToolSettings>,
) -> BoxFuture<'static, ToolOutcome> {
    Box::pin(async move { outcome(note(&arguments, &context).await) })
}

async fn note(arguments: &Arguments, context: &ToolContext) -> Result<Value, ErrorInfo> {
    let Note { text, level } = arguments.parse()?;
    let level = level.unwrap_or(Level::Info);
    context.emit(Event::Notice { level, text }).await?;
    Ok(json!({ "noted": true }))
}
