//! Notices about hooks, retries and reviews that Codex reports.

use serde_json::Value;

/// Describes a hook run of Codex that failed, or that blocked an action or stopped the turn. `None`
/// for any other.
pub(super) fn of_hook(run: &Value) -> Option<String> {
    let what = match run["status"].as_str()? {
        "failed" => "failed",
        "blocked" => "blocked the action",
        "stopped" => "stopped the turn",
        _ => return None,
    };
    let entries = run["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = entries.iter().map(|it| &it["text"]).chain([&run["statusMessage"]]);
    let said: Vec<&str> =
        said.filter_map(Value::as_str).filter(|it| !it.trim().is_empty()).collect();
    let name = run["eventName"].as_str().unwrap_or("a");
    Some(with_reason(format!("Codex's {name} hook {what}"), &said.join("\n")))
}

/// Describes a retry of Codex's request to the model service. `message` is `Reconnecting... 1/2`,
/// with the reason in parentheses or in `details`.
pub(super) fn of_retry(message: &str, details: Option<&str>) -> String {
    let (said, behind) = message.split_once(" (").unwrap_or((message, ""));
    let why = details.or(behind.strip_suffix(')')).unwrap_or_default().trim_end_matches('.');
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    match said.strip_prefix("Reconnecting... ").and_then(|it| it.split_once('/')) {
        Some((attempt, of)) => {
            format!("The model service failed{why}. Codex tries again (attempt {attempt} of {of}).")
        }
        None => format!("{said}{why}"),
    }
}

/// Describes the decision of Codex's automatic reviewer, a model that reviews a tool call instead
/// of a person.
pub(super) fn of_review(review: &Value) -> String {
    let what = match review["status"].as_str() {
        Some("approved") => "Codex's reviewer has allowed it",
        Some("denied") => "Codex's reviewer has refused it",
        Some("timedOut") => "Codex's reviewer did not decide in time",
        _ => "Codex's reviewer has not decided",
    };
    with_reason(what.to_owned(), review["rationale"].as_str().unwrap_or_default())
}

fn with_reason(what: String, why: &str) -> String {
    match why.trim() {
        "" => format!("{what}."),
        why => format!("{what}: {why}"),
    }
}
