//! An HTTP request of an agent, whose response is passed on in parts.
//!
//! An error is passed on as the last part. Bytes that arrive while the session writes its log are joined to
//! one part, so that the next commit contains all of them. A bounded buffer gives backpressure: if the agent
//! falls behind, the connection is not read.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use backends::{HowLost, Lost, Request, ResponsePart};
use reqwest::{Client, Method, redirect};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

/// Maximum number of bytes of an HTTP response that wait for the agent.
const MAX_BUFFERED: usize = 256 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Number of steps into which the idle timeout of a request is divided.
const STEPS: u32 = 16;
/// Maximum delay of a timer on a busy machine. A longer delay means that the process was suspended.
const TIMER_DELAY: Duration = Duration::from_millis(500);

/// HTTP client of all model agents, which pools connections. It is created by the first request,
/// because it loads the certificates of the system.
#[derive(Default)]
pub(crate) struct HttpClient {
    client: OnceLock<Result<Client, Lost>>,
}

impl HttpClient {
    fn get(&self) -> Result<Client, Lost> {
        self.client.get_or_init(|| make_client().map_err(|error| lost(&error))).clone()
    }
}

/// Creates an HTTP client that does not follow redirects, because requests contain keys for one
/// host.
fn make_client() -> reqwest::Result<Client> {
    let agent = concat!("callboard/", env!("CARGO_PKG_VERSION"));
    let client = tools::http_client_builder().user_agent(agent).connect_timeout(CONNECT_TIMEOUT);
    client.redirect(redirect::Policy::none()).build()
}

/// A running HTTP request of a model agent. Dropping it closes its connection.
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
                Ok(client) => send(&client, request, &sender).await,
                Err(lost) => Err(lost),
            };
            let _ = sender.send(ResponsePart::Ended(ended)).await;
        });
        Self { task: task.abort_handle(), parts }
    }

    /// Waits for the next part of the HTTP response. There is none after [`ResponsePart::Ended`].
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

async fn send(
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
    let mut response = with_timeout(idle_timeout, outgoing.send()).await?;
    let headers = response.headers().iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let status = response.status().as_u16();
    let head = ResponsePart::Head { status, headers: headers.collect() };
    // Fails only if the request was dropped, which aborts this task.
    let _ = sender.send(head).await;
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            biased;
            Ok(permit) = sender.reserve(), if !waiting.is_empty() => {
                permit.send(ResponsePart::Bytes(std::mem::take(&mut waiting)));
            }
            chunk = with_timeout(idle_timeout, response.chunk()), if waiting.len() < MAX_BUFFERED => {
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
            // The request was dropped.
            else => return Ok(()),
        }
    }
}

/// Awaits `work` with a timeout, which is divided into steps. A step that took much longer than it
/// should does not count: the process was suspended, and received bytes may still be unread.
async fn with_timeout<T>(
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
        if began.elapsed() < step + TIMER_DELAY {
            steps_left -= 1;
        }
    }
    let message = format!("no data for {} seconds", idle_timeout.as_secs());
    Err(Lost { how: HowLost::TimedOut, message })
}

fn lost(error: &reqwest::Error) -> Lost {
    let how = match error {
        _ if error.is_timeout() => HowLost::TimedOut,
        _ if error.is_connect() || error.is_builder() => HowLost::NeverConnected,
        _ => HowLost::BrokeOff,
    };
    // The innermost error has the cause; the others only say where it happened.
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Lost { how, message: innermost.to_string() }
}

#[cfg(test)]
mod tests {
    //! Timeouts of services that send nothing.

    use super::*;

    const TIME_LIMIT: Duration = Duration::from_secs(7);

    #[tokio::test(start_paused = true)]
    async fn suspended_time_does_not_count_towards_the_timeout() {
        let (answer, received) = tokio::sync::oneshot::channel();
        let waiting = tokio::spawn(with_timeout(TIME_LIMIT, async { Ok(received.await.unwrap()) }));
        // All timers are overdue in every round, and the answer is still unread.
        for _ in 0..=STEPS {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        answer.send("here").unwrap();
        assert_eq!(waiting.await.unwrap(), Ok("here"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_service_times_out() {
        let began = Instant::now();
        let lost = with_timeout(TIME_LIMIT, std::future::pending::<reqwest::Result<()>>()).await;
        assert_eq!(lost.unwrap_err().how, HowLost::TimedOut);
        assert!(began.elapsed() >= TIME_LIMIT && began.elapsed() < TIME_LIMIT * 2);
    }
}
