//! What the program does on the way, in words for the user.

use super::wire::{Compacted, Retry, Status};

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

/// None while all is well.
pub(super) fn of_status(status: Status) -> Option<String> {
    status.compact_result.filter(|it| it != "success")?;
    let why = status.compact_error.unwrap_or_else(|| "it did not say why".to_owned());
    Some(format!("Claude Code could not compact the conversation ({why})."))
}

pub(super) fn of_failed_server(name: &str, is_ours: bool) -> String {
    match is_ours {
        true => "Claude Code could not connect to Callboard's own tools, so it cannot reach other \
                 agents until it is started anew."
            .to_owned(),
        false => format!("Claude Code could not start its MCP server {name}."),
    }
}
