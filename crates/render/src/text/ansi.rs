//! Terminal output as HTML: colours, and lines that are overwritten.
//!
//! Each line is an element. Nothing moves the cursor up, so all lines but the last are final; the last grows
//! by text while it is plain. Escape sequences for full-screen programs are dropped.

mod style;
#[cfg(test)]
mod tests;

use maud::{Markup, PreEscaped};
use vte::{Params, Parser, Perform};

use crate::Op;
use crate::html::escape::{push_escaped, unescaped};

use style::Style;
pub use style::stylesheet;

/// Number of characters after which a line of terminal output continues in a new element.
const MAX_CELLS: usize = 16 << 10;
/// Maximum column to which an escape sequence moves the cursor, unless the line is longer.
const MAX_COLUMN: usize = 512;

/// Returns whether the text has control characters that a terminal interprets. Other text needs no
/// element per line.
pub(crate) fn has_controls(text: &str) -> bool {
    text.contains(['\x1b', '\r', '\x08'])
}

/// Draws complete terminal output, as the content of the element with the id `prefix`.
pub fn html(text: &str, prefix: &str) -> Markup {
    PreEscaped(lines(text, prefix).into_iter().map(|(_, html)| html).collect())
}

/// Draws complete terminal output line by line, as pairs of id and HTML.
pub fn lines(text: &str, prefix: &str) -> Vec<(String, String)> {
    let mut output = Output::new(prefix);
    let mut lines = output.take(text);
    lines.extend(output.open_line());
    (0..).map(|n| line_id(prefix, n)).zip(lines).collect()
}

/// Terminal output that is drawn while it streams in.
pub struct Output {
    prefix: String,
    parser: Parser,
    screen: Screen,
    /// HTML of the open line as the page shows it; `None` if the line is empty.
    shown: Option<String>,
}

impl Output {
    /// Creates an empty terminal output whose lines are children of the element with the id
    /// `prefix`.
    pub fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            parser: Parser::new(),
            screen: Screen::default(),
            shown: None,
        }
    }

    /// Adds terminal output and returns the operations that show it on the page.
    pub fn push(&mut self, delta: &str) -> Vec<Op> {
        let first = self.screen.n_lines;
        let shown = self.shown.take();
        let ended = self.take(delta);
        self.shown = self.open_line();
        let lines: Vec<_> = ended.into_iter().chain(self.shown.clone()).collect();

        let id = line_id(&self.prefix, first);
        let mut ops = Vec::new();
        match (shown, lines.first()) {
            (Some(_), None) => ops.push(Op::Drop { id }),
            (Some(old), Some(new)) if old != *new => ops.push(match grown(&old, new) {
                Some(text) => Op::Text { id, text },
                None => Op::Put { id, html: new.clone() },
            }),
            (None, Some(new)) => ops.push(self.add(new)),
            (Some(_), Some(_)) | (None, None) => (),
        }
        ops.extend(lines.iter().skip(1).map(|it| self.add(it)));
        ops
    }

    fn add(&self, line: &str) -> Op {
        Op::Add { parent: self.prefix.clone(), html: line.to_owned() }
    }

    /// Returns the HTML of the lines that `text` completes.
    fn take(&mut self, text: &str) -> Vec<String> {
        let first = self.screen.n_lines;
        self.parser.advance(&mut self.screen, text.as_bytes());
        let ended = std::mem::take(&mut self.screen.ended);
        let lines = ended.iter().zip(first..);
        lines.map(|(line, n)| line_html(&self.prefix, n, line)).collect()
    }

    fn open_line(&self) -> Option<String> {
        let line = &self.screen.line;
        (!line.is_empty()).then(|| line_html(&self.prefix, self.screen.n_lines, line))
    }
}

fn line_id(prefix: &str, n: usize) -> String {
    format!("{prefix}-{n}")
}

fn line_html(prefix: &str, n: usize, cells: &[Cell]) -> String {
    let mut html = format!("<span id=\"{}\">", line_id(prefix, n));
    for run in cells.chunk_by(|a, b| a.style == b.style) {
        let text: String = run.iter().map(|it| it.shown).collect();
        let class = run[0].style.class();
        if !class.is_empty() {
            html.push_str("<span class=\"");
            html.push_str(&class);
            html.push_str("\">");
        }
        push_escaped(&mut html, &text);
        if !class.is_empty() {
            html.push_str("</span>");
        }
    }
    html.push_str("</span>");
    html
}

/// Returns the text by which a plain line of output has grown; `None` if anything else has changed.
fn grown(old: &str, new: &str) -> Option<String> {
    let more = new.strip_suffix("</span>")?.strip_prefix(old.strip_suffix("</span>")?)?;
    (!more.contains('<')).then(|| unescaped(more))
}

#[derive(Clone, Copy)]
struct Cell {
    shown: char,
    style: Style,
}

/// Open line of terminal output with its cursor, and the lines completed since the last call of
/// `take`.
#[derive(Default)]
struct Screen {
    ended: Vec<Vec<Cell>>,
    n_lines: usize,
    line: Vec<Cell>,
    column: usize,
    style: Style,
}

impl Screen {
    fn write(&mut self, shown: char) {
        if self.column >= MAX_CELLS {
            self.end_line();
        }
        self.pad();
        let cell = Cell { shown, style: self.style };
        match self.line.get_mut(self.column) {
            Some(written) => *written = cell,
            None => self.line.push(cell),
        }
        self.column += 1;
    }

    /// Pads the open line with blanks up to the cursor.
    fn pad(&mut self) {
        let blank = Cell { shown: ' ', style: Style::default() };
        self.line.resize(self.line.len().max(self.column), blank);
    }

    fn end_line(&mut self) {
        self.ended.push(std::mem::take(&mut self.line));
        self.n_lines += 1;
        self.column = 0;
    }

    fn move_to(&mut self, column: usize) {
        self.column = column.min(self.line.len().max(MAX_COLUMN));
    }

    fn erase(&mut self, how: u16) {
        match how {
            0 => self.line.truncate(self.column),
            1 => {
                let end = (self.column + 1).min(self.line.len());
                self.line[..end].fill(Cell { shown: ' ', style: Style::default() });
            }
            2 => self.line.clear(),
            _ => (),
        }
    }
}

impl Perform for Screen {
    fn print(&mut self, shown: char) {
        if !shown.is_control() {
            self.write(shown);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.line.push(Cell { shown: '\n', style: Style::default() });
                self.end_line();
            }
            b'\r' => self.column = 0,
            b'\t' => self.write('\t'),
            0x08 => self.column = self.column.saturating_sub(1),
            _ => (),
        }
    }

    fn csi_dispatch(&mut self, params: &Params, marks: &[u8], _ignored: bool, action: char) {
        if !marks.is_empty() {
            return;
        }
        let first = params.iter().next().and_then(|it| it.first()).copied().unwrap_or_default();
        let count = usize::from(first.max(1));
        match action {
            'm' => self.style.apply(params),
            'K' => self.erase(first),
            'C' => self.move_to(self.column + count),
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.move_to(count - 1),
            _ => (),
        }
    }
}
