//! Small writes beside the log, such as settings and grants.
//!
//! They are written in the same batches as appends, and answered after the commit like those.

use tokio::sync::oneshot;

use crate::sql::Db;
use crate::writer::{Answer, Job, Write, WriteOp};
use crate::{AppendError, Error, Store};

/// A small write beside the log, and the caller that waits for its result.
pub(crate) trait SideWrite: Send {
    /// Runs the write within the transaction of a batch.
    fn run(&mut self, db: &Db) -> Result<(), Error>;

    /// Sends the result to the caller. Called once, after the batch was committed or has failed.
    fn answer(self: Box<Self>, outcome: Result<(), AppendError>);
}

struct Pending<F, T> {
    write: F,
    result: Option<T>,
    done: Answer<Result<T, AppendError>>,
}

impl<F, T> SideWrite for Pending<F, T>
where
    F: Fn(&Db) -> Result<T, Error> + Send,
    T: Send,
{
    fn run(&mut self, db: &Db) -> Result<(), Error> {
        self.result = Some((self.write)(db)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), AppendError>) {
        let Self { result, done, .. } = *self;
        // A caller that is gone needs no answer.
        let _ = done.send(outcome.and_then(|()| result.ok_or(AppendError::Closed)));
    }
}

impl Store {
    /// Runs a small write beside the log and returns its result when it is committed.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        write: impl Fn(&Db) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, AppendError> {
        let _permit = self.write_permit().await?;
        let (done, answer) = oneshot::channel();
        let op = WriteOp::Side(Box::new(Pending { write, result: None, done }));
        self.send(Job::Write(Write { op, _permit }));
        answer.await.unwrap_or(Err(AppendError::Closed))
    }
}
