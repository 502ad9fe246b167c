//! Who follows what at this moment, and who waits for whom.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transcript::{ExchangeId, ExchangeMode, SessionId};

use super::ExchangeLimits;
use crate::session::Shared;

/// What is being followed.
#[derive(Default)]
pub(crate) struct Exchanges {
    pub(crate) limits: ExchangeLimits,
    /// Held for the moment of a look-up or an insertion only, never across an await.
    followed: Mutex<HashMap<ExchangeId, Edge>>,
}

/// Who asked whom, and whether it waits for the answer.
pub(super) struct Edge {
    pub(super) asker: SessionId,
    pub(super) asked: SessionId,
    pub(super) mode: ExchangeMode,
}

/// An exchange that is followed. Dropping it ends that.
pub(super) struct Followed {
    shared: Arc<Shared>,
    id: ExchangeId,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.shared.exchanges.followed().remove(&self.id);
    }
}

/// Why an exchange is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotFollowed {
    Already,
    Circle,
}

impl Exchanges {
    pub(crate) fn new(limits: ExchangeLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Under one lock, so that of two questions that would close a circle together one is refused.
    pub(super) fn follow(
        &self,
        shared: &Arc<Shared>,
        id: &ExchangeId,
        edge: Edge,
    ) -> Result<Followed, NotFollowed> {
        let mut followed = self.followed();
        if followed.contains_key(id) {
            return Err(NotFollowed::Already);
        }
        if edge.mode == ExchangeMode::Sync && closes_circle(&followed, &edge) {
            return Err(NotFollowed::Circle);
        }
        followed.insert(id.clone(), edge);
        Ok(Followed { shared: Arc::clone(shared), id: id.clone() })
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<ExchangeId, Edge>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever is asked, and whomever that one waits for, must not wait for the asker: a session that
/// waits, even for its turn in a queue, works on nothing else.
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
