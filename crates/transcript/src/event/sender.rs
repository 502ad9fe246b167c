//! The agent that a message comes from, and the line that tells a model about it.

use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};
use crate::{ExchangeId, SessionId};

const BEGINNING: &str = "From the agent '";
// Agent names never contain these delimiters. Stored conversations of programs are parsed with them.
const QUESTION: &str = "', which gets your answer:";
const ANSWER: &str = "', about exchange ";

/// The agent that sent a message to another agent, and the exchange that the message belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    /// Id of the sending agent's session.
    pub session_id: SessionId,
    /// Id of the sending agent.
    pub agent: String,
    /// Id of the exchange that the message belongs to.
    pub exchange_id: ExchangeId,
    /// Number of messages between agents since a person's last message, including this one. A reply
    /// has the depth of the message that it answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Whether the message is the reply of an exchange; otherwise it starts one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_answer: bool,
}

impl Sender {
    /// Returns the message text as the model gets it, under a first line that names the sending
    /// agent.
    pub fn attribute(&self, text: &str) -> String {
        let Self { agent, exchange_id, is_answer, .. } = self;
        match is_answer {
            true => format!("{BEGINNING}{agent}{ANSWER}{exchange_id}:\n\n{text}"),
            false => format!("{BEGINNING}{agent}{QUESTION}\n\n{text}"),
        }
    }
}

/// A message of another agent, parsed from the text that [`Sender::attribute`] returned.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentAttribution<'a> {
    /// Id of the agent that sent the message.
    pub agent: &'a str,
    /// Whether the message is the reply of an exchange; otherwise it starts one.
    pub is_answer: bool,
    /// Text of the message, without the line that names the agent.
    pub text: &'a str,
}

impl<'a> AgentAttribution<'a> {
    /// Parses a text that [`Sender::attribute`] returned. Returns `None` for the text of a person.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (line, text) = text.split_once("\n\n")?;
        let (agent, rest) = line.strip_prefix(BEGINNING)?.split_once('\'')?;
        let rest = &line[line.len() - rest.len() - 1..];
        let is_answer = rest.starts_with(ANSWER) && rest.ends_with(':');
        (is_answer || rest == QUESTION).then_some(Self { agent, is_answer, text })
    }
}
