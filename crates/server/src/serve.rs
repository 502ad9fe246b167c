//! `callboard serve`: opens the data folder, brings back what was left undone, serves until it is
//! told to stop, and stops in good order.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::serve::ListenerExt;
use store::{Options, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::clock;
use crate::config::Config;
use crate::http::{self, App};
use crate::live::Hub;
use crate::session::{Sessions, Shared};
use crate::tools::Tools;

/// How long connections may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// What the system holds for a connection that does not read, before we notice; it takes twice
/// what it is told. Without a bound it would hold several megabytes for each.
const SEND_BUFFER: usize = 512 * 1024;

/// Where a running server is found, and by what right: only its owner may read the file.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct ServerFile {
    pub(crate) address: String,
    pub(crate) token: String,
}

pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    start_logging();
    let options =
        Options { sync: config.sync, holder: "callboard serve".to_owned(), since: clock::now() };
    let store = Store::open(&config.data, options)?;
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!("listening on {}: choose another address with --listen", config.listen)
    })?;
    let address = listener.local_addr()?;
    let token = settle_token(&config, address)?;
    store.set_address(&format!("http://{address}"))?;

    let shared = Arc::new(Shared {
        store: store.clone(),
        hub: Hub::new(),
        agents: config.agents,
        tools: Tools::built_in(),
    });
    let sessions = Sessions::new(Arc::clone(&shared));
    let recovered = sessions.recover()?;
    if recovered > 0 {
        tracing::info!(sessions = recovered, "taking up what was left undone");
    }
    // Before the ready line: whoever reads it may tell us to stop at once.
    let told_to_stop = told_to_stop()?;
    announce(address, &token)?;
    serve_until(told_to_stop, listener, shared, sessions, token, address).await?;
    store.close().await;
    Ok(())
}

async fn serve_until(
    told_to_stop: impl Future<Output = ()>,
    listener: TcpListener,
    shared: Arc<Shared>,
    sessions: Sessions,
    token: String,
    address: SocketAddr,
) -> anyhow::Result<()> {
    let (stop, stopping) = watch::channel(false);
    let app = App::new(shared, sessions.clone(), token, address, stopping.clone());
    let listener = listener.tap_io(|stream| {
        // A delta is small and must not wait for the next one.
        let _ = stream.set_nodelay(true);
        let _ = socket2::SockRef::from(&*stream).set_send_buffer_size(SEND_BUFFER);
    });
    let mut stopped = stopping.clone();
    let server = axum::serve(listener, http::router(app)).with_graceful_shutdown(async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    });
    let server = tokio::spawn(server.into_future());

    told_to_stop.await;
    tracing::info!("stopping");
    // Runs end first, so that whoever watches still sees how.
    sessions.stop().await;
    let _ = stop.send(true);
    if tokio::time::timeout(GRACE, server).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
    Ok(())
}

/// Ends with Ctrl-C or SIGTERM, which are ours from here on.
fn told_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
        }
    })
}

/// The token that was given, else the one of the last time, so that open pages stay signed in,
/// else a new one.
fn settle_token(config: &Config, address: SocketAddr) -> anyhow::Result<String> {
    let path = server_file(&config.data);
    let kept = || read_server_file(&config.data).map(|it| it.token);
    let token = config.token.clone().or_else(kept).unwrap_or_else(new_token);
    let file = ServerFile { address: format!("http://{address}"), token: token.clone() };
    write_private(&path, &serde_json::to_string(&file)?)
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(token)
}

pub(crate) fn read_server_file(data: &Path) -> Option<ServerFile> {
    let text = std::fs::read_to_string(server_file(data)).ok()?;
    serde_json::from_str(&text).ok()
}

fn server_file(data: &Path) -> std::path::PathBuf {
    data.join("server.json")
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// 122 random bits from the system.
fn new_token() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// The one line on standard output, for people and for programs that start us.
#[expect(clippy::print_stdout, reason = "the ready line is our interface")]
fn announce(address: SocketAddr, token: &str) -> anyhow::Result<()> {
    println!("callboard listening on http://{address}/?token={token}");
    std::io::stdout().flush().context("writing the ready line")
}

/// Standard error, for people; the filter is a plain level, so no pattern language comes along.
fn start_logging() {
    use tracing_subscriber::prelude::*;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let filter = tracing_subscriber::filter::LevelFilter::INFO;
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}
