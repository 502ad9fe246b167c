//! Patches as tools give them: unified diffs, and the `*** Begin Patch` form that Codex uses.

use super::{Diff, Kind, Row, Rows};

/// The patch as a diff, if the text is one.
pub fn patch(text: &str) -> Option<Diff> {
    let is_envelope = text.trim_start().starts_with("*** Begin Patch");
    let mut reader = Reader { is_envelope, ..Reader::default() };
    text.lines().for_each(|line| reader.line(line));
    let has_changes = reader.rows.added + reader.rows.removed > 0;
    (has_changes && (is_envelope || reader.has_hunk)).then(|| reader.rows.finish())
}

#[derive(Default)]
struct Reader {
    rows: Rows,
    is_envelope: bool,
    has_hunk: bool,
    /// The next line's numbers, and how many lines of the hunk are to come, before and after.
    numbers: Option<(usize, usize)>,
    due: (usize, usize),
}

impl Reader {
    fn line(&mut self, line: &str) {
        let in_hunk = self.due.0 > 0 || self.due.1 > 0;
        let is_body =
            in_hunk || (self.is_envelope && !line.starts_with("***") && !line.starts_with("@@"));
        if is_body {
            return self.body(line);
        }
        if line.starts_with("@@") {
            self.has_hunk = true;
            if let Some((numbers, due)) = hunk(line) {
                (self.numbers, self.due) = (Some(numbers), due);
            }
        }
        let is_silent = line.is_empty()
            || line.starts_with("\\ No newline")
            || matches!(line, "*** Begin Patch" | "*** End Patch");
        if !is_silent {
            self.rows.push(Row::new(Kind::Heading, line));
        }
    }

    fn body(&mut self, line: &str) {
        let (kind, text) = match line.as_bytes().first() {
            Some(b'+') => (Kind::Added, &line[1..]),
            Some(b'-') => (Kind::Removed, &line[1..]),
            Some(b' ') => (Kind::Same, &line[1..]),
            Some(b'\\') => return,
            _ => (Kind::Same, line),
        };
        let mut row = Row::new(kind, text);
        let (is_old, is_new) = (kind != Kind::Added, kind != Kind::Removed);
        if let Some((old, new)) = &mut self.numbers {
            row.numbers = (is_old.then_some(*old), is_new.then_some(*new));
            *old = old.saturating_add(usize::from(is_old));
            *new = new.saturating_add(usize::from(is_new));
        }
        self.due.0 = self.due.0.saturating_sub(usize::from(is_old));
        self.due.1 = self.due.1.saturating_sub(usize::from(is_new));
        self.rows.push(row);
    }
}

/// `@@ -1,2 +3,4 @@`: where the lines start, and how many there are.
fn hunk(line: &str) -> Option<((usize, usize), (usize, usize))> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let (old, n_old) = range(words.next()?.strip_prefix('-')?)?;
    let (new, n_new) = range(words.next()?.strip_prefix('+')?)?;
    Some(((old, new), (n_old, n_new)))
}

fn range(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}
