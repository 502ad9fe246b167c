//! Numbers formatted for people: durations, sizes, counts, costs.

use transcript::Millis;

/// Formats a duration in milliseconds: `250ms`, `4.2s`, `12s`, `3m 5s`, `2h 4m`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..10_000 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10_000..60_000 => format!("{seconds}s"),
        60_000..3_600_000 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
    }
}

pub(crate) fn between(from: Millis, to: Millis) -> String {
    duration(to.0.saturating_sub(from.0).max(0).cast_unsigned())
}

/// Formats a size in bytes: `512 B`, `12 KB`, `3.4 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// Formats a number with thousands separators: `1,234`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a cost in dollars: `$0.0042`, `$0.12`, `$3.40`. Small amounts get more digits.
pub(crate) fn dollars(cost: f64) -> String {
    match cost {
        it if it < 0.0001 => "under $0.0001".to_owned(),
        it if it < 0.1 => format!("${it:.4}"),
        it => format!("${it:.2}"),
    }
}

/// Formats a count with its noun: `1 tool`, `3 tools`.
pub(crate) fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {one}s", grouped(number)) }
}
