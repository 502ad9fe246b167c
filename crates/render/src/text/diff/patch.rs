//! Parser for patches: unified diffs, and the `*** Begin Patch` format of Codex.

use super::{Diff, Kind, Row, Rows};

/// Parses a patch as a diff; `None` if the text is not a patch. Lines that are only for programs
/// are omitted.
pub fn patch(text: &str) -> Option<Diff> {
    read(text, false)
}

/// Parses a patch as a diff with a row for every line, for an approval card; `None` if the text is
/// not a patch.
pub fn verbatim(text: &str) -> Option<Diff> {
    read(text, true)
}

fn read(text: &str, is_verbatim: bool) -> Option<Diff> {
    let is_envelope = text.trim_start().starts_with("*** Begin Patch");
    let mut reader = Reader { is_envelope, is_verbatim, ..Reader::default() };
    text.split_terminator('\n').for_each(|line| reader.line(line));
    let has_changes = reader.rows.added + reader.rows.removed > 0;
    (has_changes && (is_envelope || reader.has_hunk)).then(|| reader.rows.finish())
}

#[derive(Default)]
struct Reader {
    rows: Rows,
    is_envelope: bool,
    is_verbatim: bool,
    has_hunk: bool,
    old_path: Option<String>,
    /// Next line numbers before and after the change; `None` if the patch has no line numbers.
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
        if self.is_verbatim {
            self.rows.push(Row::new(Kind::Heading, line));
        } else if line.starts_with("@@") {
            // The numbers show the rest; nothing is omitted after a heading.
            if self.rows.shown.last().is_some_and(|it| it.kind != Kind::Heading) {
                self.rows.push(Row::gap());
            }
        } else if let Some(path) = line.strip_prefix("--- ") {
            self.old_path = file_path(path);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            let path = file_path(path).or_else(|| self.old_path.take()).unwrap_or_default();
            self.rows.push(Row::new(Kind::Heading, &path));
        } else if !is_silent(line) {
            self.rows.push(Row::new(Kind::Heading, line.trim_start_matches("*** ")));
        }
    }

    fn body(&mut self, line: &str) {
        let (kind, text) = match line.as_bytes().first() {
            Some(b'+') => (Kind::Added, &line[1..]),
            Some(b'-') => (Kind::Removed, &line[1..]),
            Some(b' ') => (Kind::Same, &line[1..]),
            Some(b'\\') if self.is_verbatim => {
                return self.rows.push(Row::new(Kind::Heading, line));
            }
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

/// Returns the path in a patch header such as `a/src/main.rs`, which in some dialects is followed
/// by a tab and a time; `None` for `/dev/null`.
fn file_path(text: &str) -> Option<String> {
    let path = text.split('\t').next().unwrap_or(text).trim();
    let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    (path != "/dev/null").then(|| path.to_owned())
}

fn is_silent(line: &str) -> bool {
    let words = ["\\ No newline", "diff --git ", "index ", "*** Begin Patch", "*** End Patch"];
    line.is_empty() || words.iter().any(|it| line.starts_with(it))
}

/// Parses a hunk header such as `@@ -1,2 +3,4 @@`: the first lines, then the numbers of lines, each
/// before and after the change.
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
