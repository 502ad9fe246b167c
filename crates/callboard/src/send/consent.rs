//! Decisions about calls in the terminal: the source of decisions, and parsing of typed answers.

use serde_json::{Value, json};
use transcript::{ApprovalOptions, CallId, Scope};

/// Source of decisions about tool calls that need an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decider {
    /// The user at the terminal decides.
    Person,
    /// Each tool call is allowed once, because of `--yes`.
    Yes,
    /// Every tool call is denied, because of `--deny`.
    No,
    /// Every tool call is denied, because nobody can decide.
    Nobody,
    /// A user of the web page decides.
    Elsewhere,
}

/// A tool call that waits for a decision at the terminal.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) call_id: CallId,
    scopes: Vec<Scope>,
    /// Whether the user denied the tool call and the next typed line is the reason.
    wants_reason: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Decided {
    Allowed(Scope),
    Denied { reason: Option<String> },
}

impl Question {
    pub(super) fn new(call_id: CallId, options: &ApprovalOptions) -> Self {
        Self { call_id, scopes: options.scopes.clone(), wants_reason: false }
    }

    pub(super) fn words(&self) -> String {
        if self.wants_reason {
            return "  Reason for the agent (optional): ".to_owned();
        }
        let offers = [(Scope::Session, " [s] this session"), (Scope::Always, " [a] always")];
        let more: String =
            offers.iter().filter(|it| self.scopes.contains(&it.0)).map(|it| it.1).collect();
        format!("  Allow? [y] once{more} [n] no ")
    }

    /// Parses the line that the user typed as a decision. Returns `None` if the question has to be
    /// repeated or a reason asked for. The end of input (no line) denies the tool call.
    pub(super) fn answer(&mut self, line: Option<&str>) -> Option<Decided> {
        let Some(line) = line.map(str::trim) else { return Some(Decided::Denied { reason: None }) };
        if self.wants_reason {
            let reason = Some(line.to_owned()).filter(|it| !it.is_empty());
            return Some(Decided::Denied { reason });
        }
        let allowed = |scope| self.scopes.contains(&scope).then_some(Decided::Allowed(scope));
        match line.to_lowercase().as_str() {
            "y" | "yes" | "once" => Some(Decided::Allowed(Scope::Once)),
            "s" | "session" => allowed(Scope::Session),
            "a" | "always" => allowed(Scope::Always),
            "n" | "no" => {
                self.wants_reason = true;
                None
            }
            _ => None,
        }
    }
}

impl Decided {
    /// Returns the fields of the WebSocket command for the decision about a tool call.
    pub(super) fn into_frame(self, call_id: &CallId) -> Value {
        match self {
            Self::Allowed(scope) => {
                json!({ "callId": call_id, "decision": "accepted", "scope": scope })
            }
            Self::Denied { reason } => {
                json!({ "callId": call_id, "decision": "rejected", "feedback": reason })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Only explicit consent allows a call.

    use super::*;

    fn question(scopes: &[Scope]) -> Question {
        let options = ApprovalOptions {
            scopes: scopes.to_vec(),
            can_edit: true,
            ..ApprovalOptions::default()
        };
        Question::new(CallId::new("c"), &options)
    }

    const ALL: [Scope; 3] = [Scope::Once, Scope::Session, Scope::Always];

    #[test]
    fn only_a_plain_yes_allows() {
        for (line, scope) in [
            ("y", Scope::Once),
            (" YES ", Scope::Once),
            ("once", Scope::Once),
            ("s", Scope::Session),
            ("Session", Scope::Session),
            ("a", Scope::Always),
            ("always", Scope::Always),
        ] {
            assert_eq!(question(&ALL).answer(Some(line)), Some(Decided::Allowed(scope)), "{line}");
        }
        for line in ["", " ", "yy", "yes please", "ok", "1", "n", "no", "never", "\u{4}"] {
            assert_eq!(question(&ALL).answer(Some(line)), None, "{line:?}");
        }
        assert_eq!(question(&ALL).answer(None), Some(Decided::Denied { reason: None }));
    }

    #[test]
    fn only_offered_choices_are_accepted() {
        for line in ["s", "a", "session", "always"] {
            assert_eq!(question(&[Scope::Once]).answer(Some(line)), None);
        }
        assert_eq!(question(&[Scope::Once]).words(), "  Allow? [y] once [n] no ");
        assert_eq!(question(&ALL).words(), "  Allow? [y] once [s] this session [a] always [n] no ");
    }

    #[test]
    fn a_denial_may_have_a_reason() {
        for (line, reason) in [("not there", Some("not there")), ("  ", None), ("y", Some("y"))] {
            let mut question = question(&ALL);
            assert_eq!(question.answer(Some("n")), None);
            let reason = reason.map(str::to_owned);
            assert_eq!(question.answer(Some(line)), Some(Decided::Denied { reason }));
        }
    }
}
