//! Programs that run, for whoever wonders why a session is still at work.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tools::processes::program_of;
use transcript::{Millis, SessionId};

/// A program as it can be seen from outside. Gone with its process.
#[derive(Debug)]
pub struct Pulse {
    keeper: u32,
    pub started_at: Millis,
    /// Zero until it has written a line.
    heard_at: AtomicI64,
}

impl Pulse {
    pub(crate) fn new(keeper: u32, now: Millis) -> Self {
        Self { keeper, started_at: now, heard_at: AtomicI64::new(0) }
    }

    pub fn pid(&self) -> u32 {
        program_of(self.keeper).unwrap_or(self.keeper)
    }

    pub(crate) fn heard(&self, now: Millis) {
        self.heard_at.store(now.0, Ordering::Relaxed);
    }

    /// When it last wrote a line. None if it has written none.
    pub fn heard_at(&self) -> Option<Millis> {
        Some(Millis(self.heard_at.load(Ordering::Relaxed))).filter(|it| it.0 > 0)
    }
}

#[derive(Debug, Default)]
pub struct Pulses {
    /// Held for a look-up or an insertion.
    by_session: Mutex<HashMap<SessionId, Weak<Pulse>>>,
}

impl Pulses {
    pub(crate) fn add(&self, session: &SessionId, pulse: &Arc<Pulse>) {
        let mut pulses = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.retain(|_, it| it.strong_count() > 0);
        pulses.insert(session.clone(), Arc::downgrade(pulse));
    }

    pub fn of(&self, session: &SessionId) -> Option<Arc<Pulse>> {
        let pulses = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.get(session)?.upgrade()
    }
}
