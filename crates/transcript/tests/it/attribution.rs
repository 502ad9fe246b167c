//! The line that tells a model which agent a message comes from.

use transcript::{AgentAttribution, ExchangeId, Sender, SessionId};

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
