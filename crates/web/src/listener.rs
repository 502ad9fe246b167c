//! Connections: accepting, limits and shutdown.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tower::Service;

/// Time limit for receiving the headers of an HTTP request.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size in bytes of all headers of an HTTP request together.
const HEADERS_MAX: usize = 64 * 1024;
/// Size in bytes of a connection's send buffer; the system allocates twice this. It bounds the
/// memory for a connection that does not read, which would otherwise be several megabytes.
const SEND_BUFFER: usize = 512 * 1024;
/// Time that HTTP connections and WebSockets have to end when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after an HTTP connection could not be accepted, for example for lack of file handles.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Stop signal for connections and long responses. When the server stops, it waits until every
/// clone is dropped.
#[derive(Clone)]
pub(crate) struct StopSignal {
    stopping: watch::Receiver<bool>,
    /// Sender that is dropped with the last clone, when the last connection ends.
    _alive: mpsc::Sender<()>,
}

impl StopSignal {
    pub(crate) fn new(stopping: watch::Receiver<bool>, alive: mpsc::Sender<()>) -> Self {
        Self { stopping, _alive: alive }
    }

    /// Returns the signal for a task that the server does not wait for.
    pub(crate) fn detached(&self) -> watch::Receiver<bool> {
        self.stopping.clone()
    }

    /// Waits until the server stops. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        // The value changes only once, to true.
        let _ = self.stopping.changed().await;
    }
}

/// Serves HTTP connections until `stopping` changes, then lets requests in progress finish.
/// `all_gone` completes when the last connection, including WebSockets, has dropped its sender.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    mut stopping: watch::Receiver<bool>,
    mut all_gone: mpsc::Receiver<()>,
) {
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    tokio::spawn(connect(stream, peer, router.clone(), stopping.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            },
            _ = stopping.changed() => break,
        }
    }
    drop((listener, router));
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, all_gone.recv()).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
}

/// Serves one HTTP connection. Connection errors are caused by clients and are not logged.
async fn connect(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    // A delta is small and must not wait for the next one.
    let _ = stream.set_nodelay(true);
    let _ = socket2::SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .max_buf_size(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
