//! `callboard serve`: opens the data folder, recovers interrupted sessions, serves requests until a
//! signal arrives, and shuts down in order.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use store::{OpenError, Options, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tools::Tools;
use tools::mcp::{McpServers, StoreFile};

use runtime::agents::tool_catalog::ToolCatalog;
use runtime::agents::{AgentCatalog, Agents, SHIPPED};
use runtime::clock;
use runtime::files::write_private;
use runtime::live::hub::Hub;
use runtime::live::pulse::Pulses;
use runtime::metrics::Metrics;
use runtime::passes::Passes;
use runtime::{Services, Sessions};
use web::{App, Edge, ProgramMcp, oldest_sign_in};

use crate::config::Config;
use crate::logging;

/// Limit on open files of the server, which include connections and programs.
const OPEN_FILES: u64 = 65_536;
const UPKEEP: Duration = Duration::from_secs(3600);
/// Interval of the checks that the files in the data folder were not removed or replaced.
const FILES_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which unused syntax grammars are unloaded.
const GRAMMARS_KEPT: Duration = Duration::from_secs(300);

/// Content of `server.json`: address and token of a running server. Only its owner may read the
/// file.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct ServerFile {
    pub(crate) address: String,
    pub(crate) token: String,
}

/// Access of a command to the sessions of a data folder.
pub(crate) enum DataAccess {
    /// The data folder itself, which this command has locked.
    Folder(Store),
    /// The running server that holds the data folder.
    Server(ServerFile),
}

impl DataAccess {
    /// Locks the data folder, or finds the running server that holds it. `holder` is the name of
    /// this command, which is shown to other processes that find the folder in use.
    pub(crate) fn open(config: &Config, holder: &str) -> anyhow::Result<Self> {
        match open_store(config, holder) {
            Ok(store) => Ok(Self::Folder(store)),
            Err(OpenError::Held { by, .. }) if by.address.is_some() => {
                let server = read_server_file(&config.data);
                let server = server.with_context(|| format!("finding the token of {by}"))?;
                Ok(Self::Server(server))
            }
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    logging::start(config.log);
    match &config.file {
        Some(file) => tracing::info!(file = %file.display(), "configuration read"),
        None => tracing::info!("no configuration file, the defaults are used"),
    }
    allow_many_connections();
    let store = open_store(&config, "callboard serve")?;
    // Installed before the ready line, because a reader of that line may send a signal immediately.
    let stop_signal = stop_signal()?;
    let raw_days = config.raw_days;
    let server = Server::start(store, config).await?;
    // A damaged table must not prevent the server from serving the others.
    let recovered = server.sessions.recover().await.unwrap_or_else(|error| {
        tracing::error!(%error, "cannot find interrupted sessions");
        0
    });
    if recovered > 0 {
        tracing::info!(sessions = recovered, "recovering interrupted sessions");
    }
    let upkeep = tokio::spawn(upkeep(server.store.clone(), raw_days));
    let agents = Arc::clone(&server.agents);
    tokio::spawn(async move { agents.examine().await });
    announce(server.address, &server.token)?;

    stop_signal.await;
    tracing::info!("stopping");
    upkeep.abort();
    server.stop().await
}

/// A server that runs in this process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    store: Store,
    agents: Arc<Agents>,
    sessions: Sessions,
    mcp: McpServers,
    serving: JoinHandle<()>,
    serving_tools: JoinHandle<std::io::Result<()>>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Starts a server in this process. Interrupted sessions are recovered only when
    /// [`Sessions::recover`] is called.
    pub(crate) async fn start(store: Store, config: Config) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(config.listen).await.with_context(|| {
            format!("{} cannot be listened on; choose another with --listen", config.listen)
        })?;
        let address = listener.local_addr()?;
        let token = choose_token(&config, address)?;
        store.set_address(&format!("http://{address}"))?;

        let owner = config.data.display().to_string();
        let mcp = McpServers::new(config.mcp_servers, &owner, &keep_in(&store));
        let tools_listener =
            ProgramMcp::bind().await.context("listening on loopback for programs")?;
        let passes = Passes::new(tools_listener.local_addr()?);
        let tools = Arc::new(Tools::new(config.tools, mcp.clone()));
        let hub = Arc::new(Hub::default());
        let agents = Arc::new(config.agents);
        let metrics = Arc::new(Metrics::default());
        let pulses = Arc::new(Pulses::default());
        let keeps_raw = config.raw_days > 0;
        write_shipped_files(&agents.shipped)?;
        let sessions = Services {
            store: store.clone(),
            hub: Arc::clone(&hub),
            agents: Arc::clone(&agents),
            tools: Arc::clone(&tools),
            policy: Arc::new(config.approvals),
            exchange_limits: config.exchanges,
            metrics: Arc::clone(&metrics),
            passes: Arc::clone(&passes),
            pulses: Arc::clone(&pulses),
            keeps_raw,
        };
        let sessions = sessions.start().await?;
        let (stop, stopping) = watch::channel(false);
        let edge = Edge {
            token: token.clone(),
            listen: address,
            public_url: config.public_url,
            allowed_origins: config.allowed_origins,
            data: config.data,
        };
        let program_mcp =
            ProgramMcp::serve(tools_listener, sessions.clone(), passes, stopping.clone());
        let serving_tools = tokio::spawn(program_mcp);
        let (alive, all_gone) = mpsc::channel(1);
        let parts = web::Parts {
            store: store.clone(),
            hub,
            sessions: sessions.clone(),
            agents: AgentCatalog::new(Arc::clone(&agents)),
            tools: ToolCatalog::new(tools),
            metrics,
            pulses,
            keeps_raw,
        };
        let app = App::new(parts, edge, alive, stopping.clone()).await?;
        app.end_outdated_sign_ins().await;
        tokio::spawn(app.watch_secrets());
        let serving = tokio::spawn(web::serve(listener, web::router(app), stopping, all_gone));
        Ok(Self { address, token, store, agents, sessions, mcp, serving, serving_tools, stop })
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        // Runs end before connections, so that subscribers still receive their ends.
        self.sessions.stop().await;
        self.mcp.stop().await;
        let _ = self.stop.send(true);
        self.serving.await.context("serving")?;
        self.serving_tools.await.context("serving programs")??;
        self.store.close().await;
        Ok(())
    }
}

