//! Cancels a read on another thread when its caller is gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::sql::{Cancel, Db};

/// State of a read that can be interrupted, shared by its caller and the thread that reads.
#[derive(Default)]
pub(crate) struct Interrupt(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Waiting,
    Reading(Cancel),
    /// The read has ended, or must not begin because its caller is gone.
    Over,
}

impl Interrupt {
    /// Marks the beginning of a read on a connection. Returns an error if the caller is gone
    /// already.
    pub(crate) fn begin(&self, db: &Db) -> Result<(), Error> {
        let mut state = self.state();
        match *state {
            State::Over => Err(Error::Interrupted),
            State::Waiting | State::Reading(_) => {
                *state = State::Reading(db.cancel_handle());
                Ok(())
            }
        }
    }

    /// Marks the end of a read. Must be called before the connection is used for another read.
    pub(crate) fn end(&self) {
        *self.state() = State::Over;
    }

    fn interrupt(&self) {
        if let State::Reading(handle) = std::mem::replace(&mut *self.state(), State::Over) {
            handle.cancel();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that a caller holds while it waits for a read. Dropping it interrupts the read.
pub(crate) struct InterruptOnDrop(pub(crate) Arc<Interrupt>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}
