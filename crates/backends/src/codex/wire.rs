//! The lines that we write, and the names of notifications that are not shown.

use serde_json::{Value, json};

use super::Settings;
use super::settings::thread_config;
use crate::program::newest;
use crate::{Launch, ResumeId};

pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "id": id, "method": method, "params": params }).to_string()
}

pub(super) fn initialize() -> Value {
    json!({
        "clientInfo": {
            "name": "callboard",
            "title": "Callboard",
            "version": env!("CARGO_PKG_VERSION"),
        },
        // Needed to end the commands of an interrupted turn.
        "capabilities": { "experimentalApi": true, "requestAttestation": false },
    })
}

pub(super) fn initialized() -> String {
    json!({ "method": "initialized" }).to_string()
}

/// Returns the parameters of `thread/start`, or of `thread/resume` if `thread` is given.
pub(super) fn open_thread(
    settings: &Settings,
    launch: &Launch,
    thread: Option<&ResumeId>,
) -> Value {
    let permissions = settings.permissions();
    let mut params = json!({
        "cwd": launch.workspace,
        "approvalPolicy": permissions.approval_policy,
        "sandbox": permissions.sandbox,
    });
    if let Some(thread) = thread {
        params["threadId"] = json!(thread.as_str());
        params["excludeTurns"] = json!(true);
    }
    if let Some(model) = &settings.model {
        params["model"] = json!(model);
    }
    if let Some(config) = thread_config(launch) {
        params["config"] = config;
    }
    params
}

/// Returns Codex's version from its user agent, `client/0.166.0 (system) ...`.
pub(super) fn version(user_agent: &str) -> Option<String> {
    let version = user_agent.split_once('/')?.1.split_whitespace().next()?;
    version.starts_with(|it: char| it.is_ascii_digit()).then(|| version.to_owned())
}

/// Returns the line that answers a request of Codex with a result.
pub(super) fn answer(request_id: &Value, result: &Value) -> String {
    json!({ "id": request_id, "result": result }).to_string()
}

pub(super) fn refusal(request_id: &Value) -> String {
    let message = "Callboard does not know this request";
    json!({ "id": request_id, "error": { "code": -32601, "message": message } }).to_string()
}

/// Returns the newest message of the conversation as the input of a Codex turn.
pub(super) fn prompt(history: &[Value]) -> Vec<Value> {
    input(&newest(history))
}

/// Converts an OpenAI chat message to the input of a Codex turn.
pub(super) fn input(message: &Value) -> Vec<Value> {
    let pieces = match &message["content"] {
        Value::Array(pieces) => pieces.as_slice(),
        words => return vec![text(words.as_str().unwrap_or_default())],
    };
    pieces.iter().filter_map(piece).collect()
}

pub(super) fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words, "text_elements": [] })
}

/// Returns the text of the input of a Codex turn.
pub(super) fn words(input: &[Value]) -> String {
    let words: Vec<&str> = input.iter().filter_map(|it| it["text"].as_str()).collect();
    words.join("\n\n")
}

fn piece(piece: &Value) -> Option<Value> {
    if let Some(words) = piece["text"].as_str() {
        return Some(text(words));
    }
    let url = piece["image_url"]["url"].as_str()?;
    Some(json!({ "type": "image", "url": url }))
}

/// Returns whether a notification of Codex is known and not shown, because it is about Codex's own
/// state or unused features, or repeats something. The list is explicit, so that new notifications
/// are shown.
pub(super) fn is_silent(method: &str) -> bool {
    const NAMES: &[&str] = &[
        "account/gatewayOAuth/changed",
        "account/login/completed",
        "account/rateLimits/updated",
        "account/updated",
        "app/list/updated",
        "command/exec/outputDelta",
        "configWarning",
        "deprecationNotice",
        "externalAgentConfig/import/completed",
        "externalAgentConfig/import/progress",
        "fs/changed",
        "fuzzyFileSearch/sessionCompleted",
        "fuzzyFileSearch/sessionUpdated",
        "hook/started",
        "item/autoApprovalReview/started",
        "item/commandExecution/terminalInteraction",
        "item/fileChange/patchUpdated",
        "item/reasoning/summaryPartAdded",
        "mcpServer/oauthLogin/completed",
        "model/safetyBuffering/updated",
        "model/verification",
        "modelProvider/authRecoveryCompleted",
        "modelProvider/authRecoveryStarted",
        "process/exited",
        "process/outputDelta",
        "project/changed",
        "rawResponse/completed",
        "rawResponseItem/completed",
        "remoteControl/status/changed",
        "skills/changed",
        "thread/archived",
        "thread/attachment/updated",
        "thread/closed",
        "thread/deleted",
        "thread/environment/connected",
        "thread/environment/disconnected",
        "thread/goal/cleared",
        "thread/goal/updated",
        "thread/name/updated",
        "thread/prediction/updated",
        "thread/project/updated",
        "thread/queue/changed",
        "thread/readState/changed",
        "thread/realtime/closed",
        "thread/realtime/error",
        "thread/realtime/item/completed",
        "thread/realtime/item/started",
        "thread/realtime/item/transcript/delta",
        "thread/realtime/itemAdded",
        "thread/realtime/outputAudio/delta",
        "thread/realtime/sdp",
        "thread/realtime/started",
        "thread/realtime/transcript/delta",
        "thread/realtime/transcript/done",
        "thread/settings/updated",
        "thread/started",
        "thread/unarchived",
        "turn/diff/updated",
        "turn/moderationMetadata",
        "windows/worldWritableWarning",
        "windowsSandbox/setupCompleted",
    ];
    NAMES.contains(&method)
}
