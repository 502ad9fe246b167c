//! The agent that a message comes from, and the line that tells a model about it.

use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};
use crate::{ExchangeId, SessionId};

const BEGINNING: &str = "From the agent '";
// Agent names never contain these delimiters. Stored conversations of programs are parsed with them.
const QUESTION: &str = "', which gets your answer:";
const ANSWER: &str = "', about exchange ";

/// The agent that a message comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    /// The agent's session.
    pub session_id: SessionId,
    /// Id of the agent.
    pub agent: String,
    /// The exchange that the message belongs to.
    pub exchange_id: ExchangeId,
    /// Number of messages between agents that led to this one since a person's message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// The message is a reply; otherwise it starts an exchange.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_answer: bool,
}

impl Sender {
    /// Returns the text for the model, under a line that names the agent.
    pub fn attribute(&self, text: &str) -> String {
        let Self { agent, exchange_id, is_answer, .. } = self;
        match is_answer {
            true => format!("{BEGINNING}{agent}{ANSWER}{exchange_id}:\n\n{text}"),
            false => format!("{BEGINNING}{agent}{QUESTION}\n\n{text}"),
        }
    }
}

/// A text that [`Sender::attribute`] has marked as an agent's.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentAttribution<'a> {
    /// Id of the agent.
    pub agent: &'a str,
    /// Whether the text is a reply.
    pub is_answer: bool,
    /// The text without its first line.
    pub text: &'a str,
}

impl<'a> AgentAttribution<'a> {
    /// Parses a marked text. Returns `None` for a person's text.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (line, text) = text.split_once("\n\n")?;
        let (agent, rest) = line.strip_prefix(BEGINNING)?.split_once('\'')?;
        let rest = &line[line.len() - rest.len() - 1..];
        let is_answer = rest.starts_with(ANSWER) && rest.ends_with(':');
        (is_answer || rest == QUESTION).then_some(Self { agent, is_answer, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribution_round_trips() {
        for (is_answer, text) in [(false, "time in Paris"), (true, "It is noon.\n\nOr later.")] {
            let from = Sender {
                session_id: SessionId::new("s"),
                agent: "a-b.c".to_owned(),
                exchange_id: ExchangeId::new("x"),
                depth: 1,
                is_answer,
            };
            let parsed = AgentAttribution { agent: "a-b.c", is_answer, text };
            assert_eq!(AgentAttribution::parse(&from.attribute(text)), Some(parsed));
        }
        for text in ["From the agent of change:\n\nhello", "time in Paris", ""] {
            assert_eq!(AgentAttribution::parse(text), None, "{text}");
        }
    }
}
