//! Names that were heard not long ago: a program may say a thing twice, and it may run for ever.

use std::collections::{HashSet, VecDeque};

/// Programs repeat themselves at once, or when they take something up again; not after so many others.
const REMEMBERED: usize = 4096;

#[derive(Debug)]
pub(crate) struct Recent {
    known: HashSet<String>,
    /// The oldest first.
    order: VecDeque<String>,
    most: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self::keeping(REMEMBERED)
    }
}

impl Recent {
    pub(crate) fn keeping(most: usize) -> Self {
        Self { known: HashSet::new(), order: VecDeque::new(), most }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    /// False if it was known.
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        if !self.known.insert(name.to_owned()) {
            return false;
        }
        self.order.push_back(name.to_owned());
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    pub(crate) fn forget(&mut self, name: &str) {
        if self.known.remove(name) {
            self.order.retain(|it| it != name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{REMEMBERED, Recent};

    #[test]
    fn it_remembers_what_was_said_last_and_does_not_grow() {
        let mut recent = Recent::default();
        for n in 0..REMEMBERED * 3 {
            assert!(recent.insert(&n.to_string()) && !recent.insert(&n.to_string()));
            // One and the same, again and again.
            recent.forget("again");
            assert!(recent.insert("again"));
        }
        assert!(recent.known.len() <= REMEMBERED && recent.order.len() <= REMEMBERED);
        assert!(recent.contains("again") && !recent.contains("0"));
        assert!(recent.contains(&(REMEMBERED * 3 - 1).to_string()));
    }
}
