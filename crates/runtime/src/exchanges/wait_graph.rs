//! The followed exchanges, as a graph of sessions that wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use transcript::{ExchangeId, ExchangeMode, SessionId};

use crate::sync::lock;

/// Graph of the followed exchanges, in which sessions wait for replies of other sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitGraph {
    /// Followed exchanges by their ids. Locked for a look-up or an insertion only, never across an
    /// await.
    followed: Arc<Mutex<HashMap<ExchangeId, Edge>>>,
}

/// A followed exchange: a session that sent a message to another, and whether it waits for the
/// reply.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) asker: SessionId,
    pub(super) asked: SessionId,
    pub(super) mode: ExchangeMode,
}

/// Registration of a followed exchange. Dropping it removes the exchange from the graph.
pub(super) struct Followed {
    graph: WaitGraph,
    id: ExchangeId,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.graph.followed().remove(&self.id);
    }
}

/// Reason why an exchange is not added to the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotFollowed {
    Already,
    Cycle,
}

impl WaitGraph {
    /// Adds an exchange to the graph. Checks and adds under one lock, so that of two messages that
    /// would together close a cycle, one is refused.
    pub(super) fn follow(&self, id: &ExchangeId, edge: Edge) -> Result<Followed, NotFollowed> {
        let mut followed = self.followed();
        if followed.contains_key(id) {
            return Err(NotFollowed::Already);
        }
        if edge.mode == ExchangeMode::Sync && closes_cycle(&followed, &edge) {
            return Err(NotFollowed::Cycle);
        }
        followed.insert(id.clone(), edge);
        Ok(Followed { graph: self.clone(), id: id.clone() })
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<ExchangeId, Edge>> {
        lock(&self.followed)
    }
}

/// Returns whether the asked session waits for the asking one, directly or through others. That
/// would be a deadlock, because a waiting session does not work on other messages.
fn closes_cycle(followed: &HashMap<ExchangeId, Edge>, edge: &Edge) -> bool {
    let mut reached = vec![&edge.asked];
    let mut n_visited = 0;
    while let Some(&session) = reached.get(n_visited) {
        if *session == edge.asker {
            return true;
        }
        let waits = followed.values().filter(|it| it.mode == ExchangeMode::Sync);
        for next in waits.filter(|it| it.asker == *session).map(|it| &it.asked) {
            if !reached.contains(&next) {
                reached.push(next);
            }
        }
        n_visited += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    //! Cycles are found, independent of the exchange that closes them.

    use super::*;

    fn edge(asker: u32, asked: u32, mode: ExchangeMode) -> Edge {
        let session = |n: u32| SessionId::new(format!("s{n}"));
        Edge { asker: session(asker), asked: session(asked), mode }
    }

    /// Tests rings of every size up to five, with every exchange as the last one.
    #[test]
    fn only_the_exchange_that_closes_a_cycle_is_refused() {
        for size in 1..6 {
            for last in 0..size {
                let ring = (0..size).filter(|n| *n != last);
                let ring = ring.map(|n| (n, edge(n, (n + 1) % size, ExchangeMode::Sync)));
                let mut followed = HashMap::new();
                for (n, edge) in ring {
                    assert!(!closes_cycle(&followed, &edge), "{n} of {size} without {last}");
                    followed.insert(ExchangeId::new(format!("x{n}")), edge);
                }
                let closing = edge(last, (last + 1) % size, ExchangeMode::Sync);
                assert!(closes_cycle(&followed, &closing), "{last} of {size}");
                // Nobody waits for an asynchronous exchange.
                if let Some(some) = followed.values_mut().next() {
                    some.mode = ExchangeMode::Async;
                    assert!(!closes_cycle(&followed, &closing));
                }
            }
        }
    }
}
