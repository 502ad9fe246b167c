//! An HTTP request of an agent: sent, and its answer handed on piece by piece.
//!
//! It cannot fail: what goes wrong is the last thing that is handed on. What comes while the session
//! writes its log is joined and handed on as one piece, so that a commit takes all there is; an agent
//! that stays behind holds the connection up, not the memory.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use backends::{HowLost, Lost, Request, ResponsePart};
use reqwest::{Client, Method, redirect};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

/// How much of an answer may wait for the agent.
const WAITING_BYTES: usize = 256 * 1024;
const CONNECT: Duration = Duration::from_secs(15);
/// Into how many parts a wait is divided.
const STEPS: u32 = 16;
/// How late a timer may be on a busy machine.
const HICCUP: Duration = Duration::from_millis(500);

/// One client for all requests, which keeps connections for the next. Made when the first request
/// is sent: it reads all certificates of the system, which a server with the demo agent never needs.
#[derive(Default)]
pub(crate) struct HttpClient {
    made: OnceLock<Result<Client, Lost>>,
}

impl HttpClient {
    fn get(&self) -> Result<Client, Lost> {
        self.made.get_or_init(|| make_client().map_err(|error| lost(&error))).clone()
    }
}

/// Redirects are not followed: what is sent holds keys, which are meant for one host alone.
fn make_client() -> reqwest::Result<Client> {
    let agent = concat!("callboard/", env!("CARGO_PKG_VERSION"));
    let client = tools::http_client_builder().user_agent(agent).connect_timeout(CONNECT);
    client.redirect(redirect::Policy::none()).build()
}

/// A request on its way. Dropping it closes its connection.
pub(super) struct RunningRequest {
    task: AbortHandle,
    parts: mpsc::Receiver<ResponsePart>,
}

impl RunningRequest {
    pub(super) fn start(http: &HttpClient, request: Request) -> Self {
        let (sender, parts) = mpsc::channel(1);
        let client = http.get();
        let task = tokio::spawn(async move {
            let ended = match client {
                Ok(client) => exchange(&client, request, &sender).await,
                Err(lost) => Err(lost),
            };
            let _ = sender.send(ResponsePart::Ended(ended)).await;
        });
        Self { task: task.abort_handle(), parts }
    }

    /// Returns the next part. There is none after [`ResponsePart::Ended`].
    pub(super) async fn next(&mut self) -> ResponsePart {
        self.parts.recv().await.unwrap_or_else(|| {
            let message = "the request was dropped".to_owned();
            ResponsePart::Ended(Err(Lost { how: HowLost::BrokeOff, message }))
        })
    }

    pub(super) fn try_next(&mut self) -> Option<ResponsePart> {
        self.parts.try_recv().ok()
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn exchange(
    client: &Client,
    request: Request,
    sender: &mpsc::Sender<ResponsePart>,
) -> Result<(), Lost> {
    let idle_timeout = Duration::from_millis(request.idle_timeout_ms);
    let method = Method::from_bytes(request.method.as_bytes()).unwrap_or(Method::POST);
    let mut outgoing = client.request(method, &request.url).body(request.body.to_string());
    for (name, value) in &request.headers {
        outgoing = outgoing.header(name, value);
    }
    let mut response = within(idle_timeout, outgoing.send()).await?;
    let headers = response.headers().iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let status = response.status().as_u16();
    let head = ResponsePart::Head { status, headers: headers.collect() };
    // A receiver that is gone drops this task too.
    let _ = sender.send(head).await;
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            biased;
            Ok(permit) = sender.reserve(), if !waiting.is_empty() => {
                permit.send(ResponsePart::Bytes(std::mem::take(&mut waiting)));
            }
            chunk = within(idle_timeout, response.chunk()), if waiting.len() < WAITING_BYTES => {
                match chunk {
                    Ok(Some(bytes)) => waiting.extend_from_slice(&bytes),
                    ended => {
                        if !waiting.is_empty() {
                            let _ = sender.send(ResponsePart::Bytes(waiting)).await;
                        }
                        return ended.map(|_| ());
                    }
                }
            }
            // Nobody listens any more.
            else => return Ok(()),
        }
    }
}

/// Waits in steps. A step that took much longer than it should was not waited through: the process was
/// stopped, and what came meanwhile is still to be read. It does not count.
async fn within<T>(
    idle_timeout: Duration,
    work: impl Future<Output = reqwest::Result<T>>,
) -> Result<T, Lost> {
    let mut work = std::pin::pin!(work);
    let (step, mut steps_left) = (idle_timeout / STEPS, STEPS);
    while steps_left > 0 {
        let began = Instant::now();
        if let Ok(done) = timeout(step, &mut work).await {
            return done.map_err(|error| lost(&error));
        }
        if began.elapsed() < step + HICCUP {
            steps_left -= 1;
        }
    }
    let message = format!("nothing came for {} seconds", idle_timeout.as_secs());
    Err(Lost { how: HowLost::TimedOut, message })
}

fn lost(error: &reqwest::Error) -> Lost {
    let how = match error {
        _ if error.is_timeout() => HowLost::TimedOut,
        _ if error.is_connect() || error.is_builder() => HowLost::NeverConnected,
        _ => HowLost::BrokeOff,
    };
    // The innermost error says what happened; the others only where.
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Lost { how, message: innermost.to_string() }
}

#[cfg(test)]
mod tests {
    //! How long a silent service is waited for.

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(7);

    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_process_was_stopped_does_not_count() {
        let (answer, come) = tokio::sync::oneshot::channel();
        let waiting = tokio::spawn(within(PATIENCE, async { Ok(come.await.unwrap()) }));
        // However often: all timers are overdue, and the answer is still to be read.
        for _ in 0..=STEPS {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        answer.send("here").unwrap();
        assert_eq!(waiting.await.unwrap(), Ok("here"));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_times_out() {
        let began = Instant::now();
        let lost = within(PATIENCE, std::future::pending::<reqwest::Result<()>>()).await;
        assert_eq!(lost.unwrap_err().how, HowLost::TimedOut);
        assert!(began.elapsed() >= PATIENCE && began.elapsed() < PATIENCE * 2);
    }
}
