//! The id of a program's own conversation, checked before it can reach a command line.
//!
//! Ids come from logs, and logs can be imported, so an id is untrusted text. Claude Code, Codex and Pi all
//! name their conversations by UUIDs, so a UUID is the only accepted shape. It cannot be read as an option, a
//! path, a thread name or, by Pi, as the prefix of another conversation's id.

use std::fmt;

/// Id of a program's own conversation, for resuming it: a UUID in its usual form, 8-4-4-4-12
/// hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeId(String);

const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

impl ResumeId {
    /// Parses the id of a conversation. Returns `None` if it is not a UUID in its usual form.
    pub fn parse(id: &str) -> Option<Self> {
        let is_hex = |group: &str| group.bytes().all(|it| it.is_ascii_hexdigit());
        let is_uuid = id.split('-').map(str::len).eq(GROUPS) && id.split('-').all(is_hex);
        is_uuid.then(|| Self(id.to_owned()))
    }

    /// Returns the id of the conversation as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
