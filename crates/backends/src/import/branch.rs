//! Which messages of a person's the newest one follows.
//!
//! Programs keep a conversation as a tree: whoever goes back and says something else begins a branch.
//! In the log that is a conversation that was rewound.

use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Branch {
    parents: HashMap<String, Option<String>>,
    /// From the first to the newest.
    messages: Vec<String>,
}

impl Branch {
    pub(super) fn add(&mut self, id: &str, parent: Option<&str>) {
        self.parents.insert(id.to_owned(), parent.map(str::to_owned));
    }

    /// A message of a person's, which was added. The message that it takes the place of, with all that
    /// follow; none if it follows the newest, or if nobody knows what it follows.
    pub(super) fn say(&mut self, id: &str) -> Option<String> {
        let kept = self.kept(id).unwrap_or(self.messages.len());
        let replaced = self.messages.get(kept).cloned();
        self.messages.truncate(kept);
        self.messages.push(id.to_owned());
        replaced
    }

    /// Nobody has gone back before saying this.
    pub(super) fn follows_newest(&self, id: &str) -> bool {
        self.kept(id).is_none_or(|it| it == self.messages.len())
    }

    /// How many of the messages come before this one.
    fn kept(&self, id: &str) -> Option<usize> {
        let mut at = self.parents.get(id)?;
        // A broken file may go round in circles.
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
