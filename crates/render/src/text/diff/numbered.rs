//! Parser for the changes that Pi reports: a sign, the line's number, and the line. Equal lines have their
//! old number.

use super::{Diff, Kind, Row, Rows};

/// Parses the numbered lines in which Pi reports a change; `None` if the text has another form.
pub fn numbered(text: &str) -> Option<Diff> {
    let mut rows = Rows::default();
    for line in text.split('\n') {
        let rest = line.get(1..)?.trim_start_matches(' ');
        let (number, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let (kind, number) = match (line.as_bytes().first()?, number.parse::<usize>()) {
            (b'+', Ok(number)) => (Kind::Added, number),
            (b'-', Ok(number)) => (Kind::Removed, number),
            (b' ', Ok(number)) => (Kind::Same, number),
            (b' ', Err(_)) if rest == "..." => {
                rows.push(Row::gap());
                continue;
            }
            _ => return None,
        };
        let after = (number.saturating_add(rows.added)).saturating_sub(rows.removed);
        let mut row = Row::new(kind, text);
        row.numbers = match kind {
            Kind::Added => (None, Some(number)),
            Kind::Removed => (Some(number), None),
            _ => (Some(number), Some(after)),
        };
        rows.push(row);
    }
    (rows.added + rows.removed > 0).then(|| rows.finish())
}
