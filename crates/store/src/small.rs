//! Small writes that are no appends: what each does, and who waits for what it gives.
//!
//! They are written in the same batches as appends, and answered after the commit as those are.

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::writer::{Answer, What, Write};
use crate::{AppendError, Error, Store};

pub(crate) trait Small: Send {
    fn run(&mut self, db: &Connection) -> Result<(), Error>;

    /// To be called once, after `run` was committed or was not.
    fn answer(self: Box<Self>, outcome: Result<(), AppendError>);
}

struct Act<F, T> {
    act: F,
    given: Option<T>,
    done: Answer<Result<T, AppendError>>,
}

impl<F, T> Small for Act<F, T>
where
    F: Fn(&Connection) -> Result<T, Error> + Send,
    T: Send,
{
    fn run(&mut self, db: &Connection) -> Result<(), Error> {
        self.given = Some((self.act)(db)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), AppendError>) {
        let Self { given, done, .. } = *self;
        // Who does not wait any more needs no answer.
        let _ = done.send(outcome.and_then(|()| given.ok_or(AppendError::Closed)));
    }
}

impl Store {
    /// Returns when what `act` did is committed.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        act: impl Fn(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, AppendError> {
        let _place = self.place().await?;
        let (done, answer) = oneshot::channel();
        let what = What::Small(Box::new(Act { act, given: None, done }));
        self.send(crate::writer::Job::Write(Write { what, _place }));
        answer.await.unwrap_or(Err(AppendError::Closed))
    }
}
