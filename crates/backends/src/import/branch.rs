//! The branch of messages that leads to the newest one.
//!
//! Programs keep a conversation as a tree: going back and writing another message begins a branch. In the log
//! the conversation is then rewound.

use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Branch {
    parents: HashMap<String, Option<String>>,
    /// Ids of the people's messages in the branch, oldest first.
    messages: Vec<String>,
}

impl Branch {
    pub(super) fn add(&mut self, id: &str, parent: Option<&str>) {
        self.parents.insert(id.to_owned(), parent.map(str::to_owned));
    }

    /// Adds a person's message to the branch. Returns the message that it replaces, along with all
    /// that follow; `None` if it follows the newest, or if its predecessor is unknown.
    pub(super) fn say(&mut self, id: &str) -> Option<String> {
        let kept = self.kept(id).unwrap_or(self.messages.len());
        let replaced = self.messages.get(kept).cloned();
        self.messages.truncate(kept);
        self.messages.push(id.to_owned());
        replaced
    }

    /// Returns whether the message follows the newest message of the branch, so that nothing was
    /// rewound.
    pub(super) fn follows_newest(&self, id: &str) -> bool {
        self.kept(id).is_none_or(|it| it == self.messages.len())
    }

    /// Returns the number of people's messages in the branch before this message. `None` if its
    /// predecessor is unknown.
    fn kept(&self, id: &str) -> Option<usize> {
        let mut at = self.parents.get(id)?;
        // A broken file may have cycles.
        for _ in 0..=self.parents.len() {
            let Some(parent) = at else { return Some(0) };
            if let Some(idx) = self.messages.iter().rposition(|it| it == parent) {
                return Some(idx + 1);
            }
            at = self.parents.get(parent)?;
        }
        None
    }
}
