//! Splits a message into clauses, and each clause into words. Quoted text is one word.

/// Separator between a clause of a message and the clause before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Joint {
    /// The clause follows "and" or a comma, so it may continue a list, as in "about cats and dogs".
    And,
    /// The clause follows "then", so it may share the verb of the clause before, as in "read a.txt,
    /// then b.txt".
    Then,
    /// The clause follows a full stop, a question or exclamation mark, a semicolon or a new line.
    Stop,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clause {
    pub(super) joint: Joint,
    pub(super) words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    /// Text of the word, without quotes and the punctuation around it.
    pub(super) text: String,
    pub(super) quoted: bool,
}

impl Word {
    /// Returns whether the word is one of these keywords, in any case. A quoted word is never a
    /// keyword.
    pub(super) fn is(&self, known: &[&str]) -> bool {
        !self.quoted && known.iter().any(|it| it.eq_ignore_ascii_case(&self.text))
    }
}

pub(super) fn clauses(message: &str) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let mut open = Clause { joint: Joint::Stop, words: Vec::new() };
    for token in tokens(message) {
        let joint = match token {
            Token::Break(joint) => joint,
            Token::Word(word) if word.is(&["and"]) => Joint::And,
            Token::Word(word) if word.is(&["then"]) => Joint::Then,
            Token::Word(word) => {
                open.words.push(word);
                continue;
            }
        };
        if !open.words.is_empty() {
            clauses.push(std::mem::replace(&mut open, Clause { joint, words: Vec::new() }));
        } else {
            // Separators in a row, such as ", and then", count as the strongest of them.
            open.joint = open.joint.max(joint);
        }
    }
    if !open.words.is_empty() {
        clauses.push(open);
    }
    clauses
}

#[derive(Debug)]
enum Token {
    Word(Word),
    Break(Joint),
}

const QUOTES: &[(char, char)] = &[('"', '"'), ('`', '`'), ('\'', '\''), ('“', '”'), ('‘', '’')];

fn tokens(message: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = message;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '\n' | ';' => single(&mut tokens, rest, Joint::Stop),
            ',' => single(&mut tokens, rest, Joint::And),
            space if space.is_whitespace() => {
                rest.trim_start_matches(|c: char| c != '\n' && c.is_whitespace())
            }
            _ => quoted(&mut tokens, rest).unwrap_or_else(|| bare(&mut tokens, rest)),
        };
    }
    tokens
}

fn single<'a>(tokens: &mut Vec<Token>, rest: &'a str, joint: Joint) -> &'a str {
    tokens.push(Token::Break(joint));
    &rest[1..]
}

/// Parses quoted text as one word, and returns the rest of the message. `None` without a closing
/// quotation mark: the mark is then an ordinary character.
fn quoted<'a>(tokens: &mut Vec<Token>, rest: &'a str) -> Option<&'a str> {
    let (open, close) = QUOTES.iter().find(|(open, _)| rest.starts_with(*open))?;
    let (text, after) = rest[open.len_utf8()..].split_once(*close)?;
    if text.is_empty() || after.starts_with(char::is_alphanumeric) {
        return None;
    }
    tokens.push(Token::Word(Word { text: text.to_owned(), quoted: true }));
    let after_stop = after.trim_start_matches(STOPS);
    if after_stop.len() < after.len() {
        tokens.push(Token::Break(Joint::Stop));
    }
    Some(after_stop)
}

const STOPS: &[char] = &['.', '?', '!'];
const CLOSERS: &[char] = &[')', ']', ':'];

/// Parses an unquoted word, and returns the rest of the message. Dots inside belong to the word,
/// and so do the paths `.` and `..`.
fn bare<'a>(tokens: &mut Vec<Token>, rest: &'a str) -> &'a str {
    let end = rest.find(|c: char| c.is_whitespace() || c == ',' || c == ';').unwrap_or(rest.len());
    let (written, after) = rest.split_at(end);
    let word = written.trim_start_matches(['(', '[']);
    let core = word.trim_end_matches(|c: char| STOPS.contains(&c) || CLOSERS.contains(&c));
    let is_path = matches!(word, "." | "..") || (core.ends_with('/') && word.ends_with('.'));
    let text = if is_path { word } else { core };
    if !text.is_empty() {
        tokens.push(Token::Word(Word { text: text.to_owned(), quoted: false }));
    }
    if word[text.len()..].contains(STOPS) {
        tokens.push(Token::Break(Joint::Stop));
    }
    after
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Joint, clauses};

    #[track_caller]
    fn check(message: &str, expect: Expect) {
        let lines: Vec<String> = clauses(message)
            .iter()
            .map(|clause| {
                let mark = match clause.joint {
                    Joint::And => "and",
                    Joint::Then => "then",
                    Joint::Stop => "stop",
                };
                let words: Vec<&str> = clause.words.iter().map(|it| it.text.as_str()).collect();
                format!("{mark:4} {}", words.join("|"))
            })
            .collect();
        expect.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn separators_split_clauses() {
        check(
            "one, two and three; four. Five\nsix, and then seven",
            expect![[r#"
                stop one
                and  two
                and  three
                stop four
                stop Five
                stop six
                then seven"#]],
        );
    }

    #[test]
    fn dots_within_names_are_kept() {
        check(
            "read a.b.txt. ls .. and ls src/.. then ls . or (x.y)!",
            expect![[r#"
                stop read|a.b.txt
                stop ls|..
                and  ls|src/..
                then ls|.|or|x.y"#]],
        );
    }

    #[test]
    fn quoted_text_is_one_word() {
        check(
            r#"find "this and that". what's 'one, two' `a b`, 5" and “c; d” "open"#,
            expect![[r#"
                stop find|this and that
                stop what's|one, two|a b
                and  5"
                and  c; d|"open"#]],
        );
    }

    #[test]
    fn nothing() {
        check(" ., ;\n and ?", expect!["stop ."]);
    }
}
