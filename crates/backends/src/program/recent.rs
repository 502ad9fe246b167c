//! A bounded map of recent names, to detect repetitions of a program that may run forever.

use std::collections::{HashMap, VecDeque};

/// Default number of names that a [`Recent`] remembers. Repetitions come soon, or when a program
/// resumes something.
const REMEMBERED: usize = 1024;

#[derive(Debug)]
pub(crate) struct Recent<T = ()> {
    known: HashMap<String, T>,
    /// Names in the order in which they were inserted, oldest first.
    order: VecDeque<String>,
    most: usize,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self::keeping(REMEMBERED)
    }
}

impl<T> Recent<T> {
    pub(crate) fn keeping(most: usize) -> Self {
        Self { known: HashMap::new(), order: VecDeque::new(), most }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.known.get(name)
    }

    /// Inserts a name as the newest, and returns its value. Call [`Recent::take_excess`]
    /// afterwards.
    pub(crate) fn put(&mut self, name: &str, value: T) -> &mut T {
        self.forget(name);
        self.order.push_back(name.to_owned());
        self.known.entry(name.to_owned()).insert_entry(value).into_mut()
    }

    /// Removes and returns the oldest name with its value, if there are more than the maximum.
    pub(crate) fn take_excess(&mut self) -> Option<(String, T)> {
        if self.order.len() <= self.most {
            return None;
        }
        let name = self.order.pop_front()?;
        let value = self.known.remove(&name)?;
        Some((name, value))
    }

    pub(crate) fn forget(&mut self, name: &str) -> Option<T> {
        let forgotten = self.known.remove(name)?;
        self.order.retain(|it| it != name);
        Some(forgotten)
    }

    pub(crate) fn into_names(self) -> impl Iterator<Item = String> {
        self.order.into_iter()
    }
}

impl Recent {
    /// Inserts a name, and drops the oldest if there are too many. Returns false if the name was
    /// known.
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        let is_new = !self.contains(name);
        if is_new {
            self.put(name, ());
            self.take_excess();
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::{REMEMBERED, Recent};

    #[test]
    fn recent_names_are_remembered_and_bounded() {
        let mut recent = Recent::default();
        for n in 0..REMEMBERED * 3 {
            assert!(recent.insert(&n.to_string()) && !recent.insert(&n.to_string()));
            // A name that is forgotten and inserted repeatedly.
            recent.forget("again");
            assert!(recent.insert("again"));
        }
        assert!(recent.known.len() <= REMEMBERED && recent.order.len() <= REMEMBERED);
        assert!(recent.contains("again") && !recent.contains("0"));
        assert!(recent.contains(&(REMEMBERED * 3 - 1).to_string()));
    }
}
