//! Notices about events outside the conversation: retries, compactions, limits, hooks and logins.

use transcript::{Level, Millis};

use super::text::shortened;
use super::wire::{Compacted, Hook, LimitInfo, Login, Retry, Status};

pub(super) fn of_retry(retry: &Retry) -> String {
    let status = retry.error_status.map(|it| it.to_string());
    let error = retry.error.clone().filter(|it| it != "unknown");
    let what = [status, error].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let what = if what.is_empty() { "it cannot be reached".to_owned() } else { what };
    let seconds = retry.retry_delay_ms.unwrap_or(0.0) / 1000.0;
    let attempt = retry.attempt.unwrap_or(1);
    let of = retry.max_retries.map(|it| format!(" of {it}")).unwrap_or_default();
    format!(
        "The model service failed ({what}). Claude Code tries again in {seconds:.1} s (attempt \
         {attempt}{of})."
    )
}

pub(super) fn of_compacted(compacted: Compacted) -> String {
    let tokens = compacted.compact_metadata.and_then(|it| it.pre_tokens.zip(it.post_tokens));
    let sizes = tokens.map(|(from, to)| format!(": {from} tokens became {to}"));
    format!("Claude Code compacted the conversation{}.", sizes.unwrap_or_default())
}

/// Describes a failed compaction of the conversation. `None` for any other status.
pub(super) fn of_status(status: Status) -> Option<String> {
    status.compact_result.filter(|it| it != "success")?;
    let why = status.compact_error.unwrap_or_else(|| "it did not say why".to_owned());
    Some(format!("Claude Code could not compact the conversation ({why})."))
}

/// Describes a change of Claude Code's permission mode. `None` if the status has no mode.
pub(super) fn of_mode(status: &Status) -> Option<String> {
    let mode = status.permission_mode.as_ref()?;
    Some(format!("Claude Code's permission mode is {mode} now."))
}

/// Describes a usage limit of the account that is reached or nearly reached. `None` for any other
/// state.
pub(super) fn of_limit(limit: &LimitInfo, now: Millis) -> Option<(Level, String)> {
    let (level, what) = match limit.status.as_deref()? {
        "allowed_warning" => (Level::Info, "is nearly reached"),
        "rejected" => (Level::Error, "is reached"),
        _ => return None,
    };
    let resets_at = limit.resets_at.map(|at| Millis(at.saturating_mul(1000)));
    let minutes = resets_at.map(|at| at.since(now) / 60_000).filter(|it| *it > 0);
    let when = minutes.map(|it| match it {
        ..120 => format!(" It resets in {it} minutes."),
        _ => format!(" It resets in {} hours.", it / 60),
    });
    Some((level, format!("The account's usage limit {what}.{}", when.unwrap_or_default())))
}

/// Describes a failed login of Claude Code. `None` for any other state.
pub(super) fn of_login(login: &Login) -> Option<String> {
    let why = login.error.as_deref().filter(|it| !it.trim().is_empty())?;
    let said = login.output.as_deref().unwrap_or_default().join("\n");
    let text = format!("Claude Code could not log in: {why} {}", said.trim());
    Some(shortened(text.trim()))
}

/// Describes a failed hook of Claude Code. `None` if the hook succeeded.
pub(super) fn of_hook(hook: &Hook) -> Option<String> {
    let has_failed =
        hook.outcome.as_deref() == Some("error") || hook.exit_code.is_some_and(|it| it != 0);
    let said = [&hook.stderr, &hook.stdout].into_iter().flatten().find(|it| !it.trim().is_empty());
    let name = hook.hook_name.as_deref().unwrap_or("unnamed");
    has_failed.then(|| match said {
        Some(said) => format!("Claude Code's hook {name} failed: {}", shortened(said)),
        None => format!("Claude Code's hook {name} failed and did not say why."),
    })
}

pub(super) fn of_failed_server(name: &str, is_ours: bool) -> String {
    match is_ours {
        true => "Claude Code could not connect to Callboard's own tools, so it cannot reach other \
                 agents until it is restarted."
            .to_owned(),
        false => format!("Claude Code could not start its MCP server {name}."),
    }
}
