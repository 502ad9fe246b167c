//! How a model learns that an agent said something, and not a person.

use crate::Sender;

const BEGINNING: &str = "From the agent '";
/// Agents are not called by names with these in them.
const QUESTION: &str = "', which gets your answer:";
const ANSWER: &str = "', about exchange ";

impl Sender {
    /// What a model reads: the text under a line that says who speaks.
    pub fn introduce(&self, text: &str) -> String {
        let Self { agent, exchange_id, is_answer, .. } = self;
        match is_answer {
            true => format!("{BEGINNING}{agent}{ANSWER}{exchange_id}:\n\n{text}"),
            false => format!("{BEGINNING}{agent}{QUESTION}\n\n{text}"),
        }
    }
}

/// What an agent said, and to what end.
#[derive(Debug, PartialEq, Eq)]
pub struct Introduced<'a> {
    pub agent: &'a str,
    pub is_answer: bool,
    pub text: &'a str,
}

impl<'a> Introduced<'a> {
    /// The other way round: none if a person said it.
    pub fn read(text: &'a str) -> Option<Self> {
        let (line, text) = text.split_once("\n\n")?;
        let (agent, rest) = line.strip_prefix(BEGINNING)?.split_once('\'')?;
        let rest = &line[line.len() - rest.len() - 1..];
        let is_answer = rest.starts_with(ANSWER) && rest.ends_with(':');
        (is_answer || rest == QUESTION).then_some(Self { agent, is_answer, text })
    }
}

#[cfg(test)]
mod tests {
    //! What is introduced can be told apart again.

    use super::*;
    use crate::{ExchangeId, SessionId};

    #[test]
    fn what_is_introduced_is_read_back() {
        for (is_answer, text) in [(false, "time in Paris"), (true, "It is noon.\n\nOr later.")] {
            let from = Sender {
                session_id: SessionId::new("s"),
                agent: "a-b.c".to_owned(),
                exchange_id: ExchangeId::new("x"),
                depth: 1,
                is_answer,
            };
            let read = Introduced { agent: "a-b.c", is_answer, text };
            assert_eq!(Introduced::read(&from.introduce(text)), Some(read));
        }
        for text in ["From the agent of change:\n\nhello", "time in Paris", ""] {
            assert_eq!(Introduced::read(text), None, "{text}");
        }
    }
}
