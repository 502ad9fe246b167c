//! JSON, indented for reading. Only white space changes: keys keep their order, numbers their digits.
//!
//! Objects and arrays fold. An attribute holds the summary of a folded one, so that the text of the element
//! stays JSON.

#[cfg(test)]
mod tests;

use maud::{Markup, PreEscaped};
use serde_json::value::RawValue;

use crate::html::escape::{escaped, push_escaped};

/// Maximum number of bytes of JSON that is indented; longer text is shown as it is. `MAX_DEPTH` is
/// the maximum nesting.
const MAX_TEXT: usize = 256 << 10;
const MAX_DEPTH: usize = 64;
/// Number of bytes up to which a JSON object or array stays on one line.
const MAX_INLINE: usize = 60;
/// Number of entries above which a JSON object or array is folded. At a depth of `OPEN_DEPTH` or
/// more, it is also folded above `OPEN_CHARS` bytes.
const OPEN_ENTRIES: usize = 50;
const OPEN_DEPTH: usize = 2;
const OPEN_CHARS: usize = 400;

/// Draws JSON as indented HTML with foldable objects and arrays; other text as it is.
pub fn pretty(text: &str) -> Markup {
    let laid_out = if is_readable(text) { Layout::of(text) } else { None };
    PreEscaped(match laid_out {
        Some(html) => format!("<div class=\"json\">{html}</div>"),
        None => format!("<div class=\"json json-raw\">{}</div>", escaped(text)),
    })
}

/// Returns JSON indented by two spaces for editing; other text as it is.
pub(crate) fn indented(text: &str) -> String {
    if !is_readable(text) {
        return text.to_owned();
    }
    let tokens = tokens(text);
    let (mut out, mut depth) = (String::new(), 0_usize);
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    for (at, token) in tokens.iter().enumerate() {
        let after_open = at > 0 && matches!(tokens[at - 1], Token::Open(_));
        match token {
            Token::Close(mark) => {
                depth = depth.saturating_sub(1);
                if !after_open {
                    new_line(&mut out, depth);
                }
                out.push(*mark);
            }
            Token::Comma => {
                out.push(',');
                new_line(&mut out, depth);
            }
            Token::Colon => out.push_str(": "),
            Token::Open(_) | Token::Text(_) | Token::Word(_) => {
                if after_open {
                    new_line(&mut out, depth);
                }
                match token {
                    Token::Open(mark) => {
                        out.push(*mark);
                        depth += 1;
                    }
                    Token::Text(text) | Token::Word(text) => out.push_str(text),
                    Token::Close(_) | Token::Comma | Token::Colon => (),
                }
            }
        }
    }
    out
}

fn is_readable(text: &str) -> bool {
    text.len() <= MAX_TEXT && serde_json::from_str::<&RawValue>(text).is_ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Open(char),
    Close(char),
    Comma,
    Colon,
    Text(&'a str),
    Word(&'a str),
}

/// Splits a text that is known to be JSON into tokens.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => text_length(rest),
            '{' | '[' | '}' | ']' | ',' | ':' => 1,
            _ => rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len()),
        };
        tokens.push(match first {
            '{' | '[' => Token::Open(first),
            '}' | ']' => Token::Close(first),
            ',' => Token::Comma,
            ':' => Token::Colon,
            '"' => Token::Text(&rest[..length]),
            _ => Token::Word(&rest[..length]),
        });
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Returns the length of the JSON string token at the start of the text in bytes, including both
/// quotes.
fn text_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => (),
        }
    }
    text.len()
}

/// Size of a JSON object or array, computed before it is written.
#[derive(Clone, Copy, Default)]
struct Measure {
    n_entries: usize,
    n_chars: usize,
    has_children: bool,
}

