//! Cancels a read on another thread when its caller is gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, InterruptHandle};

use crate::Error;

/// Shared by the caller of a read and the thread that reads.
#[derive(Default)]
pub(crate) struct Interrupt(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Waiting,
    Reading(InterruptHandle),
    /// The read has ended, or must not begin.
    Over,
}

impl Interrupt {
    /// Fails if the caller is gone already.
    pub(crate) fn begin(&self, db: &Connection) -> Result<(), Error> {
        let mut state = self.state();
        match *state {
            State::Over => Err(Error::Interrupted),
            State::Waiting | State::Reading(_) => {
                *state = State::Reading(db.get_interrupt_handle());
                Ok(())
            }
        }
    }

    /// Must be called before the connection is used for another read.
    pub(crate) fn end(&self) {
        *self.state() = State::Over;
    }

    fn interrupt(&self) {
        if let State::Reading(handle) = std::mem::replace(&mut *self.state(), State::Over) {
            handle.interrupt();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by the caller for as long as it waits.
pub(crate) struct InterruptOnDrop(pub(crate) Arc<Interrupt>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}
