//! Thinking that a model writes into its text, between `<think>` and `</think>`.
//!
//! The tag is recognised only at the beginning of the text, because an answer may be about the tag itself.
//! Text that may be the beginning of a tag is held back until it is decided.

/// Opening and closing tags that models put around their thinking.
const TAGS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>")];

#[derive(Debug, Default)]
pub(super) struct ThinkTags {
    state: State,
    held: String,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    /// Only white space and a possible beginning of an opening tag have arrived.
    #[default]
    Beginning,
    Thinking {
        closing_tag: &'static str,
    },
    /// The closing tag has arrived, and no text of the answer. White space before the answer is
    /// dropped.
    BeforeAnswer,
    Answer,
}

/// Kind of a model's text: the visible answer, or thinking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Text,
    Thinking,
}

impl ThinkTags {
    pub(super) fn feed(&mut self, text: &str, mut take: impl FnMut(Kind, &str)) {
        if self.state == State::Answer {
            return take(Kind::Text, text);
        }
        self.held.push_str(text);
        while self.advance(&mut take) {}
    }

    /// Emits the text that was held back because it may be the beginning of a tag.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Kind, &str)) {
        let held = std::mem::take(&mut self.held);
        let kind = match self.state {
            State::Thinking { .. } => Kind::Thinking,
            State::Beginning | State::BeforeAnswer | State::Answer => Kind::Text,
        };
        if !held.is_empty() {
            take(kind, &held);
        }
    }

    /// Emits the beginning of the held-back text, as far as it is decided. Returns whether to call
    /// the function again.
    fn advance(&mut self, take: &mut impl FnMut(Kind, &str)) -> bool {
        match self.state {
            State::Beginning => {
                let begun = self.held.trim_start();
                if let Some((tag, closing_tag)) = TAGS.iter().find(|it| begun.starts_with(it.0)) {
                    self.held = begun[tag.len()..].to_owned();
                    self.state = State::Thinking { closing_tag };
                } else if TAGS.iter().any(|it| it.0.starts_with(begun)) {
                    return false;
                } else {
                    self.state = State::Answer;
                }
            }
            State::Thinking { closing_tag } => {
                let end = self.held.find(closing_tag);
                let decided = end.unwrap_or_else(|| undecided_from(&self.held, closing_tag));
                if decided > 0 {
                    take(Kind::Thinking, &self.held[..decided]);
                }
                self.held.drain(..decided);
                if end.is_none() {
                    return false;
                }
                self.held.drain(..closing_tag.len());
                self.state = State::BeforeAnswer;
            }
            State::BeforeAnswer => {
                let blanks = self.held.len() - self.held.trim_start().len();
                self.held.drain(..blanks);
                if self.held.is_empty() {
                    return false;
                }
                self.state = State::Answer;
            }
            State::Answer => {
                let text = std::mem::take(&mut self.held);
                if !text.is_empty() {
                    take(Kind::Text, &text);
                }
                return false;
            }
        }
        true
    }
}

/// Returns the position from which the end of the text may be the beginning of `tag`. That is the
/// length of the text if no part of it is.
fn undecided_from(text: &str, tag: &str) -> usize {
    let longest = tag.len().min(text.len());
    let ending = (1..=longest).rev().find(|&n| text.as_bytes().ends_with(&tag.as_bytes()[..n]));
    text.len() - ending.unwrap_or(0)
}
