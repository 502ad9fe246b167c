//! `callboard serve`: opens the data folder, brings back what was left undone, serves until it is
//! told to stop, and stops in good order.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use store::{Options, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tracing_subscriber::filter::LevelFilter;
use transcript::Millis;

use crate::agents::SHIPPED;
use crate::clock;
use crate::config::Config;
use crate::files::write_private;
use crate::http::{self, App, Edge};
use crate::live::Hub;
use crate::metrics::Metrics;
use crate::session::{HttpClient, Pulses, Sessions, Shared, end_survivors};
use crate::tools::Tools;

const UPKEEP: Duration = Duration::from_secs(3600);
/// In milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Where a running server is found, and by what right: only its owner may read the file.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct ServerFile {
    pub(crate) address: String,
    pub(crate) token: String,
}

pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    start_logging(config.log);
    allow_many_connections();
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
        tools: Tools::built_in(config.tools),
        approvals: config.approvals,
        metrics: Metrics::new(),
        http: HttpClient::default(),
        keeps_raw: config.raw_days > 0,
        pulses: Pulses::default(),
    });
    // Before any session goes on: nothing of an earlier server may be at work.
    end_survivors(&store).await?;
    ship(&shared.agents.shipped)?;
    let sessions = Sessions::new(Arc::clone(&shared));
    let recovered = sessions.recover()?;
    if recovered > 0 {
        tracing::info!(sessions = recovered, "taking up what was left undone");
    }
    let (stop, stopping) = watch::channel(false);
    let edge = Edge {
        token: token.clone(),
        listen: address,
        public_url: config.public_url,
        allowed_origins: config.allowed_origins,
        data: config.data,
    };
    let (alive, all_gone) = mpsc::channel(1);
    let app = App::new(shared, sessions.clone(), edge, alive, stopping.clone())?;
    // Before the ready line: whoever reads it may tell us to stop at once.
    let told_to_stop = told_to_stop()?;
    let server = tokio::spawn(http::serve(listener, http::router(app), stopping, all_gone));
    let upkeep = tokio::spawn(upkeep(store.clone(), config.raw_days));
    announce(address, &token)?;

    told_to_stop.await;
    tracing::info!("stopping");
    // Runs end first, so that whoever watches still sees how.
    sessions.stop().await;
    let _ = stop.send(true);
    server.await.context("serving")?;
    upkeep.abort();
    store.close().await;
    Ok(())
}

/// Files that were put and never named in a message go after a day, and what programs wrote after as
/// many as are set.
async fn upkeep(store: Store, raw_days: u32) {
    let mut hours = tokio::time::interval(UPKEEP);
    loop {
        hours.tick().await;
        if let Err(error) = store.sweep_blobs(clock::now()).await {
            tracing::warn!(%error, "files that nobody named could not be removed");
        }
        let before = Millis(clock::now().0 - i64::from(raw_days) * DAY);
        while !store.sweep_raw(before).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "old lines of programs could not be removed");
            true
        }) {}
    }
}

/// Writes the files that programs are started with, as they belong to this version of ours.
fn ship(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for (name, text) in SHIPPED {
        let path = folder.join(name);
        write_private(&path, text).with_context(|| format!("writing {}", path.display()))?;
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

/// 122 random bits from the system.
fn new_token() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// The one line on standard output, for people and for programs that start us.
/// Every connection is an open file, and what a shell allows by default is soon used up.
fn allow_many_connections() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the number of open files stays limited");
    }
}

#[expect(clippy::print_stdout, reason = "the ready line is our interface")]
fn announce(address: SocketAddr, token: &str) -> anyhow::Result<()> {
    println!("callboard listening on http://{address}/?token={token}");
    std::io::stdout().flush().context("writing the ready line")
}

/// Standard error, for people; the filter is a plain level, so no pattern language comes along.
fn start_logging(level: LevelFilter) {
    use tracing_subscriber::prelude::*;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    // A file or a journal has no colours.
    let lines = lines.with_ansi(std::io::stderr().is_terminal());
    let _ = tracing_subscriber::registry().with(lines.with_filter(level)).try_init();
}
