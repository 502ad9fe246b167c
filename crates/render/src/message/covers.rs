//! Wording of a grant: which calls a "session" or "always" decision covers.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;
use transcript::{AppliedGrant, GrantScope, GrantedCalls, Scope};

use crate::text::invisible::marked;

/// Returns the sentence of an approval card that names the tool calls to which "Session" and
/// "Always" apply.
pub fn sentence(covers: &str) -> String {
    format!("“Session” and “Always” apply to {}.", words(covers))
}

/// Returns the sentence for a tool call that says which grant allowed it.
pub fn rule(granted: &AppliedGrant) -> String {
    let scope = match granted.scope {
        Scope::Once => "once",
        Scope::Session => "for this session",
        Scope::Always => "always",
    };
    format!("Allowed by your rule: {scope}, {}", words(&granted.covers))
}

/// Describes the tool calls that a grant covers, for display next to one of them.
pub fn words(covers: &str) -> String {
    let Some(GrantScope { tool, calls, .. }) = GrantScope::parse(covers) else {
        return "nothing: this rule is from an earlier version".to_owned();
    };
    match calls {
        GrantedCalls::Command { options, .. } if options.is_empty() => {
            "exactly this command".to_owned()
        }
        GrantedCalls::Command { options, .. } => {
            format!("exactly this command, run {}", conditions(&options).join(", "))
        }
        GrantedCalls::Folder(folder) => {
            format!("{tool} for any file directly in {}", folder_name(&folder))
        }
        GrantedCalls::Origin(origin) => format!("{tool} for any address of {origin}"),
        GrantedCalls::All => format!("every call of {tool}, whatever its arguments"),
    }
}

/// Describes the tool calls that a grant covers for the list of grants, with the command, the agent
/// and the workspace.
pub fn listed(covers: &str) -> Markup {
    let Some(GrantScope { agent, workspace, calls, .. }) = GrantScope::parse(covers) else {
        return html! {
            code { (marked(covers)) } " "
            span.meta { "Inactive: from an earlier version. You will be asked again." }
        };
    };
    html! {
        @match &calls {
            GrantedCalls::Command { text, options } => {
                "Exactly the command " code { (marked(text)) }
                @for condition in conditions(options) { ", " (marked(&condition)) }
            }
            _ => (marked(&words(covers))),
        }
        " " span.meta { "by " (marked(&agent)) " in " (marked(&workspace)) }
    }
}

/// Returns the name of the tool that a grant covers. Earlier versions wrote `tool` or `tool: what
/// it may do`.
pub fn tool(covers: &str) -> String {
    let earlier = || covers.split(':').next().unwrap_or_default().to_owned();
    GrantScope::parse(covers).map_or_else(earlier, |it| it.tool)
}

fn folder_name(folder: &str) -> String {
    match folder {
        "." => "the workspace folder".to_owned(),
        folder => format!("{}/", folder.trim_end_matches('/')),
    }
}

/// Describes the other arguments of a granted command as conditions, such as "in the background".
fn conditions(options: &BTreeMap<String, Value>) -> Vec<String> {
    let condition = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("cwd" | "workdir", Value::String(folder)) => format!("in {folder}"),
        ("run_in_background", Value::Bool(true)) => "in the background".to_owned(),
        ("dangerouslyDisableSandbox", Value::Bool(true)) => "outside the sandbox".to_owned(),
        (name, value) => format!("with {name} = {value}"),
    };
    options.iter().map(condition).collect()
}
