//! Renders pages, messages, exports and bodies on blocking threads.
//!
//! The threads that serve requests do no CPU-heavy work. The number of concurrent draws is bounded,
//! and so is their memory. A request whose client disconnects before its draw begins is not drawn. A
//! draw that has begun keeps its permit to the end, so that repeated requests cannot accumulate.

use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Minimum number of pages or exports that are rendered concurrently, so that one large page does
/// not block all others on a machine with one core.
const MIN_DRAWS: usize = 2;

/// Limit for the number of concurrent draws, shared by all clones.
#[derive(Clone)]
pub struct DrawPool {
    permits: Arc<Semaphore>,
}

impl Default for DrawPool {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self { permits: Arc::new(Semaphore::new(cores.max(MIN_DRAWS))) }
    }
}

impl DrawPool {
    /// Waits for a permit to draw. Callers acquire it before they read data, so that few callers
    /// hold data in memory.
    pub async fn permit(&self) -> DrawPermit {
        // The semaphore is never closed. If it were, drawing without a permit would still be correct.
        DrawPermit(Arc::clone(&self.permits).acquire_owned().await.ok().map(Arc::new))
    }
}

/// Permit to read and draw (render) something large.
pub struct DrawPermit(Option<Arc<OwnedSemaphorePermit>>);

impl DrawPermit {
    /// Runs `draw` on a blocking thread. The permit is kept until `draw` has finished, even if the
    /// caller is dropped.
    pub async fn draw<T: Send + 'static>(&self, draw: impl FnOnce() -> T + Send + 'static) -> T {
        let permit = self.0.clone();
        let drawn = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            draw()
        });
        drawn.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }
}

/// Runs CPU-heavy work on the current thread, while other tasks of the thread move to other
/// threads.
pub fn in_place<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|it| it.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    //! The bound on concurrent draws, also when clients disconnect.

    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    /// Abandoned requests run to the end if they have begun, and never begin otherwise.
    #[tokio::test]
    async fn draws_are_bounded_after_disconnects() {
        let pool = DrawPool { permits: Arc::new(Semaphore::new(2)) };
        let begun = Arc::new(AtomicUsize::new(0));
        let (begin, has_begun) = mpsc::channel();
        let (resume, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let draw = || {
            let (pool, begun) = (pool.clone(), Arc::clone(&begun));
            let (begin, held) = (begin.clone(), Arc::clone(&held));
            tokio::spawn(async move {
                let draw = move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    begin.send(()).unwrap();
                    held.lock().unwrap().recv().unwrap();
                };
                pool.permit().await.draw(draw).await;
            })
        };
        let abandoned: Vec<_> = (0..2).map(|_| draw()).collect();
        tokio::task::yield_now().await;
        let waiting: Vec<_> = (0..6).map(|_| draw()).collect();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        has_begun.recv().unwrap();
        for task in abandoned.iter().chain(&waiting[..5]) {
            task.abort();
        }
        assert_eq!(pool.permits.available_permits(), 0, "draws that have begun keep their permits");
        (0..3).for_each(|_| resume.send(()).unwrap());
        for task in waiting.into_iter().skip(5) {
            task.await.unwrap();
        }
        assert_eq!(begun.load(Ordering::SeqCst), 3, "five draws were abandoned before they began");
    }
}
