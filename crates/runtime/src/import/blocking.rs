//! Runs imports on blocking threads, because parsing a large file takes seconds of CPU time. An import is
//! cancelled when its caller drops it.

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;

/// Maximum number of concurrent imports, each of which holds its file and all records in memory.
const MAX_IMPORTS: usize = 2;
static PERMITS: Semaphore = Semaphore::const_new(MAX_IMPORTS);

/// Maximum number of JSON objects in an imported file. A short message needs about a kilobyte
/// during its import, so this bounds memory where the file size does not.
pub const OBJECTS_MAX: usize = 1_500_000;

/// Runs an import on a blocking thread. Dropping the returned future cancels the import at its next
/// await, and its staged rows are deleted. Returns `None` if the import was cancelled.
pub async fn run_blocking<T: Send + 'static>(
    import: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    // The semaphore is never closed. A cancelled import keeps its permit until it has ended.
    let permit = PERMITS.acquire().await;
    let (_caller, gone) = oneshot::channel::<()>();
    let runtime = Handle::current();
    let work = move || {
        let _permit = permit;
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = gone => None,
                done = import => Some(done),
            }
        })
    };
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

/// Returns whether an imported text has more than [`OBJECTS_MAX`] JSON objects. Braces in strings
/// do not count.
pub fn has_too_many_objects(text: &str) -> bool {
    let (mut n_objects, mut in_string) = (0, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => drop(bytes.next()),
            b'{' if !in_string => n_objects += 1,
            _ => (),
        }
        if n_objects > OBJECTS_MAX {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{OBJECTS_MAX, has_too_many_objects};

    #[test]
    fn objects_are_counted_outside_of_strings() {
        assert!(!has_too_many_objects(&"{}\n".repeat(OBJECTS_MAX)));
        assert!(has_too_many_objects(&"{}\n".repeat(OBJECTS_MAX + 1)));
        let text = format!(r#"["\"{}"]"#, "{".repeat(OBJECTS_MAX + 1));
        assert!(!has_too_many_objects(&text));
    }

    #[tokio::test]
    async fn an_import_ends_with_its_caller() {
        let (alive, mut ended) = tokio::sync::oneshot::channel::<()>();
        let import = super::run_blocking(async move {
            let _alive = alive;
            std::future::pending::<()>().await;
        });
        {
            let mut import = std::pin::pin!(import);
            tokio::select! {
                biased;
                _ = import.as_mut() => panic!("the import never ends"),
                () = tokio::task::yield_now() => (),
            }
            assert!(
                ended
                    .try_recv()
                    .is_err_and(|it| it == tokio::sync::oneshot::error::TryRecvError::Empty)
            );
        }
        assert!(ended.await.is_err(), "the import was dropped");
    }
}
