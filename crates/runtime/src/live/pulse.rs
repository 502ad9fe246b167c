//! Activity of running programs: process id and time of the last output, shown during long runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use tools::processes::program_of;
use transcript::{Millis, SessionId};

use crate::sync::lock;

/// Activity of a running program: its process and the time of its last output.
#[derive(Debug)]
pub struct Pulse {
    keeper: u32,
    pub started_at: Millis,
    /// Time of the program's last line of output in milliseconds. Zero if there is none yet.
    last_line_at: AtomicI64,
}

impl Pulse {
    pub(crate) fn new(keeper: u32, now: Millis) -> Self {
        Self { keeper, started_at: now, last_line_at: AtomicI64::new(0) }
    }

    /// Returns the process id of the program, or of its keeper if the program's own is not known.
    pub fn pid(&self) -> u32 {
        program_of(self.keeper).unwrap_or(self.keeper)
    }

    /// Records that the program has written a line of output.
    pub(crate) fn note_line(&self, now: Millis) {
        self.last_line_at.store(now.0, Ordering::Relaxed);
    }

    /// Returns the time of the program's last line of output. `None` if it has written none.
    pub fn last_line_at(&self) -> Option<Millis> {
        Some(Millis(self.last_line_at.load(Ordering::Relaxed))).filter(|it| it.0 > 0)
    }
}

/// Activity of all running programs.
#[derive(Debug, Default)]
pub struct Pulses {
    /// Activity of the running programs by session. Locked for a look-up or an insertion only.
    by_session: Mutex<HashMap<SessionId, Weak<Pulse>>>,
}

impl Pulses {
    pub(crate) fn add(&self, session: &SessionId, pulse: &Arc<Pulse>) {
        let mut pulses = lock(&self.by_session);
        pulses.retain(|_, it| it.strong_count() > 0);
        pulses.insert(session.clone(), Arc::downgrade(pulse));
    }

    pub fn of(&self, session: &SessionId) -> Option<Arc<Pulse>> {
        let pulses = lock(&self.by_session);
        pulses.get(session)?.upgrade()
    }
}