/// Returns the size of each JSON object and array by the index of its opening token; `None` if the
/// nesting is too deep.
fn measures(tokens: &[Token<'_>]) -> Option<Vec<Measure>> {
    let mut measures = vec![Measure::default(); tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    let mut chars_before = Vec::new();
    let mut n_chars = 0;
    for (at, token) in tokens.iter().enumerate() {
        n_chars += match token {
            Token::Text(text) | Token::Word(text) => text.len(),
            Token::Open(_) | Token::Close(_) => 1,
            Token::Comma | Token::Colon => 2,
        };
        let is_empty = at > 0 && matches!(tokens[at - 1], Token::Open(_));
        match token {
            Token::Open(_) => {
                if let Some(parent) = open.last() {
                    measures[*parent].has_children = true;
                }
                open.push(at);
                chars_before.push(n_chars);
            }
            Token::Close(_) => {
                let (start, before) = (open.pop()?, chars_before.pop()?);
                measures[start].n_chars = n_chars - before;
                measures[start].n_entries += usize::from(!is_empty);
            }
            Token::Comma => measures[*open.last()?].n_entries += 1,
            Token::Colon | Token::Text(_) | Token::Word(_) => (),
        }
        if open.len() > MAX_DEPTH {
            return None;
        }
    }
    Some(measures)
}

struct Layout {
    out: String,
    /// Whether each open JSON object or array takes several lines, from the outermost to the
    /// innermost.
    open: Vec<bool>,
}

impl Layout {
    fn of(text: &str) -> Option<String> {
        let tokens = tokens(text);
        let measures = measures(&tokens)?;
        let mut layout = Self { out: String::with_capacity(text.len() * 3), open: Vec::new() };
        for (at, token) in tokens.iter().enumerate() {
            match *token {
                Token::Open(bracket) => layout.open(bracket, measures[at]),
                Token::Close(bracket) => layout.close(bracket),
                Token::Comma => {
                    layout.out.push(',');
                    layout.space();
                }
                Token::Colon => layout.out.push_str(": "),
                Token::Text(text) => {
                    let is_key = tokens.get(at + 1) == Some(&Token::Colon);
                    layout.span(if is_key { "json-key" } else { "json-string" }, text);
                }
                Token::Word(word) => {
                    let is_number = word.starts_with(|it: char| it == '-' || it.is_ascii_digit());
                    layout.span(if is_number { "json-number" } else { "json-word" }, word);
                }
            }
        }
        Some(layout.out)
    }

    fn open(&mut self, bracket: char, measure: Measure) {
        let is_block =
            measure.n_entries > 0 && (measure.has_children || measure.n_chars > MAX_INLINE);
        if is_block {
            let is_small = self.open.len() < OPEN_DEPTH || measure.n_chars <= OPEN_CHARS;
            let is_open = is_small && measure.n_entries <= OPEN_ENTRIES;
            let noun = match (bracket, measure.n_entries) {
                ('{', 1) => "key",
                ('{', _) => "keys",
                (_, 1) => "item",
                _ => "items",
            };
            let open = if is_open { " open" } else { "" };
            self.out.push_str(&format!(
                "<details{open} data-holds=\"{} {noun}\"><summary>{bracket}</summary>",
                measure.n_entries
            ));
        } else {
            self.out.push(bracket);
        }
        self.open.push(is_block);
        if is_block {
            self.space();
        }
    }

    fn close(&mut self, bracket: char) {
        let is_block = self.open.pop().unwrap_or_default();
        if is_block {
            self.new_line();
        }
        self.out.push(bracket);
        if is_block {
            self.out.push_str("</details>");
        }
    }

    /// Writes the space or line break between the entries of a JSON object or array.
    fn space(&mut self) {
        if self.open.last().copied().unwrap_or_default() {
            self.new_line()
        } else {
            self.out.push(' ')
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.out.push_str(&"  ".repeat(self.open.len()));
    }

    fn span(&mut self, class: &str, text: &str) {
        self.out.push_str("<span class=\"");
        self.out.push_str(class);
        self.out.push_str("\">");
        push_escaped(&mut self.out, text);
        self.out.push_str("</span>");
    }
}