/// Returns a function that stores files from the results of MCP servers.
fn keep_in(store: &Store) -> StoreFile {
    let store = store.clone();
    Arc::new(move |bytes| {
        let store = store.clone();
        Box::pin(async move {
            let kept = store.put_blob(bytes, clock::now()).await;
            kept.map_err(|error| error.to_string())
        })
    })
}

fn open_store(config: &Config, holder: &str) -> Result<Store, OpenError> {
    let options =
        Options { sync: config.sync, server: None, holder: holder.to_owned(), since: clock::now() };
    Store::open(&config.data, options)
}

/// Maintains the data of the server until it is aborted: deletes unreferenced uploads after a day
/// and raw lines after `raw_days`, checks the data folder, and unloads unused grammars.
async fn upkeep(store: Store, raw_days: u32) {
    let mut hours = tokio::time::interval(UPKEEP);
    let mut minutes = tokio::time::interval(GRAMMARS_KEPT);
    let mut seconds = tokio::time::interval(FILES_CHECK_INTERVAL);
    loop {
        tokio::select! {
            // The check logs its findings, and writers check on their own.
            _ = seconds.tick() => drop(store.check_files()),
            _ = minutes.tick() => render::code::unload_unused(),
            _ = hours.tick() => sweep(&store, raw_days).await,
        }
    }
}

async fn sweep(store: &Store, raw_days: u32) {
    store.fill_reserve().await;
    if let Err(error) = store.remove_sign_ins_before(oldest_sign_in(clock::now())).await {
        tracing::warn!(%error, "cannot remove expired sign-ins");
    }
    if let Err(error) = store.sweep_blobs(clock::now()).await {
        tracing::warn!(%error, "cannot remove unreferenced uploads");
    }
    let before = clock::now().minus_days(raw_days);
    while !store.sweep_raw(before).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot remove old raw lines");
        true
    }) {}
}

/// Writes the files that Callboard ships for program agents to `folder`, in the version of this
/// build.
fn write_shipped_files(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for (name, text) in SHIPPED {
        let path = folder.join(name);
        unless_full(&path, write_private(&path, text))?;
    }
    Ok(())
}

/// Installs handlers for Ctrl-C and SIGTERM, and returns a future that completes at the first
/// signal.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
        }
    })
}

/// Returns the access token: the configured token, or the previous one, so that open pages stay
/// signed in, or a new one. Writes it to `server.json`.
fn choose_token(config: &Config, address: SocketAddr) -> anyhow::Result<String> {
    let path = server_file(&config.data);
    let kept = || read_server_file(&config.data).map(|it| it.token);
    let token = config.token.clone().or_else(kept).unwrap_or_else(clock::new_token);
    let file = ServerFile { address: format!("http://{address}"), token: token.clone() };
    unless_full(&path, write_private(&path, &serde_json::to_string(&file)?))?;
    Ok(token)
}

/// Accepts a failure to write a file on a full disk, so that the server starts and sessions can be
/// read and deleted.
fn unless_full(path: &Path, written: std::io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            let file = path.display();
            tracing::warn!(%file, "the disk is full: the file was not written; free some space");
            Ok(())
        }
        written => written.with_context(|| format!("writing {}", path.display())),
    }
}

fn read_server_file(data: &Path) -> Option<ServerFile> {
    let text = std::fs::read_to_string(server_file(data)).ok()?;
    serde_json::from_str(&text).ok()
}

fn server_file(data: &Path) -> std::path::PathBuf {
    data.join("server.json")
}

/// Raises the limit on open files, because every connection is an open file and the default limit
/// of shells is low. The limit is not raised further, because programs inherit it, and some close
/// every possible file descriptor at their start, which takes minutes with a very high limit.
fn allow_many_connections() {
    let limit = getrlimit(Resource::Nofile);
    let enough = limit.maximum.map_or(OPEN_FILES, |it| it.min(OPEN_FILES));
    let current = Some(limit.current.map_or(OPEN_FILES, |it| it.max(enough)));
    let raised = Rlimit { current, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
}

/// Prints the ready line, the only output of the server on standard output.
#[expect(clippy::print_stdout, reason = "the ready line is our interface")]
fn announce(address: SocketAddr, token: &str) -> anyhow::Result<()> {
    println!("callboard listening on http://{address}/?token={token}");
    std::io::stdout().flush().context("writing the ready line")
}
