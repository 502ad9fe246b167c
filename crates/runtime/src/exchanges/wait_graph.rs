//! The exchanges that are followed at this moment, and which session waits for which.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transcript::{ExchangeId, ExchangeMode, SessionId};

/// The exchanges that are followed now.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitGraph {
    /// Locked for a look-up or an insertion only, never across an await.
    followed: Arc<Mutex<HashMap<ExchangeId, Edge>>>,
}

/// A session that sent a message to another, and whether it waits for the reply.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) asker: SessionId,
    pub(super) asked: SessionId,
    pub(super) mode: ExchangeMode,
}

/// An exchange that is followed. Dropping it ends that.
pub(super) struct Followed {
    graph: WaitGraph,
    id: ExchangeId,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.graph.followed().remove(&self.id);
    }
}

/// Reason for which an exchange is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotFollowed {
    Already,
    Circle,
}

impl WaitGraph {
    /// Takes one lock, so that one of two messages that would together close a circle is refused.
    pub(super) fn follow(&self, id: &ExchangeId, edge: Edge) -> Result<Followed, NotFollowed> {
        let mut followed = self.followed();
        if followed.contains_key(id) {
            return Err(NotFollowed::Already);
        }
        if edge.mode == ExchangeMode::Sync && closes_circle(&followed, &edge) {
            return Err(NotFollowed::Circle);
        }
        followed.insert(id.clone(), edge);
        Ok(Followed { graph: self.clone(), id: id.clone() })
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<ExchangeId, Edge>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the target waits, directly or through others, for the sender: a deadlock, because a
/// session that waits, even for its turn in a queue, works on nothing else.
fn closes_circle(followed: &HashMap<ExchangeId, Edge>, edge: &Edge) -> bool {
    let mut reached = vec![&edge.asked];
    let mut looked_at = 0;
    while let Some(&session) = reached.get(looked_at) {
        if *session == edge.asker {
            return true;
        }
        let waits = followed.values().filter(|it| it.mode == ExchangeMode::Sync);
        for next in waits.filter(|it| it.asker == *session).map(|it| &it.asked) {
            if !reached.contains(&next) {
                reached.push(next);
            }
        }
        looked_at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    //! A circle is found wherever it closes.

    use super::*;

    fn edge(asker: u32, asked: u32, mode: ExchangeMode) -> Edge {
        let session = |n: u32| SessionId::new(format!("s{n}"));
        Edge { asker: session(asker), asked: session(asked), mode }
    }

    /// Who waits, in every order in which a ring of some can come to wait.
    #[test]
    fn the_last_wait_of_a_ring_is_refused_and_no_other() {
        for size in 1..6 {
            for last in 0..size {
                let ring = (0..size).filter(|n| *n != last);
                let ring = ring.map(|n| (n, edge(n, (n + 1) % size, ExchangeMode::Sync)));
                let mut followed = HashMap::new();
                for (n, edge) in ring {
                    assert!(!closes_circle(&followed, &edge), "{n} of {size} without {last}");
                    followed.insert(ExchangeId::new(format!("x{n}")), edge);
                }
                let closing = edge(last, (last + 1) % size, ExchangeMode::Sync);
                assert!(closes_circle(&followed, &closing), "{last} of {size}");
                // Nobody waits for what is asked in the background.
                if let Some(some) = followed.values_mut().next() {
                    some.mode = ExchangeMode::Async;
                    assert!(!closes_circle(&followed, &closing));
                }
            }
        }
    }
}
